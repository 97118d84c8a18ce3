"""The engine's order: what it does to a resource, and what it never does twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.managed.external import ABSENT, CloudFailed, Declared, ExternalObservation
from k8s_ucp.managed.reconcile import (
    EXTERNAL_NAME,
    FINALIZER,
    PENDING,
    SUCCEEDED,
    ManagedChange,
    Resolved,
    Result,
    reconcile,
)


class Killed(BaseException):
    """The process ends here."""


@dataclass
class MemoryCloud:
    """Resources that the cloud names, found again by the tag with the object's name."""

    named_by_us: bool = False
    whole_at_once: bool = False
    tells: bool = True
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: int = 0
    calls: list[str] = field(default_factory=list)
    fails: dict[str, BaseException] = field(default_factory=dict)
    """{call: how it ends, once}. "lost" before the name of a call: after it was done."""

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
    """One object, as the API server keeps it."""

    item: dict[str, Any]
    published: dict[str, str] = field(default_factory=dict)
    changes: list[ManagedChange] = field(default_factory=list)
    clock: int = 0
    dies: int = 0
    """Before which write from now the process ends; 0 for none."""

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
def test_the_account_is_let_go_before_the_object(policies: list[str]) -> None:
    there, cloud = store(managementPolicies=policies), MemoryCloud()
    look(there, cloud)
    finalizers: list[list[str]] = []

    def disconnect(item: dict[str, Any]) -> None:
        finalizers.append(list(item["metadata"]["finalizers"]))

    there.item["metadata"]["deletionTimestamp"] = there.now()
    for _ in range(2):
        result = reconcile(there.item, cloud, there, disconnect=disconnect)
    assert result.gone
    assert finalizers[0] == [FINALIZER]
    assert there.item["metadata"]["finalizers"] == []


def test_from_a_declaration_to_a_resource_and_back() -> None:
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
    assert look(there, cloud).gone
    assert (cloud.resources, there.item["metadata"]["finalizers"]) == ({}, [])


def test_what_is_whole_at_once_is_told_of_in_the_same_look() -> None:
    there, cloud = store(), MemoryCloud(whole_at_once=True)

    well = look(there, cloud)

    assert (well.again, well.ready) == ("poll", ("True", "Available", ""))
    assert well.event is not None
    assert well.event[0] == "CreatedExternalResource"
    assert cloud.calls == ["observe", "create", "observe"]
    # Before it was looked at, what was made had been written down.
    assert list(there.changes[1].annotations) == [SUCCEEDED, EXTERNAL_NAME]
    assert there.item["spec"]["forProvider"]["zone"] == "a"
    assert there.published == {"id": "r-1"}


@pytest.mark.parametrize(
    ("policies", "again", "more"),
    [(["*"], "soon", ["update"]), (["Observe", "Create"], "poll", [])],
)
def test_what_no_creation_takes_is_updated_at_once(
    policies: list[str], again: str, more: list[str]
) -> None:
    there, cloud = store(managementPolicies=policies), MemoryCloud(whole_at_once=True)
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
def test_a_new_resource_that_is_not_well_at_once_is_looked_at_later(how: str) -> None:
    there, cloud = store(), MemoryCloud(whole_at_once=True)
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


def test_before_a_creation_one_write_says_all_of_it() -> None:
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
    assert (list(before.annotations), before.parameters) == ([PENDING], {"network": "n-1"})
    assert before.finalizer
    assert list(after.annotations) == [SUCCEEDED, EXTERNAL_NAME]


def test_a_creation_alone_has_what_is_given_for_it() -> None:
    there, cloud = store(forProvider={"zone": "a"}, initProvider={"size": 3, "zone": "b"}), Asked()

    look(there, cloud)
    cloud.resources["r-1"]["size"] = 4
    assert look(there, cloud).again == "soon"

    assert cloud.asked == [("create", {"size": 3, "zone": "a"}), ("update", {"zone": "a"})]
    assert "size" not in there.item["spec"]["forProvider"]


class Asked(MemoryCloud):
    """Keeps what it is asked for."""

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
def test_only_what_the_policies_allow_is_made(spec: dict[str, Any], changed: list[str]) -> None:
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
def test_what_may_not_be_deleted_outlives_its_object(spec: dict[str, Any]) -> None:
    there, cloud = (
        store(**spec),
        MemoryCloud(resources={"r-1": {"size": 1, "zone": "a", "tag": "web"}}),
    )
    there.item["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {EXTERNAL_NAME: "r-1"},
        "finalizers": [FINALIZER],
    }

    assert look(there, cloud).gone
    assert list(cloud.resources) == ["r-1"]
    assert there.item["metadata"]["finalizers"] == []


def test_paused_is_not_even_looked_at() -> None:
    there, cloud = store(), MemoryCloud()
    there.item["metadata"]["annotations"]["crossplane.io/paused"] = "true"

    result = look(there, cloud)

    assert result.synced is not None
    assert (result.synced[1], cloud.calls) == ("ReconcilePaused", [])


def test_without_a_way_to_tell_a_lost_creation_waits_for_a_person() -> None:
    there, cloud = store(), MemoryCloud(tells=False)
    cloud.fails["lost create"] = CloudFailed("connection reset", certain=False)

    look(there, cloud)
    result = look(there, cloud)

    assert result.again == "never"
    assert result.synced is not None
    assert PENDING in result.synced[2]
    assert len(cloud.resources) == 1


def test_a_refused_creation_is_tried_again_with_the_clouds_own_words() -> None:
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
def test_whatever_dies_or_is_lost_one_resource_is_made_and_none_is_left(
    deaths: list[int], losses: list[str], ours: bool, whole: bool
) -> None:
    there, cloud = store(), MemoryCloud(named_by_us=ours, whole_at_once=whole)
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
    while not look(there, cloud).gone:
        pass
    assert cloud.resources == {}
