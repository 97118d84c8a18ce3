"""Gates: the environment to promote from, and the health that is required of it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.promotion.decision import Decision, all_or_none
from k8s_ucp.gitops.promotion.gates import classify, earlier_environment, promotes_from
from k8s_ucp.gitops.promotion.health import HealthGate, find_kubeconfig
from k8s_ucp.gitops.promotion.message import PromotionNote

SHA = "sha256:" + "ab" * 32
WANTED = {"ealen/echo": Pin("2")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ""),
        ("", ""),
        ("environments: []\n", ""),
        ("environments:\n- name: stage\n- name: prod\n  promotesFrom: stage\n", "stage"),
        ("# made by\nenvironments:\n- {name: prod, promotesFrom: stage}\n", "stage"),
        ("- {name: prod, promotesFrom: stage}\n", "stage"),
        ("environments:\n  prod: {promotesFrom: stage}\n", "stage"),
        ("environments:\n- {name: prod}\n", ""),
        ("environments:\n- {name: prod, promotesFrom: }\n", ""),
    ],
)
def test_promotes_from_is_read_from_environments_yaml(text: str | None, expected: str) -> None:
    assert promotes_from(text, "prod") == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"dev", "stage", "prod"}, "stage"),
        ({"dev", "prod"}, "dev"),
        ({"prod"}, ""),
        ({"prod", "eu"}, ""),
        (set(), ""),
    ],
)
def test_the_nearest_earlier_environment_that_has_the_app_is_found(
    known: set[str], expected: str
) -> None:
    chain = (
        "- {name: dev}\n- {name: stage, promotesFrom: dev}\n- {name: prod, promotesFrom: stage}\n"
    )

    assert earlier_environment(chain, "prod", known) == expected
    # The search ends in a cycle too.
    assert (
        earlier_environment(chain.replace("dev}", "dev, promotesFrom: stage}", 1), "prod", {"prod"})
        == ""
    )


def test_an_invalid_environments_file_opens_no_gate() -> None:
    for text in ("environments: [\n", "environments: stage\n", "a: 1\n---\nb: 1\n"):
        with pytest.raises(NotEditable, match=r"environments\.yaml"):
            promotes_from(text, "prod")


def application(
    sync: str = "Synced",
    health: str = "Healthy",
    images: tuple[str, ...] = ("ealen/echo:2",),
    since: str = "2026-01-01T10:00:00Z",
) -> dict[str, Any]:
    return {
        "status": {
            "sync": {"status": sync},
            "health": {"status": health, "lastTransitionTime": since},
            "summary": {"images": list(images)},
            "operationState": {"finishedAt": "2026-01-01T09:00:00Z"},
            "history": [{"deployedAt": "2026-01-01T08:00:00Z"}],
        }
    }


@pytest.mark.parametrize(
    ("there", "state"),
    [
        (application(), "open"),
        (application(images=("redis:7", "ealen/echo:2")), "open"),
        (application(sync="OutOfSync"), "waiting"),
        (application(health="Progressing"), "waiting"),
        (application(health="Degraded"), "shut"),
        (application(health="Missing"), "shut"),
        (application(images=("ealen/echo:1",)), "waiting"),
        (application(images=("redis:2",)), "waiting"),
        (application(images=("ealen/echo:22",)), "waiting"),
        (application(images=(f"ealen/echo:2@{SHA}",)), "waiting"),
        (application(images=()), "waiting"),
        ({}, "waiting"),
        ({"status": {"sync": None, "health": None, "summary": None}}, "waiting"),
    ],
)
def test_an_application_is_classified_by_sync_health_and_images(
    there: Mapping[str, Any], state: str
) -> None:
    assert classify(there, WANTED).state == state


def test_digests_are_compared_as_digests() -> None:
    wanted = {"ealen/echo": Pin(digest=SHA)}

    assert classify(application(images=(f"ealen/echo@{SHA}",)), wanted).state == "open"
    assert classify(application(images=("ealen/echo:2",)), wanted).state == "waiting"
    assert classify(application(images=(f"ealen/echo-more@{SHA}",)), wanted).state == "waiting"
    assert classify(application(images=(f"ealen/echo:2@{SHA}",)), wanted).state == "open"


def test_healthy_since_is_the_time_of_the_latest_change() -> None:
    assert classify(application(), WANTED).since == datetime.datetime(
        2026, 1, 1, 10, tzinfo=datetime.UTC
    )


class ChangingApplication:
    """A fake of an Application whose state changes over time."""

    def __init__(self, states: list[tuple[float, dict[str, Any] | None]]) -> None:
        self.now = 1_800_000_000.0
        self.start = self.now
        self.states = states
        self.asked: list[str] = []
        self.reports: list[str] = []

    def read(self, name: str) -> dict[str, Any] | None:
        self.asked.append(name)
        passed = self.now - self.start
        return [state for since, state in self.states if since <= passed][-1]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def stamp(self, passed: float) -> str:
        moment = datetime.datetime.fromtimestamp(self.start + passed, datetime.UTC)
        return moment.isoformat()

    def gate(self, soak: float, *, waits: bool = True) -> HealthGate:
        return HealthGate(
            self.read,
            soak=soak,
            waits=waits,
            patience=100,
            clock=lambda: self.now,
            sleep=self.sleep,
            report=self.reports.append,
        )


DECISION = Decision(
    "promoted",
    PromotionNote("promote", "echo", "prod"),
    writes={"x": b""},
    required=(("stage", WANTED),),
)


def test_without_a_soak_the_gate_checks_once() -> None:
    world = ChangingApplication([(0, application(health="Progressing")), (5, application())])

    decision = world.gate(0).hold_up(DECISION)

    assert (decision.status, decision.writes) == ("gated", {})
    assert world.asked == ["echo-stage"]
    assert "Progressing" in decision.reason
    assert world.gate(0).hold_up(DECISION).status == "gated"
    world.now += 10
    assert world.gate(0).hold_up(DECISION) == DECISION


def test_a_soak_includes_the_time_already_spent_healthy() -> None:
    world = ChangingApplication([])
    world.states = [(0, application(since=world.stamp(-400)))]

    assert world.gate(600).hold_up(DECISION) == DECISION
    assert world.now - world.start == pytest.approx(200, abs=3)


def test_a_soak_restarts_after_a_relapse() -> None:
    world = ChangingApplication([])
    world.states = [
        (0, application(since=world.stamp(0))),
        (30, application(health="Progressing")),
        (40, application(since=world.stamp(40))),
    ]

    assert world.gate(60).hold_up(DECISION) == DECISION
    assert world.now - world.start == pytest.approx(100, abs=3)


def test_a_soak_reports_a_change_at_once_and_otherwise_once_a_minute() -> None:
    world = ChangingApplication([])
    world.states = [
        (0, application(health="Progressing")),
        (10, application(since=world.stamp(10))),
    ]

    world.gate(150).hold_up(DECISION)

    assert [each.rpartition(" s of")[0] for each in world.reports[1:]] == [
        f"echo-stage: Synced and Healthy, {left}" for left in (150, 90, 30)
    ]
    assert "Progressing" in world.reports[0]


def test_a_soak_fails_at_once_if_the_app_degrades() -> None:
    world = ChangingApplication([(0, application()), (30, application(health="Degraded"))])
    world.states[0] = (0, application(since=world.stamp(0)))

    assert world.gate(60).hold_up(DECISION).status == "gated"
    assert world.now - world.start == pytest.approx(30, abs=3)


def test_a_soak_times_out() -> None:
    world = ChangingApplication([(0, application(sync="OutOfSync"))])

    assert world.gate(60).hold_up(DECISION).status == "gated"
    assert world.now - world.start == pytest.approx(160, abs=5)


def test_a_completed_soak_is_checked_again_without_waiting() -> None:
    world = ChangingApplication([])
    world.states = [(0, application(since=world.stamp(0))), (90, application(health="Degraded"))]
    gate = world.gate(60)

    gate.hold_up(DECISION)
    then = world.now
    assert gate.hold_up(DECISION) == DECISION
    assert world.now == then
    world.now += 60
    assert gate.hold_up(DECISION).status == "gated"


def test_a_gate_that_does_not_wait_reports_the_soak_time_left() -> None:
    world = ChangingApplication([])
    world.states = [(0, application(since=world.stamp(0)))]

    decision = world.gate(60, waits=False).hold_up(DECISION)

    assert (decision.status, world.now) == ("gated", world.start)
    assert "60 s of soak time left" in decision.reason
    world.now += 60
    assert world.gate(60, waits=False).hold_up(DECISION) == DECISION


def test_a_missing_application_closes_the_gate() -> None:
    decision = ChangingApplication([(0, None)]).gate(60).hold_up(DECISION)

    assert decision.status == "gated"
    assert decision.reason.endswith("but the Application does not exist")
    assert "ucp recreate --env stage" in decision.next


def test_one_unhealthy_app_stops_a_batch() -> None:
    other = Decision("promoted", PromotionNote("promote", "x", "prod"), writes={"y": b""})
    gated = ChangingApplication([(0, application(sync="OutOfSync"))]).gate(0).hold_up(DECISION)

    decisions = all_or_none([other, gated])

    assert [each.status for each in decisions] == ["gated", "gated"]
    assert not any(each.writes for each in decisions)


def test_requiring_health_without_an_earlier_environment_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no environment before"):
        ChangingApplication([]).gate(0).hold_up(
            Decision("promoted", PromotionNote("promote", "echo", "stage"))
        )


def test_a_missing_kubeconfig_is_reported_with_both_locations(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match=r"\.ucp/x nor KUBECONFIG"):
        find_kubeconfig({".ucp/x": tmp_path / "missing", "KUBECONFIG": None})
