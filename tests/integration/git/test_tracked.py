"""What came with a clone: state and bare repositories could choose programs; keys are known."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.git.tracked import tracked_files, tracked_state
from k8s_ucp.preflight.credentials import check_backup_key, check_tracked_credentials
from k8s_ucp.reconciler.backup.backup_key import BadKey, key_for
from k8s_ucp.topology import default, load
from k8s_ucp.workspace import Workspace

STATE = ".ucp/demo/clusters/demo-core/kwokctl"
HOOK = "gitops/demo/core.git/hooks/post-receive"
AUTHOR = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


def write(root: Path, *paths: str) -> None:
    for each in paths:
        (root / each).parent.mkdir(parents=True, exist_ok=True)
        (root / each).write_text("#!/bin/sh\n")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A clone with valid files of its own, and with those that a start creates."""
    git(tmp_path, "init", "-q")
    write(tmp_path, "README.md", "gitops/README.md", "k8s_ucp/ucp.py")
    git(tmp_path, "add", "--all")
    write(tmp_path, STATE, HOOK, "gitops/demo/core/ucp.yaml")
    (tmp_path / "gitops/demo/core/.git").mkdir()
    return tmp_path


@pytest.mark.parametrize("path", [STATE, HOOK])
def test_state_that_is_tracked_by_git_is_refused(workspace: Path, path: str) -> None:
    assert Invocation(workspace).workspace.root == workspace
    git(workspace, "add", "--force", path)
    folder = {STATE: ".ucp", HOOK: "gitops/demo/core.git"}[path]
    with pytest.raises(UcpError, match="came with a git repository") as refused:
        assert Invocation(workspace).workspace
    assert refused.value.next.startswith(f"git -C {workspace} rm -r {folder} ")
    # Both ways that the error proposes solve the problem.
    git(workspace, "rm", "-r", "--cached", folder)
    assert Invocation(workspace).workspace.root == workspace
    assert (workspace / path).exists()
    git(workspace, "add", "--force", path)
    git(workspace, "rm", "-r", "-f", folder)
    assert Invocation(workspace).workspace.root == workspace
    assert not (workspace / folder).exists()


def test_state_is_refused_however_the_user_has_git_read_paths(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(workspace, "add", "--force", STATE)
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    assert tracked_state(workspace) == [".ucp"]


def test_git_adds_neither_keys_nor_repositories_of_a_workspace(tmp_path: Path) -> None:
    """A workspace can be the user's own repository: `git add --all` would publish the keys."""
    git(tmp_path, "init", "-q")
    workspace = Workspace.at(tmp_path / "platform")
    workspace.settle_identity()
    workspace.state("demo").make()
    key_for(workspace.backup_key, lambda: False)
    write(workspace.root, STATE, HOOK, "ucp.yaml")
    git(tmp_path, "add", "--all")
    listed = subprocess.check_output(["git", "-C", tmp_path, "ls-files"], text=True).split()
    assert listed == ["platform/ucp.yaml"]


@pytest.mark.parametrize("link", [".ucp", "gitops", "gitops/demo", "gitops/demo/core.git"])
def test_tracked_link_to_the_state_is_refused_too(tmp_path: Path, link: str) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, "elsewhere/demo/core.git/HEAD")
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "elsewhere")
    git(tmp_path, "add", "--all")
    assert tracked_state(tmp_path) == [link]


def test_workspace_below_the_top_or_without_a_repository_is_checked(
    tmp_path: Path, workspace: Path
) -> None:
    below = tmp_path / "below"
    write(below, STATE)
    assert tracked_state(below) == []
    git(workspace, "add", "--force", str(below))
    assert tracked_state(below) == [".ucp"]


@pytest.mark.parametrize("place", ["gitops", "gitops/demo", "gitops/demo/core"])
def test_repository_without_the_usual_name_is_refused(tmp_path: Path, place: str) -> None:
    """Git takes any folder with HEAD, objects and refs for one, with its `core.sshCommand`."""
    git(tmp_path, "init", "-q")
    write(
        tmp_path, f"{place}/HEAD", f"{place}/objects/x/y", f"{place}/refs/x/y", "gitops/README.md"
    )
    (tmp_path / "gitops/demo").mkdir(exist_ok=True)
    assert Invocation(tmp_path).workspace
    git(tmp_path, "add", "--all")
    with pytest.raises(UcpError, match=rf"\b{place}\b.* came with a git repository"):
        assert Invocation(tmp_path).workspace


def test_state_is_found_in_a_folder_that_looks_like_a_repository(tmp_path: Path) -> None:
    """Otherwise git would list nothing, and the state would be taken for the user's own."""
    git(tmp_path, "init", "-q")
    below = tmp_path / "example"
    git(tmp_path, "init", "-q", "--bare", str(below))
    write(below, STATE, "objects/x/y", "refs/x/y")
    git(tmp_path, "add", "--all")
    assert tracked_state(below) == [".ucp"]


@pytest.mark.parametrize("linked", [False, True])
def test_functions_that_came_with_a_clone_are_refused(tmp_path: Path, linked: bool) -> None:
    """`ucp api render` would run them."""
    git(tmp_path, "init", "-q")
    place = "gitops/demo/core/api"
    write(tmp_path, f"{'elsewhere' if linked else place}/functions/run/main.py")
    if linked:
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).symlink_to(tmp_path / "elsewhere")
    git(tmp_path, "add", "--all")
    with pytest.raises(UcpError, match=r"^gitops/demo/core/api in .* came with a git repository"):
        assert Invocation(tmp_path).workspace


