"""Edits ucp.yaml and publishes the result to the repositories, as one transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp import locks
from k8s_ucp.cli.command import Invocation, Output
from k8s_ucp.cli.git_credentials import credential_of
from k8s_ucp.cli.plan_runner import (
    EditKept,
    PlannedChanges,
    alone,
    command_line,
    edit_journal,
    open_journal,
    run_plan,
    show_plan,
)
from k8s_ucp.cli.topology_selection import STARTED, declared_file, declared_topology, remember
from k8s_ucp.engine.journal import EDIT, Journal, unfinished_at
from k8s_ucp.engine.pipeline import Report, RunInterrupted
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.git.failures import GitFailed
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.publish.merge import EMPTY_SCOPE, Scope
from k8s_ucp.workspace import replace_file, write_private_file, writing

if TYPE_CHECKING:
    from k8s_ucp.context import PublishOptions, StartContext
    from k8s_ucp.topology import App, Topology

Edit = Callable[[str, Path], tuple[str, "Topology"]]
"""(text, path) of ucp.yaml -> (new text, new topology). Raises UsageError."""


def as_it_is(text: str, path: Path) -> tuple[str, Topology]:
    """The edit that changes nothing: publishes ucp.yaml as it is."""
    from k8s_ucp.topology import parse

    return text, parse(text, path)


class ChangedMeanwhile(UcpError):
    """A person saved ucp.yaml while a command edited it; the file is kept as saved."""


PATIENCE = 60.0
"""Seconds that an edit waits for another one in the same workspace."""


def edit_topology(
    call: Invocation,
    edit: Edit,
    *,
    subject: str = "",
    removed: Scope = EMPTY_SCOPE,
    departing: tuple[App, ...] = (),
    merged_into_apps: Callable[[Repository], Sequence[str]] = lambda _: (),
    part_of: Journal | None = None,
) -> Topology:
    """Edit ucp.yaml; if the topology was started, render, commit and push, too.

    An edit is applied as a whole or not at all: locks are held from reading the file to the end,
    the file is written after all checks, and a refused push or Ctrl-C restores file and
    repositories.
    subject: of the commits. removed: environments and apps whose folders in the repositories are
    deleted with everything in them. departing: apps that are no longer declared, whose projects are
    kept. merged_into_apps: commits to merge into the app repository's new one. part_of: the journal
    of a command that does more than this edit. Returns the new topology. Raises UcpError,
    UsageError, EditKept.
    """
    from k8s_ucp.topology import read_topology

    with only_edit(call.workspace.root, call.console.say):
        name, path = declared_topology(call).name, declared_file(call)
        if call.workspace.gitops(name).core.exists():
            from k8s_ucp.context import PublishOptions

            publishing = PublishOptions(
                subject=subject,
                removed=removed,
                departing=departing,
                whole=True,
                merged_into_apps=merged_into_apps,
            )
            with alone(call.workspace, name):
                return _edit_and_publish(call, path, edit, publishing, part_of)
        before = read_topology(path)
        text, topology = edit(before, path)
        _write(path, text, over=before)
    call.console.say(f"wrote {path.name}; run `ucp start` to apply it")
    return topology


def in_parts(
    call: Invocation, topology: Topology, about: str, again: str
) -> contextlib.AbstractContextManager[Journal]:
    """The journal of a command with several commits or waits.

    Until it succeeds, `ucp status` suggests `again` to continue it. about: what it changes; another
    command about the same replaces it. Nothing is written for a topology that was never started.
    """
    state = call.workspace.state(topology.name)
    started = call.workspace.gitops(topology.name).core.exists()
    path = state.unfinished_file(about.replace(" ", "-")) if started else None
    return open_journal(path, about, again, call.console).until_done()


@contextlib.contextmanager
def shown_step(call: Invocation, parts: Journal, title: str, id: str) -> Iterator[Report]:
    """A step of `in_parts` that is in no plan, shown like those that are."""
    with call.console.steps() as view, parts.step(title, id, view.on_event) as report:
        yield report


def continues(parts: Journal, command: str) -> bool:
    """Whether an earlier run of the command was interrupted."""
    return parts.resumed is not None and parts.resumed.next == command


def confirm_removal(call: Invocation, topology: Topology, what: str, *, yes: bool) -> None:
    """Ask on a terminal; if the topology was started, a confirmation is required.

    Raises UsageError.
    """
    if yes:
        return
    from k8s_ucp.cli import questions

    questions.require_consent(
        f"Remove {what}?",
        "nothing was removed",
        next="add --plan to see what is removed and lost for good; then --yes",
        needed=call.workspace.gitops(topology.name).core.exists(),
    )


def plan_edit(
    call: Invocation,
    edit: Edit,
    output: Output,
    *,
    removed: Scope = EMPTY_SCOPE,
    before: PlannedChanges | None = None,
    after: PlannedChanges | None = None,
    why: str = "its entry is removed",
) -> None:
    """Print what an edit would change, and what is done around it; change nothing.

    why: the reason for the change of ucp.yaml. Raises UcpError, UsageError.
    """
    from k8s_ucp import plans
    from k8s_ucp.context import StartContext
    from k8s_ucp.topology import load, read_topology

    path = declared_file(call)
    old = read_topology(path)
    text, topology = edit(old, path)
    unchanged = PlannedChange("keep", path.name, "nothing in it changes")
    written = unchanged if text == old else PlannedChange("change", path.name, why)
    planned = {**(before or {}), "write-topology": [written]}
    if call.workspace.gitops(topology.name).core.exists():
        context = context_of(call, topology, text, removed=removed)
        context.publishing = replace(context.publishing, whole=True)
        now = load(path)
        show_plan(call, [plans.publish()], context, output, before=planned, after=after, now=now)
    else:
        context = StartContext(workspace=call.workspace, topology=topology)
        show_plan(call, [], context, output, before=planned)


def context_of(
    call: Invocation,
    topology: Topology,
    text: str,
    *,
    file: Path | None = None,
    removed: Scope = EMPTY_SCOPE,
) -> StartContext:
    """The context for steps of a topology with this text. file: None for that of the command.

    Raises UcpError.
    """
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.context import PublishOptions, StartContext
    from k8s_ucp.gitops.render.app_manifests import read_manifests

    folder = (file or declared_file(call)).parent
    return StartContext(
        workspace=call.workspace,
        topology=topology,
        topology_file=_normalized(text),
        manifests=read_manifests(topology, folder, fetcher_of(call, topology)),
        publishing=PublishOptions(removed=removed),
        git_credential=credential_of(topology, call.workspace),
    )


def refuse_changed(context: StartContext, path: Path) -> None:
    """Refuse to publish a ucp.yaml that was edited after it was read; called with the lock held.

    Raises UcpError.
    """
    from k8s_ucp.topology import read_topology

    if _normalized(read_topology(path)) != context.topology_file:
        raise UcpError(
            f"{path} was changed while this command checked it; it was not published",
            next="run the command again",
        )


def _normalized(text: str) -> bytes:
    """The text of ucp.yaml as `ucp start` commits it: with the line ends of Unix."""
    return text.replace("\r\n", "\n").encode()


def _edit_and_publish(
    call: Invocation,
    path: Path,
    edit: Edit,
    publishing: PublishOptions,
    part_of: Journal | None,
) -> Topology:
    """Called with the topology's lock held."""
    from k8s_ucp import plans
    from k8s_ucp.preflight.machine import check_new_clusters
    from k8s_ucp.topology import parse, read_topology

    before = read_topology(path)
    former = parse(before, path)
    with pointing_to_start(call, former):
        text, topology = edit(before, path)
    _refuse_unstartable(former, topology)
    context = context_of(call, topology, text, file=path)
    check_new_clusters(context, [each.name for each in former.spec.environments])
    file = _FileEdit(context, path, before, text)
    context.publishing = replace(publishing, before_push=file.write)
    writing = part_of or edit_journal(context.state, call.console)
    try:
        run_plan(plans.publish(), context, call.console, locked=True, part_of=writing)
    except UcpError as error:
        pushed = hasattr(context, "published")
        if isinstance(error, RunInterrupted) and (pushed or (file.written and error.still_running)):
            # During a push, nobody knows whether it will arrive.
            words = "was pushed" if pushed else "is kept; run `ucp start` to apply it"
            if pushed and not part_of:
                writing.discard()
            raise EditKept(f"interrupted; the edit of {path.name} {words}") from error
        writing.drop_part()
        _undo(file, error)
        raise
    return topology


