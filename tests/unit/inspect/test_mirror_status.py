"""Syncers as shown by `ucp status` and `ucp mirror list`."""

from __future__ import annotations

from typing import Any

from k8s_ucp.inspect.mirror_status import mirror_details, mirror_rows


def condition(type: str, status: str, reason: str = "Synced", message: str = "m") -> dict[str, Any]:
    return {"type": type, "status": status, "reason": reason, "message": message}


SYNCER = {
    "metadata": {"name": "db", "namespace": "ucp-clusters"},
    "spec": {
        "data": [
            {"sourceName": "db-conn", "targetCluster": "demo-stage", "targetNamespace": "q"},
            {
                "sourceSelector": {"matchLabels": {"a": "b"}},
                "sourceNamespace": "crossplane-system",
                "kinds": "configmap",
                "targetSelector": {},
                "targetNamespace": "q",
            },
        ]
    },
    "status": {
        "copies": 3,
        "synced": 2,
        "conditions": [condition("Ready", "False", "Taken", "somebody else's")],
        "targets": [
            {"cluster": "demo-prod", "conditions": [condition("Synced", "False", "Taken", "why")]},
            {"cluster": "demo-stage", "conditions": [condition("Synced", "True")]},
        ],
    },
}
NEW = {"metadata": {"name": "a", "namespace": "ucp-clusters"}, "spec": {"data": []}}


def test_mirror_rows_have_the_documented_fields() -> None:
    assert mirror_rows([SYNCER, NEW]) == [
        {"name": "a", "ready": False, "targets": []},
        {
            "name": "db",
            "ready": False,
            "targets": [
                {"cluster": "demo-prod", "ready": False, "message": "why"},
                {"cluster": "demo-stage", "ready": True, "message": "m"},
            ],
        },
    ]


def test_mirror_details_include_sources_copies_and_messages() -> None:
    new, db = mirror_details([SYNCER, NEW])
    assert new["message"] == "not reconciled yet"
    assert db["sources"] == ["secret ucp-clusters/db-conn", "configmap crossplane-system/a=b"]
    assert (db["copies"], db["synced"], db["message"]) == (3, 2, "Taken: somebody else's")