def test_gitops_folder_of_other_tools_is_accepted(tmp_path: Path) -> None:
    """Many repositories have one, with clusters or environments; ucp may run in their clones."""
    git(tmp_path, "init", "-q")
    write(tmp_path, "gitops/prod/apps/web/kustomization.yaml", "deploy/x.yaml")
    (tmp_path / "gitops/stage").symlink_to("prod")
    git(tmp_path, "add", "--all")
    assert Invocation(tmp_path).workspace.root == tmp_path
    write(tmp_path, "module/clusters/prod.yaml")
    git(tmp_path / "module", "init", "-q")
    git(tmp_path / "module", "add", "--all")
    git(tmp_path / "module", *AUTHOR, "commit", "-qm", "all")
    git(
        tmp_path,
        *("-c", "protocol.file.allow=always", "submodule", "add"),
        *(str(tmp_path / "module"), "gitops/flux"),
    )
    (tmp_path / "gitops/stage").unlink()
    git(tmp_path, "add", "--all")
    write(tmp_path, STATE)
    assert Invocation(tmp_path).workspace.root == tmp_path


def test_clone_that_git_lists_as_a_submodule_is_accepted(workspace: Path) -> None:
    """As after `git add --all` where `gitops` is not ignored."""
    core = workspace / "gitops/demo/core"
    git(core, "init", "-q")
    git(core, *AUTHOR, "commit", "-qm", "first", "--allow-empty")
    git(workspace, "add", "gitops/demo/core")
    assert Invocation(workspace).workspace.root == workspace


@pytest.mark.parametrize("place", ["gitops", "gitops/demo", "gitops/demo/core"])
def test_submodule_in_place_of_a_repository_is_refused(tmp_path: Path, place: str) -> None:
    """Its hooks and settings run programs, as if the outer repository had them."""
    module, outer = tmp_path / "module", tmp_path / "outer"
    write(module, "core.git/HEAD", "demo/core.git/HEAD", "api/functions/run/main.py")
    write(outer, "README.md")
    for each in (module, outer):
        git(each, "init", "-q")
        git(each, "add", "--all")
        git(each, *AUTHOR, "commit", "-qm", "all")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", str(module), place)
    with pytest.raises(UcpError, match=f"^{place} in .* came with a git repository"):
        assert Invocation(outer).workspace


def test_key_that_came_with_a_clone_is_refused_before_the_first_backup(tmp_path: Path) -> None:
    """The clone's authors know it, so they could decrypt the passwords."""
    context = StartContext(workspace=Workspace.at(tmp_path), topology=default())
    path = context.workspace.backup_key
    git(tmp_path, "init", "-q")
    key_for(path, lambda: False)
    check_backup_key(context)
    git(tmp_path, "add", "--force", str(path))
    with pytest.raises(BadKey, match="came with a git repository") as refused:
        check_backup_key(context)
    assert (refused.value.next or "").startswith(
        f"git -C {path.parent} rm --cached backup.key; then, unless the key is your own, mv {path}"
    )
    git(path.parent, "rm", "--cached", "backup.key")
    check_backup_key(context)


def test_credentials_that_git_tracks_are_reported(tmp_path: Path) -> None:
    context = StartContext(workspace=Workspace.at(tmp_path / "work"), topology=default())
    check_tracked_credentials(context)
    # The folder may be a link to another one of the repository.
    write(tmp_path / "work", "README.md")
    write(tmp_path, "shared/README.md", "shared/aws.ini", "shared/own.token", "shared/gcp.json")
    context.workspace.credentials.symlink_to(tmp_path / "shared")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "--all")
    git(tmp_path, "rm", "-q", "--cached", "shared/own.token")
    assert tracked_files(context.workspace.credentials) == {"README.md", "aws.ini", "gcp.json"}
    creds = context.workspace.credentials
    with pytest.raises(UcpError) as reported:
        check_tracked_credentials(context)
    assert reported.value.message.endswith(f": {creds}/aws.ini, {creds}/gcp.json")
    assert (reported.value.next or "").startswith(f"git -C {creds} rm --cached aws.ini gcp.json")


def test_credentials_elsewhere_are_reported_if_ucp_yaml_names_them(tmp_path: Path) -> None:
    workspace = Workspace.at(tmp_path)
    credentials = "{forge: {file: secrets/forge.token}, charts: {file: missing}}"
    write(tmp_path, "secrets/forge.token", "secrets/other", "creds/gcp.json")
    (tmp_path / "ucp.yaml").write_text(
        "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: demo}\n"
        f"spec:\n  environments: [{{name: stage}}]\n  credentials: {credentials}\n"
    )
    context = StartContext(workspace=workspace, topology=load(tmp_path / "ucp.yaml"))
    git(tmp_path, "init", "-q")
    check_tracked_credentials(context)
    git(tmp_path, "add", "--all")
    with pytest.raises(UcpError) as reported:
        check_tracked_credentials(context)
    creds, secrets = tmp_path / "creds", tmp_path / "secrets"
    assert reported.value.message.endswith(f": {creds}/gcp.json, {secrets}/forge.token")
    assert (reported.value.next or "").startswith(
        f"git -C {creds} rm --cached gcp.json && git -C {secrets} rm --cached forge.token (the"
    )
