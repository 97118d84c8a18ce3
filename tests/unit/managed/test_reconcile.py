"""Reconciliation of managed resources: the order of calls, and what never happens twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.managed.external import ABSENT, CloudFailed, Declared, ExternalObservation
from k8s_ucp.managed.reconcile import (
    FINALIZER,
    ManagedChange,
    Resolved,
    Result,
    creation_is_uncertain,
    reconcile,
)
from k8s_ucp.names import CREATION_PENDING, CREATION_SUCCEEDED, EXTERNAL_NAME


class Killed(BaseException):
    """The process is killed here."""


@dataclass
class MemoryCloud:
    """Resources with names assigned by the cloud; recovered by a tag with the object's name."""

    named_by_us: bool = False
    created_synchronously: bool = False
    tells: bool = True
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: int = 0
    calls: list[str] = field(default_factory=list)
    fails: dict[str, BaseException] = field(default_factory=dict)
    """{call: error to raise once}. "lost CALL" raises after the call has taken effect."""

    def _called(self, call: str) -> None:
        self.calls.append(call)
        if error := self.fails.pop(call, None):
            raise error

    def observe(self, declared: Declared) -> ExternalObservation:
        self._called("observe")
        found = self.resources.get(declared.name)
        if found is None:
            return ABSENT
        return ExternalObservation(
            True,
            up_to_date=found["size"] == declared.parameters.get("size"),
            late={} if "zone" in declared.parameters else {"zone": found["zone"]},
            details={"id": declared.name},
        )

    def create(self, declared: Declared) -> str:
        self._called("create")
        self.made += 1
        name = declared.name if self.named_by_us else f"r-{self.made}"
        self.resources[name] = {
            "size": declared.parameters.get("size"), "zone": "a", "tag": declared.object_name,
        }  # fmt: skip
        if error := self.fails.pop("lost create", None):
            raise error
        return name

    def recover(self, declared: Declared) -> str | None:
        self._called("recover")
        if not self.tells:
            return None
        found = (n for n, each in self.resources.items() if each["tag"] == declared.object_name)
        return next(found, "")

    def update(self, declared: Declared) -> None:
        self._called("update")
        self.resources[declared.name]["size"] = declared.parameters.get("size")

    def delete(self, declared: Declared) -> None:
        self._called("delete")
        self.resources.pop(declared.name, None)


@dataclass
class MemoryStore:
    """One object, as the API server stores it."""

    item: dict[str, Any]
    published: dict[str, str] = field(default_factory=dict)
    changes: list[ManagedChange] = field(default_factory=list)
    clock: int = 0
    dies: int = 0
    """Number of the next write before which the process is killed; 0: none."""

    def _write(self) -> None:
        self.dies -= 1
        if self.dies == 0:
            raise Killed

    def write(self, item: dict[str, Any], change: ManagedChange) -> dict[str, Any]:
        self._write()
        self.changes.append(change)
        metadata = self.item["metadata"]
        metadata.setdefault("annotations", {}).update(change.annotations)
        self.item["spec"]["forProvider"].update(change.parameters)
        if change.finalizer is not None:
            metadata["finalizers"] = [FINALIZER] if change.finalizer else []
        return self.item

    def resolve(self, item: dict[str, Any]) -> Resolved:
        parameters = item["spec"]["forProvider"]
        if "networkRef" not in parameters or "network" in parameters:
            return Resolved(parameters)
        return Resolved({**parameters, "network": "n-1"}, {"network": "n-1"})

    def publish(self, item: dict[str, Any], details: Mapping[str, str]) -> None:
        self._write()
        self.published = dict(details)

    def now(self) -> str:
        self.clock += 1
        return f"2026-01-01T00:00:{self.clock:02}+00:00"


def store(**spec: Any) -> MemoryStore:
    given = {"forProvider": {"size": 1}, **spec}
    return MemoryStore({"metadata": {"name": "web", "annotations": {}}, "spec": given})


def look(there: MemoryStore, cloud: MemoryCloud) -> Result:
    return reconcile(there.item, cloud, there)


@pytest.mark.parametrize("policies", [["*"], ["Observe", "Create"]])
def test_the_account_is_disconnected_before_the_finalizer_is_removed(policies: list[str]) -> None:
    there, cloud = store(managementPolicies=policies), MemoryCloud()
    look(there, cloud)
    finalizers: list[list[str]] = []

    def disconnect(item: dict[str, Any]) -> None:
        finalizers.append(list(item["metadata"]["finalizers"]))

    there.item["metadata"]["deletionTimestamp"] = there.now()
    for _ in range(2):
        result = reconcile(there.item, cloud, there, disconnect=disconnect)
    assert result.deleted
    assert finalizers[0] == [FINALIZER]
    assert there.item["metadata"]["finalizers"] == []


