"""Outputs of commands with fixed data; each is run in its own terminal."""

from __future__ import annotations

import dataclasses
import time

from k8s_ucp.cli.console import Console
from k8s_ucp.cli.inspection import doctor, status_page
from k8s_ucp.cli.promotion.results import words
from k8s_ucp.engine.pipeline import StepEvent, StepRun, StepState
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.decision import Intent, decide
from k8s_ucp.gitops.promotion.landing import Landing
from k8s_ucp.gitops.promotion.rollback import Rollback, decide_rollback
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.doctor.checks import findings
from k8s_ucp.inspect.doctor.examination import Examined
from k8s_ucp.inspect.status import summarize
from tests.unit.gitops.promotion.tips import MemoryTip, shop
from tests.unit.inspect.snapshots import TOPOLOGY, WELL

TITLES = (
    "Check the machine", "Install the pinned programs", "Render the repositories",
    "Start the core cluster", "Start Argo CD", "Start Crossplane", "Make the app clusters",
)  # fmt: skip
STEPS = 28
"""More steps than the screen has lines."""


def start() -> None:
    """A successful start."""
    titles = [f"{TITLES[number % len(TITLES)]} {number + 1}" for number in range(STEPS)]
    _play([StepRun(f"step-{number}", title) for number, title in enumerate(titles)], fails=False)


def failed_start() -> None:
    """A start in which one step fails and another is cancelled."""
    _play([StepRun(each, each) for each in TITLES], fails=True)


def _play(steps: list[StepRun], *, fails: bool) -> None:
    with Console().steps() as view:

        def become(step: StepRun, state: StepState, message: str) -> None:
            step.state, step.message, step.seconds = state, message, 1.5
            view.on_event(StepEvent(step, steps))

        last = steps[-2:] if fails else []
        for step in steps:
            step.began = 0.0
            become(step, StepState.RUNNING, f"{step.title}: " + "word " * 40)
            if step not in last:
                time.sleep(0.01)
                become(step, StepState.DONE, "as it was" if step is steps[0] else "")
        if fails:
            time.sleep(0.3)  # long enough to be drawn
            become(last[0], StepState.FAILED, "no answer within 30 s\nnext: ucp doctor")
            become(last[1], StepState.CANCELLED, "")


def show_status() -> None:
    """A status with problems, with names and reasons longer than the screen."""
    long = "an answer that nobody expected, told at length: " * 3
    applications = [
        {
            "metadata": {
                "name": f"{app}-prod",
                "labels": {"k8s-ucp.io/app": app, "k8s-ucp.io/environment": "prod"},
            },
            "status": {
                "sync": {"status": "OutOfSync", "revision": "0123456789abcdef"},
                "health": {"status": "Degraded"},
                "conditions": [{"type": "SyncError", "message": long}],
                "summary": {"images": [f"registry.example.org/team/{app}:{n}" for n in range(13)]},
            },
        }
        for app in ("echo", "a-service-with-a-long-name")
    ]
    seen = dataclasses.replace(WELL, applications=applications)
    console = Console()
    console.data(status_page.page(summarize(TOPOLOGY, seen), seen, {}, console.width))


def watch() -> None:
    """`ucp status --watch` twice, the second time with less to show."""
    console = Console()
    for seen in (WELL, ClusterSnapshot(core_ready=False)):
        console.redraw(status_page.page(summarize(TOPOLOGY, seen), seen, {}, console.width))


def show_doctor() -> None:
    """Output of `ucp doctor` for a core that doesn't respond, and for a healthy topology."""
    found = findings(Examined(TOPOLOGY, ClusterSnapshot(core_ready=False), 0.0))
    console = Console()
    console.data(doctor._page(found))
    console.data(doctor._page([]))


def promote() -> None:
    """A promotion, a rollback, a promotion refused by the hold, a release and a hold of a tag."""
    console = Console()
    there = shop(stage="1.0.0")
    for wanted in (
        Intent("echo", "stage", Pin("1.1.0")),
        Rollback("echo", "stage", {"echo": Pin("1.0.0")}, {"echo": Pin("1.1.0")}),
        Intent("echo", "stage", Pin("1.1.0")),
        Rollback("echo", "stage", release_hold=True),
        Rollback("echo", "stage", hold=True),
        Intent("echo", "stage", Pin("1.2.0")),
    ):
        decision = (
            decide(there, wanted) if isinstance(wanted, Intent) else decide_rollback(there, wanted)
        )
        there = MemoryTip({**there.content, **decision.writes})
        landing = Landing((decision,), commit="0123456789abcdef", attempts=1)
        console.say(words(decision, landing))
