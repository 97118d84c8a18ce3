"""What `ucp stop --delete-repos` says that it deletes, and what it deletes."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.cli.lifecycle.stop import lost_repositories
from k8s_ucp.context import StartContext
from k8s_ucp.steps.shutdown.stop import delete_repositories, forget_access
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace


@pytest.fixture
def context(tmp_path: Path) -> StartContext:
    return StartContext(workspace=Workspace.at(tmp_path / "work"), topology=default())


def test_the_plan_names_the_repositories_of_teams(context: StartContext) -> None:
    """Their commits are the work of other people than the one who stops the topology."""
    folder = context.gitops
    for each in (folder.core_remote, folder.team_remote("web"), folder.team("web")):
        each.mkdir(parents=True)
    folder.team("data").mkdir()  # A clone of a repository elsewhere.

    main, data, web = list(delete_repositories.preview(context))

    assert main.object == f"folder {folder.root}"
    assert data.object == f"clone {folder.team('data')}"
    assert data.lost == f"{folder.team('data')}: its commits that were never pushed"
    assert web.object == f"repository {folder.team_remote('web')}"
    assert web.lost == f"{folder.team_remote('web')}: all commits of the team web"
    # Also before `ucp stop` asks.
    lost = [each.lost for each in (main, data, web)]
    assert lost_repositories(context) == [f"lost for good: {each}" for each in lost]
    delete_repositories.run(context, print)
    assert not folder.root.exists()


def test_the_folder_that_a_link_leads_to_is_kept(context: StartContext, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "core.git").mkdir(parents=True)
    context.gitops.root.parent.mkdir(parents=True)
    context.gitops.root.symlink_to(elsewhere)

    (change,) = delete_repositories.preview(context)
    delete_repositories.run(context, print)

    assert str(elsewhere) in change.reason
    assert (elsewhere / "core.git").is_dir()
    assert not context.gitops.root.is_symlink()


def test_what_ucp_did_not_create_beside_the_repositories_is_kept(context: StartContext) -> None:
    folder = context.gitops
    folder.core_remote.mkdir(parents=True)
    mine = folder.root / "mine"
    mine.mkdir()
    (mine / "notes").write_text("never committed")
    folder.apps.symlink_to(mine)

    deleted, kept = list(delete_repositories.preview(context))
    said: list[str] = []
    delete_repositories.run(context, said.append)

    assert deleted.object == f"repositories in {folder.root}"
    assert (kept.action, kept.object) == ("keep", str(mine))
    assert said[-1] == f"kept: {mine}"
    assert [each.name for each in folder.root.iterdir()] == ["mine"]
    assert (mine / "notes").exists()


def test_what_is_only_named_like_a_repository_of_a_team_is_kept(context: StartContext) -> None:
    folder = context.gitops
    for repository in (folder.team_remote("web") / "objects", folder.team("web") / ".git"):
        repository.mkdir(parents=True)
    (folder.team_remote("web") / "HEAD").touch()
    plans, notes = folder.root / "team-plans", folder.root / "team-notes.txt"
    plans.mkdir()
    for each in (plans / "2027.md", notes):
        each.write_text("in no repository")

    *deleted, kept, also_kept = list(delete_repositories.preview(context))
    delete_repositories.run(context, print)

    assert [each.object for each in deleted[1:]] == [f"repository {folder.team_remote('web')}"]
    assert (kept.object, also_kept.object) == (str(notes), str(plans))
    assert sorted(folder.root.iterdir()) == [notes, plans]


def test_a_damaged_kubeconfig_does_not_keep_a_cluster_from_being_forgotten(
    context: StartContext,
) -> None:
    file = context.state.kubeconfig("core")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\x00")
    forget_access(context, "core")
    assert not file.exists()
