"""A given credential is the one that is sent, whatever a pipeline configured in its clone."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp.git.environment import Credential
from k8s_ucp.git.failures import AuthenticationFailed
from k8s_ucp.git.repository import RefUpdate, Repository
from k8s_ucp.gitops.promotion.repository_ref import RepositoryRef
from tests.integration.gitops.promotion.app_repository import plain_environment
from tests.integration.gitops.promotion.git_servers import (
    TOKEN,
    USER,
    GitHandler,
    GitServer,
    HttpGit,
)
from tests.serving import serving

OURS = Credential(USER, TOKEN)
JOB = "gitlab-ci-token:job-t0ken"
HEADER = "AUTHORIZATION: basic " + base64.b64encode(b"x-access-token:job").decode()


class Forge(GitHandler):
    """Answers a credential without write permission with 403, as forges do."""

    def send(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        if status == 401 and self.headers.get("Authorization"):
            status, headers = 403, []
        super().send(status, headers, content)


@pytest.fixture
def forge(tmp_path: Path, home: Path) -> Iterator[HttpGit]:
    environment = plain_environment(home)
    for name in ("apps.git", "fork.git"):
        words = ["git", "init", "--quiet", "--bare", "--initial-branch=main", name]
        subprocess.run(words, cwd=tmp_path, env=environment, check=True)
        words = ["git", "-C", name, "config", "http.receivepack", "true"]
        subprocess.run(words, cwd=tmp_path, env=environment, check=True)
    with serving(GitServer(tmp_path, environment, auth=True, handler=Forge)) as server:
        yield HttpGit(server)


def address(forge: HttpGit, tmp_path: Path, userinfo: str = "") -> str:
    url = forge.url(tmp_path / "apps.git")
    return url.replace("//", f"//{userinfo}@") if userinfo else url


def cloned(tmp_path: Path, url: str, remote: str = "origin", **settings: str) -> Repository:
    """Create a repository with a remote and settings, as another git would have cloned it."""
    folder = tmp_path / "clone"
    Repository(tmp_path).git("init", "--quiet", "--initial-branch=main", str(folder))
    clone = Repository(folder, credential=OURS)
    Repository(folder).git("remote", "add", remote, url)
    for name, value in settings.items():
        Repository(folder).git("config", name, value)
    return clone


def assert_lets_in(clone: Repository, bare: Path, remote: str = "origin") -> None:
    before = (clone.folder / ".git" / "config").read_bytes()
    commit = clone.write_commit("Change", {"a": b"1"}, parent=None)
    clone.push([RefUpdate("refs/heads/main", commit)], remote=remote)
    assert Repository(bare).refs()["refs/heads/main"] == commit
    clone.git("fetch", "--quiet", remote)
    assert clone.resolve(f"refs/remotes/{remote}/main") == commit
    assert (clone.folder / ".git" / "config").read_bytes() == before


def test_header_of_a_checkout_is_not_sent(forge: HttpGit, tmp_path: Path) -> None:
    url = address(forge, tmp_path)
    site = url.removesuffix("apps.git")
    clone = cloned(tmp_path, url, **{f"http.{site}.extraheader": HEADER})
    assert_lets_in(clone, tmp_path / "apps.git")

    # Without a credential of ucp, git's own configuration is used.
    with pytest.raises(AuthenticationFailed, match="403"):
        Repository(clone.folder).git("fetch", "origin")


def test_job_token_in_the_url_is_not_sent(forge: HttpGit, tmp_path: Path) -> None:
    clone = cloned(tmp_path, address(forge, tmp_path, JOB))
    assert_lets_in(clone, tmp_path / "apps.git")


def test_job_token_in_a_push_url_is_not_sent(forge: HttpGit, tmp_path: Path) -> None:
    pushed = {"remote.origin.pushurl": address(forge, tmp_path, JOB)}
    clone = cloned(tmp_path, address(forge, tmp_path), **pushed)
    assert_lets_in(clone, tmp_path / "apps.git")


def test_job_token_in_a_rewritten_url_is_not_sent(forge: HttpGit, tmp_path: Path) -> None:
    site = address(forge, tmp_path, JOB).removesuffix("apps.git")
    rewritten = {f"url.{site}.insteadOf": "https://git.example.org/"}
    clone = cloned(tmp_path, "https://git.example.org/apps.git", **rewritten)
    assert_lets_in(clone, tmp_path / "apps.git")


def test_named_remote_gets_the_credential(forge: HttpGit, tmp_path: Path) -> None:
    """Without a remote called origin, and with one that is a fork elsewhere."""
    url = address(forge, tmp_path)
    clone = cloned(tmp_path, url, "upstream", **{"branch.main.remote": "upstream"})
    assert_lets_in(clone, tmp_path / "apps.git", "upstream")

    Repository(clone.folder).git("remote", "add", "origin", "https://fork.example.org/apps.git")
    clone.git("fetch", "--quiet", "upstream")
    assert RepositoryRef(clone=clone.folder).remote == url
