"""Publishes a render to one repository: its state, the changes, the push."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from k8s_ucp.errors import DeadlineExceeded, UcpError, command_line
from k8s_ucp.git.command import LOCAL_SECONDS, execute
from k8s_ucp.git.failures import Declined, GitFailed, HostUnreachable, Rejected
from k8s_ucp.git.lost_branch import branches, has_others_only, lost_branch
from k8s_ucp.git.objects import Change, NewCommit, TreeEntry, tree_id
from k8s_ucp.git.repository import RENDERED, RefUpdate, Repository
from k8s_ucp.gitops.publish.merge import EMPTY_SCOPE, Choices, Merged, Scope, merge


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
    """(text, whether it is free of conflicts). Different binary contents conflict.

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
    """files: the render. scope: what the topology declares. choices: the user's resolutions."""

    name: str
    """core | apps."""
    clone: Repository
    files: Mapping[str, bytes]
    branch: str
    scope: Scope
    message: str
    choices: Choices = field(default_factory=Choices)
    more_parents: Callable[[Repository], Sequence[str]] = lambda _: ()
    """Further parents of the new commit; the function may write them to the clone."""

    def prepare(self) -> Prepared:
        """Fetch the remote's state and merge the render with it. Pushes nothing new."""
        clone, main = self.clone, f"refs/heads/{self.branch}"
        remote = _look(clone, self.branch, self.name)
        tip, last = remote.get(main), remote.get(RENDERED)
        staying = self.choices.removed == EMPTY_SCOPE and not self.choices.theirs
        if (
            staying
            and tip
            and last
            and clone.tree_of(last) == tree_id(self.files, length=len(last))
        ):
            return Prepared(self, tip, last, same=True)
        if last and clone.resolve(last) != last:
            raise _no_commit(clone, self.name)
        before = clone.listing(last) if last else {}
        current = clone.listing(tip) if tip else {}
        merged = self._merge(before if tip else {}, current)
        return Prepared(self, tip, last, merged, before, current)

    def _merge(self, before: Mapping[str, TreeEntry], current: Mapping[str, TreeEntry]) -> Merged:
        # A symbolic link or submodule in place of a file is intentional: keep it.
        special = {path for path, entry in current.items() if not entry.mode.startswith("100")}
        return merge(
            {path: entry.id for path, entry in before.items()},
            {path: entry.id for path, entry in current.items()},
            self.files,
            scope=self.scope,
            contents=self.clone.contents,
            merge_text=merge_text,
            choices=replace(
                self.choices, ours=self.choices.ours | special, theirs=self.choices.theirs - special
            ),
        )


@dataclass(frozen=True)
class Prepared:
    """tip, last: commits of the branch and of the last render, None if they don't exist."""

    target: PublishTarget
    tip: str | None
    last: str | None
    merged: Merged = field(default_factory=Merged)
    before: Mapping[str, TreeEntry] = field(default_factory=dict)
    there: Mapping[str, TreeEntry] = field(default_factory=dict)
    same: bool = False
    """The last render is identical: nothing to write."""

    def write(self) -> list[str]:
        """Write the commits of the render, and of the branch if it changes; push nothing."""
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
        # The branch first, in case the remote can't update both atomically: a merge based on an
        # older render does no harm, one based on a render that never arrived would.
        updates = [RefUpdate(RENDERED, written[0], expect=self.last or "")]
        if len(written) > 1:
            updates.insert(0, RefUpdate(f"refs/heads/{target.branch}", written[1]))
        try:
            target.clone.push(updates)
        except (HostUnreachable, DeadlineExceeded):
            # Only the response may be lost, or late: check whether the push arrived.
            if not _arrived(target.clone, updates):
                raise
        moved = len(written) > 1
        return Pushed(written[0], written[1] if moved else self.tip or "", moved)

    def revert(self, pushed: Pushed) -> str:
        """Revert a push: the branch's tip.

        Its refs are reset if the remote allows that; a protected branch gets a revert commit. If
        others have pushed since, their commits are kept, and Rejected is raised.
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
            message = f"Revert: {subject}\n\nThe push to the other repository failed.\n"
            (tip,) = target.clone.write_commits([NewCommit(message, before, (pushed.tip,))])
            target.clone.push([RefUpdate(main, tip), render])
            return tip
        return self.tip


@dataclass(frozen=True)
class Pushed:
    """State of the remote after a push: commits of the last render and of the branch."""

    render: str
    tip: str
    moved: bool
    """The branch has a new commit."""


def _arrived(clone: Repository, updates: Sequence[RefUpdate]) -> bool:
    """The remote has the pushed commits."""
    with contextlib.suppress(GitFailed, DeadlineExceeded):
        clone.fetch()
        remote = clone.remote_refs()
        return all(remote.get(each.ref) == each.commit for each in updates)
    return False


def _no_commit(clone: Repository, repository: str) -> UcpError:
    """Someone has pushed another object as the last render, which forges don't protect."""
    delete = command_line("git", "-C", clone.folder, "push", "origin", f":{RENDERED}")
    return UcpError(
        f"{RENDERED} of the {repository} repository is not a commit of ucp",
        next=(
            f"delete it: {delete}; then run "
            "ucp start, which asks what to keep where the repository differs from a new render"
        ),
    )


def _look(clone: Repository, branch: str, repository: str) -> dict[str, str]:
    """The remote's branch and last render, with their objects fetched.

    If a remote has lost all branches, what this clone knows of them is pushed back. repository:
    core | apps. Raises UcpError if only this branch is gone.
    """
    main, tracked = f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"
    remote, here = clone.remote_refs(), clone.refs()
    if has_others_only(remote, branch) and (RENDERED in remote or tracked in here):
        raise lost_branch(f"{repository} repository", branch, remote)
    if not branches(remote) and tracked in here:
        back = [RefUpdate(main, here[tracked])]
        if RENDERED in here and RENDERED not in remote:
            back.append(RefUpdate(RENDERED, here[RENDERED], expect=""))
        clone.push(back)
        return {each.ref: each.commit for each in back}
    moved = remote.get(main) not in (None, here.get(tracked))
    if moved or remote.get(RENDERED) not in (None, here.get(RENDERED)):
        clone.fetch()
        # Not the ids from `remote`: the remote may have moved since, and these objects may be
        # missing.
        here = clone.refs()
    found = {main: here.get(tracked), RENDERED: here.get(RENDERED)}
    return {name: id for name, id in found.items() if id and name in remote}
