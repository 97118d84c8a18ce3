"""Maps a found app to the topology's environments, as arguments for adding it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.findings import DiscoveredApp, NotImportable
from k8s_ucp.gitops.manifests.reachable import (
    FolderTree,
    join,
    moved_up,
    refuse_submodules,
    taken_in,
)

_NO_VALUES = b"# Values of this environment; there are none yet.\n"


@dataclass(frozen=True)
class ImportRequest:
    """What to add for an app.

    path: in the tree or the remote repository. files: files of the tree to use instead of the whole
    folder, relative to path.
    """

    path: str
    overlays: Mapping[str, str] = field(default_factory=dict)
    """{environment of the topology: folder below path}."""
    values: Mapping[str, str | bytes] = field(default_factory=dict)
    """{environment of the topology: file in the chart, or values}."""
    files: Mapping[str, bytes] | None = None
    folders: tuple[str, ...] = ()
    """Folders in the tree whose files are used; empty: all files below path."""
    version: str | None = None
    """Of a chart with different versions: the version in the last environment."""
    notes: tuple[str, ...] = ()


def unmapped(
    findings: Sequence[DiscoveredApp], ours: Sequence[str], mapping: Mapping[str, str | None]
) -> list[str]:
    """Environments of the repository that aren't mapped to one of the topology."""
    environments = {name for each in findings for name in each.environments}
    return sorted(environments - set(ours) - mapping.keys())


def mapped(
    mapping: Mapping[str, str | None], ours: Sequence[str], theirs: Collection[str]
) -> dict[str, str]:
    """{environment here: environment there} of one app; equal names match unless mapped otherwise.

    theirs: the app's environments; other mappings don't apply to it. Raises NotImportable if two of
    them are mapped to the same one.
    """
    mapped_from: dict[str, str] = {}
    for other, here in mapping.items():
        if here is None or other not in theirs:
            continue
        if here in mapped_from:
            raise NotImportable(
                f"{mapped_from[here]} and {other} are both mapped to {here}",
                f"--skip-env {quote(other)}",
            )
        mapped_from[here] = other
    return {name: name for name in ours if name not in mapping} | mapped_from


def request_of(
    finding: DiscoveredApp,
    folder_tree: FolderTree,
    mapping: Mapping[str, str],
    ours: Sequence[str],
    *,
    pinned: bool,
) -> ImportRequest:
    """The arguments for adding an app.

    mapping: {environment here: environment there}. pinned: the files stay in their repository and
    are read from there. Raises NotImportable.
    """
    common = [here for here in ours if mapping.get(here) not in finding.environments]
    if finding.environments and len(common) == len(ours) and not _has_defaults(finding):
        raise NotImportable(
            f"it is only on {', '.join(finding.environments)}, none of which is imported",
            f"--map {quote(finding.environments[0])}=ENV instead of --skip-env, if you want it "
            f"(ENV: {', '.join(ours)})",
        )
    if not finding.environments:
        common = []
    lacks = "overlay of its own and uses the common one"
    if finding.form == "helm":
        of = "common ones" if "" in finding.values else "defaults of its chart"
        lacks = f"values of its own and uses the {of}"
    notes = tuple(f"{here} has no {lacks}" for here in common)
    values = _values(finding, mapping, ours)
    if finding.remote or finding.form != "kustomize":
        overlays = _overlays(finding, mapping, ours) if finding.overlays else {}
        path = finding.path or ""
        start = f"{path}/" if path else ""
        relative = {here: each.removeprefix(start) for here, each in overlays.items()}
        version, more = _version(finding, mapping, ours)
        return ImportRequest(path, relative, values, notes=(*notes, *more), version=version)
    return _of_kustomization(finding, folder_tree, mapping, ours, notes, pinned=pinned)


def _values(
    finding: DiscoveredApp, mapping: Mapping[str, str], ours: Sequence[str]
) -> dict[str, str | bytes]:
    """{environment here: values file in the chart, or values}."""
    values: dict[str, str | bytes] = {}
    for here in ours:
        content = finding.values.get(mapping.get(here, ""), finding.values.get(""))
        if content is None and here in finding.values:
            # Their file with this name belongs to an unmapped environment, and would be used
            # otherwise.
            content = _NO_VALUES
        if content is not None:
            values[here] = content
    return values


