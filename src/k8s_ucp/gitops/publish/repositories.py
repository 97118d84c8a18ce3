"""Publishes a render to both repositories: merges, commits, pushes, updates the clones.

A rerun without changes writes nothing: the tree id of the render is compared with that of the last
one. Both repositories are merged before either is pushed, so that a conflict in one of them leaves
both unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from k8s_ucp import __version__
from k8s_ucp.errors import UcpError, UsageError, advise_space
from k8s_ucp.git.clones import fast_forward, make_clone, make_remote
from k8s_ucp.git.environment import Credential
from k8s_ucp.git.push_loop import push_until_accepted
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.publish.addresses import addresses
from k8s_ucp.gitops.publish.merge import EMPTY_SCOPE, MOVED, Choices, MergeConflict, Scope
from k8s_ucp.gitops.publish.target import Prepared, PublishTarget, Pushed
from k8s_ucp.gitops.render.repositories import Rendered
from k8s_ucp.topology import Topology
from k8s_ucp.topology.problems import hint
from k8s_ucp.workspace import GitopsFolder

SETS = "applications/"
"""Folder of the core repository, and of the app repository in older topologies."""

_OVERLAY = re.compile(r"clusters/overlays/([^/]+)/")
_BASE = re.compile(rb"^ *- *\.\./\.\./base/([a-z]+)", re.MULTILINE)
"""A base of a cluster, whose name begins with the provider's: gke-autopilot, gke-network."""


