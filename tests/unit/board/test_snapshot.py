"""The snapshot that the board shows, and the difference between two snapshots."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.board.snapshot import EVENTS, BoardState, Snapshot, difference, snapshot
from k8s_ucp.board.versions import Deployed
from k8s_ucp.git.objects import Author
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.history import HistoryEvent
from k8s_ucp.gitops.promotion.message import Change
from k8s_ucp.inspect.doctor.finding import Finding
from k8s_ucp.timestamps import stamp
from tests.unit.inspect.snapshots import TOPOLOGY, WELL

SECRET = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


def event(tag: str, author: str = "Ada") -> HistoryEvent:
    change = Change("echo", Pin(tag="0.9"), Pin(tag=tag))
    who = Author(author, "a@example.org")
    return HistoryEvent("0123456789abcdef", 7, who, "stage", "promote", (change,), 1, "")


def deployed(env: str, tag: str, **more: Any) -> Deployed:
    return Deployed("echo", env, {"echo": Pin(tag=tag)}, **more)


def test_a_snapshot_without_observations_shows_the_topology() -> None:
    found = snapshot(BoardState(TOPOLOGY))
    about = found["about"][""]
    assert (about["asked"], about["lost"], about["environments"]) == (
        False,
        False,
        ["stage", "prod"],
    )
    assert found["apps"] == {}


def test_an_app_row_combines_the_states_of_git_and_argocd() -> None:
    versions = {
        ("echo", "stage"): deployed("stage", "1.1", changed=event("1.1", "Grace")),
        ("echo", "prod"): deployed(
            "prod",
            "1.0",
            source="stage",
            held=("0.8",),
            newer=(Change("echo", Pin(tag="1.0"), Pin(tag="1.1")),),
        ),
    }
    rows = snapshot(BoardState(TOPOLOGY, WELL, versions=versions))["apps"]
    assert list(rows) == ["echo/prod", "echo/stage"]
    prod = rows["echo/prod"]
    assert (prod["tag"], prod["sync"], prod["health"], prod["held"]) == (
        "1.0",
        "Synced",
        "Healthy",
        ["0.8"],
    )
    newer = prod["newer"]
    assert (newer["env"], newer["tag"], newer["images"]) == ("stage", "1.1", {"echo": "1.1"})
    assert (newer["changed"]["by"], newer["changed"]["kind"]) == ("Grace", "promote")
    stage = rows["echo/stage"]
    assert (stage["sync"], stage["health"]) == ("Missing", "Missing")
    assert stage["why"]


def test_an_app_known_only_to_argocd_is_shown() -> None:
    (row,) = snapshot(BoardState(TOPOLOGY, WELL))["apps"].values()
    assert (row["app"], row["env"], row["tag"], row["images"]) == ("echo", "prod", "", ["echo:1"])


def test_several_images_are_shown_with_their_names() -> None:
    pins = {"a": Pin(tag="1"), "b": Pin(tag="2")}
    found = snapshot(BoardState(TOPOLOGY, versions={("x", "prod"): Deployed("x", "prod", pins)}))
    assert found["apps"]["x/prod"]["tag"] == "a=1, b=2"


def test_secrets_in_external_text_are_redacted() -> None:
    failing = {
        "metadata": {
            "name": "echo-prod",
            "labels": {"k8s-ucp.io/app": "echo", "k8s-ucp.io/environment": "prod"},
        },
        "status": {"conditions": [{"type": "ComparisonError", "message": f"token {SECRET}"}]},
    }
    finding = Finding("x", "error", f"Bearer {SECRET}", f"curl -H 'Bearer {SECRET}'")
    told = {
        "metadata": {"name": "e", "uid": "1"},
        "message": f"failed: https://user:{SECRET}@example.org " + "x" * 10_000,
    }
    seen = dataclasses.replace(WELL, applications=[failing])
    problem = f"password: {SECRET}"
    versions = {("echo", "prod"): Deployed("echo", "prod", problem=problem)}
    found = snapshot(
        BoardState(
            TOPOLOGY,
            seen,
            findings=[finding],
            versions=versions,
            versions_problem=problem,
            events=[told],
        )
    )
    assert SECRET not in str(found)
    assert "failed" in found["events"]["1"]["message"]
    assert len(found["events"]["1"]["message"]) < 1000


def test_only_the_newest_events_are_shown() -> None:
    items = [
        {"metadata": {"name": f"e{number}"}, "lastTimestamp": stamp(60.0 * number)}
        for number in range(EVENTS + 20)
    ]
    found = snapshot(BoardState(TOPOLOGY, events=items))["events"]
    assert len(found) == EVENTS
    assert "e0" not in found


def test_a_resource_shows_the_reason_of_its_failed_condition() -> None:
    item = {
        "kind": "Bucket",
        "metadata": {"name": "b", "namespace": "n"},
        "status": {
            "conditions": [
                {"type": "Synced", "status": "False", "reason": "Failed", "message": "no quota"},
                {"type": "Ready", "status": "True"},
            ]
        },
    }
    row = snapshot(BoardState(TOPOLOGY, resources=[item]))["resources"]["Bucket/n/b"]
    assert (row["name"], row["synced"], row["ready"]) == ("n/b", "False", "True")
    assert row["why"] == "Failed: no quota"


ROWS = st.dictionaries(st.sampled_from("abc"), st.fixed_dictionaries({"n": st.integers(0, 2)}))
SNAPSHOTS = st.dictionaries(st.sampled_from(["apps", "events"]), ROWS)


@given(SNAPSHOTS, SNAPSHOTS)
def test_applying_a_difference_yields_the_later_snapshot(before: Snapshot, after: Snapshot) -> None:
    found = difference(before, after)
    followed = {section: dict(rows) for section, rows in before.items()}
    for section, change in found.items():
        rows = followed.setdefault(section, {})
        rows.update(change["put"])
        for key in change["drop"]:
            del rows[key]
        assert change["put"] or change["drop"]
    for section in {*followed, *after}:
        assert followed.get(section, {}) == after.get(section, {})
