"""Checks before the first change or deletion that no other core acts for this topology."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from k8s_ucp.context import StartContext, TopologyView
from k8s_ucp.errors import DeadlineExceeded
from k8s_ucp.fence.record import FenceHeld, FenceHolder, FenceRecord, claimed
from k8s_ucp.fence.reference import FenceReference
from k8s_ucp.git.clones import make_clone
from k8s_ucp.git.command import NETWORK_SECONDS
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.failures import GitFailed
from k8s_ucp.gitops.publish.addresses import addresses

SECONDS = 20.0
"""For a remote that may not respond; a later step that needs it reports the error."""


def check_fence(context: StartContext) -> None:
    """Raises FenceHeld. An unreadable repository is reported by the step that needs it."""
    if context.takeover:
        return
    try:
        found = read_fence(context, context.git_credential)
    except (GitFailed, DeadlineExceeded):
        return
    try:
        claimed(found, holder_of(context), time.time())
    except FenceHeld as error:
        if context.teardown.destroys and found and found.holder:
            there = found.holder.run_there("ucp destroy")
            error.next = f"{there}; here `ucp stop` stops what is running"
        raise


def holder_of(view: TopologyView) -> FenceHolder:
    """The fence holder that represents this workspace."""
    name = view.topology.name
    return FenceHolder(
        view.workspace.machine_id(name),
        os.uname().nodename,
        str(view.workspace.root),
        view.topology.spec.core.provider,
    )


def read_fence(
    view: TopologyView, credential: Credential | None, *, seconds: float = SECONDS
) -> FenceRecord | None:
    """The fence of the topology's core repository; None if there is none. Changes nothing.

    Raises GitFailed, DeadlineExceeded.
    """
    if view.topology.spec.git.provider == "local" and not view.gitops.core_remote.exists():
        return None
    with tempfile.TemporaryDirectory(prefix="ucp-fence-") as folder:
        return opened_fence(view, Path(folder) / "core", credential, seconds=seconds).read()


def opened_fence(
    view: TopologyView,
    folder: Path,
    credential: Credential | None,
    *,
    seconds: float = NETWORK_SECONDS,
) -> FenceReference:
    """The fence's ref in a new clone in `folder`. seconds: timeout of each git command."""
    url = addresses(view.topology, view.gitops).core
    return FenceReference(make_clone(folder, url, credential=credential, private=True), seconds)


def lost_fence(view: TopologyView) -> str:
    """Who took the fence from this core, according to its guard; empty if nobody did."""
    return str(view.fence.lost_to() or "")
