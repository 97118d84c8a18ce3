"""Backs up new passwords and names of the core cluster to the core repository."""

from __future__ import annotations

from collections.abc import Iterator

from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError
from k8s_ucp.git.clones import fast_forward, make_clone
from k8s_ucp.git.repository import Repository
from k8s_ucp.preflight.fence import lost_fence
from k8s_ucp.preflight.unresponsive_core import advice_of_silence, is_given_up
from k8s_ucp.reconciler.backup.backup_file import BackupFile
from k8s_ucp.reconciler.backup.backup_key import key_for, load_key
from k8s_ucp.reconciler.backup.core_state import CoreState
from k8s_ucp.reconciler.backup.writer import failure, forget_failure, note_failure
from k8s_ucp.reconciler.backup_content import PASSWORDS, PATH, SOURCES, parse, updated
from k8s_ucp.steps.backup.stopped_core import (
    accept_loss,
    at_stake,
    check_core_to_delete,
    maker_of_removed_core,
)

SECONDS = 60.0


def _preview_backup(context: StartContext) -> Iterator[PlannedChange]:
    what = f"core: {PATH}"
    if not context.core_responds():
        yield PlannedChange("change", what, "passwords and names that the core generates are added")
        return
    clone = Repository(context.gitops.core, credential=context.git_credential)
    file = BackupFile(clone, context.topology.spec.git.branch, context.topology.name)
    key = load_key(context.workspace.backup_key)
    state = context.core_state
    known = file.read(file.seen, key) if key and clone.folder.is_dir() else None
    if known is not None and updated(known, state.collect(), state.is_deleted) == known:
        yield PlannedChange("keep", what, "it is up to date")
    else:
        yield PlannedChange("change", what, "the core has new passwords or names")


def _preview_backup_before_stop(context: StartContext) -> Iterator[PlannedChange]:
    core = context.topology.core_cluster
    if context.core_responds():
        yield from _preview_backup(context)
    elif _is_removed(context):
        lost = ", ".join(at_stake(context))
        why = "it is started for the backup; if it does not respond, --abandon is required"
        yield PlannedChange(
            "wait",
            f"cluster {core}",
            why,
            lost and f"if {core} does not respond, what only it knows of: {lost}",
        )
    elif is_given_up(context) and not context.teardown.destroys:
        for each in at_stake(context):
            yield PlannedChange("keep", each, f"{core} is abandoned: nothing manages it after that")
    for name in ("core", "apps"):
        if getattr(context.gitops, name).exists():
            command = "destroy" if context.teardown.destroys else "stop"
            yield PlannedChange(
                "keep", f"{name} repository", f"`ucp {command}` deletes no repository"
            )


@step("Back up passwords and names of the core cluster", preview=_preview_backup)
def back_up(context: StartContext, report: Report) -> None:
    """At the end of a start: by then, requested passwords have been generated."""
    state = context.core_state

    def pending() -> str:
        lacking = ", ".join(state.lacking())
        return f"no password generated yet: {lacking}" if lacking else ""

    context.wait(
        "generation of passwords", pending, seconds=SECONDS, next="see `ucp logs reconciler`"
    )
    report(write_backup(context, state))


@step(
    "Back up passwords and names of the core cluster",
    preview=_preview_backup_before_stop,
    id="back-up",
)
def back_up_before_stop(context: StartContext, report: Report) -> None:
    """Back up what is new since the start, before anything is stopped.

    A core that keeps its data is stopped even if it doesn't respond or the backup fails, unless the
    data is to be deleted. A core that is deleted is started and asked first; if it doesn't respond,
    a person has to name it.
    """
    if lost := lost_fence(context):
        # The other core writes the backup now; what this one lacks was not deleted.
        report(f"not backed up: another core acts for this topology: {lost}")
        return
    if not check_core_to_delete(context, report):
        return
    if not context.core_responds():
        _leave_unsaved(context, report)
        return
    try:
        state = context.core_state
        if not (context.gitops.core / ".git").exists():
            _refuse_without_clone(context, state)
            return
        _lead_to_own_remote(context)
        report(write_backup(context, state))
        if context.in_pods:
            # After an interruption, a rerun must not take missing objects of this core for deleted
            # ones.
            state.note_deletion()
    except UcpError as error:
        if context.in_pods:
            error.message = f"stopping would lose data of the core cluster: {error.message}"
            raise
        if _may_not_lose_data(context):
            error.message = f"--delete-data would lose what is not backed up: {error.message}"
            accept = _accept_loss_of(context.topology.core_cluster)
            error.next = f"{error.next}; or {accept}" if error.next else accept
            raise
        # A later stop of the silent core may be told to delete its data.
        note_failure(context.state.backup, error.message)
        report(f"not backed up: {error.message.splitlines()[0]}")