@dataclass(frozen=True)
class Published:
    """One repository after a publish."""

    name: str
    """core | apps."""
    clone: Repository
    commit: str
    """The tip of the branch: the render, merged with everything that users committed."""
    changed: bool
    """This publish pushed a commit."""
    note: str | None = None
    """Messages for the user about the working clone and about what was not applied."""
    _files: dict[tuple[str, ...], dict[str, bytes]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Cache: a commit doesn't change, and each read runs git twice."""

    def read(self, *under: str) -> dict[str, bytes]:
        """Files at the tip, optionally only below some folders: {path: content}."""
        if under not in self._files:
            self._files[under] = self.clone.read(self.commit, *under)
        return dict(self._files[under])

    def environments(self) -> list[str]:
        """Environments with an overlay in the core repository, even if ucp.yaml lacks them."""
        paths = self.clone.listing(self.commit, "clusters/overlays")
        return sorted({found[1] for path in paths if (found := _OVERLAY.match(path))})

    def providers(self) -> dict[str, str]:
        """{environment: provider of its cluster}, by the bases of the overlays."""
        return {
            name[1]: base[1].decode()
            for path, content in self.read("clusters/overlays").items()
            if (name := _OVERLAY.match(path)) and (base := _BASE.search(content))
        }


@dataclass(frozen=True)
class PublishResult:
    """What was pushed to both repositories."""

    core: Published
    apps: Published

    @property
    def changed(self) -> bool:
        return self.core.changed or self.apps.changed


@dataclass(frozen=True)
class RepositoryCredentials:
    """Credentials of both repositories; None: git's own configuration."""

    core: Credential | None = None
    apps: Credential | None = None


@dataclass(frozen=True)
class Resolutions:
    """How the user resolved conflicts (--ours, --theirs), by repository."""

    core: Choices = field(default_factory=Choices)
    apps: Choices = field(default_factory=Choices)


@dataclass(frozen=True)
class Publication:
    """A render, and how to merge it into both repositories."""

    topology: Topology
    rendered: Rendered
    folder: GitopsFolder
    credentials: RepositoryCredentials = field(default_factory=RepositoryCredentials)
    resolutions: Resolutions = field(default_factory=Resolutions)
    subject: str = ""
    """Subject of the commits."""
    removed: Scope = EMPTY_SCOPE
    """Environments and apps to delete, including files that users added."""
    merged_into_apps: Callable[[Repository], Sequence[str]] = lambda _: ()
    """Further parents of the app repository's new commit."""


def publish(
    publication: Publication,
    *,
    before_push: Callable[[], None] = lambda: None,
    whole: bool = False,
    go_on: Callable[[], None] = lambda: None,
) -> PublishResult:
    """Merge a render into both repositories, side by side, and push.

    before_push: called once both can be merged. whole: if the second repository rejects its commit,
    the first one is reverted; no clone is touched then. go_on: called before each push, raises to
    cancel. Missing local remotes and clones are created. Raises MergeConflict (nothing is pushed)
    and the errors of the door to git.
    """
    prepared = prepare(publication)
    refuse_unmergeable(*prepared, edit=whole)
    go_on()
    before_push()
    # The core repository first: the app repository's hook reads its mirrors.
    core = _land(prepared[0], edit=whole)
    try:
        go_on()
        apps = _land(prepared[1], edit=whole)
    except UcpError as error:
        if not whole:
            _settle(core)
        elif core.pushed:
            _revert(core, core.pushed, error)
        raise
    return PublishResult(_settle(core), _settle(apps))


def prepare(publication: Publication, *, scratch: Path | None = None) -> list[Prepared]:
    """Merge a render with both repositories, side by side; nothing is pushed.

    scratch: an empty folder to work in; the clones and local remotes stay as they are then.
    """
    topology, folder = publication.topology, publication.folder
    rendered, removed = publication.rendered, publication.removed
    credentials, resolutions = publication.credentials, publication.resolutions
    urls = addresses(topology, folder)
    git = topology.spec.git
    local = git.provider == "local"
    subject = publication.subject or f"Render topology {topology.name}"

    def prepare_one(name: str) -> Prepared:
        remote, url = folder.root / f"{name}.git", getattr(urls, name)
        if local and scratch and not remote.exists():
            url = make_remote(scratch / f"{name}.git", branch=git.branch).folder.as_uri()
        elif local and not scratch:
            make_remote(remote, branch=git.branch)
        clone = make_clone(
            (scratch or folder.root) / name,
            url,
            branch=git.branch,
            credential=getattr(credentials, name),
        )
        target = PublishTarget(
            name=name,
            clone=clone,
            files=getattr(rendered, name),
            branch=git.branch,
            scope=Scope(
                frozenset(each.name for each in topology.spec.environments) | removed.environments,
                frozenset(each.name for each in topology.spec.apps) | removed.apps,
            ),
            message=f"{subject}\n\nWritten by k8s-ucp {__version__}.\n",
            choices=replace(getattr(resolutions, name), removed=removed),
            more_parents=publication.merged_into_apps if name == "apps" else lambda _: (),
        )
        return target.prepare()

    with ThreadPoolExecutor(max_workers=2) as pool:
        prepared = list(pool.map(prepare_one, ("core", "apps")))
    _refuse_unknown_files(prepared)
    return prepared


def _refuse_unknown_files(prepared: Iterable[Prepared]) -> None:
    """Refuse --ours and --theirs with a file that no render has, such as a mistyped path.

    Raises UsageError.
    """
    chosen: set[str] = set()
    known: set[str] = set()
    for each in prepared:
        chosen |= each.target.choices.ours | each.target.choices.theirs
        known |= each.before.keys() | each.target.files.keys()
    for path in sorted(chosen - known):
        raise UsageError(
            f"--ours or --theirs {path}: ucp renders no such file to either repository; "
            f"{hint(path, known)}nothing was pushed",
            next="ucp start; on a conflict it prints the flag with the file",
        )


def refuse_unmergeable(core: Prepared, apps: Prepared, *, edit: bool = False) -> None:
    """edit: of MergeConflict.

    Raises MergeConflict, and UcpError if ApplicationSets that users added would be lost."""
    conflicts = {
        each.target.name: each.merged.conflicts for each in (core, apps) if each.merged.conflicts
    }
    if conflicts:
        raise MergeConflict(conflicts, edit=edit)
    if left := left_behind(core, apps):
        raise UcpError(
            "the app repository contains ApplicationSets, which are now read from "
            "the core repository only; their Applications would be deleted: "
            f"{', '.join(left)}",
            next=(
                f"move them to {SETS} of the core repository by a commit, or delete "
                "them, then run the command again"
            ),
        )


def left_behind(core: Prepared, apps: Prepared) -> list[str]:
    """ApplicationSets that users added in the app repository, which the core repository now has.

    Argo CD reads ApplicationSets only from there, and would prune the ones that are missing.
    """
    if apps.same or not any(path in apps.before for path in MOVED):
        return []
    moved = core.target.clone.listing(core.tip, SETS) if core.tip else {}
    return sorted(
        path
        for path in apps.there.keys() - apps.before.keys() - moved.keys()
        if path.startswith(SETS) and path.endswith((".yaml", ".yml", ".json"))
    )


@dataclass(frozen=True)
class _Landed:
    prepared: Prepared
    pushed: Pushed | None


def _land(prepared: Prepared, *, edit: bool) -> _Landed:
    """Push the merge; after a concurrent push, merge again. Raises MergeConflict."""
    target, first = prepared.target, [prepared]

    def attempt(_: int) -> _Landed:
        now = first.pop() if first else target.prepare()
        if now.merged.conflicts:
            raise MergeConflict({target.name: now.merged.conflicts}, edit=edit)
        return _Landed(now, None if now.same else now.push())

    return push_until_accepted(attempt)


def _settle(landed: _Landed) -> Published:
    """Update the working clone to what was pushed."""
    target, pushed = landed.prepared.target, landed.pushed
    clone, note = target.clone, None
    # Recreate a deleted work tree, but don't touch one in use without need.
    if pushed or clone.resolve("HEAD") is None:
        note = fast_forward(clone, branch=target.branch)
    tip = pushed.tip if pushed else landed.prepared.tip or ""
    notes = "; ".join(each for each in (note, *landed.prepared.merged.notes) if each)
    return Published(target.name, clone, tip, bool(pushed and pushed.moved), notes or None)


def _revert(landed: _Landed, pushed: Pushed, reason: UcpError) -> None:
    """Revert one repository's push; if that fails too, add it to the message of `reason`."""
    target = landed.prepared.target
    try:
        landed.prepared.revert(pushed)
    except UcpError as error:  # Also a deadline.
        reason.message += (
            f"\n  the {target.name} repository was already changed, and reverting it "
            f"failed: {error.message}"
        )
        reason.next = "ucp start restores both repositories to the state of ucp.yaml"


def resolutions_from(ours: list[str], theirs: list[str]) -> Resolutions:
    """Parse choices: `PATH` for both repositories, or `core:PATH` for one."""

    names = ("core", "apps")

    def of(name: str, paths: list[str]) -> frozenset[str]:
        prefixes = tuple(f"{each}:" for each in names)
        own = [each.removeprefix(f"{name}:") for each in paths if each.startswith(f"{name}:")]
        both = [each for each in paths if not each.startswith(prefixes)]
        return frozenset(own + both)

    core, apps = (Choices(of(name, ours), of(name, theirs)) for name in names)
    return Resolutions(core, apps)


def render_to(folder: Path, rendered: Rendered) -> list[Path]:
    """Write a render below `folder` as `core/` and `apps/`, and nothing else: `ucp render --out`.

    In a clone of others, links could lead to any file: they are replaced, and folders refused.
    Returns the files, sorted. Raises UcpError if a file can't be written.
    """
    written, root = [], folder.resolve()
    for name in ("core", "apps"):
        for path, content in getattr(rendered, name).items():
            target = folder / name / path
            try:
                if not target.parent.resolve().is_relative_to(root):
                    raise UcpError(
                        f"failed to write {target}: a symbolic link points outside of {folder}",
                        next="delete the link, or name another folder with --out",
                    )
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.is_symlink():
                    target.unlink()
                target.write_bytes(content)
            except OSError as error:
                raise UcpError(
                    f"failed to write {target}: {error.strerror}",
                    next=advise_space(error) or "name another folder with --out",
                ) from error
            written.append(target)
    return sorted(written)