def _of_kustomization(
    finding: DiscoveredApp,
    folder_tree: FolderTree,
    mapping: Mapping[str, str],
    ours: Sequence[str],
    notes: tuple[str, ...],
    *,
    pinned: bool,
) -> ImportRequest:
    if finding.generated and pinned:
        raise NotImportable(
            f"{min(finding.generated)} has to be generated, but a commit can't be changed",
            "clone the repository, then `ucp app import` with the folder of the clone",
        )
    if not finding.overlays and not finding.generated:
        return ImportRequest(finding.path or "", notes=notes)
    overlays = _overlays(finding, mapping, ours)
    with_generated = replace(
        folder_tree, read=lambda path: finding.generated.get(path) or folder_tree.read(path)
    )
    first, files = _taken(with_generated, overlays)
    path = next(iter(overlays.values()))
    root = path.removesuffix(first).strip("/")
    start = f"{root}/" if root else ""
    relative = {here: each.removeprefix(start).strip("/") for here, each in overlays.items()}
    relative = {here: "" if each == root else each for here, each in relative.items()}
    relative = {here: each for here, each in relative.items() if each}
    return ImportRequest(
        root,
        {here: each for here, each in relative.items() if each != f"overlays/{here}"},
        files=None if pinned else files,
        folders=tuple(sorted({join(root, each.rpartition("/")[0]) for each in files})),
        notes=notes,
    )


def _has_defaults(finding: DiscoveredApp) -> bool:
    """A chart of the repository that nothing deploys: its files for other environments are extra.

    Where an Application or a release deploys it, no other environment has it.
    """
    return finding.form == "helm" and finding.where == join(finding.path or "", "Chart.yaml")


def _version(
    finding: DiscoveredApp, mapping: Mapping[str, str], ours: Sequence[str]
) -> tuple[str | None, tuple[str, ...]]:
    """(initial version of an app, notes with commands that promote environments to theirs)."""
    versions = finding.versions
    own = {here: mapping.get(here, "") for here in ours}
    named = {here: other if other in versions else "" for here, other in own.items()}
    versions_here = {here: versions[other] for here, other in named.items() if other in versions}
    if not versions_here:
        return None, ()
    last = next(reversed(versions_here))
    first = versions_here[last]
    begins = f"version {first or '(newest)'} of {last}"
    return first, tuple(
        f"{here} has version {version or '(newest)'} of the chart and begins with {begins}; then: "
        f"ucp promote {finding.name} --env {here} --chart-version {_exact(version)}"
        for here, version in versions_here.items()
        if version != first
    )


def _exact(version: str | None) -> str:
    """A version as a promotion accepts it; for a range, the user must insert the version."""
    return (
        version
        if version and re.fullmatch(r"v?[0-9]+(\.[0-9]+)*([-+][\w.+-]+)?", version)
        else "VERSION"
    )


def _taken(folder_tree: FolderTree, overlays: Mapping[str, str]) -> tuple[str, dict[str, bytes]]:
    """(first folder, files) relative to the deepest folder that contains all of them."""
    folders = list(overlays.values())
    found = taken_in(folder_tree, folders)
    try:
        refuse_submodules(folder_tree, found)
    except UsageError as error:
        raise NotImportable(error.message, error.next or "") from error
    if not found:
        raise NotImportable(f"{folders[0]} holds nothing", "correct the repository")
    return moved_up(found, folders[0])


def _overlays(
    finding: DiscoveredApp, mapping: Mapping[str, str], ours: Sequence[str]
) -> dict[str, str]:
    """{environment here: folder of its kustomization}. Raises NotImportable."""
    found = {}
    base = None if finding.remote else finding.path
    for here in ours:
        folder = finding.overlays.get(mapping.get(here, ""), base)
        if folder is None:
            available = ", ".join(finding.overlays)
            advice = f"write an overlay for {here} in that repository"
            # Mapping one that is used for another environment would only leave that without one.
            if unused := finding.overlays.keys() - mapping.values():
                like = min(unused, key=lambda name: (not here.startswith(name[:4]), name))
                advice = f"--map {quote(like)}={here}, or {advice}"
            raise NotImportable(
                f"it has nothing for the environment {here}, only for {available}", advice
            )
        found[here] = folder
    return found
