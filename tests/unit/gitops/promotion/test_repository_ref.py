"""Which app repository a promotion without --repo lands on."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.promotion.repository_ref import resolve_repository
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text
from k8s_ucp.workspace import Workspace


def test_in_a_clone_of_a_workspace_that_workspace_is_named(tmp_path: Path) -> None:
    clone = tmp_path / "gitops" / "demo" / "apps"
    for each in (clone, clone.with_name("core")):
        each.mkdir(parents=True)
    with pytest.raises(UsageError, match="is not a workspace") as caught:
        resolve_repository("", "", Workspace(clone), None, None)
    assert caught.value.next == f"add --workspace {tmp_path} to the command"


def test_a_workspace_without_its_repositories_is_still_called_one(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.state("demo").make()
    with pytest.raises(UsageError, match="has no app repository of the topology demo") as caught:
        resolve_repository("", "", workspace, None, None)
    assert caught.value.next == "restore gitops/ from a copy, or add --repo URL"


def test_in_a_workspace_that_was_never_started_a_start_is_advised(tmp_path: Path) -> None:
    (tmp_path / "ucp.yaml").write_text(topology_text(default()))
    with pytest.raises(UsageError, match="nothing was started in") as caught:
        resolve_repository("", "", Workspace(tmp_path), None, None)
    assert caught.value.next == "ucp start, or add --repo URL"


def test_of_several_topologies_ucp_yaml_selects_one(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    for name in ("demo", "other"):
        workspace.gitops(name).apps_remote.mkdir(parents=True)
    with pytest.raises(UsageError, match="has 2 topologies"):
        resolve_repository("", "", workspace, None, None)
    workspace.topology_file.write_text(topology_text(default("other")))
    found = resolve_repository("", "", workspace, None, None)
    assert found.url == workspace.gitops("other").apps_remote.as_uri()


@pytest.mark.parametrize(
    "url",
    [
        "https://a-token@git.example.org/x.git",
        "HTTPS://me:hunter2@git.example.org/x.git",
        "ssh://me:hunter2@git.example.org/x.git",
        "oci://me:hunter2@registry.example.org/x",
    ],
)
def test_a_url_with_a_credential_is_refused_on_every_transport(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="contains a user or password") as caught:
        resolve_repository(url, "", Workspace(tmp_path), None, None)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["ssh://git@git.example.org/x.git", "git@git.example.org:x.git"])
def test_the_user_of_ssh_is_no_credential(tmp_path: Path, url: str) -> None:
    assert resolve_repository(url, "", Workspace(tmp_path), None, None).url == url