@contextlib.contextmanager
def pointing_to_start(call: Invocation, topology: Topology) -> Iterator[None]:
    """Suggest `ucp start` if an edit is refused because the same command was killed in the middle.

    It had written ucp.yaml, but perhaps not pushed. Raises UsageError.
    """
    try:
        yield
    except UsageError as error:
        file = call.workspace.state(topology.name).unfinished_file(EDIT)
        killed = unfinished_at(file, "edit")
        if killed and killed.command == command_line():
            error.message = f"{error.message}: {killed}"
            error.next = "ucp start, which publishes what it wrote to ucp.yaml"
        raise


class _FileEdit:
    """The edit of ucp.yaml, and of the text that the topology was started with; can be undone."""

    def __init__(self, context: StartContext, path: Path, before: str, text: str) -> None:
        self.path = path
        self.written = False
        self._context = context
        self._before, self._text = before, text
        self._started = context.state.root / STARTED
        self._started_before = self._started.read_text("utf-8") if self._started.exists() else None

    def write(self) -> None:
        """Called before the pushes: if killed in between, the next `ucp start` does the rest."""
        _write(self.path, self._text, over=self._before)
        self.written = True
        name, text = self._context.topology.name, self._context.topology_file.decode()
        with writing(self._started):
            remember(self._context.workspace, name, text)

    def undo(self) -> None:
        """Raises UcpError, ChangedMeanwhile."""
        if not self.written:
            return
        _write(self.path, self._before, over=self._text)
        with writing(self._started):
            if self._started_before is None:
                self._started.unlink(missing_ok=True)
            elif self._started.read_text("utf-8") != self._started_before:
                write_private_file(self._started, self._started_before)


