"""Versions of all apps in all environments, read from a real repository."""

from __future__ import annotations

from k8s_ucp.board.versions import Overview, overview
from k8s_ucp.git.repository import Repository
from tests.integration.gitops.promotion.app_repository import AppRepository, Ucp


def look(repository: AppRepository, before: Overview | None = None) -> Overview:
    there = Repository(repository.folder)
    commit = there.resolve("refs/heads/main")
    assert commit
    return overview(there, commit, before)


def test_versions_holds_and_who_changed_them(repository: AppRepository, ucp: Ucp) -> None:
    where = ("--repo", repository.folder.as_uri())
    first = look(repository)
    prod = first.deployed["echo", "prod"]
    assert (str(*prod.pins.values()), prod.source, prod.newer) == ("0.9.2", "stage", ())
    ucp.promote("echo", "--env", "stage", "--tag", "1.0.0", *where)
    second = look(repository, first)
    newer = second.deployed["echo", "prod"].newer
    assert [(each.image, str(each.old), str(each.new)) for each in newer] == [
        ("ealen/echo-server", "0.9.2", "1.0.0")
    ]
    changed = second.deployed["echo", "stage"].changed
    assert changed is not None
    assert (changed.kind, str(changed.changes[0].new)) == ("promote", "1.0.0")
    ucp.promote("echo", "--env", "prod", "--from", "stage", *where)
    ucp("rollback", "echo", "--env", "prod", *where)
    third = look(repository, second)
    prod = third.deployed["echo", "prod"]
    assert (str(*prod.pins.values()), prod.held) == ("0.9.2", ("1.0.0",))
    assert prod.changed is not None
    assert prod.changed.kind == "rollback"
    assert third == look(repository)
    assert look(repository, third) is third
