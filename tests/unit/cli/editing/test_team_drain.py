"""Claims that `ucp team remove` deletes by commit, and its report of claims that remain."""

from __future__ import annotations

from typing import Any

from k8s_ucp.cli.editing.team_drain import without_claims
from k8s_ucp.inspect.resource_conditions import stuck


def claim(**metadata: Any) -> dict[str, Any]:
    reference = {"apiVersion": "rds.aws.m.upbound.io/v1beta1", "kind": "Instance", "name": "db"}
    return {
        "kind": "Postgres",
        "metadata": {"name": "shop-orders", **metadata},
        "spec": {"crossplane": {"resourceRefs": [reference]}},
    }


def test_claims_are_deleted_and_their_folder_is_kept() -> None:
    files = {"claims/README.md": b"", "claims/a.yaml": b"", "apps/x.yaml": b"", "README.md": b""}
    assert without_claims(files) == {"claims/a.yaml": None}
    assert without_claims({"claims/a/b.yaml": b""}) == {
        "claims/README.md": b"# Claims\n",
        "claims/a/b.yaml": None,
    }
    assert without_claims({"apps/x.yaml": b""}) == {}


def test_a_stuck_claim_is_reported_with_its_resources_last_error() -> None:
    instance = {
        "kind": "Instance",
        "metadata": {"name": "db"},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "message": "fine"},
                {"type": "Synced", "status": "False", "message": "deletion protection is on"},
            ]
        },
    }
    (words,) = stuck([claim(deletionTimestamp="now")], lambda _: instance)
    assert words == "Postgres shop-orders (Instance db: deletion protection is on)"


def test_a_claim_that_was_not_deleted_is_distinguished_from_one_being_deleted() -> None:
    (words,) = stuck([claim()])
    assert "it was not deleted" in words
    (words,) = stuck([claim(deletionTimestamp="now")])
    assert words == "Postgres shop-orders (it is being deleted)"
