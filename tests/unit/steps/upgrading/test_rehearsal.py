"""The comparison of a rehearsal: lost, recreated and changed objects, and removed APIs."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.cluster_provider import ProgramHealth
from k8s_ucp.clusters.local import COPY
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.steps.upgrading.rehearsal import steps
from k8s_ucp.steps.upgrading.rehearsal.comparison import compare, lost_values
from k8s_ucp.steps.upgrading.rehearsal.inventory import (
    ClusterInventory,
    Item,
    is_fleeting,
)
from k8s_ucp.steps.upgrading.rehearsal.report import Findings, shortened
from k8s_ucp.steps.upgrading.rehearsal.steps import Rehearsal, check_copyable
from k8s_ucp.workspace import Workspace
from tests.unit.gitops.topologies import demo, on_clouds

KINDS = "customresourcedefinitions.apiextensions.k8s.io"
CRD = "apps.example.org"


def test_a_core_that_cannot_be_copied_is_refused_with_the_next_command(tmp_path: Path) -> None:
    context = StartContext(Workspace.at(tmp_path), on_clouds())
    with pytest.raises(UcpError, match="needs a core of the provider embedded") as caught:
        check_copyable(context)
    assert caught.value.next == "ucp start --plan"
    check_copyable(StartContext(Workspace.at(tmp_path), demo()))


class EndedController:
    """The provider of a copy whose controller ended itself, as it does on a slow machine."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def copy(self, *_: object, **__: object) -> None:
        """Nothing to do: the copy exists."""

    def programs(self, _: str) -> dict[str, ProgramHealth]:
        run = self.runs[-1] if self.runs else ""
        return {"kube-controller-manager": ProgramHealth(run, "" if run else "not running")}

    def start(self, name: str) -> None:
        self.runs.append(name)


def test_a_program_of_the_copy_that_ended_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = EndedController()
    for name in ("_copying_provider", "_elsewhere", "_running", "remove_copy"):
        monkeypatch.setattr(steps, name, lambda *_: provider)
    context = StartContext(Workspace.at(tmp_path), demo())
    Rehearsal()._copy(context, lambda _: None)
    assert provider.runs == [COPY]


def item(uid: str, *, automatic: bool = False, **content: Any) -> Item:
    return Item(uid, zlib.compress(json.dumps(content).encode()), automatic)


def inventory(
    items: Mapping[str, Item],
    versions: Mapping[str, tuple[str, ...]] | None = None,
    unreadable: Mapping[str, str] | None = None,
) -> ClusterInventory:
    counts: dict[str, int] = {}
    for name in items:
        kind = name.partition(" ")[0]
        counts[kind] = counts.get(kind, 0) + 1
    served = versions or dict.fromkeys(counts, ("v1",))
    return ClusterInventory(served, items, counts, {CRD: ("v1",)}, unreadable or {})


def test_identical_objects_are_not_a_difference() -> None:
    found = inventory({"secrets a/b": item("1", data={"x": "y"})})
    seen = compare(found, found, ())
    assert (seen.lost, seen.changed, seen.removed_kinds, seen.removed_versions, seen.unused) == (
        (),
        (),
        (),
        (),
        (),
    )


def test_lost_recreated_and_changed_objects_are_listed() -> None:
    before = inventory(
        {
            "secrets a/gone": item("1"),
            "secrets a/new": item("2"),
            "secrets a/other": item("3", data={"x": "y"}),
            "clusterroles admin": item("4", automatic=True, rules=[]),
        }
    )
    after = inventory(
        {"secrets a/new": item("9"), "secrets a/other": item("3", data={"x": "z"}, more=1)}
    )
    seen = compare(before, after, ())
    assert seen.lost == ("secrets a/gone", "secrets a/new: recreated, with another UID")
    assert seen.changed == ("secrets a/other: data.x",)


OWNER = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "controller": True}


