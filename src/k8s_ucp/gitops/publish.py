"""Brings a render into the two repositories: merged, committed, pushed, and seen in the clones.

A rerun with nothing new writes nothing: the render's tree id is compared with the last one's.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from k8s_ucp import __version__
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.clones import fast_forward, make_clone, make_remote
from k8s_ucp.gitops.git_environment import Credential
from k8s_ucp.gitops.git_failures import Rejected
from k8s_ucp.gitops.merge import Choices, Known, MergeConflict, Merged, merge
from k8s_ucp.gitops.objects import Change, Entry, NewCommit, tree_id
from k8s_ucp.gitops.render import Rendered
from k8s_ucp.gitops.repository import RENDERED, Repository, Update, merge_text
from k8s_ucp.topology import Topology
from k8s_ucp.workspace import GitopsFolder

ATTEMPTS = 8
"""Pushes that are tried while others push to the same repository."""

_OVERLAY = re.compile(r"clusters/overlays/([^/]+)/")


@dataclass(frozen=True)
class Addresses:
    """Where the repositories are, as git and Argo CD read them."""

    core: str
    apps: str


@dataclass(frozen=True)
class Published:
    """One repository after a publish."""

    name: str
    """core | apps."""
    clone: Repository
    commit: str
    """The tip of the branch: the render with everything people committed."""
    changed: bool
    """This publish pushed something."""
    note: str | None = None
    """What a person should know about the working clone."""

    def read(self, under: str = "") -> dict[str, bytes]:
        """Files at the tip, or below one folder: {path: content}."""
        return self.clone.read(self.commit, under)

    def environments(self) -> list[str]:
        """Environments with an overlay in the core repository, known to ucp.yaml or not."""
        paths = self.clone.listing(self.commit, "clusters/overlays")
        return sorted({found[1] for path in paths if (found := _OVERLAY.match(path))})


@dataclass(frozen=True)
class PublishResult:
    core: Published
    apps: Published

    @property
    def changed(self) -> bool:
        return self.core.changed or self.apps.changed


@dataclass(frozen=True)
class Credentials:
    """What the repositories ask for; None where the user's own git settings do."""

    core: Credential | None = None
    apps: Credential | None = None


@dataclass(frozen=True)
class Settled:
    """Files for which a person has said which side counts, by repository."""

    core: Choices = field(default_factory=Choices)
    apps: Choices = field(default_factory=Choices)


def addresses(topology: Topology, folder: GitopsFolder) -> Addresses:
    """Addresses of the repositories; those of local ones are file:// with escaped characters."""
    git = topology.spec.git
    if git.provider == "local":
        return Addresses(folder.core_remote.as_uri(), folder.apps_remote.as_uri())
    if not git.core or not git.apps:
        raise UcpError(
            "git.provider is url, but git.core or git.apps has no address",
            next="write both addresses into ucp.yaml",
        )
    return Addresses(git.core, git.apps)


def publish(
    topology: Topology,
    rendered: Rendered,
    folder: GitopsFolder,
    *,
    credentials: Credentials | None = None,
    settled: Settled | None = None,
) -> PublishResult:
    """Bring a render into both repositories, side by side.

    Local remotes and clones are made where absent. Raises MergeConflict (nothing is written to
    that repository) and the errors of the door to git.
    """
    urls = addresses(topology, folder)
    credentials, settled = credentials or Credentials(), settled or Settled()
    git = topology.spec.git
    known = Known(
        frozenset(each.name for each in topology.spec.environments),
        frozenset(each.name for each in topology.spec.apps),
    )
    if git.provider == "local":
        make_remote(folder.core_remote, branch=git.branch)
        make_remote(folder.apps_remote, branch=git.branch)

    def one(name: str, files: dict[str, bytes]) -> Published:
        clone = make_clone(
            getattr(folder, name),
            getattr(urls, name),
            branch=git.branch,
            credential=getattr(credentials, name),
        )
        return publish_repository(
            name,
            clone,
            files,
            branch=git.branch,
            known=known,
            message=f"Render topology {topology.name}\n\nWritten by k8s-ucp {__version__}.\n",
            choices=getattr(settled, name),
        )

    with ThreadPoolExecutor(max_workers=2) as pool:
        core = pool.submit(one, "core", rendered.core)
        apps = pool.submit(one, "apps", rendered.apps)
        return PublishResult(core.result(), apps.result())


