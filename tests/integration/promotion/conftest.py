"""Fixtures of the promotion tests: a repository, ways to reach it, a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.promotion.app_repository import AppRepository, Ucp, plain_environment
from tests.integration.promotion.git_servers import SSHD, TOKEN, USER, http_git, ssh_git


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    return plain_environment(home)


@pytest.fixture
def ucp(environment: dict[str, str], tmp_path: Path) -> Ucp:
    folder = tmp_path / "a workspace"
    folder.mkdir()
    return Ucp(environment, folder)


@pytest.fixture
def hosted(tmp_path: Path, environment: dict[str, str]) -> Callable[..., AppRepository]:
    """Makes bare repositories, in one folder with a space in its name."""
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
    """How a promoter reaches a repository. variables: what it needs in its environment."""

    name: str
    url: Callable[[Path], str]
    variables: dict[str, str] = field(default_factory=dict)


@pytest.fixture(params=["file", "http", "ssh"])
def transport(
    request: pytest.FixtureRequest, tmp_path: Path, environment: dict[str, str]
) -> Iterator[Transport]:
    if request.param == "file":
        yield Transport("file", lambda folder: folder.as_uri())
    elif request.param == "http":
        with http_git(tmp_path / "git host", environment) as served:
            yield Transport("http", served.url, {"UCP_GIT_USERNAME": USER, "UCP_GIT_TOKEN": TOKEN})
    else:
        if SSHD is None:
            pytest.skip("sshd is not on this machine (apt-get install openssh-server)")
        with ssh_git(tmp_path / "ssh") as served:
            yield Transport(
                "ssh",
                lambda folder: served.url(folder).replace(" ", "%20"),
                {"GIT_SSH_COMMAND": served.command},
            )
