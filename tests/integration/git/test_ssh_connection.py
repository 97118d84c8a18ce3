"""The SSH connection that several git calls share, with a real sshd."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp.errors import DeadlineExceeded
from k8s_ucp.git import ssh_connection
from k8s_ucp.git.command import run_git, shared_connection
from k8s_ucp.git.repository import Repository
from tests.control_planes import eventually
from tests.integration.gitops.promotion.app_repository import AppRepository, plain_environment
from tests.integration.gitops.promotion.git_servers import SSHD, SshGit, ssh_git

pytestmark = pytest.mark.skipif(SSHD is None, reason="sshd is missing: install openssh-server")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, as sockets need."""
    with tempfile.TemporaryDirectory(prefix="ssh-") as made:
        yield Path(made)


@pytest.fixture
def server(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshGit]:
    for name, value in plain_environment(home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with ssh_git(folder / "sshd") as server:
        monkeypatch.setenv("GIT_SSH_COMMAND", server.command)
        yield server


@pytest.fixture
def url(server: SshGit, folder: Path, home: Path) -> str:
    return server.url(AppRepository(folder / "apps.git", plain_environment(home)).folder)


def _fetch_twice(url: str, folder: Path) -> None:
    with shared_connection(url) as connection:
        run_git(
            ("clone", "--bare", "--quiet", "--", url, str(folder)), where=url, connection=connection
        )
        repository = Repository(folder, connection=connection)
        repository.fetch()
        repository.fetch()


def test_calls_log_in_once_and_leave_no_connection(server: SshGit, url: str, folder: Path) -> None:
    _fetch_twice(url, folder / "clone")

    assert server.logins == 1
    assert not list(folder.glob("ucp-ssh-*"))
    eventually(lambda: not _connections(folder), lambda: _connections(folder))


def test_a_broken_connection_is_opened_again(server: SshGit, url: str, folder: Path) -> None:
    with shared_connection(url) as connection:
        run_git(("ls-remote", url), where=url, connection=connection)
        (pid,) = _connections(folder)
        os.kill(pid, signal.SIGKILL)
        run_git(("ls-remote", url), where=url, connection=connection)
        assert server.logins == 2


def test_a_connection_that_is_silent_is_replaced_by_another(
    server: SshGit, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_connection, "_SECONDS", 0.5)
    with shared_connection(url) as connection:
        run_git(("ls-remote", url), where=url, connection=connection)
        (pid,) = _connections(folder)
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(DeadlineExceeded):
                run_git(("ls-remote", url), where=url, connection=connection, timeout=1)
            run_git(("ls-remote", url), where=url, connection=connection)
        finally:
            os.kill(pid, signal.SIGKILL)
        assert server.logins == 2


def test_a_host_whose_connections_the_user_shares_is_left_alone(
    server: SshGit, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{server.command} -o ControlPath={folder}/own")
    with shared_connection(url) as connection:
        assert connection.command == ""


def _connections(folder: Path) -> list[int]:
    """Processes that keep connections open: ssh writes the socket's path into their titles."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    lines = [line.split(None, 1) for line in listed.stdout.splitlines()]
    return [int(pid) for pid, title in lines if title.startswith(f"ssh: {folder}/")]