def publish_repository(
    name: str,
    clone: Repository,
    files: Mapping[str, bytes],
    *,
    branch: str,
    known: Known,
    message: str,
    choices: Choices | None = None,
) -> Published:
    """Bring the files of a render into one repository; see `publish`."""
    for attempt in range(ATTEMPTS):
        remote = _look(clone, branch)
        tip, last = remote.get(f"refs/heads/{branch}"), remote.get(RENDERED)
        if tip and last and clone.tree_of(last) == tree_id(files, length=len(last)):
            note = None
            if clone.resolve("HEAD") is None:
                note = fast_forward(clone, branch=branch)
            return Published(name, clone, tip, False, note)
        try:
            commit, changed = _bring(name, clone, files, tip, last, branch, known, message, choices)
        except Rejected:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(random.uniform(0, 0.05 * 2**attempt))  # noqa: S311 (jitter)
            continue
        return Published(name, clone, commit, changed, fast_forward(clone, branch=branch))
    raise AssertionError("not reached")


def _look(clone: Repository, branch: str) -> dict[str, str]:
    """The branch and the last render as the remote has them, with their objects here.

    A remote that lost its branches gets back what this clone has seen of them.
    """
    main, tracked = f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"
    remote, here = clone.remote_refs(), clone.refs()
    if not any(name.startswith("refs/heads/") for name in remote) and tracked in here:
        back = [Update(main, here[tracked])]
        if RENDERED in here and RENDERED not in remote:
            back.append(Update(RENDERED, here[RENDERED], expect=""))
        clone.push(back)
        return {each.ref: each.commit for each in back}
    moved = remote.get(main) not in (None, here.get(tracked))
    if moved or remote.get(RENDERED) not in (None, here.get(RENDERED)):
        clone.fetch()
        # Not what the remote has by now: its newest objects may not be here.
        here = clone.refs()
    found = {main: here.get(tracked), RENDERED: here.get(RENDERED)}
    return {name: id for name, id in found.items() if id and name in remote}


def _bring(
    name: str,
    clone: Repository,
    files: Mapping[str, bytes],
    tip: str | None,
    last: str | None,
    branch: str,
    known: Known,
    message: str,
    choices: Choices | None,
) -> tuple[str, bool]:
    """Merge, commit and push: (new tip, whether the branch moved). Raises Rejected."""
    before = clone.listing(last) if last else {}
    there = clone.listing(tip) if tip else {}
    merged = _merge(files, before if tip else {}, there, clone, known, choices)
    if merged.conflicts:
        raise MergeConflict(name, merged.conflicts)
    render: dict[str, Change] = dict.fromkeys(before.keys() - files.keys())
    render |= files
    commits = [NewCommit(message, render, (last,) if last else ())]
    if merged.changes or not tip:
        modes = {path: there[path].mode for path in merged.changes if path in there}
        commits.append(NewCommit(message, merged.changes, (tip,) if tip else (), modes))
    written = clone.write_commits(commits)
    # The branch first: where a remote can't take both at once, a merge against an older render
    # does no harm, one against a render that never arrived would.
    updates = [Update(RENDERED, written[0], expect=last or "")]
    if len(written) > 1:
        updates.insert(0, Update(f"refs/heads/{branch}", written[1]))
    clone.push(updates)
    return (written[1], True) if len(written) > 1 else (tip or "", False)


def _merge(
    files: Mapping[str, bytes],
    before: Mapping[str, Entry],
    there: Mapping[str, Entry],
    clone: Repository,
    known: Known,
    choices: Choices | None,
) -> Merged:
    choices = choices or Choices()
    # A link or a submodule in place of a file is somebody's decision.
    special = {path for path, entry in there.items() if not entry.mode.startswith("100")}
    return merge(
        {path: entry.id for path, entry in before.items()},
        {path: entry.id for path, entry in there.items()},
        files,
        known=known,
        contents=clone.contents,
        merge_text=merge_text,
        choices=Choices(choices.ours | special, choices.theirs - special),
    )


def settle(
    ours: list[str], theirs: list[str], names: tuple[str, str] = ("core", "apps")
) -> Settled:
    """Choices as they are typed: `PATH`, for both repositories, or `core:PATH`, for one."""

    def of(name: str, paths: list[str]) -> frozenset[str]:
        prefixes = tuple(f"{each}:" for each in names)
        mine = [each.removeprefix(f"{name}:") for each in paths if each.startswith(f"{name}:")]
        both = [each for each in paths if not each.startswith(prefixes)]
        return frozenset(mine + both)

    core, apps = (Choices(of(name, ours), of(name, theirs)) for name in names)
    return Settled(core, apps)


def render_to(folder: Path, rendered: Rendered) -> list[Path]:
    """Write a render below `folder` as `core/` and `apps/`, and nothing else: `ucp render --out`.

    Returns the files, sorted. Raises UcpError where that is impossible.
    """
    written = []
    for name in ("core", "apps"):
        for path, content in getattr(rendered, name).items():
            target = folder / name / path
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            except OSError as error:
                raise UcpError(f"can't write {target}: {error.strerror}") from error
            written.append(target)
    return sorted(written)
