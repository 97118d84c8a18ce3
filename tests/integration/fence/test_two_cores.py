"""Two cores for one repository, with real processes: who writes, who stops, who is refused."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from k8s_ucp.components import argo_rollouts, argocd, crossplane
from k8s_ucp.components.watcher import WRITERS
from k8s_ucp.fence.files import boot_clock
from k8s_ucp.fence.record import PERIODS, FenceHeld
from tests.integration.fence.cores import (
    ASKS,
    ASKS_NOT,
    PERIOD,
    GuardedCore,
    guarded,
    make_bare,
    overlapping,
    read_ledger,
    wait_for,
)


@pytest.fixture
def cores(tmp_path: Path) -> tuple[GuardedCore, GuardedCore]:
    remote, ledger = make_bare(tmp_path / "core.git"), tmp_path / "ledger"
    folders = (tmp_path / "one", tmp_path / "two")
    for each in folders:
        each.mkdir()
    one, two = (GuardedCore(each, remote, ledger) for each in folders)
    return one, two


def test_second_core_is_refused_until_the_first_has_stopped(
    cores: tuple[GuardedCore, GuardedCore],
) -> None:
    one, two = cores
    with guarded():
        first = one.claim().fence.settings()
        again = one.claim().fence.settings()
        assert first and again
        assert (first.record.epoch, again.commit) == (1, first.commit)
        with pytest.raises(FenceHeld, match=f"workspace {one.folder} on machine .+ since 20"):
            two.claim()
        one.stop()
        second = two.claim().fence.settings()
        assert second
        assert (second.record.epoch, second.record.taken) == (2, False)
        with pytest.raises(FenceHeld, match=f"workspace {two.folder}"):
            one.claim()


def test_core_that_lost_its_state_keeps_its_claim(
    cores: tuple[GuardedCore, GuardedCore],
) -> None:
    one, _ = cores
    with guarded():
        one.claim()
        one.context().fence.forget()
        again = one.claim().fence.settings()
        assert again
        assert again.record.epoch == 1


def test_frozen_core_stops_after_a_takeover_when_it_thaws(
    cores: tuple[GuardedCore, GuardedCore],
) -> None:
    one, two = cores
    with guarded(one, two):
        one.start()
        wait_for(
            "both write", lambda: {e.writer for e in read_ledger(one.ledger)} == {ASKS, ASKS_NOT}
        )
        one.signal(signal.SIGSTOP)
        began = time.time()
        two.start(takeover=True)
        wait_for("the taker writes", lambda: read_ledger(one.ledger, ASKS)[-1].epoch == 2)
        first = next(each for each in read_ledger(one.ledger, ASKS) if each.epoch == 2)
        assert first.time - began >= 2 * PERIOD
        one.signal(signal.SIGCONT)
        thawed = time.time()
        wait_for(
            "the first one is stopped", lambda: one.says() == "lost" and not one.runs(ASKS_NOT)
        )
        stopped = time.time()
        wait_for("the taker goes on", lambda: read_ledger(one.ledger, ASKS)[-1].time > stopped + 1)
        assert overlapping(read_ledger(one.ledger, ASKS)) == []
        last = max(each.time for each in read_ledger(one.ledger, ASKS_NOT) if each.epoch == 1)
        assert last <= thawed + PERIOD
        assert two.runs(ASKS_NOT)
        one.start(takeover=True)
        wait_for("it is back", lambda: one.runs(ASKS_NOT) and one.says() == "held")
        wait_for("the other one stops", lambda: two.says() == "lost" and not two.runs(ASKS_NOT))


def test_core_that_can_not_read_the_fence_stops_and_resumes_later(
    cores: tuple[GuardedCore, GuardedCore],
) -> None:
    one, _ = cores
    gone = one.remote.with_name("away.git")
    with guarded(one):
        one.start()
        wait_for("its guard has asked", lambda: (p := one.context().fence.permit()) and p.confirmed)
        one.remote.rename(gone)
        wait_for("it stops", lambda: one.says() == "silent" and not one.runs(ASKS_NOT))
        count = len(read_ledger(one.ledger, ASKS))
        time.sleep(1)
        assert len(read_ledger(one.ledger, ASKS)) == count
        permit = one.context().fence.permit()
        assert permit
        assert str(one.remote) in permit.why_stopped()
        gone.rename(one.remote)
        wait_for("it goes on", lambda: one.says() == "held" and one.runs(ASKS_NOT))
        wait_for("it writes", lambda: len(read_ledger(one.ledger, ASKS)) > count)


def test_core_with_a_local_fence_does_not_stop_if_it_can_not_read_it(
    cores: tuple[GuardedCore, GuardedCore],
) -> None:
    one, _ = cores
    one.elsewhere = False
    with guarded(one):
        one.start()
        wait_for("its guard has asked", lambda: (p := one.context().fence.permit()) and p.confirmed)
        one.remote.rename(one.remote.with_name("away.git"))
        time.sleep(PERIOD + 1)
        assert one.says() == "held"
        assert one.runs(ASKS_NOT)
        last = read_ledger(one.ledger, ASKS)[-1].time
        wait_for("it writes", lambda: read_ledger(one.ledger, ASKS)[-1].time > last)


def test_writers_are_the_programs_that_write() -> None:
    assert (argocd.CONTROLLER, crossplane.NAME, f"{argo_rollouts.NAME[5:]}-*") == WRITERS


def test_a_wait_that_was_recorded_by_a_wrong_clock_ends(
    cores: tuple[GuardedCore, GuardedCore],
) -> None:
    """The next start would wait for years, and so would each one after it."""
    with guarded():
        fence = cores[0].claim().fence
        settings = fence.settings()
        assert settings
        fence.write_settings(replace(settings, not_before=boot_clock() + 400 * 86400))
        again = cores[0].claim().fence.settings()
        assert again
    assert again.not_before - boot_clock() <= PERIODS * settings.period
