"""A person's git settings do not affect ucp's own work in repositories that it created."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from k8s_ucp.git.clones import make_clone
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.failures import AuthenticationFailed, GitFailed, Locked
from k8s_ucp.git.repository import RefUpdate, Repository
from k8s_ucp.git.settings import FILE, chosen
from k8s_ucp.gitops.forge.base import ForgeFailed, Site
from k8s_ucp.gitops.forge.gitlab import GitLab
from k8s_ucp.gitops.promotion.branch import shallow_clone
from tests.integration.gitops.conftest import Repositories

FILTER = """\
[core]
    attributesFile = {home}/attributes
[filter "odd"]
    clean = sed s/a/b/
    smudge = tr a-z A-Z
    required = true
"""
BARE = "[safe]\n\tbareRepository = explicit\n"
SIGNING = "[pull]\n\trebase = true\n[commit]\n\tgpgSign = true\n[push]\n\tgpgSign = true\n"
SETTINGS = {
    "line ends": "[core]\n\tautocrlf = true\n\teol = crlf\n",
    "a filter": FILTER,
    "no file protocol": '[protocol "file"]\n\tallow = never\n[protocol]\n\tallow = never\n',
    "another address": '[url "https://127.0.0.1:1/"]\n\tinsteadOf = file://\n',
    "another address to push to": '[url "https://127.0.0.1:1/"]\n\tpushInsteadOf = file://\n',
    "objects are refused": "[transfer]\n\tfsckObjects = true\n[fetch]\n\tfsckObjects = true\n",
    "rebase and sign": SIGNING,
    "no bare repository that is only found": BARE,
}


def status(clone: Path) -> str:
    words = ["git", "-c", "core.autocrlf=false", "-C", str(clone), "status", "--porcelain"]
    return subprocess.run(
        words,
        env={"HOME": "/nowhere", "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.parametrize("case", SETTINGS)
def test_persons_settings_do_not_affect_local_repositories(
    case: str, world: Repositories, home: Path
) -> None:
    (home / "attributes").write_text("* filter=odd\n")
    (home / ".gitconfig").write_text(SETTINGS[case].format(home=home))
    world.start()
    assert world.start(domain="example.com").changed
    for name in ("core", "apps"):
        assert status(world.folder.root / name) == ""
        clone, remote = (Repository(world.folder.root / each) for each in (name, f"{name}.git"))
        assert clone.git("rev-parse", "HEAD") == remote.git("rev-parse", "main")


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_ATTR_SOURCE"])
def test_git_variables_do_not_redirect_ucp(
    name: str, world: Repositories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "mine")], check=True)
    monkeypatch.setenv(name, str(tmp_path / "mine" / ".git"))
    world.start()
    assert world.start(domain="example.com").changed
    monkeypatch.undo()
    for each in ("core", "apps"):
        assert status(world.folder.root / each) == ""


def test_settings_in_the_environment_do_not_affect_local_repositories(
    world: Repositories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "never")
    world.start()
    assert world.start(domain="example.com").changed


def test_new_repositories_have_the_format_that_argo_cd_can_read(
    world: Repositories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    world.start()
    for name in ("core", "core.git", "apps", "apps.git"):
        found = Repository(world.folder.root / name).git("rev-parse", "--show-object-format")
        assert found.strip() == b"sha1"


@pytest.mark.parametrize(
    "settings",
    [
        # It protects against submodules; the target of a promotion was given explicitly.
        '[protocol "file"]\n\tallow = never\n',
        BARE,
        "[clone]\n\tdefaultRemoteName = upstream\n",
    ],
)
def test_promotion_to_a_local_repository_works_with_settings_of_clones(
    settings: str, world: Repositories, home: Path
) -> None:
    world.start()
    (home / ".gitconfig").write_text(settings)
    url = world.folder.apps_remote.as_uri()
    with shallow_clone(url, "", credential=None) as (clone, branch, commit):
        assert branch == "main"
        clone.push([RefUpdate("refs/heads/other", commit)])
        clone.git("fetch", "--quiet", "origin", "refs/heads/other")
    assert Repository(world.folder.apps_remote).resolve("refs/heads/other") == commit


def test_identity_is_that_of_the_person(world: Repositories, home: Path) -> None:
    (home / "more").write_text("[user]\n\temail = ada@example.org\n")
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n[include]\n\tpath = more\n")
    world.start()
    (commit, *_) = Repository(world.folder.core_remote).history("main")
    assert (commit.author.name, commit.author.email) == ("Ada", "ada@example.org")


def test_unreadable_git_configuration_is_reported(world: Repositories, home: Path) -> None:
    (home / ".gitconfig").write_text("[user\n")
    with pytest.raises(GitFailed, match=r"bad config line 1 in file .*gitconfig") as caught:
        world.start()
    assert "--show-origin" in str(caught.value.next)


def test_unreadable_git_configuration_is_not_reported_as_a_bug(tmp_path: Path) -> None:
    """The library that runs git asks for its version first, so this needs its own process."""
    (tmp_path / ".gitconfig").write_text("[user\n")
    ended = subprocess.run(
        [
            str(Path(sys.executable).parent / "ucp"),
            "promote",
            "a",
            "--env",
            "b",
            "--tag",
            "c",
            "--repo",
            ".",
        ],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1, ended.stderr
    assert "bad config line 1" in ended.stderr
    assert "--show-origin" in ended.stderr


def test_network_settings_for_other_remotes_are_those_of_the_person() -> None:
    listing = (
        b'system\0http.proxy\nhttp://p:1\0global\0user.name\nAda "L" \\ ;#\n2\0'
        b"global\0url.https://a/.insteadof\nhttps://b/\0global\0core.autocrlf\ntrue\0"
        b"local\0user.email\nx\0global\0credential.https://a.b/c.helper\n\0"
        b"global\0commit.gpgsign\0global\0filter.lfs.clean\nx\0"
    )
    here, elsewhere = chosen(listing, local=True), chosen(listing, local=False)
    assert "proxy" in elsewhere
    assert "insteadof" in elsewhere
    for name in ("proxy", "insteadof"):
        assert name not in here
    for each in (here, elsewhere):
        for name in ("autocrlf", "filter", "email"):
            assert name not in each
    done = subprocess.run(
        ["git", "config", "--null", "--list", "--file", "-"],
        input=elsewhere,
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.split("\0")[:-1] == [
        "http.proxy\nhttp://p:1",
        'user.name\nAda "L" \\ ;#\n2',
        "url.https://a/.insteadof\nhttps://b/",
        "credential.https://a.b/c.helper\n",
        "commit.gpgsign",
    ]


def test_tokens_in_a_persons_settings_stay_private(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """~/.gitconfig may be readable by its owner only, with tokens in URLs and headers."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    (home / ".gitconfig").write_text('[url "https://x:s3cret@a/"]\n\tinsteadOf = https://a/\n')
    before = os.umask(0o022)
    try:
        clone = make_clone(tmp_path / "c", "https://a/b.git")
        file = clone.folder / ".git" / FILE
        assert "s3cret" in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o644)  # As earlier versions wrote it.
        make_clone(tmp_path / "c", "https://a/b.git")
        assert file.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_lock_of_another_git_in_the_same_clone_is_awaited(world: Repositories) -> None:
    """An editor may fetch, or `ucp env list` run, while a start publishes."""
    world.start()
    clone = Repository(world.folder.core)
    lock = world.folder.core / ".git/refs/remotes/origin/main.lock"
    world.push("core", {"a": b"1"})
    lock.touch()
    with pytest.raises(Locked):
        clone.fetch()
    threading.Timer(1.0, lock.unlink).start()
    clone.fetch()
    assert clone.resolve("origin/main") == Repository(world.folder.core_remote).resolve("main")


