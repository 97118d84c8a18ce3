"""When a resource of an old core counts as observed."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.steps.backup.adopt_resources import unseen


def resource(status: str, message: str = "", reason: str = "ReconcileError") -> dict[str, Any]:
    condition = {"type": "Synced", "status": status, "reason": reason, "message": message}
    return {"status": {"conditions": [condition]}}


def test_the_cloud_has_it_or_has_it_no_more() -> None:
    assert unseen(resource("True")) == ""
    said = "observe failed: the external resource does not exist"
    assert unseen(resource("False", said)) == ""


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"status": {"conditions": []}},
        resource("False", "cannot get referenced ClusterProviderConfig default: it does not exist"),
        resource("False", "an account that may not look: AccessDenied"),
        resource("False"),
    ],
)
def test_until_then_it_is_waited_for(item: dict[str, Any]) -> None:
    assert unseen(item) != ""
