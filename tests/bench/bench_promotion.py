"""50 concurrent promotions of 50 apps on one branch, and the same 50 one after another."""

from __future__ import annotations

import contextlib
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.evidence import table, write
from tests.integration.gitops.promotion import promoters
from tests.integration.gitops.promotion.app_repository import AppRepository, Ucp, plain_environment
from tests.integration.gitops.promotion.conftest import Transport, open_transport

PROMOTERS = 50
TRANSPORTS = ("file", "http", "ssh")
GOAL = 2.0


def run(rounds: int) -> None:
    """Measure, and write docs/evidence/promotion.md."""
    rows = [row for name in TRANSPORTS for row in _measured(name, rounds)]
    starts = _starts(max(5, rounds))
    columns = ["transport", "promoters", "in turn s", "at once s", "ratio", "tries (median, most)"]
    sections = {
        f"{PROMOTERS} at once beside {PROMOTERS} in turn (goal: ratio at most {GOAL:g})": table(
            columns, rows
        ),
        "Start": f"A promotion that is refused before git is asked (`ucp promote` with a bad tag): "
        f"median {statistics.median(starts):.3f} s of {len(starts)} (goal: 0.3 s).",
    }
    write("promotion", "Promotions side by side", sections, command="make bench ARGS=promotion")


def _measured(name: str, rounds: int) -> Iterator[Sequence[object]]:
    ratios, in_turn, at_once, tries = [], [], [], []
    for number in range(rounds):
        with _world() as (folder, ucp), open_transport(name, folder, ucp.environment) as transport:
            turn, _ = _timed(ucp, folder, transport, in_turn=True)
            once, attempts = _timed(ucp, folder, transport, in_turn=False)
        in_turn.append(turn)
        at_once.append(once)
        ratios.append(once / turn)
        tries += attempts
        print(f"{name} {number}: {turn:.1f} s in turn, {once:.1f} s at once", flush=True)
    yield (
        name,
        PROMOTERS,
        f"{statistics.median(in_turn):.1f}",
        f"{statistics.median(at_once):.1f}",
        f"{statistics.median(ratios):.2f}",
        f"{statistics.median(tries):g}, {max(tries)}",
    )


def _timed(
    ucp: Ucp, folder: Path, transport: Transport, *, in_turn: bool
) -> tuple[float, list[int]]:
    wishes = promoters.many_apps(PROMOTERS)
    place = folder / "git host" / f"{'turn' if in_turn else 'once'}.git"
    repository = AppRepository(place, ucp.environment, promoters.apps_of(wishes))
    promote = promoters.promote_in_turn if in_turn else promoters.promote_all
    begun = time.monotonic()
    outcomes = promote(ucp, repository, transport, wishes)
    took = time.monotonic() - begun
    promoters.prove_none_lost(repository, outcomes)
    return took, [each.result.data["attempts"] for each in outcomes]


def _starts(rounds: int) -> list[float]:
    found = []
    with _world() as (_, ucp):
        for _ in range(rounds):
            begun = time.monotonic()
            assert ucp("promote", "echo", "--env", "stage", "--tag", "a b").code == 2
            found.append(time.monotonic() - begun)
    return found


@contextlib.contextmanager
def _world() -> Iterator[tuple[Path, Ucp]]:
    folder = Path(tempfile.mkdtemp(prefix="ucp-bench-"))
    try:
        for name in ("home", "git host", "workspace"):
            (folder / name).mkdir()
        yield folder, Ucp(plain_environment(folder / "home"), folder / "workspace")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