class Attacker(BaseHTTPRequestHandler):
    """A host that asks for a password, or redirects to one that does."""

    heard: list[str]
    to = ""

    def do_GET(self) -> None:
        self.heard.append(f"{self.headers.get('Authorization')}")
        self.send_response(302 if self.to else 401)
        if self.to:
            self.send_header("Location", self.to + self.path)
        else:
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_credential_is_sent_to_its_own_host_only(world: Repositories) -> None:
    heard: list[str] = []
    asking = type("Asking", (Attacker,), {"heard": heard})
    with (
        serving(asking) as evil,
        serving(type("Sending", (Attacker,), {"heard": [], "to": evil})) as own,
    ):
        clone = make_clone(world.person / "x", f"{own}/a.git", credential=Credential("u", "pw"))
        with pytest.raises(AuthenticationFailed):
            clone.fetch()
        assert heard
        assert set(heard) == {"None"}
    heard.clear()
    with serving(asking) as own:
        clone = make_clone(world.person / "y", f"{own}/a.git", credential=Credential("u", "pw"))
        with pytest.raises(AuthenticationFailed):
            clone.fetch()
        assert any(each.startswith("Basic ") for each in heard)


@contextlib.contextmanager
def serving(handler: type[Attacker]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_gitlab_token_is_sent_to_its_own_host_only() -> None:
    """GitLab's own header, which requests would also send after a redirect."""
    heard: list[str] = []

    class Evil(Attacker):
        def do_GET(self) -> None:
            heard.append(str(self.headers.get("PRIVATE-TOKEN")))
            self.send_response(404)
            self.end_headers()

    with (
        serving(Evil) as evil,
        serving(type("Sending", (Attacker,), {"heard": [], "to": evil})) as own,
        pytest.raises(ForgeFailed),
    ):
        GitLab(Site("gitlab", own, "a/b", "secret")).find("x", "main")
    assert heard == ["None"]
