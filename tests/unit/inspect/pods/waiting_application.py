"""An Application whose pods don't run yet."""

from __future__ import annotations

WAITING = {
    "metadata": {"name": "web-stage"},
    "spec": {"destination": {"name": "demo-stage", "namespace": "shop"}},
    "status": {
        "sync": {"status": "Synced"},
        "health": {"status": "Progressing"},
        "resources": [
            {
                "kind": "Deployment",
                "namespace": "shop",
                "name": "web",
                "health": {"status": "Progressing", "message": "Waiting for rollout to finish"},
            }
        ],
    },
}