def _leave_unsaved(context: StartContext, report: Report) -> None:
    """Go on without a backup of a silent core. Raises UcpError if that requires a flag."""
    name = context.topology.core_cluster
    if _is_removed(context):
        accept_loss(context, "it stopped responding", report)
    elif context.core_is_adopted():
        if not is_given_up(context):
            raise UcpError(
                f"stopping would lose data of the core cluster: {name} is not responding",
                next=advice_of_silence(context),
            )
        accept_loss(context, "abandoned with --abandon", report)
    elif context.state.kubeconfig(name).exists():
        _refuse_unsaved(context)
        # The last backup succeeded, but the core may have made something after it.
        unsaved = context.teardown.delete_data and not context.teardown.destroys
        lost = "; what it made in its last seconds may be lost" if unsaved else ""
        report(f"not backed up: {name} is not responding{lost}")


def _may_not_lose_data(context: StartContext) -> bool:
    """Whether this stop deletes the data of a core that no `--abandon` names."""
    named = context.topology.core_cluster in context.teardown.abandon
    return context.teardown.delete_data and not context.teardown.destroys and not named


def _accept_loss_of(name: str) -> str:
    return f"accept the loss: ucp stop --delete-data --abandon {name}"


def _refuse_unsaved(context: StartContext) -> None:
    """A core that doesn't respond has data that the last attempt could not back up."""
    reason = failure(context.state.backup)
    if reason and _may_not_lose_data(context):
        name = context.topology.core_cluster
        raise UcpError(
            f"--delete-data would lose what is not backed up: {name} is not responding, and the "
            f"last backup failed: {reason.splitlines()[0]}",
            next=f"ucp start, which backs it up; or {_accept_loss_of(name)}",
        )


def _is_removed(context: StartContext) -> bool:
    """Whether the core exists and the stop deletes its data."""
    return maker_of_removed_core(context) is not None


def _refuse_without_clone(context: StartContext, state: CoreState) -> None:
    if _is_removed(context) and state.collect():
        raise UcpError(
            f"{context.gitops.core} is not a clone of the core repository, which the backup needs",
            next="ucp start",
        )


def write_backup(context: StartContext, state: CoreState) -> str:
    """Back up changes; returns a line about it, empty if there are none. Raises UcpError."""
    clone = Repository(context.gitops.core, credential=context.git_credential)
    file = BackupFile(clone, context.topology.spec.git.branch, context.topology.name)
    key = key_for(context.workspace.backup_key, lambda: file.sealed(file.seen) is not None)
    seen = state.collect()
    commit = file.save(key, lambda known: updated(known, seen, state.is_deleted))
    forget_failure(context.state.backup)
    if commit is None:
        return ""
    fast_forward(clone, branch=file.branch)
    return f"{PATH}, commit {commit[:8]}"


def _lead_to_own_remote(context: StartContext) -> None:
    """If the workspace was moved, the clone leads to the local repository in its former place.

    There is none, or that of another topology.
    """
    git, folder = context.topology.spec.git, context.gitops
    if git.provider == "local" and folder.core_remote.is_dir():
        make_clone(folder.core, folder.core_remote.as_uri(), branch=git.branch)


def _preview_restore(context: StartContext) -> Iterator[PlannedChange]:
    if context.planned is None:
        return
    what, core = "passwords and registration sources", context.planned.core
    if BackupFile(core.clone, context.topology.spec.git.branch).sealed(core.commit) is None:
        if load_key(context.workspace.backup_key) is None:
            key = context.workspace.backup_key.relative_to(context.workspace.root)
            yield PlannedChange("create", str(key), "there is none; keep a copy of it elsewhere")
    elif context.core_responds() and {PASSWORDS, SOURCES} <= context.core_state.restored():
        yield PlannedChange("keep", what, "the core already has them")
    else:
        yield PlannedChange("create", what, f"those that the core lacks are restored from {PATH}")


@step("Restore passwords and names from the backup", preview=_preview_restore)
def restore_backup(context: StartContext, report: Report) -> None:
    """Restore passwords and sources; creates the backup key if there is none."""
    core = context.published.core
    sealed = BackupFile(core.clone, context.topology.spec.git.branch).sealed(core.commit)
    key = key_for(context.workspace.backup_key, lambda: sealed is not None)
    state = context.core_state
    if {PASSWORDS, SOURCES} <= state.restored():
        return
    if sealed is not None:
        report(", ".join(state.restore_secrets(parse(key.open(sealed), context.topology.name))))
    state.note_restored("restore-backup", PASSWORDS, SOURCES)
