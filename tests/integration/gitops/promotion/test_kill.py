"""SIGKILL at random moments: the remote is unchanged or complete, and a rerun finishes."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable

import psutil
import pytest

from tests.integration.gitops.promotion.app_repository import AppRepository, Ucp
from tests.integration.gitops.promotion.conftest import Transport

SEED = 7


def stop_with_children(running: subprocess.Popen[str]) -> None:
    """Send SIGKILL to the promotion only, as the kernel's OOM killer or a CI system would."""
    running.kill()
    running.wait()
    for stream in (running.stdout, running.stderr):
        if stream:
            stream.close()


def kill_at_random(
    ucp: Ucp, repository: AppRepository, transport: Transport, runs: int, longest: float
) -> dict[str, int]:
    """Kill promotions at random moments of their run; return how often the remote was changed."""
    where = ("--repo", transport.url(repository.folder))
    dice = random.Random(SEED)
    seen = {"before": 0, "after": 0, "ended by itself": 0}
    servers = descendants()
    for number in range(1, runs + 1):
        before, tag = repository.tip, f"v{number}"
        words = (
            "promote",
            "echo",
            "--env",
            "stage",
            "--tag",
            tag,
            "--sequence",
            str(number),
            *where,
        )
        running = ucp.start(*words, **transport.variables)
        time.sleep(dice.uniform(0, longest))
        ended = running.poll() is not None
        stop_with_children(running)
        settle(repository, servers)
        after = repository.tip
        if after == before:
            seen["before"] += 1
        else:
            seen["ended by itself" if ended else "after"] += 1
            assert repository.git("rev-parse", "main~1").strip() == before
            assert repository.tag("echo", "stage") == tag
        again = ucp.promote(*words[1:], **transport.variables)
        assert again.code == 0, again.err
        assert again.status == ("promoted" if after == before else "unchanged")
        assert repository.tag("echo", "stage") == tag
        assert len(repository.commits) == number + 1
    repository.prove_sound()
    return seen


def settle(repository: AppRepository, servers: set[int]) -> None:
    """Wait for a push in progress: the git server continues without its client.

    servers: process ids of our children that stay; processes that they started for a push must end.
    """
    quiet, tip = 0, repository.tip
    for _ in range(1000):
        locked = any((repository.folder / "refs").rglob("*.lock"))
        now = repository.tip
        quiet = 0 if locked or now != tip or descendants() - servers else quiet + 1
        tip = now
        if quiet > 15:
            return
        time.sleep(0.02)
    raise AssertionError("a lock or a process of git was left behind")


def descendants() -> set[int]:
    """Process ids of direct and indirect children that have not ended."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
    return found


def lifetime(ucp: Ucp, repository: AppRepository, transport: Transport) -> float:
    """Seconds that one promotion takes on this machine."""
    where = ("--repo", transport.url(repository.folder))
    begun = time.monotonic()
    ucp.promote("echo", "--env", "prod", "--tag", "0.9.2", *where, **transport.variables)
    return time.monotonic() - begun


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("runs", "transport"),
    [
        pytest.param(4, "file"),
        pytest.param(2, "http"),
        pytest.param(200, "file", marks=pytest.mark.soak),
        pytest.param(200, "http", marks=pytest.mark.soak),
        pytest.param(200, "ssh", marks=pytest.mark.soak),
    ],
    indirect=["transport"],
)
def test_rerun_recovers_from_a_kill_at_a_random_moment(
    runs: int,
    transport: Transport,
    repository: AppRepository,
    ucp: Ucp,
    record: Callable[..., None],
) -> None:
    longest = 1.2 * lifetime(ucp, repository, transport)

    seen = kill_at_random(ucp, repository, transport, runs, longest)

    assert sum(seen.values()) == runs
    record(
        kills=runs,
        found_before=seen["before"],
        found_after=seen["after"],
        had_ended_by_itself=seen["ended by itself"],
        broken=0,
    )


@pytest.mark.parametrize("moment", ["pre-receive", "update", "post-receive"])
def test_rerun_recovers_from_a_kill_while_a_hook_runs(
    moment: str, repository: AppRepository, ucp: Ucp, hosted: Callable[..., AppRepository]
) -> None:
    """Hits the most critical moment deterministically."""
    here, go = repository.folder / "here", repository.folder / "go"
    repository.hook(moment, f'touch "{here}"; while [ ! -e "{go}" ]; do sleep 0.02; done; exit 0')
    words = ("echo", "--env", "stage", "--tag", "v1", "--repo", repository.url)
    servers = descendants()
    running = ucp.start("promote", *words)
    until = time.monotonic() + 60
    while not here.exists() and time.monotonic() < until:
        time.sleep(0.01)
    stop_with_children(running)
    go.touch()
    settle(repository, servers)

    assert repository.tag("echo", "stage") in ("0.9.2", "v1")
    again = ucp.promote(*words)
    assert again.code == 0, again.err
    assert repository.tag("echo", "stage") == "v1"
    assert len(repository.commits) == 2
    repository.prove_sound()


def test_ctrl_c_exits_with_130_and_leaves_neither_folder_nor_lock(
    repository: AppRepository, ucp: Ucp
) -> None:
    scratch = repository.folder.parent.parent / "scratch"
    scratch.mkdir()
    repository.hook("pre-receive", "sleep 1; exit 1")
    words = ("promote", "echo", "--env", "stage", "--tag", "v1", "--repo", repository.url)
    running = ucp.start(*words, TMPDIR=str(scratch))
    until = time.monotonic() + 60
    while not list(scratch.glob("ucp-promote-*/objects")) and time.monotonic() < until:
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.kill(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=120)

    assert running.returncode == 130, err
    assert list(scratch.iterdir()) == []
    assert len(repository.commits) == 1
    repository.hook("pre-receive", "exit 0")
    assert ucp(*words).code == 0
    repository.prove_sound()
