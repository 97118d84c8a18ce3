"""Chooses points of a plan at which commands are interrupted, and interrupts them there."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Plan
from tests.e2e.world import Workbench

ROOT = Path(__file__).resolve().parents[2]
KILLED = -signal.SIGKILL
MOST_EFFECTS = 40
SEED = int(os.environ.get("UCP_SEED") or 739945)
"""Seed for the points that `make test` uses; the soak uses all of them."""
MOMENTS = tuple(f"inside:{number}:command" for number in (1, 2, 4, 8, 16, 32))
"""Points of a command without a plan: numbers of effects."""
TEARDOWN = (
    "install-tools",
    "publish-repositories",
    "await-cluster-gone",
    "publish-repositories#2",
)
RETURN = ("publish-repositories", "await-environments", "await-applications")
"""Steps of `ucp recreate --env`, which runs several plans with waits in between. A deleted
environment is recreated by controllers once git declares it again: RETURN has all steps that a
stopped one needs.
"""


def points(plan: Plan[StartContext], dice: random.Random) -> list[str]:
    """Three points for each step of the plan."""
    return [point for task in plan.tasks for point in points_of(task.step.id, dice)]


def points_of(step: str, dice: random.Random) -> list[str]:
    moment = round(MOST_EFFECTS ** dice.random())
    return [f"before:{step}", f"inside:{moment}:{step}", f"after:{step}"]


def points_of_steps(steps: Sequence[str], dice: random.Random) -> list[str]:
    return [point for each in steps for point in points_of(each, dice)]


def dice_of(command: str) -> random.Random:
    """Generator for a command with few points: the seed alone would choose the first of each."""
    return random.Random(f"{SEED} {command}")


def cut_somewhere(world: Workbench, plan: Plan[StartContext], *words: str) -> bool:
    """Kill a command at a point that the seed chooses; return whether it was reached."""
    dice = random.Random(SEED)
    return cut_at_one_of(world, points(plan, dice), dice, *words)


def cut_at_one_of(
    world: Workbench, chosen: Sequence[str], dice: random.Random, *words: str
) -> bool:
    """Kill a command at one of these points; return whether it was reached."""
    point = dice.choice(chosen)
    done = cut(world, point, *words)
    assert done.returncode in (KILLED, 0), f"{point} of {words}: {done.stderr}"
    return done.returncode == KILLED


@contextmanager
def repeatedly(act: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call `act` repeatedly during the block."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.wait(seconds):
            with contextlib.suppress(Exception):
                act()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount a file system in memory at the folder. Requires root."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def cut(
    world: Workbench, point: str, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command that is interrupted at a point of its plan."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.e2e.interrupted_command", point),
            *("--workspace", str(world.workspace), *words),
        ],
        env={**world.env, "PYTHONPATH": path, **variables},
        cwd=world.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    world.hear(words, done.stdout, done.stderr)
    return done
