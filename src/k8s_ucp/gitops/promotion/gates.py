"""Gates: conditions on other environments that a promotion requires. Pure decisions.

The gate in git compares with another environment's overlay at the same commit. The health gate
classifies an Argo CD Application that the caller has read.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, read_tree
from k8s_ucp.sync_status import sync_of

ENVIRONMENTS_FILE = "environments.yaml"


def promotes_from(text: str | None, env: str) -> str:
    """The environment that `env` promotes from; "" if none is set.

    text: the app repository's environments.yaml, None if it doesn't exist. Raises NotEditable.
    """
    if text is None or not text.strip():
        return ""
    root = read_tree(text, ENVIRONMENTS_FILE)
    pair = root.own("environments") if root.kind == "map" else None
    listed = pair[1] if pair else root
    for item in listed.items:
        if item.kind == "map" and item.text("name") == env:
            return item.text("promotesFrom")
    for key, value in listed.pairs:
        if key.value == env and value.kind == "map":
            return value.text("promotesFrom")
    if listed.kind == "scalar" and listed.value:
        raise NotEditable(f"{ENVIRONMENTS_FILE} lists no environments")
    return ""


def earlier_environment(text: str | None, env: str, known: Collection[str]) -> str:
    """The closest environment before `env`, by promotesFrom, in which the app exists.

    "" if there is none. text: as in promotes_from. Raises NotEditable.
    """
    passed = {env}
    source = promotes_from(text, env)
    while source and source not in known and source not in passed:
        passed.add(source)
        source = promotes_from(text, source)
    return source if source in known else ""


def differing(requested: Mapping[str, Pin], deployed: Mapping[str, Pin]) -> list[str]:
    """Images whose requested version differs from the required environment's, as messages."""
    return [
        f"it has {image} with {deployed[image]}, not {pin}"
        if image in deployed
        else f"it has no image {image}"
        for image, pin in requested.items()
        if deployed.get(image) != pin
    ]


@dataclass(frozen=True)
class ApplicationHealth:
    """What an Application reports about an environment.

    open: Synced and Healthy with every requested image, since `since` (UTC). waiting: it may
    become so without intervention. shut: it won't.
    """

    state: Literal["open", "waiting", "shut"]
    reason: str
    since: datetime.datetime | None = None


def classify(application: Mapping[str, Any], requested: Mapping[str, Pin]) -> ApplicationHealth:
    """Classify an Application's status for the images to promote from its environment.

    requested: by the image name in pods, which is `newName` if the overlay sets one.
    """
    status = application.get("status") or {}
    sync = sync_of(application)
    health = (status.get("health") or {}).get("status", "Unknown")
    images = (status.get("summary") or {}).get("images") or []
    words = f"{sync}, {health}"
    if health in ("Degraded", "Missing"):
        return ApplicationHealth("shut", words)
    if sync != "Synced" or health != "Healthy":
        return ApplicationHealth("waiting", words)
    for name, pin in requested.items():
        if not any(_runs(image, name, pin) for image in images):
            return ApplicationHealth(
                "waiting", f"{words}, but not with {name} {pin}: {', '.join(images) or 'no image'}"
            )
    return ApplicationHealth("open", words, _latest(status))


def _runs(image: str, name: str, pin: Pin) -> bool:
    """A pod's image reference, `name:tag@digest`, is that image at that version."""
    reference, _, digest = image.partition("@")
    if pin.digest:
        return digest == pin.digest and (reference == name or reference.startswith(f"{name}:"))
    return not digest and reference == f"{name}:{pin.tag}"


def _latest(status: Mapping[str, Any]) -> datetime.datetime | None:
    """Time of the current state: the latest change of health or end of a sync."""
    texts = [
        (status.get("health") or {}).get("lastTransitionTime"),
        (status.get("operationState") or {}).get("finishedAt"),
    ]
    texts += [each.get("deployedAt") for each in (status.get("history") or [])[-1:]]
    times = [datetime.datetime.fromisoformat(text) for text in texts if text]
    return max(times, default=None)
