"""Where people run it: odd paths, side by side, as an ordinary user, from the built wheel."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CACHE
from tests.e2e.world import World, until

ROOT = Path(__file__).resolve().parents[2]


def healthy_apps(world: World) -> int:
    return sum(
        (each["sync"], each["health"]) == ("Synced", "Healthy")
        for each in world.status()["applications"]
        if each["app"] == "echo"
    )


@pytest.mark.parametrize("demo", ["embedded"], indirect=True)
def test_beside_another_topology_in_a_path_with_spaces_from_the_built_wheel(
    demo: World, world: World, tmp_path: Path
) -> None:
    assert " " in str(world.workspace)
    install_wheel(world, tmp_path)
    world.ucp("start", "--yes", "--env", "stage=embedded", "--app", "echo")
    assert healthy_apps(world) == 1
    assert healthy_apps(demo) == 2
    world.ucp("stop", "--yes")
    assert world.processes() == []
    assert healthy_apps(demo) == 2


def install_wheel(world: World, tmp_path: Path) -> None:
    """Have the world's command come from the wheel, outside of the checkout."""
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    venv = world.home / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    python = venv / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel],
        check=True,
        capture_output=True,
    )
    # The locked dependencies of this environment serve the new one: only our code differs.
    site = next((venv / "lib").glob("python*")) / "site-packages"
    here = next(Path(each) for each in sys.path if each.endswith("site-packages"))
    for entry in here.iterdir():
        if "k8s_ucp" not in entry.name and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    where = subprocess.run(
        [python, "-c", "import k8s_ucp; print(k8s_ucp.__file__)"],
        cwd=world.home,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert str(venv) in where
    world.command = (str(venv / "bin" / "ucp"),)
    world.environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.mark.skipif(os.getuid() != 0, reason="already an ordinary user: every other test shows it")
def test_as_an_ordinary_user(world: World) -> None:
    """Nobody's account, a copy of the built programs, and no right to anything else."""
    nobody = pwd.getpwnam("nobody")
    base = world.home.parent
    base.chmod(0o755)
    cache = base / "cache"
    shutil.copytree(CACHE, cache, symlinks=True, ignore=shutil.ignore_patterns("build"))
    for folder in (world.home, world.workspace, cache):
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
    world.environment["UCP_CACHE_DIR"] = str(cache)
    world.command = (
        "setpriv",
        f"--reuid={nobody.pw_uid}",
        f"--regid={nobody.pw_gid}",
        "--clear-groups",
        # The interpreter may lie in root's home: reading is allowed, writing is not.
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
        *world.command,
    )
    world.ucp("start", "--yes", "--env", "stage=embedded", "--app", "echo")
    assert healthy_apps(world) == 1
    owners = {process.uids().real for process in world.processes()}
    assert owners == {nobody.pw_uid}
    world.ucp("stop", "--yes")
    until("nothing is left", lambda: world.processes() == [], seconds=10)
