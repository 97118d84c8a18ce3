"""The questions of `ucp start`, asked in a real (pseudo-)terminal."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

from k8s_ucp.topology import default, load
from tests.e2e.world import Workbench
from tests.integration.cli.conftest import files
from tests.terminal import seen

ENTER, SPACE, UP, DOWN = "\r", " ", "\x1b[A", "\x1b[B"
CTRL_C, CTRL_D, CTRL_U = "\x03", "\x04", "\x15"
CORE = "Provider of the core cluster:"
QUESTIONS = (
    "Environments, in the order of promotion:",
    "Apps to deploy to the environments:",
    "Write the file and start?",
)


STOPPED = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock"
RUNNING = json.dumps({"MemTotal": 16 * 10**9, "CgroupVersion": "2", "SecurityOptions": []})


def stand_in_engine(world: Workbench, *, runs: bool) -> None:
    """Create a stand-in: the questions depend on the state of Docker."""
    program = world.home / "bin" / "docker"
    program.parent.mkdir(exist_ok=True)
    answer = f"echo '{RUNNING}'" if runs else f"echo '{STOPPED}' >&2; exit 1"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(stat.S_IRWXU)
    world.environment["PATH"] = f"{program.parent}:{world.env['PATH']}"
    world.environment["KIND_EXPERIMENTAL_PROVIDER"] = "docker"


class Keyboard:
    """A person at a terminal."""

    def __init__(self, world: Workbench, *words: str) -> None:
        if "PATH" not in world.environment:
            stand_in_engine(world, runs=False)
        env = {**world.env, "TERM": "xterm", "UCP_CACHE_DIR": world.env["UCP_CACHE_DIR"]}
        self._child = pexpect.spawn(
            world.command[0],
            [*world.command[1:], "--workspace", str(world.workspace), *words],
            env=env,
            cwd=str(world.home),
            dimensions=(50, 150),
            encoding="utf-8",
            timeout=60,
        )
        self.seen = ""

    def reads(self, text: str) -> None:
        self._child.expect_exact(text)
        self.seen += self._child.before + self._child.after

    def types(self, keys: str) -> None:
        self._child.send(keys)

    def ends(self) -> int:
        self._child.expect(pexpect.EOF)
        self.seen += self._child.before
        self._child.close()
        assert self._child.exitstatus is not None, self.seen
        return int(self._child.exitstatus)

    def leave(self) -> None:
        self._child.close(force=True)


@pytest.fixture
def at_keyboard(world: Workbench) -> Iterator[Callable[..., Keyboard]]:
    sat: list[Keyboard] = []

    def sit(*words: str) -> Keyboard:
        sat.append(Keyboard(world, *words))
        return sat[-1]

    yield sit
    for each in sat:
        with contextlib.suppress(pexpect.ExceptionPexpect):
            each.leave()


@pytest.mark.parametrize("asked", range(len(QUESTIONS)), ids=QUESTIONS)
def test_ctrl_c_at_any_question_changes_nothing(
    world: Workbench, at_keyboard: Callable[..., Keyboard], asked: int
) -> None:
    person = at_keyboard("start")
    for question in QUESTIONS[:asked]:
        person.reads(question)
        person.types(ENTER)
    person.reads(QUESTIONS[asked])
    person.types(CTRL_C)
    assert person.ends() == 130
    assert "interrupted; nothing was written" in person.seen
    assert files(world) == []


def test_the_end_of_input_is_like_ctrl_c(
    world: Workbench, at_keyboard: Callable[..., Keyboard]
) -> None:
    person = at_keyboard("start")
    person.reads(QUESTIONS[0])
    person.types(CTRL_U + CTRL_D)
    assert person.ends() == 130
    assert "interrupted; nothing was written" in person.seen
    assert files(world) == []


def test_a_plan_is_shown_without_the_last_question(
    world: Workbench, at_keyboard: Callable[..., Keyboard]
) -> None:
    person = at_keyboard("start", "--plan")
    for question in QUESTIONS[:-1]:
        person.reads(question)
        person.types(ENTER)
    assert person.ends() == 0
    assert "ucp.yaml" in person.seen
    assert QUESTIONS[-1] not in person.seen
    assert files(world) == []


def test_no_at_the_last_question_writes_nothing(
    world: Workbench, at_keyboard: Callable[..., Keyboard]
) -> None:
    person = at_keyboard("start")
    for question in QUESTIONS[:-1]:
        person.reads(question)
        person.types(ENTER)
    person.reads(QUESTIONS[-1])
    person.types("n")
    assert person.ends() == 2
    assert "nothing was written" in person.seen
    assert files(world) == []


def test_invalid_names_are_refused_at_the_question(
    world: Workbench, at_keyboard: Callable[..., Keyboard]
) -> None:
    person = at_keyboard("start")
    person.reads(QUESTIONS[0])
    person.types(CTRL_U + "Stage" + ENTER)
    person.reads("'Stage' is not a valid name")
    person.types(CTRL_U + "a, a" + ENTER)
    person.reads("environment names must be unique")
    person.types(CTRL_U + "core" + ENTER)
    person.reads("'core'")
    person.types(CTRL_C)
    assert person.ends() == 130


@pytest.mark.slow
@pytest.mark.engines
def test_defaults_are_written_and_a_start_interrupted_at_a_step_can_be_stopped(
    world: Workbench, at_keyboard: Callable[..., Keyboard]
) -> None:
    """Enter accepts the defaults; ucp.yaml is written; `ucp stop` removes what the start began."""
    person = at_keyboard("start")
    for question in QUESTIONS:
        person.reads(question)
        person.types(ENTER)
    person.reads("wrote ")
    person.reads("Start the core cluster")
    person.types(CTRL_C)
    assert person.ends() == 130
    assert re.search(r"interrupted; \d+ of \d+ steps done", person.seen)
    assert "next: ucp" in person.seen
    path = world.workspace / "ucp.yaml"
    assert load(path) == default()
    person = at_keyboard("stop")
    person.reads("Stop the topology demo?")
    person.types(ENTER)
    assert person.ends() == 0
    assert world.processes() == []


def test_answers_other_than_the_defaults_are_used(
    world: Workbench, at_keyboard: Callable[..., Keyboard]
) -> None:
    person = at_keyboard("start", "--topology", "mine")
    person.reads(QUESTIONS[0])
    person.types(CTRL_U + "dev prod" + ENTER)
    person.reads(QUESTIONS[1])
    person.types(SPACE + ENTER)
    person.reads(QUESTIONS[2])
    shown = person.seen
    person.types(CTRL_C)
    assert person.ends() == 130
    for line in ("name: mine", "- name: dev", "promotesFrom: dev", "apps: []"):
        assert line in shown
    assert files(world) == []


def test_without_environments_no_question_about_apps_is_asked(
    world: Workbench, at_keyboard: Callable[..., Keyboard]
) -> None:
    person = at_keyboard("start")
    person.reads(QUESTIONS[0])
    person.types(CTRL_U + ENTER)
    person.reads(QUESTIONS[2])
    assert QUESTIONS[1] not in person.seen
    assert "environments: []" in person.seen
    person.types(CTRL_C)
    assert person.ends() == 130
    assert files(world) == []


def test_kind_is_offered_if_a_container_engine_answers(
    world: Workbench, at_keyboard: Callable[..., Keyboard]
) -> None:
    stand_in_engine(world, runs=True)
    person = at_keyboard("start")
    person.reads(CORE)
    person.types(DOWN + ENTER)
    person.reads(QUESTIONS[0])
    person.types(ENTER)
    person.reads("Provider of the environments' clusters:")
    person.reads("kind: clusters in containers, with real pods")
    person.types(UP + ENTER)
    person.reads(QUESTIONS[1])
    person.types(ENTER)
    person.reads(QUESTIONS[2])
    assert "cluster: {provider: kind}" in person.seen
    person.types(CTRL_C)
    assert person.ends() == 130
    assert files(world) == []


def test_question_with_one_answer_is_skipped_and_unavailable_kind_is_explained(
    world: Workbench, at_keyboard: Callable[..., Keyboard]
) -> None:
    person = at_keyboard("start")
    person.reads(QUESTIONS[0])
    assert CORE not in person.seen
    assert "kind (with real pods) is not available: Docker is not running" in person.seen
    person.types(CTRL_C)
    assert person.ends() == 130
    stand_in_engine(world, runs=True)
    person = at_keyboard("start", "--core", "kind")
    person.reads(QUESTIONS[0])
    assert CORE not in person.seen
    person.types(CTRL_C)
    assert person.ends() == 130


LIVE = """
import time
from k8s_ucp.cli.console import Console
from k8s_ucp.engine.pipeline import StepEvent, StepRun, StepState

