"""Fixtures for all kinds of tests. Tests never skip for a missing engine: it is built instead."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.docker_restart import COMMAND, DockerRestart
from tests.reruns import end_shared_fixtures, is_rerun
from tests.scheduling import one_worker, place
from tests.sources import modules

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

# The duration of an example depends on the machine, not on the code.
settings.register_profile(
    "ucp", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ucp")

# A shell that starts pytest in the background makes it, and all its children, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Container images often disable bytecode files. Each `ucp` process of a test would then compile
# this project again, which takes 0.5 s of CPU, and each worker all tests.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Set before any test changes HOME: all tests share the built programs.
CACHE = Path(
    os.environ.get("UCP_CACHE_DIR")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "k8s-ucp"
)
os.environ["UCP_CACHE_DIR"] = str(CACHE)

UNTIL = "UCP_TESTS_UNTIL"
"""Seconds since 1970 after which no further test begins. A run that is killed because it takes too
long would lose all its results; the remaining tests are skipped instead, and the summary counts
them.
"""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: looking for garbage in it takes 1.5 s of CPU."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def toolbox() -> Toolbox:
    """The pinned programs; missing ones are built into the user's cache."""
    from k8s_ucp.tools.catalogue import EMBEDDED
    from k8s_ucp.tools.installer import Installer

    return Installer(CACHE, lambda event: None).install(EMBEDDED)


@pytest.fixture(scope="session")
def kind_toolbox() -> Toolbox:
    """Only the program kind, which takes a few seconds to build."""
    from k8s_ucp.providers import PROVIDERS
    from k8s_ucp.tools.installer import Installer

    return Installer(CACHE, lambda event: None).install(PROVIDERS["kind"].tools)


@pytest.fixture(scope="session", autouse=True)
def docker_restart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerRestart | None]:
    """Restarts Docker where that is allowed; tells the other workers when this one has finished."""
    if COMMAND not in os.environ:
        yield None
        return
    # The parent of a worker's folder belongs to the whole run.
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    found = DockerRestart(shared / "docker-restart")
    yield found
    found.end()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    until = os.environ.get(UNTIL)
    if until and time.time() > float(until):
        pytest.skip(f"no time left: {UNTIL} is over")
    # End-to-end tests of a file build on each other's topology, which takes minutes to start.
    if is_rerun(item) and "/e2e/" not in item.path.as_posix():
        end_shared_fixtures(item)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Drop the syntax trees of all modules after the tests that share them.

    They take 140 MB, and starting a program copies the tables of all pages: 9 ms of CPU for these.
    """
    if nextitem is None or one_worker(item.nodeid) != one_worker(nextitem.nodeid):
        modules.cache_clear()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    if config.getoption("dist") != "loadfile":
        return None
    from tests.scheduling import SharedTopologies

    return SharedTopologies(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests with real kind clusters where no container engine exists; rerun failures once.

    Tests outside tests/unit work with other processes: engines, git, servers. On a machine that
    stalls, one may miss its deadline; it is run once more, and the summary lists it as a rerun.
    """
    limited = UNTIL in os.environ
    items.sort(key=lambda item: place(item.nodeid, kind="kind" in item.keywords, limited=limited))
    for item in items:
        # Soak tests take up to hours, and people read their results.
        if "/unit/" not in item.path.as_posix() and "soak" not in item.keywords:
            item.add_marker(pytest.mark.flaky(reruns=int(os.environ.get("UCP_TEST_RERUNS", 1))))
    kind = [each for each in items if each.get_closest_marker("kind")]
    if not kind:
        return
    from tests.kind_clusters import why_not

    if why_not():
        items[:] = [each for each in items if each not in kind]
        config.hook.pytest_deselected(items=kind)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate HOME for the test, without git identity, kubeconfig or caches."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("KUBECONFIG", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "GIT_AUTHOR_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / ".gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder
