"""Mirrors, rule by rule: planning, decisions and conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.kube import Forbidden, Kind, Object
from k8s_ucp.reconciler.mirrors import copies, copy_bodies
from k8s_ucp.reconciler.mirrors.copies import Copy, CopySource, ObjectRef
from k8s_ucp.reconciler.mirrors.deletion_guard import DeletionGuard, DeletionVerdict
from k8s_ucp.reconciler.mirrors.index import DesiredCopy, Destination, MirrorIndex
from k8s_ucp.reconciler.mirrors.rules import (
    Action,
    CopyFailed,
    CopyProblem,
    Create,
    InSync,
    NoCopy,
    Orphan,
    Recreate,
    Remove,
    TakeOver,
    Update,
    decide,
)
from k8s_ucp.reconciler.mirrors.spec import SyncerEntry, parse
from k8s_ucp.reconciler.mirrors.status import Count, SyncCounters, target_condition
from tests.unit.reconciler.fake_api import FakeApi
from tests.unit.reconciler.mirrors.syncer_objects import entry, secret, syncer

PLACE = ObjectRef("Secret", "quote", "db")
STAGE = Destination("demo-stage", "stage", {names.ENVIRONMENT: "stage"})
PROD = Destination("demo-prod", "prod", {names.ENVIRONMENT: "prod"})


def desired(**fields: Any) -> DesiredCopy:
    return DesiredCopy(syncer(entry(**fields)).entries[0], "Secret/src/db")


def made(want: DesiredCopy, source: CopySource, **metadata: Any) -> Copy:
    """The copy as it is right after its creation."""
    body = copy_bodies.build(PLACE, "demo-stage", "demo", want.entry, source)
    body["metadata"].update({"uid": "c", "resourceVersion": "9", **metadata})
    return copies.copy_of(body, "demo-stage")


def decided(want: DesiredCopy | None, source: CopySource | None, found: Copy | None) -> Action:
    return decide(PLACE, want, source, found)


def test_a_copy_is_created_kept_updated_and_recreated() -> None:
    want, source = desired(), copies.source_of(secret({"a": "1"}))
    assert decided(want, source, None) == Create(want, source)
    found = made(want, source)
    assert decided(want, source, found) == InSync()
    changed = copies.source_of(secret({"a": "2"}))
    assert decided(want, changed, found) == Update(want, changed, found)
    typed = copies.source_of(secret({"a": "1"}, type="kubernetes.io/tls"))
    assert decided(want, typed, found) == Recreate(want, typed, found)
    frozen = made(want, copies.source_of(secret({"a": "1"}, immutable=True)))
    assert decided(want, source, frozen) == Recreate(want, source, frozen)
    retained = desired(deletionPolicy="Retain")
    assert decided(retained, source, found) == Update(retained, source, found)
    bare = made(want, source, labels={})
    assert decided(want, source, bare) == TakeOver(want, source, bare)


def test_a_foreign_object_is_refused_or_adopted_and_never_deleted() -> None:
    source = copies.source_of(secret({"a": "1"}))
    foreign = copies.copy_of(secret({"b": "2"}, metadata={"namespace": "quote"}), "demo-stage")
    assert not foreign.ours
    refused = decided(desired(), source, foreign)
    assert isinstance(refused, CopyFailed)
    assert refused.problem.reason == "Taken"
    adopting = desired(conflictPolicy="Adopt")
    assert decided(adopting, source, foreign) == TakeOver(adopting, source, foreign)
    for parts, reason in (({"type": "x/y"}, "TypeDiffers"), ({"immutable": True}, "Immutable")):
        other = copies.copy_of(
            secret({"b": "2"}, metadata={"namespace": "quote"}, **parts), "demo-stage"
        )
        answer = decided(adopting, source, other)
        assert isinstance(answer, CopyFailed)
        assert answer.problem.reason == reason
    assert decided(None, None, foreign) == NoCopy()


def adopted(want: DesiredCopy, source: CopySource, theirs: Object) -> Copy:
    """A foreign object, right after its adoption."""
    body = copy_bodies.taken_over(theirs, PLACE, "demo-stage", "demo", want.entry, source)
    return copies.copy_of(body, "demo-stage")


def test_an_adopted_object_is_released_and_never_deleted() -> None:
    """Whatever ends the copy: deletion of the Syncer, its entry or the source, or another type."""
    want, source = desired(conflictPolicy="Adopt"), copies.source_of(secret({"a": "1"}))
    theirs = secret({"b": "2"}, metadata={"namespace": "quote", "labels": {"mine": "yes"}})
    found = adopted(want, source, theirs)
    assert found.ours
    assert decided(want, source, found) == InSync()
    assert isinstance(decided(None, None, found), Orphan)
    gone = decided(want, None, found)
    assert isinstance(gone, Orphan)
    assert gone.problem is not None
    typed = copies.source_of(secret({"a": "1"}, type="kubernetes.io/tls"))
    assert isinstance(decided(want, typed, found), CopyFailed)
    body = copy_bodies.taken_over(theirs, PLACE, "demo-stage", "demo", want.entry, source)
    bare = copy_bodies.released(body)["metadata"]
    assert (bare["labels"], bare["annotations"]) == ({"mine": "yes"}, {})
    # A copy of ours that lost its label is taken over too, and can still be deleted by us.
    again = made(want, source)
    assert isinstance(decided(None, None, adopted(want, source, body)), Orphan)
    whole = copy_bodies.build(PLACE, "demo-stage", "demo", want.entry, source)
    whole["metadata"].update({"uid": "c", "resourceVersion": "9", "labels": {}})
    assert decided(None, None, adopted(want, source, whole)) == Remove(again)


OTHERS = "team-a/one"


def from_elsewhere(syncer: str = OTHERS, **fields: Any) -> DesiredCopy:
    """An entry of a Syncer in another namespace than its source, src."""
    written = {"metadata": {"namespace": syncer.split("/")[0], "name": "one", "generation": 1}}
    spec = {"data": [entry(sourceNamespace="src", **fields)]}
    parsed = parse({**written, "spec": spec}, frozenset({"src", "team-a", "ucp-clusters"}))
    assert not parsed.mistakes
    return DesiredCopy(parsed.entries[0], "Secret/src/db")


def shared(text: str | None) -> CopySource:
    notes = {} if text is None else {names.SYNCER_NAMESPACES: text}
    return copies.source_of(secret({"a": "1"}, metadata={"annotations": notes}))


@pytest.mark.parametrize("text", [None, "", "team-b", "team-a-b", ","])
def test_a_source_not_shared_with_the_namespace_of_the_syncer_is_refused(text: str | None) -> None:
    want, source = from_elsewhere(), shared(text)
    refused = decided(want, source, None)
    assert isinstance(refused, CopyFailed)
    assert refused.problem.reason == "NotShared"
    before = made(want, shared("*"))
    assert isinstance(decided(want, source, before), CopyFailed), "what was copied before stays"
    by_label = from_elsewhere(sourceName=None, sourceSelector={})
    answer = decided(by_label, source, None)
    assert isinstance(answer, CopyFailed)
    assert "db" not in answer.problem.message, "a name that it may not see"


@pytest.mark.parametrize(
    ("syncer", "text"),
    [
        (OTHERS, "team-a"),
        (OTHERS, "team-b, team-a"),
        (OTHERS, "*"),
        ("ucp-clusters/one", None),
        ("src/one", None),
    ],
)
def test_a_source_shared_with_the_namespace_of_the_syncer_is_copied(
    syncer: str, text: str | None
) -> None:
    assert isinstance(decided(from_elsewhere(syncer), shared(text), None), Create)


def test_a_syncer_without_access_does_not_block_a_later_one() -> None:
    """The older Syncer has no access to its source and the later one has: the later one wins."""
    index = MirrorIndex()
    index.set_targets([Destination("demo-stage", "stage")])
    index.set_source("Secret/src/db", shared(None))
    for namespace, created in (("team-a", "1"), ("src", "2")):
        fields = entry(sourceNamespace="src", targetCluster="demo-stage")
        fields.pop("targetSelector", None)
        metadata = {
            "namespace": namespace,
            "name": "one",
            "generation": 1,
            "creationTimestamp": created,
        }
        written = {"metadata": metadata, "spec": {"data": [fields]}}
        one = parse(written, frozenset({"src", "team-a"}))
        index.set_syncer(one.key, one)
    ref = next(iter(index.refs("demo-stage", "quote", "Secret")))
    assert [each.entry.syncer for each in index.desired_copies("demo-stage", ref)] == [
        "src/one",
        "team-a/one",
    ]


def test_labels_copied_to_another_place_do_not_make_an_object_ours() -> None:
    body = copy_bodies.build(
        PLACE, "demo-stage", "demo", desired().entry, copies.source_of(secret({}))
    )
    body["metadata"].update({"uid": "c", "resourceVersion": "9"})
    assert copies.copy_of(body, "demo-stage").ours
    assert not copies.copy_of(body, "demo-prod").ours
    body["metadata"]["namespace"] = "elsewhere"
    assert not copies.copy_of(body, "demo-stage").ours


def test_copies_are_deleted_or_retained_by_policy() -> None:
    want, source = desired(), copies.source_of(secret({"a": "1"}))
    found = made(want, source)
    assert decided(None, None, found) == Remove(found)
    gone = decided(want, None, found)
    assert isinstance(gone, Remove)
    assert gone.problem is not None
    assert gone.problem.reason == "SourceMissing"
    retained = made(desired(deletionPolicy="Retain"), source)
    assert decided(None, None, retained) == Orphan(retained)
    kept = decided(desired(deletionPolicy="Retain"), None, retained)
    assert isinstance(kept, CopyFailed)


@pytest.mark.parametrize(
    ("source", "fields", "reason"),
    [
        (secret({"a": "1"}), {"keys": {"B": "b"}}, "KeyMissing"),
        (secret({"a": "x" * 1_048_577}), {}, "TooLarge"),
        (secret({}, type="kubernetes.io/service-account-token"), {}, "NotMirrored"),
        (
            secret({}, metadata={"annotations": {names.MIRROR_PLACE: "other-stage/x/y"}}),
            {},
            "NotMirrored",
        ),
        (
            secret({"kubeconfig": "k"}, metadata={"labels": {names.KUBECONFIG_LABEL: ""}}),
            {},
            "NotMirrored",
        ),
    ],
)
def test_a_source_that_cannot_be_mirrored_is_refused_with_a_reason(
    source: Object, fields: dict[str, Any], reason: str
) -> None:
    answer = decided(desired(**fields), copies.source_of(source), None)
    assert isinstance(answer, CopyFailed)
    assert answer.problem.reason == reason


def test_labels_and_annotations_of_the_source_are_not_copied() -> None:
    source = secret(
        {"a": "1"}, metadata={"labels": {"l": "1"}, "annotations": {"last-applied": "secret!"}}
    )
    body = copy_bodies.build(PLACE, "demo-stage", "demo", desired().entry, copies.source_of(source))
    assert "secret!" not in str(body)
    assert set(body["metadata"]["labels"]) == {names.MANAGED_BY, names.MIRROR}


def test_the_index_follows_sources_syncers_and_clusters() -> None:
    index = MirrorIndex()
    for name in ("db", "web"):
        item = secret({"a": "1"}, metadata={"name": name, "labels": {"tier": name}})
        index.set_source(f"Secret/src/{name}", copies.source_of(item))
    everyone = entry(
        sourceName=None,
        sourceSelector={"matchLabels": {"tier": "db"}},
        targetCluster=None,
        targetSelector={"matchExpressions": [{"key": names.ENVIRONMENT, "operator": "Exists"}]},
        targetNamespace="{environment}-data",
        targetName="{namespace}.{name}",
    )
    assert index.set_syncer("src/one", syncer(everyone)) == set()
    assert index.set_targets([STAGE]) == {("demo-stage", "Secret/stage-data/src.db")}
    assert index.set_targets([STAGE, PROD]) == {("demo-prod", "Secret/prod-data/src.db")}
    assert index.namespaces("demo-prod") == {"prod-data": {"Secret"}}
    changed = copies.source_of(secret({"a": "2"}, metadata={"labels": {"tier": "db"}}))
    assert len(index.set_source("Secret/src/db", changed)) == 2
    lost = copies.source_of(secret({"a": "2"}))
    assert len(index.set_source("Secret/src/db", lost)) == 2
    assert index.namespaces("demo-prod") == {}
    index.set_source("Secret/src/db", changed)
    assert len(index.set_syncer("src/one", None)) == 2
    assert index.desired_copies("demo-stage", "Secret/stage-data/src.db") == ()


def test_the_oldest_syncer_with_an_existing_source_wins() -> None:
    index = MirrorIndex()
    index.set_targets([STAGE])
    for name in ("db", "web"):
        item = secret({"a": "1"}, metadata={"name": name})
        index.set_source(f"Secret/src/{name}", copies.source_of(item))
    index.set_syncer("src/b", syncer(entry(targetName="x"), name="b", created="1"))
    index.set_syncer(
        "src/a", syncer(entry(sourceName="web", targetName="x"), name="a", created="2")
    )
    copy_key = ("demo-stage", "Secret/quote/x")
    assert [each.entry.syncer for each in index.desired_copies(*copy_key)] == ["src/b", "src/a"]
    assert index.set_source("Secret/src/db", None) == {copy_key}
    assert [each.entry.syncer for each in index.desired_copies(*copy_key)] == ["src/a", "src/b"]


def test_a_config_map_that_may_not_be_mirrored_is_called_one() -> None:
    (mistake,) = syncer(entry(kinds="configmap", sourceNamespace="elsewhere")).mistakes
    assert mistake.startswith("data[0]: ConfigMaps in namespace elsewhere are not mirrored")


def test_invalid_entries_are_reported_and_skipped() -> None:
    found = syncer(
        entry(),
        entry(sourceNamespace="elsewhere"),
        entry(targetNamespace="kube-system"),
        entry(kinds="pod"),
        entry(sourceSelector={}),
    )
    assert [each.number for each in found.entries] == [0]
    assert len(found.mistakes) == 4
    assert "data[1]: Secrets in namespace elsewhere are not mirrored" in found.mistakes[0]
    assert "reconciler.sourceNamespaces" in found.mistakes[0]


def test_forbidden_namespace_from_a_placeholder_is_reported() -> None:
    index = MirrorIndex()
    index.set_targets([STAGE, PROD])
    item = secret({"a": "1"}, metadata={"name": "kube-db"})
    index.set_source("Secret/src/kube-db", copies.source_of(item))
    everywhere = {"sourceName": "kube-db", "targetCluster": None, "targetSelector": {}}
    wrong = entry(**everywhere, targetNamespace="{name}")
    assert index.set_syncer("src/one", syncer(wrong)) == set()
    assert index.forbidden("src/one") == {"demo-stage": "kube-db", "demo-prod": "kube-db"}
    assert index.forbidden("src/other") == {}
    index.set_targets([STAGE])
    assert list(index.forbidden("src/one")) == ["demo-stage"]
    right = entry(**everywhere, targetNamespace="apps")
    assert index.set_syncer("src/one", syncer(right)) == {("demo-stage", "Secret/apps/kube-db")}
    assert index.forbidden("src/one") == {}


def test_synced_copies_and_problems_are_counted() -> None:
    told: list[str] = []
    counters = SyncCounters(told.append)
    problem = CopyProblem("Taken", "t")
    counters.record("c", "p", (("s", False),))
    counters.record("c", "q", (("s", True), ("other", problem)))
    assert counters.count("s", "c") == Count(2, 1, {})
    assert counters.count("other", "c") == Count(1, 0, {"q": problem})
    counters.record("c", "p", (("s", True),))
    told.clear()
    counters.record("c", "p", (("s", True),))
    assert told == []
    counters.record("c", "q", ())
    assert counters.count("other", "c") == Count()
    counters.forget("c")
    assert counters.count("s", "c") == Count()


def test_the_condition_of_a_target_names_its_reason() -> None:
    def reason(count: Count, away: CopyProblem | None = None) -> str:
        return target_condition(count, away).reason

    problem = CopyProblem("Taken", "t")
    assert reason(Count(2, 2)) == "Synced"
    assert reason(Count(2, 1)) == "Copying"
    assert reason(Count(2, 1, {"p": problem})) == "Taken"
    assert reason(Count(0, 0)) == "NothingToCopy"
    assert reason(Count(2, 2), CopyProblem("Unreachable", "u")) == "Unreachable"
    several = {str(number): problem for number in range(5)}
    assert "and 2 more" in target_condition(Count(5, 0, several), None).message


def test_an_entry_selects_sources_by_label_expressions() -> None:
    def takes(expression: Object, labels: dict[str, str]) -> bool:
        written = entry(sourceName=None, sourceSelector={"matchExpressions": [expression]})
        found: SyncerEntry = syncer(written).entries[0]
        return found.takes(labels, "any")

    assert takes({"key": "a", "operator": "In", "values": ["1"]}, {"a": "1"})
    assert not takes({"key": "a", "operator": "In", "values": ["1"]}, {})
    assert takes({"key": "a", "operator": "NotIn", "values": ["1"]}, {})
    assert takes({"key": "a", "operator": "Exists"}, {"a": ""})
    assert takes({"key": "a", "operator": "DoesNotExist"}, {})


class UnreadableNamespaces(FakeApi):
    """A core cluster on which we may read nothing."""

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        raise Forbidden(f"cannot get {kind.plural} in {namespace}", status=403)


@pytest.mark.parametrize(
    ("syncer_key", "source", "verdict"),
    [
        # The last entry of a namespace was removed, and our Role in it with it.
        ("src/one", "former/db", DeletionVerdict.NOTHING),
        # Written by others on the app cluster.
        ("src/one", "nowhere", DeletionVerdict.KEPT),
        ("src/one", "src/a/b", DeletionVerdict.KEPT),
        ("nobody", "src/db", DeletionVerdict.KEPT),
        ("kube-system/theirs", "src/db", DeletionVerdict.KEPT),
    ],
)
def test_a_copy_whose_source_cannot_be_read_is_judged(
    syncer_key: str, source: str, verdict: DeletionVerdict
) -> None:
    index = MirrorIndex()
    index.set_syncer("src/one", syncer(entry()))
    shown = {"src/one": {"metadata": {"generation": 1}}}
    guard = DeletionGuard(UnreadableNamespaces(), shown.get, index)  # type: ignore[arg-type]
    copied = made(desired(), copies.source_of(secret({"a": "1"})))
    found = replace(copied, syncer=syncer_key, source=source)
    assert guard.check(found, "demo-stage", PLACE) is verdict
