"""Checks that credentials of clouds in use are readable, and that the backup can be opened."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from k8s_ucp.context import StartContext, TopologyView
from k8s_ucp.credentials import all_files, credential_ref, load
from k8s_ucp.errors import UcpError, command_line, some_of
from k8s_ucp.git.clones import make_clone
from k8s_ucp.git.repository import Repository
from k8s_ucp.git.tracked import tracked_files
from k8s_ucp.gitops.publish.addresses import addresses
from k8s_ucp.gitops.render.values.clouds import clouds_with_accounts
from k8s_ucp.reconciler.backup.backup_file import BackupFile
from k8s_ucp.reconciler.backup.backup_key import BadKey, load_key, missing
from k8s_ucp.reconciler.backup_content import parse


def check_cloud_credentials(context: StartContext) -> None:
    """Check that each cloud in use has a well-formed credential; others are not read."""
    for cloud in clouds_with_accounts(context.topology):
        load(cloud, credential_ref(context.topology, context.workspace, cloud))


def check_tracked_credentials(view: TopologyView) -> None:
    """Check that no git repository has the credentials: its readers would, too. Raises UcpError."""
    if tracked := _tracked(all_files(view.topology, view.workspace)):
        raise UcpError(
            "credentials are tracked by a git repository, whose readers can use them: "
            + some_of(tracked),
            next=f"{_untrack(tracked)} (the files are kept), and replace those that others read",
        )


def check_backup_key(context: StartContext) -> None:
    """Check that the key opens the backup, or that it is valid if there is none. Raises BadKey.

    A key that came with a git repository is refused before the first backup.
    """
    path = context.workspace.backup_key
    key = load_key(path)
    came = key is not None and path in _tracked([path])
    sealed = sealed_backup(context, fetch=key is None or came)
    if sealed is not None:
        _check_opens(path, sealed, context.topology.name)
    elif came:
        raise BadKey(
            f"{path} came with a git repository, whose readers could decrypt the backup of "
            "passwords",
            next=f"{_untrack([path])}; then, unless the key is your own, "
            f"{command_line('mv', path)} to another folder: ucp start creates a new one",
        )


def check_backup(view: TopologyView) -> None:
    """Check that the backup is valid, if one is visible from here. Raises BadKey, UcpError."""
    if (sealed := _visible_backup(view)) is not None:
        _check_opens(view.workspace.backup_key, sealed, view.topology.name)


def _check_opens(path: Path, sealed: bytes, topology: str) -> None:
    key = load_key(path)
    if key is None:
        raise missing(path)
    parse(key.open(sealed), topology)


def _tracked(files: Sequence[Path]) -> list[Path]:
    names = {each: tracked_files(each) for each in {file.parent for file in files}}
    return [each for each in files if each.name in names[each.parent]]


def _untrack(files: Sequence[Path]) -> str:
    """The commands that remove files from git, and keep them."""
    names = {
        each.parent: [file.name for file in files if file.parent == each.parent] for each in files
    }
    return " && ".join(
        command_line("git", "-C", folder, "rm", "--cached", *found)
        for folder, found in names.items()
    )


def sealed_backup(context: StartContext, *, fetch: bool) -> bytes | None:
    """The backup, as far as it is visible from here. Raises UcpError.

    fetch: fetch from the remote too if there is no clone. A backup that this misses is checked for
    again before a password is generated.
    """
    git = context.topology.spec.git
    if git.provider == "local" or not fetch or (context.gitops.core / ".git").exists():
        return _visible_backup(context)
    url = addresses(context.topology, context.gitops).core
    with tempfile.TemporaryDirectory(prefix="ucp-look-") as folder:
        clone = make_clone(Path(folder), url, branch=git.branch, credential=context.git_credential)
        clone.fetch()
        found = BackupFile(clone, git.branch)
        return found.sealed(found.seen)


def _visible_backup(view: TopologyView) -> bytes | None:
    """The backup in a local repository, or in the clone of another one."""
    git, clone = view.topology.spec.git, view.gitops.core
    if git.provider == "local":
        bare = Repository(view.gitops.core_remote)
        if not (bare.folder / "HEAD").is_file():
            return None
        return BackupFile(bare, git.branch).sealed(bare.resolve(f"refs/heads/{git.branch}"))
    if not (clone / ".git").exists():
        return None
    seen = BackupFile(Repository(clone), git.branch)
    return seen.sealed(seen.seen)