def _undo(file: _FileEdit, error: UcpError) -> None:
    """Undo the edit after an error, whose message then says how ucp.yaml was left."""
    try:
        file.undo()
    except UcpError as second:
        error.message += f"\n  {file.path.name} keeps the edit: {second.message}"
        first = "check the file" if isinstance(second, ChangedMeanwhile) else second.next
        error.next = f"{first}; then run `ucp start` to apply it, or undo it in {file.path}"
        raise error from second
    if not isinstance(error, ChangedMeanwhile):
        error.message += f"\n  {file.path.name} is as it was before"


def _refuse_unstartable(former: Topology, topology: Topology) -> None:
    """Refuse a topology that the next start would refuse, unless it would have before the edit.

    Raises UsageError.
    """
    from k8s_ucp.topology.rules.combinations import find_unstartable

    known = {each.message for each in find_unstartable(former)}
    if new := [e.message for e in find_unstartable(topology) if e.message not in known]:
        raise UsageError("; ".join(new), next="choose a provider that runs from this core")


@contextlib.contextmanager
def only_edit(folder: Path, report: Callable[[str], None]) -> Iterator[None]:
    """One edit of a workspace's ucp.yaml at a time; the next one waits up to PATIENCE seconds.

    Locks the folder itself, so that no lock file is left for a topology that was never started.
    Raises UcpError.
    """

    def report_wait(process: int | None) -> None:
        report(f"waiting for {locks.named(process)}, which has locked {folder}")

    try:
        with locks.folder_locked_within(folder, PATIENCE, report_wait) as holder:
            if holder is not None:
                look = f" (ps -p {holder})" if holder else ""
                raise UcpError(
                    f"{locks.named(holder)} has kept {folder} locked for {PATIENCE:.0f} s",
                    next=f"wait for it to finish{look}, then run the command again",
                )
            yield
    except FileNotFoundError as error:
        if folder.is_dir():
            raise
        raise UsageError(f"the folder {folder} does not exist", next="ucp start") from error


def _write(path: Path, text: str, *, over: str) -> None:
    """Write the file if it differs; so an unchanged file can be restored on a full disk.

    over: the text that is replaced. Raises UcpError, ChangedMeanwhile for any other.
    """
    with writing(path):
        found = path.read_bytes()
        if found == text.encode():
            return
        if found != over.encode():
            raise ChangedMeanwhile(
                f"{path} was changed while this command edited it, and is kept as it is now",
                next="check the file, then run the command again",
            )
        replace_file(path, text)


def find_tip(
    call: Invocation, topology: Topology, folder: Path
) -> tuple[Repository, str | None] | None:
    """A repository and its branch's newest commit; None if it does not exist yet.

    folder: the working clone. If that was deleted, the local repository behind it is read.
    """
    branch, remote = topology.spec.git.branch, folder.with_suffix(".git")
    if folder.is_dir():
        clone = up_to_date(call, topology, folder)
        return clone, clone.resolve(f"refs/remotes/origin/{branch}")
    if remote.is_dir():
        return Repository(remote), Repository(remote).resolve(f"refs/heads/{branch}")
    return None


def up_to_date(call: Invocation, topology: Topology, folder: Path) -> Repository:
    """The working clone, fetched; if the remote doesn't respond, as it was last fetched."""
    clone = Repository(folder, credential=credential_of(topology, call.workspace))
    try:
        clone.fetch()
    except GitFailed as error:
        call.console.say(f"note: {error.message}; this is what was seen last")
    return clone