def test_a_resource_is_created_updated_and_deleted() -> None:
    there, cloud = store(), MemoryCloud()

    created = look(there, cloud)
    assert (created.again, created.ready) == ("next", ("False", "Creating", ""))
    assert there.item["metadata"]["annotations"][EXTERNAL_NAME] == "r-1"
    look(there, cloud)
    assert there.item["spec"]["forProvider"]["zone"] == "a"
    well = look(there, cloud)
    assert (well.again, well.ready) == ("poll", ("True", "Available", ""))
    assert there.published == {"id": "r-1"}

    there.item["spec"]["forProvider"]["size"] = 2
    assert look(there, cloud).again == "soon"
    assert cloud.resources["r-1"]["size"] == 2

    there.item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert look(there, cloud).ready == ("False", "Deleting", "")
    assert look(there, cloud).deleted
    assert (cloud.resources, there.item["metadata"]["finalizers"]) == ({}, [])


def test_a_resource_ready_at_creation_is_reported_in_the_same_reconcile() -> None:
    there, cloud = store(), MemoryCloud(created_synchronously=True)

    well = look(there, cloud)

    assert (well.again, well.ready) == ("poll", ("True", "Available", ""))
    assert well.event is not None
    assert well.event[0] == "CreatedExternalResource"
    assert cloud.calls == ["observe", "create", "observe"]
    # The external name was recorded before the resource was observed.
    assert list(there.changes[1].annotations) == [CREATION_SUCCEEDED, EXTERNAL_NAME]
    assert there.item["spec"]["forProvider"]["zone"] == "a"
    assert there.published == {"id": "r-1"}


@pytest.mark.parametrize(
    ("policies", "again", "more"),
    [(["*"], "soon", ["update"]), (["Observe", "Create"], "poll", [])],
)
def test_fields_that_creation_does_not_set_are_updated_immediately(
    policies: list[str], again: str, more: list[str]
) -> None:
    there, cloud = store(managementPolicies=policies), MemoryCloud(created_synchronously=True)
    seen = cloud.observe

    def observe(declared: Declared) -> ExternalObservation:
        found = seen(declared)
        return replace(found, up_to_date="update" in cloud.calls) if found.exists else found

    cloud.observe = observe  # type: ignore[method-assign]

    assert look(there, cloud).again == again
    assert cloud.calls == ["observe", "create", "observe", *more]
    assert look(there, cloud).again == "poll"
    assert cloud.made == 1


@pytest.mark.parametrize("how", ["fails", "not there yet", "can't be updated"])
def test_a_new_resource_that_is_not_ready_is_requeued(how: str) -> None:
    there, cloud = store(), MemoryCloud(created_synchronously=True)
    cloud.fails["update"] = CloudFailed("throttled")
    seen = cloud.observe

    def observe(declared: Declared) -> ExternalObservation:
        found = seen(declared)
        if how == "fails" and found.exists:
            raise CloudFailed("throttled")
        if how == "not there yet" or not found.exists:
            return ABSENT
        return replace(found, up_to_date=False)

    cloud.observe = observe  # type: ignore[method-assign]
    result = look(there, cloud)

    assert (result.again, result.ready) == ("next", ("False", "Creating", ""))
    assert result.synced is not None
    assert result.synced[0] == "True"
    updates = ["update"] if how == "can't be updated" else []
    assert [each for each in cloud.calls if each != "observe"] == ["create", *updates]


def test_a_single_write_records_all_changes_before_a_creation() -> None:
    there, cloud = store(forProvider={"size": 1, "networkRef": {"name": "shared"}}), MemoryCloud()
    written: list[int] = []
    cloud_create = cloud.create

    def create(declared: Declared) -> str:
        written.append(len(there.changes))
        assert declared.parameters["network"] == "n-1"
        return cloud_create(declared)

    cloud.create = create  # type: ignore[method-assign]
    look(there, cloud)

    before, after = there.changes
    assert written == [1]
    assert (list(before.annotations), before.parameters) == ([CREATION_PENDING], {"network": "n-1"})
    assert before.finalizer
    assert list(after.annotations) == [CREATION_SUCCEEDED, EXTERNAL_NAME]


def test_init_provider_fields_are_used_only_for_the_creation() -> None:
    there, cloud = store(forProvider={"zone": "a"}, initProvider={"size": 3, "zone": "b"}), Asked()

    look(there, cloud)
    cloud.resources["r-1"]["size"] = 4
    assert look(there, cloud).again == "soon"

    assert cloud.asked == [("create", {"size": 3, "zone": "a"}), ("update", {"zone": "a"})]
    assert "size" not in there.item["spec"]["forProvider"]


