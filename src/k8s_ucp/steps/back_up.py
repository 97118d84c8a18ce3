"""Write what the core cluster made into the core repository's backup, where that is new."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.backup import PATH, updated
from k8s_ucp.backup_key import key_for
from k8s_ucp.components.core_state import CoreState
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.backup_file import BackupFile
from k8s_ucp.gitops.clones import fast_forward
from k8s_ucp.gitops.repository import Repository
from k8s_ucp.pipeline import Report
from k8s_ucp.steps.context import Context
from k8s_ucp.waiting import wait_until

SECONDS = 60.0
PAUSE = 0.2


@dataclass(frozen=True)
class BackUp:
    """At the end of a start: passwords that are asked for have been made by then."""

    id: str = "back-up"
    title: str = "Back up what the core cluster made"

    def run(self, context: Context, report: Report) -> None:
        state = context.core_state

        def look() -> str:
            lacking = ", ".join(state.lacking())
            return f"no password yet: {lacking}" if lacking else ""

        wait_until(
            "passwords made",
            look,
            seconds=SECONDS,
            cancel=context.cancel,
            pause=PAUSE,
            next="see `ucp logs reconciler`",
        )
        report(back_up(context, state))


@dataclass(frozen=True)
class BackUpBeforeStop:
    """What was made since the start; a core that does not answer is stopped all the same.

    Where a stop removes the core's data, a backup that can't be written keeps it from going on.
    """

    id: str = "back-up"
    title: str = "Back up what the core cluster made"

    def run(self, context: Context, report: Report) -> None:
        try:
            state = context.core_state
            if not (context.gitops.core / ".git").exists() or not state.kube.ready():
                return
        except UcpError:
            return
        try:
            report(back_up(context, state))
            if context.in_pods:
                # A stop that is cut off and run again must not take half a core for its word.
                state.note_leaving()
        except UcpError as error:
            if context.in_pods:
                error.message = f"what the core made would be lost: {error.message}"
                raise
            report(f"not backed up: {error.message.splitlines()[0]}")


def back_up(context: Context, state: CoreState) -> str:
    """Write what is new; a line about it, empty where nothing is. Raises UcpError."""
    clone = Repository(context.gitops.core, credential=context.git_credential)
    file = BackupFile(clone, context.topology.spec.git.branch)
    key = key_for(context.workspace.backup_key, lambda: file.sealed(file.seen) is not None)
    seen = state.collect()
    commit = file.save(key, lambda known: updated(known, seen, state.gone))
    if commit is None:
        return ""
    fast_forward(clone, branch=file.branch)
    return f"{PATH}, commit {commit[:8]}"
