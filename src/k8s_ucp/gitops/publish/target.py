"""Publishes a render to one repository: its state, the changes, the push."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from k8s_ucp.git.failures import Declined, GitFailed, HostUnreachable, Rejected
from k8s_ucp.git.objects import Change, NewCommit, TreeEntry, tree_id
from k8s_ucp.git.repository import LOCAL_SECONDS, RENDERED, RefUpdate, Repository, execute
from k8s_ucp.gitops.publish.merge import EMPTY_SCOPE, Choices, Merged, Scope, merge


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
    """(text, True when no conflict is left in it). Binary content conflicts.

    ours is the repository's version, theirs the new render's.
    """
    with tempfile.TemporaryDirectory(prefix="ucp-merge-") as folder:
        names = [Path(folder) / each for each in ("repository", "last-render", "new-render")]
        for path, content in zip(names, (ours, base, theirs), strict=True):
            path.write_bytes(content)
        labels = ["-L", "repository", "-L", "last render", "-L", "new render"]
        arguments = ["merge-file", "-p", *labels, *(str(each) for each in names)]
        out, _, code = execute(arguments, timeout=LOCAL_SECONDS)
    return out, code == 0


@dataclass(frozen=True)
class PublishTarget:
    """files: the render. known: what the topology names. choices: what a person has decided."""

    name: str
    """core | apps."""
    clone: Repository
    files: Mapping[str, bytes]
    branch: str
    known: Scope
    message: str
    choices: Choices = field(default_factory=Choices)
    more_parents: Callable[[Repository], Sequence[str]] = lambda _: ()
    """Commits that the new one merges as well; they may be written to the clone for it."""

    def prepare(self) -> Prepared:
        """See what the remote has now and merge the render with it. Pushes nothing new."""
        clone, main = self.clone, f"refs/heads/{self.branch}"
        remote = _look(clone, self.branch)
        tip, last = remote.get(main), remote.get(RENDERED)
        staying = self.choices.removed == EMPTY_SCOPE
        if (
            staying
            and tip
            and last
            and clone.tree_of(last) == tree_id(self.files, length=len(last))
        ):
            return Prepared(self, tip, last, same=True)
        before = clone.listing(last) if last else {}
        there = clone.listing(tip) if tip else {}
        merged = self._merge(before if tip else {}, there)
        return Prepared(self, tip, last, merged, before, there)

    def _merge(self, before: Mapping[str, TreeEntry], there: Mapping[str, TreeEntry]) -> Merged:
        # A link or a submodule in place of a file is somebody's decision.
        special = {path for path, entry in there.items() if not entry.mode.startswith("100")}
        return merge(
            {path: entry.id for path, entry in before.items()},
            {path: entry.id for path, entry in there.items()},
            self.files,
            known=self.known,
            contents=self.clone.contents,
            merge_text=merge_text,
            choices=replace(
                self.choices, ours=self.choices.ours | special, theirs=self.choices.theirs - special
            ),
        )


@dataclass(frozen=True)
class Prepared:
    """tip, last: commits of the branch and of the last render, None where there is none."""

    target: PublishTarget
    tip: str | None
    last: str | None
    merged: Merged = field(default_factory=Merged)
    before: Mapping[str, TreeEntry] = field(default_factory=dict)
    there: Mapping[str, TreeEntry] = field(default_factory=dict)
    same: bool = False
    """The last render is this render: nothing to write."""

    def write(self) -> list[str]:
        """Write the commits of the render, and of the branch where it moves; push nothing."""
        target, merged = self.target, self.merged
        render: dict[str, Change] = dict.fromkeys(self.before.keys() - target.files.keys())
        render |= target.files
        commits = [NewCommit(target.message, render, (self.last,) if self.last else ())]
        if merged.changes or not self.tip:
            modes = {path: self.there[path].mode for path in merged.changes if path in self.there}
            parents = (self.tip, *target.more_parents(target.clone)) if self.tip else ()
            commits.append(NewCommit(target.message, merged.changes, parents, modes))
        return target.clone.write_commits(commits)

    def push(self) -> Pushed:
        """Commit and push. Raises Rejected."""
        target, written = self.target, self.write()
        # The branch first: where a remote can't take both at once, a merge against an older
        # render does no harm, one against a render that never arrived would.
        updates = [RefUpdate(RENDERED, written[0], expect=self.last or "")]
        if len(written) > 1:
            updates.insert(0, RefUpdate(f"refs/heads/{target.branch}", written[1]))
        try:
            target.clone.push(updates)
        except HostUnreachable:
            # The answer may be what was lost: then the push is there.
            if not _arrived(target.clone, updates):
                raise
        moved = len(written) > 1
        return Pushed(written[0], written[1] if moved else self.tip or "", moved)

    def take_back(self, pushed: Pushed) -> str:
        """Undo a push: the branch's tip.

        Its refs are as before, where the remote lets a branch go back; a protected branch gets a
        commit that undoes ours. What others pushed since stays, and makes it Rejected.
        """
        target, main = self.target, f"refs/heads/{self.target.branch}"
        if self.last is None:
            return pushed.tip
        render = RefUpdate(RENDERED, self.last, expect=pushed.render)
        if not pushed.moved or self.tip is None:
            target.clone.push([render])
            return pushed.tip
        try:
            target.clone.push([RefUpdate(main, self.tip, expect=pushed.tip), render])
        except (Rejected, Declined):
            before = {path: self.there.get(path) for path in self.merged.changes}
            subject = target.message.partition("\n")[0]
            message = f"Take back: {subject}\n\nThe other repository didn't take its part.\n"
            (tip,) = target.clone.write_commits([NewCommit(message, before, (pushed.tip,))])
            target.clone.push([RefUpdate(main, tip), render])
            return tip
        return self.tip


@dataclass(frozen=True)
class Pushed:
    """What a push left in the remote: commits of the last render and of the branch."""

    render: str
    tip: str
    moved: bool
    """The branch has a new commit."""


def _arrived(clone: Repository, updates: Sequence[RefUpdate]) -> bool:
    """The remote has what was pushed."""
    with contextlib.suppress(GitFailed):
        clone.fetch()
        remote = clone.remote_refs()
        return all(remote.get(each.ref) == each.commit for each in updates)
    return False


def _look(clone: Repository, branch: str) -> dict[str, str]:
    """The branch and the last render as the remote has them, with their objects here.

    A remote that lost its branches gets back what this clone has seen of them.
    """
    main, tracked = f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"
    remote, here = clone.remote_refs(), clone.refs()
    if not any(name.startswith("refs/heads/") for name in remote) and tracked in here:
        back = [RefUpdate(main, here[tracked])]
        if RENDERED in here and RENDERED not in remote:
            back.append(RefUpdate(RENDERED, here[RENDERED], expect=""))
        clone.push(back)
        return {each.ref: each.commit for each in back}
    moved = remote.get(main) not in (None, here.get(tracked))
    if moved or remote.get(RENDERED) not in (None, here.get(RENDERED)):
        clone.fetch()
        # Not what the remote has by now: its newest objects may not be here.
        here = clone.refs()
    found = {main: here.get(tracked), RENDERED: here.get(RENDERED)}
    return {name: id for name, id in found.items() if id and name in remote}