class Asked(MemoryCloud):
    """Records the parameters of creations and updates."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def create(self, declared: Declared) -> str:
        self.asked.append(("create", declared.parameters))
        return super().create(declared)

    def update(self, declared: Declared) -> None:
        self.asked.append(("update", declared.parameters))


@pytest.mark.parametrize(
    ("spec", "changed"),
    [
        ({"managementPolicies": ["Observe"]}, []),
        ({"managementPolicies": ["Observe", "Update"]}, []),
        ({"managementPolicies": ["Observe", "Create"]}, ["create"]),
        ({"managementPolicies": ["Create"]}, []),
        ({"managementPolicies": []}, []),
        ({"managementPolicies": ["*"]}, ["create"]),
        ({}, ["create"]),
    ],
)
def test_a_resource_is_created_only_if_the_management_policies_allow_it(
    spec: dict[str, Any], changed: list[str]
) -> None:
    there, cloud = store(**spec), MemoryCloud()

    result = look(there, cloud)

    assert [each for each in cloud.calls if each != "observe"] == changed
    assert result.synced is not None
    assert (result.synced[0] == "True") is bool(changed)


@pytest.mark.parametrize(
    "spec",
    [
        {"managementPolicies": ["Observe"]},
        {"deletionPolicy": "Orphan"},
        {"managementPolicies": ["Observe", "Create", "Update", "LateInitialize"]},
    ],
    ids=["observe", "orphan", "no delete"],
)
def test_a_resource_that_may_not_be_deleted_outlives_its_object(spec: dict[str, Any]) -> None:
    there, cloud = (
        store(**spec),
        MemoryCloud(resources={"r-1": {"size": 1, "zone": "a", "tag": "web"}}),
    )
    there.item["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {EXTERNAL_NAME: "r-1"},
        "finalizers": [FINALIZER],
    }

    assert look(there, cloud).deleted
    assert list(cloud.resources) == ["r-1"]
    assert there.item["metadata"]["finalizers"] == []


def test_a_paused_object_is_not_observed() -> None:
    there, cloud = store(), MemoryCloud()
    there.item["metadata"]["annotations"]["crossplane.io/paused"] = "true"

    result = look(there, cloud)

    assert result.synced is not None
    assert (result.synced[1], cloud.calls) == ("ReconcilePaused", [])


@pytest.mark.parametrize(
    ("pending", "succeeded", "uncertain"),
    [
        ("2026-11-30T09:00:00Z", "", True),
        ("2026-11-30T09:00:00Z", "2026-11-30T09:00:01", False),
        ("2026-11-30T09:00:01", "2026-11-30T09:00:00Z", True),
        ("now", "", False),
    ],
)
def test_a_creation_is_uncertain_until_a_later_result_is_recorded(
    pending: str, succeeded: str, uncertain: bool
) -> None:
    """People who settle an uncertain creation by hand may write a time without a zone."""
    times = {CREATION_PENDING: pending, CREATION_SUCCEEDED: succeeded}
    assert creation_is_uncertain({"metadata": {"annotations": times}}) is uncertain


def test_a_lost_creation_that_cannot_be_recovered_waits_for_a_person() -> None:
    there, cloud = store(), MemoryCloud(tells=False)
    cloud.fails["lost create"] = CloudFailed("connection reset", certain=False)

    look(there, cloud)
    result = look(there, cloud)

    assert result.again == "never"
    assert result.synced is not None
    assert CREATION_PENDING in result.synced[2]
    assert len(cloud.resources) == 1


def test_a_refused_creation_is_reported_with_the_clouds_error_and_retried() -> None:
    there, cloud = store(), MemoryCloud()
    cloud.fails["create"] = CloudFailed("VpcLimitExceeded: five")

    result = look(there, cloud)
    assert result.synced == ("False", "ReconcileError", "VpcLimitExceeded: five")
    look(there, cloud)

    assert list(cloud.resources) == ["r-1"]


@given(
    deaths=st.lists(st.integers(0, 6), max_size=6),
    losses=st.lists(st.sampled_from(["", "lost create", "create", "observe"]), max_size=6),
    ours=st.booleans(),
    whole=st.booleans(),
)
def test_exactly_one_resource_is_created_and_deleted_despite_crashes_and_lost_calls(
    deaths: list[int], losses: list[str], ours: bool, whole: bool
) -> None:
    there, cloud = store(), MemoryCloud(named_by_us=ours, created_synchronously=whole)
    for place in range(20):
        there.dies = deaths[place] if place < len(deaths) else 0
        loss = losses[place] if place < len(losses) else ""
        cloud.fails = {loss: CloudFailed("no answer", certain=loss == "create")} if loss else {}
        try:
            done = look(there, cloud)
        except Killed:
            continue
        assert cloud.made <= 1
    assert done.again == "poll"
    assert len(cloud.resources) == 1

    there.item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    while not look(there, cloud).deleted:
        pass
    assert cloud.resources == {}
