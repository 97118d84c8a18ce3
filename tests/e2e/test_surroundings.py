"""Where people run it: odd paths, side by side, as an ordinary user, from the built wheel."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

from tests.conftest import CACHE
from tests.e2e.wheels import install_wheel
from tests.e2e.world import World, until

ROOT = Path(__file__).resolve().parents[2]


def healthy_apps(world: World) -> int:
    return sum(
        (each["sync"], each["health"]) == ("Synced", "Healthy")
        for each in world.status()["applications"]
        if each["app"] == "echo"
    )


def test_as_an_ordinary_user_from_the_built_wheel_in_a_path_with_spaces_beside_another(
    reader: World, world: World, tmp_path: Path
) -> None:
    """Nobody's account, a copy of the built programs, and no right to anything else."""
    assert " " in str(world.workspace)
    install_wheel(world, tmp_path, ROOT)
    user = become_nobody(world) if os.getuid() == 0 else os.getuid()
    world.ucp("start", "--yes", "--env", "stage=embedded", "--app", "echo")
    assert healthy_apps(world) == 1
    assert {process.uids().real for process in world.processes()} == {user}
    assert healthy_apps(reader) == 2
    world.ucp("stop", "--yes")
    until("nothing is left", lambda: world.processes() == [], seconds=10)
    assert healthy_apps(reader) == 2


def become_nobody(world: World) -> int:
    """Have everything of this workspace belong to an ordinary user, who gives the commands."""
    nobody = pwd.getpwnam("nobody")
    base = world.home.parent
    base.chmod(0o755)
    cache = base / "cache"
    shutil.copytree(CACHE, cache, symlinks=True, ignore=shutil.ignore_patterns("build", "tests"))
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
    return nobody.pw_uid
