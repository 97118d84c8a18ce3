"""Installations that are killed, stopped or run concurrently leave complete entries or none."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from k8s_ucp import process
from k8s_ucp.errors import DeadlineExceeded
from k8s_ucp.process import RunningPrograms
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.parallel_installer import ParallelInstaller
from tests.integration.tools.conftest import Proxy
from tests.integration.tools.tiny import TINY

ROUNDS = 6
SOAK_ROUNDS = 200


class Install:
    """An installation in its own process."""

    def __init__(self, cache: Path, modules: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.tools.tiny", str(cache), str(modules)],
            stdout=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def end(self) -> str:
        """Wait for its end; return the rest of its output."""
        return self.process.communicate(timeout=120)[0]

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


Start = Callable[[], Install]


@pytest.fixture
def start(cache: Path, modules: Path) -> Iterator[Start]:
    with contextlib.ExitStack() as stack:

        def begin() -> Install:
            install = Install(cache, modules)
            stack.callback(install.close)
            return install

        yield begin


def tools(cache: Path) -> list[str]:
    return sorted(each.name for each in (cache / "tools").iterdir() if each.name != "locks")


def assert_whole(cache: Path, modules: Path) -> Path:
    """Check that the only entry is complete, and that nothing partial is left beside it."""
    (name,) = tools(cache)
    installer = Installer(cache, print, catalogue={"tiny": TINY}, modules=modules)
    (state,) = installer.states(verify=True)
    assert state.folder == cache / "tools" / name
    assert state.damaged == ()
    about = json.loads((state.folder / "entry.json").read_text())
    assert about["name"] == name
    return state.folder


def test_install_killed_while_fetching_leaves_no_entry(
    proxy: Proxy, cache: Path, modules: Path, start: Start
) -> None:
    proxy.gate.clear()
    first = start()
    assert proxy.asked.wait(30)
    (partial,) = tools(cache)
    assert partial.endswith(".partial")
    orphans = process.working_in(cache)
    first.kill()
    first.close()
    assert orphans, "the compiler outlives its installer; the next run ends it"
    proxy.asked.clear()
    second = start()
    assert proxy.asked.wait(30)
    assert not any(process.is_running(each) for each in orphans)
    proxy.gate.set()
    assert second.end().splitlines()[-1].startswith("path ")
    assert_whole(cache, modules)


def kill_at_random_then_heal(cache: Path, modules: Path, start: Start, seed: int) -> None:
    """Kill up to three installations at random moments, then let one finish."""
    chance = random.Random(seed)
    for _ in range(3):
        install = start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            install.process.wait(chance.uniform(0.05, 1.0))
        install.close()
        if any(cache.glob("tools/tiny-*/entry.json")):
            break
    last = start()
    assert last.end().splitlines()[-1].startswith("path ")
    assert_whole(cache, modules)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_rerun_recovers_from_a_kill_at_any_moment(
    proxy: Proxy, cache: Path, modules: Path, start: Start, seed: int
) -> None:
    kill_at_random_then_heal(cache, modules, start, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ROUNDS, SOAK_ROUNDS))
def test_rerun_recovers_from_kills_at_many_moments(
    proxy: Proxy, cache: Path, modules: Path, start: Start, seed: int
) -> None:
    kill_at_random_then_heal(cache, modules, start, seed)


def test_ctrl_c_ends_the_compiler_and_leaves_no_entry(
    proxy: Proxy, cache: Path, start: Start
) -> None:
    proxy.gate.clear()
    install = start()
    assert proxy.asked.wait(30)
    install.kill(signal.SIGINT)
    assert install.process.wait(20) != 0
    assert process.working_in(cache) == []
    assert tools(cache) == []


def test_two_concurrent_installs_build_one_entry(
    proxy: Proxy, cache: Path, modules: Path, start: Start
) -> None:
    proxy.gate.clear()
    first = start()
    assert proxy.asked.wait(30)
    second = start()
    assert second.line() == f"waiting process {first.process.pid} is installing it"
    proxy.gate.set()
    outputs = [first.end(), second.end()]
    assert {each.splitlines()[-1] for each in outputs} == {
        f"path {assert_whole(cache, modules)}/bin/tiny"
    }
    assert "compiling" not in outputs[1]
    assert proxy.archives == 1


def test_waiting_install_continues_after_the_other_is_killed(
    proxy: Proxy, cache: Path, modules: Path, start: Start
) -> None:
    proxy.gate.clear()
    first = start()
    assert proxy.asked.wait(30)
    second = start()
    assert second.line().startswith("waiting")
    proxy.gate.set()
    first.kill()
    assert second.end().splitlines()[-1].startswith("path ")
    assert_whole(cache, modules)


def test_wait_for_another_install_ends_at_the_deadline_and_names_it(
    proxy: Proxy, cache: Path, modules: Path, start: Start
) -> None:
    proxy.gate.clear()
    first = start()
    assert proxy.asked.wait(30)
    impatient = Installer(
        cache, lambda told: None, catalogue={"tiny": TINY}, modules=modules, lock_deadline=0.5
    )
    with pytest.raises(DeadlineExceeded) as caught:
        impatient.install(["tiny"])
    assert f"process {first.process.pid} is installing it" in str(caught.value)
    proxy.gate.set()
    assert first.end().splitlines()[-1].startswith("path ")


def test_ctrl_c_while_waiting_for_another_install_ends_at_once(
    proxy: Proxy, cache: Path, start: Start
) -> None:
    proxy.gate.clear()
    first = start()
    assert proxy.asked.wait(30)
    second = start()
    assert second.line().startswith("waiting")
    second.kill(signal.SIGINT)
    assert second.process.wait(20) != 0
    proxy.gate.set()
    assert first.end().splitlines()[-1].startswith("path ")


def test_ctrl_c_right_after_an_installation_began_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    running = RunningPrograms()
    submit = ThreadPoolExecutor.submit

    def interrupted(pool: ThreadPoolExecutor, *job: Any) -> None:
        submit(pool, *job)
        raise KeyboardInterrupt

    def install(_: object) -> None:
        until = time.monotonic() + 5
        while not running.ended and time.monotonic() < until:
            time.sleep(0.01)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    installer = ParallelInstaller(cast("Any", None), lambda _: None, running, lock_deadline=1)
    monkeypatch.setattr(installer, "_one", install)
    with pytest.raises(KeyboardInterrupt):
        installer.install_all({"tiny": (cast("Any", SimpleNamespace(is_built=False)),)})
    assert running.ended


def test_partial_folder_of_an_older_pin_is_removed_unless_it_is_being_built(
    proxy: Proxy, cache: Path, modules: Path, start: Start
) -> None:
    import fcntl

    locks = cache / "tools" / "locks"
    locks.mkdir(parents=True)
    for name in ("tiny-0.8.0-dead", "tiny-0.9.0-alive"):
        (cache / "tools" / f"{name}.partial" / "entry").mkdir(parents=True)
    with (locks / "tiny-0.9.0-alive.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert start().end().splitlines()[-1].startswith("path ")
        assert "tiny-0.9.0-alive.partial" in tools(cache)
        assert "tiny-0.8.0-dead.partial" not in tools(cache)


def test_files_left_by_a_kill_after_the_build_are_removed_by_the_next_install(
    proxy: Proxy, cache: Path, modules: Path, start: Start
) -> None:
    """The entry exists, but the installer was killed before its cleanup."""
    assert start().end().splitlines()[-1].startswith("path ")
    (name,) = tools(cache)
    (cache / "tools" / f"{name}.partial" / "work").mkdir(parents=True)
    (cache / "build.old-1").mkdir()
    installer = Installer(cache, print, catalogue={"tiny": TINY}, modules=modules)
    installer.find(["tiny"])
    assert len(tools(cache)) == 2, "looking changes nothing"
    installer.install(["tiny"])
    assert_whole(cache, modules)
    until = time.monotonic() + 20
    while list(cache.glob("build*")) and time.monotonic() < until:
        time.sleep(0.02)
    assert sorted(each.name for each in cache.iterdir()) == ["logs", "tools"]


def test_foreign_process_in_the_folder_of_another_tool_is_left_alone(
    proxy: Proxy, cache: Path, start: Start, tmp_path: Path
) -> None:
    elsewhere = cache / "somewhere"
    elsewhere.mkdir()
    stranger = process.spawn(
        ["sleep", "60"], env=dict(os.environ), cwd=elsewhere, log=tmp_path / "log"
    )
    try:
        assert start().end().splitlines()[-1].startswith("path ")
        time.sleep(0.1)
        assert process.is_running(stranger)
    finally:
        process.terminate(stranger, grace=1)