@pytest.mark.parametrize(
    ("kind", "content", "fleeting"),
    [
        ("pods", {}, True),
        ("secrets", {"type": "bootstrap.kubernetes.io/token"}, True),
        ("secrets", {"type": "Opaque"}, False),
        ("jobs.batch", {"spec": {"ttlSecondsAfterFinished": 60}}, True),
        ("jobs.batch", {"spec": {}}, False),
        ("jobs.batch", {"metadata": {"ownerReferences": [OWNER]}}, True),
        ("configmaps", {"metadata": {"deletionTimestamp": "2026-11-25T00:00:00Z"}}, True),
        (
            "applications.argoproj.io",
            {"metadata": {"ownerReferences": [{**OWNER, "apiVersion": "argoproj.io/v1alpha1"}]}},
            False,
        ),
        ("deployments.apps", {"metadata": {"ownerReferences": None}}, False),
    ],
)
def test_objects_that_controllers_delete_by_themselves_are_not_lost(
    kind: str, content: dict[str, Any], fleeting: bool
) -> None:
    assert is_fleeting(kind, {"metadata": {}, **content}) is fleeting
    before = inventory({f"{kind} a/b": Item("1", zlib.compress(b"{}"), False, fleeting)})
    seen = compare(before, inventory({}, {kind: ("v1",)}), ())
    assert seen.lost == (() if fleeting else (f"{kind} a/b",))


def test_only_crds_updated_by_the_upgrade_may_differ() -> None:
    before = inventory({f"{KINDS} {CRD}": item("1", spec={"scope": "Cluster"})})
    after = inventory({f"{KINDS} {CRD}": item("1", spec={"scope": "Namespaced"})})
    assert compare(before, after, {CRD}).changed == ()
    assert compare(before, after, ()).changed == (f"{KINDS} {CRD}: spec.scope",)


def test_removed_apis_count_only_if_they_have_objects() -> None:
    items = {f"{CRD} a/b": item("1"), "nodes n": item("2")}
    before = inventory(items, {CRD: ("v1", "v1beta1"), "nodes": ("v1", "v0"), "empty.org": ("v1",)})
    seen = compare(before, inventory(items, {CRD: ("v1",), "nodes": ("v1",)}), ())
    assert seen.removed_versions == ("apps.v1beta1.example.org",)
    # Use of Kubernetes' own API versions is reported by the API server itself.
    assert seen.unused == ("empty.org", "nodes.v0")
    gone = compare(before, inventory({}, {"nodes": ("v1",)}), ())
    assert gone.removed_kinds == (CRD,)


def test_a_kind_that_can_no_longer_be_listed_is_reported_once() -> None:
    before = inventory({f"{CRD} a/b": item("1")})
    after = inventory({}, {CRD: ("v1",)}, {CRD: "conversion failed"})
    seen = compare(before, after, ())
    assert (seen.lost, seen.removed_kinds) == ((), (f"{CRD}: conversion failed",))


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, []),
        ({"a": {"b": 1}}, {"a": {}}, ["a.b"]),
        ({"a": None}, {}, []),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, ["a[1].b"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a"]),
    ],
)
def test_added_fields_are_not_a_loss(before: Any, after: Any, paths: list[str]) -> None:
    assert list(lost_values(before, after)) == paths


def test_a_report_is_healthy_only_without_problems() -> None:
    found = Findings(counts={"secrets": 2})
    assert found.data("demo")["well"] and not found.data("demo")["compared"]
    found.unhealthy, found.in_use = "kube-scheduler: not running", ["flowschemas.v1beta3.f"]
    found.warnings = ["x is deprecated"]
    assert found.problems() == [
        "the control plane is not healthy: kube-scheduler: not running",
        "no longer served: flowschemas.v1beta3.f",
    ]
    assert not found.data("demo")["well"]
    assert shortened([str(each) for each in range(12)])[-1] == "and 2 more; see -o json"
