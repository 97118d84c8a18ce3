"""Records a session with a real topology: the commands, and every line of their output."""

from __future__ import annotations

import shlex
import subprocess

from k8s_ucp.workspace import cache_folder
from tests.e2e.world import Workbench, until
from tests.integration.cli.conftest import make_world
from tests.pictures.session import COLUMNS, PROMPT, RECORDING

COMMANDS = (
    "ucp start --yes",
    "ucp promote echo --env stage --tag 0.9.3",
    "ucp promote echo --env prod --from stage --require-healthy",
    "ucp status",
    "ucp history echo --env prod",
)


def record() -> None:
    lines: list[str] = []
    with make_world() as world:
        # Its HOME is empty, so it uses the built programs of the current user.
        world.environment["UCP_CACHE_DIR"] = str(cache_folder())
        for command in COMMANDS:
            lines += [PROMPT + command, *_answered(world, command).splitlines(), ""]
            if command != COMMANDS[-1]:
                until(command, lambda: world.is_well(clusters="registered", applications=2))
    RECORDING.write_text("\n".join(lines[:-1]) + "\n", "utf-8")


def _answered(world: Workbench, command: str) -> str:
    """Both output streams, as a terminal shows them, without the paths of this machine."""
    done = subprocess.run(
        [*world.command, *shlex.split(command)[1:]],
        env={**world.env, "COLUMNS": str(COLUMNS)},
        cwd=world.workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1800,
        check=True,
    )
    return done.stdout.replace(str(world.workspace), "~/demo").replace(str(world.home), "~").strip()
