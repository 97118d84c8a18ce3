"""Checks that credentials of clouds in use are readable, and that the backup can be opened."""

from __future__ import annotations

import tempfile
from pathlib import Path

from k8s_ucp.context import StartContext
from k8s_ucp.credentials import load, place_of
from k8s_ucp.git.clones import make_clone
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.publish.addresses import addresses
from k8s_ucp.gitops.render.values.clouds import clouds_with_accounts
from k8s_ucp.reconciler.backup.backup_file import BackupFile
from k8s_ucp.reconciler.backup.backup_key import load_key, missing


def check_cloud_credentials(context: StartContext) -> None:
    """Check that each cloud in use has a well-formed credential; others are not read."""
    for cloud in clouds_with_accounts(context.topology):
        load(cloud, place_of(context.topology, context.workspace, cloud))


def check_backup_key(context: StartContext) -> None:
    """Check that the key opens the backup, or that it is valid if there is none. Raises BadKey."""
    key = load_key(context.workspace.backup_key)
    sealed = sealed_backup(context, fetch=key is None)
    if sealed and key is None:
        raise missing(context.workspace.backup_key)
    if sealed and key:
        key.open(sealed)


def sealed_backup(context: StartContext, *, fetch: bool) -> bytes | None:
    """The backup, as far as it is visible from here. Raises UcpError.

    fetch: fetch from the remote too if there is no clone. A backup that this misses is checked for
    again before a password is generated.
    """
    git = context.topology.spec.git
    if git.provider == "local":
        bare = Repository(context.gitops.core_remote)
        if not (bare.folder / "HEAD").is_file():
            return None
        return BackupFile(bare, git.branch).sealed(bare.resolve(f"refs/heads/{git.branch}"))
    if (context.gitops.core / ".git").exists():
        seen = BackupFile(Repository(context.gitops.core), git.branch)
        return seen.sealed(seen.seen)
    if not fetch:
        return None
    url = addresses(context.topology, context.gitops).core
    with tempfile.TemporaryDirectory(prefix="ucp-look-") as folder:
        clone = make_clone(Path(folder), url, branch=git.branch, credential=context.git_credential)
        clone.fetch()
        found = BackupFile(clone, git.branch)
        return found.sealed(found.seen)
