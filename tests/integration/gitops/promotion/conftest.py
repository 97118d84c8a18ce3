"""Fixtures of the promotion tests: a repository, transports, a command."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.gitops.promotion.app_repository import (
    AppRepository,
    Ucp,
    UcpHere,
    plain_environment,
)
from tests.integration.gitops.promotion.git_servers import SSHD, TOKEN, USER, http_git, ssh_git
from tests.integration.gitops.promotion.soak import SoakRecord


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    return plain_environment(home)


@pytest.fixture
def ucp(environment: dict[str, str], tmp_path: Path) -> Ucp:
    folder = tmp_path / "a workspace"
    folder.mkdir()
    return UcpHere(environment, folder)


@pytest.fixture
def hosted(tmp_path: Path, environment: dict[str, str]) -> Callable[..., AppRepository]:
    """Create bare repositories, in one folder with a space in its name."""
    root = tmp_path / "git host"
    root.mkdir()

    def make(*apps: str) -> AppRepository:
        name = f"apps{len(list(root.iterdir()))}.git"
        return AppRepository(root / name, environment, apps or ("echo",))

    return make


@pytest.fixture
def repository(hosted: Callable[..., AppRepository]) -> AppRepository:
    return hosted()


@dataclass(frozen=True)
class Transport:
    """Access to a repository. variables: environment that a promotion needs for it."""

    name: str
    url: Callable[[Path], str]
    variables: dict[str, str] = field(default_factory=dict)


@contextlib.contextmanager
def open_transport(name: str, folder: Path, environment: dict[str, str]) -> Iterator[Transport]:
    """Serve the repositories in `folder`/git host over file, http or ssh."""
    if name == "file":
        yield Transport("file", lambda path: path.as_uri())
    elif name == "http":
        with http_git(folder / "git host", environment) as served:
            variables = {"UCP_GIT_USERNAME": USER, "UCP_GIT_TOKEN": TOKEN}
            yield Transport("http", served.url, variables)
    else:
        with ssh_git(folder / "ssh") as reached:
            yield Transport(
                "ssh",
                lambda path: reached.url(path).replace(" ", "%20"),
                {"GIT_SSH_COMMAND": reached.command},
            )


@pytest.fixture(params=["file", "http", "ssh"])
def transport(
    request: pytest.FixtureRequest, tmp_path: Path, environment: dict[str, str]
) -> Iterator[Transport]:
    if request.param == "ssh" and SSHD is None:
        pytest.skip("sshd is not on this machine (apt-get install openssh-server)")
    with open_transport(request.param, tmp_path, environment) as found:
        yield found


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Record the facts of a soak case; a case that was recorded with the same code is skipped."""
    if request.node.get_closest_marker("soak") is None:
        return lambda **facts: None
    soak = SoakRecord("promotion-soak", "Promotions under fire")
    if soak.has(request.node.name):
        pytest.skip("soaked already with this very code; delete the record to do it again")
    return lambda **facts: soak.add(request.node.name, facts)
