"""Repositories at a forge: git over HTTP with a token, and its failures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp.git.clones import make_remote
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.failures import (
    AuthenticationFailed,
    Declined,
    GitFailed,
    RepositoryMissing,
)
from k8s_ucp.git.repository import RENDERED, Repository
from k8s_ucp.gitops.publish.addresses import addresses
from k8s_ucp.gitops.publish.repositories import (
    Publication,
    PublishResult,
    RepositoryCredentials,
    publish,
)
from k8s_ucp.gitops.render.repositories import RenderInputs, render
from k8s_ucp.topology import Git, Topology
from k8s_ucp.workspace import GitopsFolder
from tests.integration.gitops.promotion.git_servers import TOKEN, USER, HttpGit, http_git
from tests.unit.gitops.topologies import FACTS, demo

BOTH = RepositoryCredentials(Credential(USER, TOKEN), Credential(USER, TOKEN))


class Forge:
    """Two empty repositories behind HTTP, and a workspace that renders into them."""

    def __init__(self, root: Path, http: HttpGit) -> None:
        self.http = http
        self.core = make_remote(root / "core.git")
        self.apps = make_remote(root / "apps.git")
        for each in (self.core, self.apps):
            each.git("config", "http.receivepack", "true")
        self.folder = GitopsFolder(root.parent / "work place" / "gitops" / "demo")

    def topology(self, **spec: object) -> Topology:
        git = Git(
            provider="url",
            core=self.http.url(self.core.folder),
            apps=self.http.url(self.apps.folder),
        )
        return demo(git=git, **spec)

    def start(self, credentials: RepositoryCredentials = BOTH, **spec: object) -> PublishResult:
        topology = self.topology(**spec)
        urls = addresses(topology, self.folder)
        facts = RenderInputs(FACTS.machine, urls.core, urls.apps, b"# topology\n")
        return publish(Publication(topology, render(topology, facts), self.folder, credentials))


@pytest.fixture
def forge(tmp_path: Path, home: Path) -> Iterator[Forge]:
    root = tmp_path / "served"
    root.mkdir()
    with http_git(root, dict(os.environ)) as http:
        yield Forge(root, http)


def test_publish_to_a_forge_arrives_and_a_rerun_pushes_nothing(forge: Forge) -> None:
    assert forge.start().changed
    before = forge.core.refs(), forge.apps.refs()
    assert forge.core.tree_of("main") == forge.core.tree_of(RENDERED)
    assert not forge.start().changed
    assert (forge.core.refs(), forge.apps.refs()) == before
    assert forge.start(domain="example.com").apps.changed


def test_token_is_written_nowhere(forge: Forge) -> None:
    forge.start()
    forge.start(domain="example.com")
    for path in forge.folder.root.parent.parent.rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path


def test_credential_helper_of_the_user_is_used(forge: Forge, home: Path) -> None:
    port = forge.http.server.server_address[1]
    (home / "secrets").write_text(f"http://{USER}:{TOKEN}@127.0.0.1:{port}\n")
    (home / ".gitconfig").write_text(f"[credential]\nhelper = store --file {home}/secrets\n")
    assert forge.start(RepositoryCredentials()).changed


def test_missing_or_wrong_credential_is_reported_without_a_prompt(forge: Forge) -> None:
    with pytest.raises(AuthenticationFailed):
        forge.start(RepositoryCredentials())
    wrong = Credential(USER, "wrong-secret", source="creds/git.token")
    with pytest.raises(AuthenticationFailed) as caught:
        forge.start(RepositoryCredentials(wrong, wrong))
    assert "wrong-secret" not in str(caught.value)
    assert "check creds/git.token: it may be expired, revoked" in str(caught.value.next)
    assert forge.start().changed, "once it is right, it works"


def test_token_in_a_url_is_not_rendered(forge: Forge) -> None:
    git = forge.topology().spec.git
    with_token = git.core.replace("http://", f"http://{TOKEN}@") if git.core else ""
    topology = demo(git=git.model_copy(update={"core": with_token}))
    assert addresses(topology, forge.folder).core == git.core


def test_missing_repository_is_reported_before_the_first_push(forge: Forge) -> None:
    forge.apps.folder.rename(forge.apps.folder.with_name("elsewhere.git"))
    with pytest.raises((RepositoryMissing, GitFailed)) as caught:
        forge.start()
    assert "apps.git" in str(caught.value)
    assert forge.core.refs() == {}, "nothing is pushed while one of both is missing"


def test_lost_response_to_a_successful_push_is_no_failure(forge: Forge) -> None:
    forge.start()
    forge.http.faults.lost_answers = 50
    assert forge.start(domain="example.com").apps.changed
    forge.http.faults.lost_answers = 0
    head = Repository(forge.folder.apps).resolve("HEAD")
    assert head == forge.apps.resolve("main")
    assert forge.apps.tree_of("main") == forge.apps.tree_of(RENDERED)
    assert len(forge.apps.history("main")) == 2
    assert not forge.start(domain="example.com").changed


def test_remote_without_atomic_pushes_is_supported(forge: Forge) -> None:
    for each in (forge.core, forge.apps):
        each.git("config", "receive.advertiseAtomic", "false")
    forge.start()
    assert forge.start(domain="example.com").changed
    assert forge.apps.tree_of("main") == forge.apps.tree_of(RENDERED)
    assert not forge.start(domain="example.com").changed


def test_protected_branch_is_reported(forge: Forge) -> None:
    forge.start()
    hook = forge.apps.folder / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho open a pull request >&2\nexit 1\n")
    hook.chmod(0o755)
    before = forge.apps.refs()
    with pytest.raises(Declined, match="open a pull request"):
        forge.start(domain="example.com")
    assert forge.apps.refs() == before


def test_history_is_kept_when_moving_from_local_remotes_to_a_forge(forge: Forge) -> None:
    local = demo()
    urls = addresses(local, forge.folder)
    facts = RenderInputs(FACTS.machine, urls.core, urls.apps, b"# topology\n")
    first = publish(Publication(local, render(local, facts), forge.folder))
    forge.start()
    assert [each.id for each in forge.apps.history("main")][-1] == first.apps.commit
    assert Repository(forge.folder.apps).url() == forge.topology().spec.git.apps
