"""Versions of all apps in all environments, read from a real repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.board.repository import AppRepository as BoardRepository
from k8s_ucp.board.versions import Overview, overview
from k8s_ucp.errors import UcpError
from k8s_ucp.git.repository import Repository
from k8s_ucp.workspace import GitopsFolder
from tests.integration.gitops.promotion.app_repository import AppRepository, Ucp


def look(repository: AppRepository, before: Overview | None = None) -> Overview:
    there = Repository(repository.folder)
    commit = there.resolve("refs/heads/main")
    assert commit
    return overview(there, commit, before)


def test_versions_holds_and_last_changes_are_read_from_git(
    repository: AppRepository, ucp: Ucp
) -> None:
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


def test_history_of_an_app_is_read_from_git(
    repository: AppRepository, ucp: Ucp, tmp_path: Path
) -> None:
    folder = GitopsFolder(tmp_path / "gitops")
    folder.root.mkdir()
    folder.apps_remote.symlink_to(repository.folder)
    ours = BoardRepository(folder, "main")
    ucp.promote("echo", "--env", "stage", "--tag", "1.0.0", "--repo", repository.folder.as_uri())
    newest = ours.history("echo", "stage")[0]
    assert (newest["kind"], newest["from"], newest["to"]) == ("promote", "0.9.2", "1.0.0")
    assert ours.read(None).deployed["echo", "stage"].changed is not None
    for app, branch in (("../echo", "main"), ("echo", "other")):
        with pytest.raises(UcpError):
            BoardRepository(folder, branch).history(app, "stage")
