"""Time from a push, a commit or a killed process until the topology is in its desired state.

Times are upper bounds, measured by repeated calls of `ucp status`, as a user would see them.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from k8s_ucp.kube import Kube
from tests.conftest import CACHE
from tests.e2e.added_environment import add_eu_to_apps, add_eu_to_core
from tests.e2e.echo_app import image
from tests.e2e.embedded_topology import PROCESSES, named, well
from tests.e2e.world import Workbench, until
from tests.evidence import table, write

OVERLAY = "apps/echo/overlays/stage/kustomization.yaml"


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/recovery.md."""
    folder = Path(tempfile.mkdtemp(prefix="ucp-bench-"))
    home, workspace = folder / "home", folder / "w"
    home.mkdir()
    workspace.mkdir()
    world = Workbench(workspace, home, environment={"UCP_CACHE_DIR": str(CACHE)})
    try:
        world.ucp("start", "--yes")
        sections = {
            "After a push": table(["what", "seconds", "goal"], _pushes(world, rounds)),
            "After SIGKILL of one process: all ready, Synced and Healthy again": table(
                ["process", "seconds", "goal"], _deaths(world)
            ),
        }
    finally:
        if world.state.is_dir():
            world.ucp("stop", "--yes")
        world.kill_everything()
        shutil.rmtree(folder, ignore_errors=True)
    write("recovery", "How soon it is right again", sections, command="make bench")


def _pushes(world: Workbench, rounds: int) -> list[list[str]]:
    rows = []
    stage = world.kube("stage")
    for number in range(rounds):
        tag = f"1.{number}"
        with world.commit("apps", f"echo {tag} on stage") as clone:
            path = clone / OVERLAY
            old = str(image(stage)).rsplit(":", 1)[1]
            path.write_text(path.read_text().replace(old, tag))
        rows.append(["a new tag is in stage", _time(lambda tag=tag: _runs(stage, tag)), "≤ 10"])
    with world.commit("core", "Add the environment eu") as clone:
        add_eu_to_core(clone)
    with world.commit("apps", "Run echo on eu") as clone:
        add_eu_to_apps(clone)
    seconds = _time(lambda: (world.application("echo-eu") or {}).get("health") == "Healthy")
    rows.append(["a new environment is up, registered, echo Healthy", seconds, "≤ 15"])
    return rows


def _deaths(world: Workbench) -> list[list[str]]:
    rows = []
    for program, detail in PROCESSES:
        until("well before", lambda: well(world), seconds=120)
        victim = named(world, program, detail)[0]
        os.kill(victim.pid, signal.SIGKILL)

        def back(program: str = program, detail: str = detail, old: int = victim.pid) -> bool:
            now = {each.pid for each in named(world, program, detail)}
            return bool(now) and old not in now and well(world)

        name = " ".join(word for word in (program, detail) if word)
        rows.append([name, _time(back), "≤ 10"])
    return rows


def _runs(kube: Kube, tag: str) -> bool:
    return str(image(kube)).endswith(f":{tag}")


def _time(met: Callable[[], object]) -> str:
    began = time.monotonic()
    until("it is so", met, seconds=120)
    seconds = f"{time.monotonic() - began:.1f}"
    print(seconds, flush=True)
    return seconds