with Console().steps() as view:
    step = StepRun("a", "Do it", StepState.RUNNING)
    view.on_event(StepEvent(step, [step]))
    for _ in range(600):
        time.sleep(0.1)
        if Path("go").exists():
            break
    step.state = StepState.DONE
    view.on_event(StepEvent(step, [step]))
"""


def test_typing_during_steps_does_not_break_the_progress_display(tmp_path: Path) -> None:
    """An echoed Enter would move the cursor, so the progress line above would not be redrawn."""
    program = "from pathlib import Path" + LIVE
    child = pexpect.spawn(
        sys.executable, ["-c", program], cwd=str(tmp_path), env={**os.environ, "TERM": "xterm"},
        dimensions=(24, 80), timeout=60,
    )  # fmt: skip
    child.expect_exact("Do it")
    assert child.waitnoecho(60)
    child.send("typed\r\r")
    (tmp_path / "go").touch()
    child.expect(pexpect.EOF)
    shown = child.before
    child.close()
    assert child.exitstatus == 0
    assert b"typed" not in shown
    (line,) = seen(b"Do it" + shown)
    assert "✓ Do it" in line


def test_no_question_is_asked_if_ucp_yaml_exists(
    world: Workbench, at_keyboard: Callable[..., Keyboard], tmp_path: Path
) -> None:
    (world.workspace / "ucp.yaml").write_text("nonsense: 1\n")
    person = at_keyboard("start")
    assert person.ends() == 2
    assert QUESTIONS[0] not in person.seen
