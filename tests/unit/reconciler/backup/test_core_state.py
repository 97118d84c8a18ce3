"""External names of composed resources: backed up by claim and part, restored on a new core."""

from __future__ import annotations

from typing import Any, cast

import pytest

from k8s_ucp.kube import CONFIG_MAP, Kind, Kube, Object
from k8s_ucp.reconciler.backup.core_state import CoreState
from k8s_ucp.reconciler.backup_content import EXTERNAL_NAMES, Backup, updated

GROUP = "ec2.aws.m.upbound.io"
KEY = f"SecurityGroup.{GROUP}/ucp-clusters/quotes-stage-firewall"


class Core:
    """An API server with security groups. preferred: the group's preferred version."""

    def __init__(self, *groups: Object, preferred: str = "v1beta1") -> None:
        self.groups = groups
        self.preferred = preferred

    def request(self, method: str, path: str, timeout: float = 0) -> dict[str, Any]:
        versions = [
            {"groupVersion": f"{GROUP}/{each}"} for each in sorted({self.preferred, "v1beta1"})
        ]
        preferred = {"groupVersion": f"{GROUP}/{self.preferred}"}
        if path == "/apis":
            group = {"name": GROUP, "preferredVersion": preferred, "versions": versions}
            return {"groups": [group]}
        if not path.endswith("/v1beta1"):
            return {"resources": []}
        kind = {"kind": "SecurityGroup", "name": "securitygroups", "namespaced": True}
        return {"resources": [{**kind, "categories": ["managed"]}]}

    def list_all(
        self, kind: Kind, namespace: str | None = None, *, labels: str | None = None
    ) -> list[Object]:
        if kind.kind != "SecurityGroup":
            return []
        return [
            each
            for each in self.groups
            if labels is None or labels in (each["metadata"].get("labels") or {})
        ]

    def find(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        if kind is CONFIG_MAP:
            return {"data": {EXTERNAL_NAMES: "yes"}}
        return next((each for each in self.groups if each["metadata"]["name"] == name), None)

    def patch(self, kind: Kind, name: str, namespace: str | None, change: Object) -> None:
        found = self.find(kind, name)
        assert found
        found["metadata"].setdefault("annotations", {}).update(change["metadata"]["annotations"])


def group(
    name: str, *, known_as: str = "", created: bool = False, claim: str = "quotes-stage"
) -> Object:
    notes = {"crossplane.io/composition-resource-name": "firewall"}
    if known_as:
        notes["crossplane.io/external-name"] = known_as
    if created:
        notes["crossplane.io/external-create-succeeded"] = "2026-01-01T00:00:00Z"
    return {
        "metadata": {
            "name": name,
            "namespace": "ucp-clusters",
            "labels": {"crossplane.io/composite": claim},
            "annotations": notes,
        }
    }


def state(*groups: Object) -> CoreState:
    return CoreState(cast(Kube, Core(*groups)), (), ())


def test_a_recreated_core_restores_the_external_names_of_the_old_one() -> None:
    # A core of an older version gave the object a random name.
    kept = (
        state(group("quotes-stage-x7k2p", known_as="sg-1", created=True)).collect().external_names
    )
    assert kept == {KEY: "sg-1"}
    other = group("orders-stage-firewall", claim="orders-stage")
    for name in ("quotes-stage-firewall", "quotes-stage-9zzzz"):
        new = group(name)
        assert state(other, new).restore_external_names(kept) == frozenset()
        assert new["metadata"]["annotations"]["crossplane.io/external-name"] == "sg-1"
    assert "crossplane.io/external-name" not in other["metadata"]["annotations"]
    assert state(other).restore_external_names(kept) == {KEY}


def test_a_part_of_a_composition_may_have_slashes_in_its_name() -> None:
    part = {"crossplane.io/composition-resource-name": "network/firewall"}
    old = group("quotes-stage-x7k2p", known_as="sg-1", created=True)
    old["metadata"]["annotations"] |= part
    key = f"SecurityGroup.{GROUP}/ucp-clusters/quotes-stage-network/firewall"
    kept = state(old).collect().external_names
    assert kept == {key: "sg-1"}
    assert state().is_deleted(EXTERNAL_NAMES, key)
    assert not state(old).is_deleted(EXTERNAL_NAMES, key)
    new = group("quotes-stage-9zzzz")
    new["metadata"]["annotations"] |= part
    assert state(new).restore_external_names(kept) == frozenset()
    assert new["metadata"]["annotations"]["crossplane.io/external-name"] == "sg-1"


def test_a_kind_without_the_preferred_version_of_its_group_is_backed_up() -> None:
    firewall = group("quotes-stage-firewall", known_as="sg-1", created=True)
    core = CoreState(cast(Kube, Core(firewall, preferred="v1beta2")), (), ())
    assert core.collect().external_names == {KEY: "sg-1"}


def test_an_external_name_of_a_failed_creation_is_not_backed_up() -> None:
    """Providers write it before they create the resource, and leave it if the creation fails."""
    refused = group("quotes-stage-firewall", known_as="quotes-stage-firewall")
    notes = refused["metadata"]["annotations"]
    assert state(refused).collect().external_names == {}
    notes["crossplane.io/external-create-pending"] = "2026-01-01T00:00:00Z"
    notes["crossplane.io/external-create-failed"] = "2026-01-01T00:00:01Z"
    said = {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "denied"}
    refused["status"] = {"conditions": [said], "atProvider": {}}
    assert state(refused).collect().external_names == {}
    # A name in the backup is kept: a new core has restored it and may not have observed it yet.
    known = Backup(external_names={KEY: "sg-1"})
    core = state(refused)
    assert updated(known, core.collect(), core.is_deleted) == known


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": [{"type": "Synced", "status": "True"}]},
        {
            "conditions": [
                {"type": "Synced", "status": "False", "message": "the cloud is away"},
                {"type": "Ready", "status": "True"},
            ]
        },
        {"conditions": [{"type": "Synced", "status": "False"}], "atProvider": {"id": "sg-1"}},
    ],
)
def test_external_names_of_observed_resources_are_backed_up(status: Object) -> None:
    imported = {**group("quotes-stage-firewall", known_as="sg-1"), "status": status}
    assert state(imported).collect().external_names == {KEY: "sg-1"}


def test_the_backed_up_name_replaces_a_different_name_before_the_creation() -> None:
    new = group("quotes-stage-firewall", known_as="by-another-rule")
    assert state(new).restore_external_names({KEY: "sg-1"}) == {KEY}
    assert state(new).restore_external_names({KEY: "sg-1"}) == frozenset()
    assert new["metadata"]["annotations"]["crossplane.io/external-name"] == "sg-1"
    began = group("quotes-stage-firewall", known_as="sg-2")
    began["metadata"]["annotations"]["crossplane.io/external-create-pending"] = "now"
    found = {**group("quotes-stage-firewall", known_as="sg-2"), "status": {"atProvider": {"id": 2}}}
    for each in (began, found):
        assert state(each).restore_external_names({KEY: "sg-1"}) == frozenset()
        assert each["metadata"]["annotations"]["crossplane.io/external-name"] == "sg-2"


def test_a_backup_entry_under_a_random_object_name_is_replaced() -> None:
    known = Backup(external_names={KEY.replace("firewall", "x7k2p"): "sg-1"})
    core = state(group("quotes-stage-x7k2p", known_as="sg-1", created=True))
    after = updated(known, core.collect(), core.is_deleted)
    assert after.external_names == {KEY: "sg-1"}
    assert updated(after, core.collect(), core.is_deleted) == after
    assert not updated(after, Backup(), state().is_deleted)
