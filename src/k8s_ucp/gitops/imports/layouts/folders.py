"""Finds apps by folder layout: overlays of environments, charts, plain manifests. Pure.

`<app>/overlays/<environment>`, `overlays/<environment>/<app>`, `environments/<environment>/<app>`
and the like follow one pattern: the segments before and after the environment's are the app.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from shlex import quote

from k8s_ucp.errors import UsageError, some_of
from k8s_ucp.gitops.imports.findings import (
    DEFAULT,
    PARENTS,
    DiscoveredApp,
    NotImportable,
    RefusedApp,
    named_by,
)
from k8s_ucp.gitops.imports.layouts.jsonnet import may_be_objects
from k8s_ucp.gitops.imports.layouts.variants import note_on, variants_among
from k8s_ucp.gitops.imports.templates import refuse_templates
from k8s_ucp.gitops.imports.trees import RepositoryTree, invalid
from k8s_ucp.gitops.manifests.forms import (
    SeveralFolders,
    chart_file,
    find_form,
    manifest_files,
)
from k8s_ucp.gitops.manifests.other_tools import ytt_problem
from k8s_ucp.gitops.manifests.reachable import join, within
from k8s_ucp.gitops.manifests.yaml_text import dump_all

_PLAIN = frozenset(["apiVersion", "kind", "resources", "bases", "metadata"])
"""Keys of a kustomization that change nothing."""
_CONTENT = frozenset(
    [
        *("resources", "bases", "components", "helmCharts"),
        *("generators", "configMapGenerator", "secretGenerator"),
    ]
)
"""Keys that add objects to a kustomization."""
_FOREIGN = re.compile(
    rb"^[ \t]*kind:\s*[\"']?(?:Application|ApplicationSet|AppProject)\b|fluxcd\.io/", re.M
)
"""Objects that belong to no app: Argo CD's own, which are read separately, and those of Flux."""
_FLUX = re.compile(r"(?:^|/)gotk-components\.ya?ml$")
"""The file of Flux itself, which `flux bootstrap` commits."""
_OTHERS = re.compile(rb"argoproj\.io/|fluxcd\.io/|kustomize\.config\.k8s\.io/")
_MEANT = (re.compile(rb"^apiVersion:", re.M), re.compile(rb"^kind:", re.M))
"""Lines of what was meant to be an object."""
_VALUES = re.compile(
    r"(?:values[-._](?P<a>[^/]+?)|(?P<b>[^/]+)-values|values/(?:values[-._])?(?P<c>[^/]+)"
    r"|(?:environments|envs|env)/(?P<d>[^/]+))\.ya?ml|(?P<e>[^/]+)/values\.yaml"
)
"""Usual paths of an environment's values file in a chart."""
_MOST_NOTES = 3
"""Maximum number of values files with a note of their own; examples of a chart can be dozens."""


@dataclass
class _Group:
    """The folders of one app."""

    base: str | None = None
    whole: str | None = None
    """The folder that isn't of an environment and no base; it may include the base."""
    overlays: dict[str, str] = field(default_factory=dict)


def find_layouts(
    tree: RepositoryTree,
    title: str,
    environments: Collection[str],
    folders: Collection[str],
    named: Collection[str] = (),
) -> tuple[list[DiscoveredApp], list[RefusedApp]]:
    """Find apps by layout.

    title: name for an app that is the whole repository. environments: names to recognise. folders:
    those of them that folders can have. named: those that the user named.
    """
    findings: list[DiscoveredApp] = []
    refusals: list[RefusedApp] = []
    found = [
        *_kustomizations(tree, title, folders, named),
        *_charts(tree, title, folders, environments),
        *_plain(tree, title, folders),
    ]
    for each in found:
        if isinstance(each, DiscoveredApp):
            findings.append(each)
        else:
            refusals.append(each)
    return findings, refusals


def place_of(folder: str, environments: Collection[str]) -> tuple[str, str | None]:
    """(folder of the app, environment) of a folder; the environment of a base is "base"."""
    segments = [each for each in folder.split("/") if each]
    for at, each in enumerate(segments):
        after = segments[at + 1 :]
        if each in PARENTS and after:
            return "/".join([*segments[:at], *after[1:]]), after[0]
        if each == "base" or each in environments:
            return "/".join([*segments[:at], *after]), each
    return folder, None


def _kustomizations(
    tree: RepositoryTree, title: str, environments: Collection[str], named: Collection[str]
) -> Iterator[DiscoveredApp | RefusedApp]:
    groups, taken = _groups(tree, environments)
    for app, group in sorted(groups.items()):
        variants = variants_among(group.overlays, named)
        for each in variants:
            del group.overlays[each]
        if group.whole and group.base in tree.taken_in(group.whole) and not group.overlays:
            group.base = group.whole
        if not group.overlays and (group.base is None or group.base in taken):
            continue
        if DEFAULT not in environments:
            group.base = group.overlays.pop(DEFAULT, group.base)
        if group.base is None:
            group.base = _common(tree, group.overlays.values())
        folders = [*group.overlays.values(), *([] if group.base is None else [group.base])]
        if not any(tree.kustomization(each).keys() & _CONTENT for each in folders):
            continue
        files = tree.closure(folders)
        if any(_FOREIGN.search(each) for each in files.values()) or any(map(_FLUX.search, files)):
            continue
        where = group.base if group.base is not None else min(group.overlays.values())
        name = _name(app, title)
        try:
            refuse_templates(files, tree.origin.command(name, where))
        except NotImportable as error:
            yield error.refusal(name, where or ".")
            continue
        yield DiscoveredApp(
            name=name,
            form="kustomize",
            where=(app if group.overlays and app in tree.folders else where) or ".",
            path=group.base,
            overlays=group.overlays,
            environments=tuple(sorted(group.overlays)),
            notes=(note_on(variants),) if variants else (),
        )


def _groups(
    tree: RepositoryTree, environments: Collection[str]
) -> tuple[dict[str, _Group], Collection[str]]:
    """({folder of an app: its base and overlays}, folders that other kustomizations include)."""
    all_folders = sorted(
        each for each in tree.kustomizations if tree.is_searched(each) and not tree.in_chart(each)
    )
    folders = [each for each in all_folders if tree.kustomization(each).get("kind") != "Component"]
    lists = {each for each in folders if _only_lists(tree, each, environments)}
    taken: dict[str, list[str]] = {}
    for each in all_folders:
        for other in tree.taken_in(each) if each not in lists else ():
            taken.setdefault(other, []).append(each)
    groups: dict[str, _Group] = {}
    for each in folders:
        app, environment = place_of(each, environments)
        group = groups.setdefault(app, _Group())
        if each in lists:
            continue
        takers = taken.get(each, [])
        of_app = [place_of(taker, environments)[0] == app for taker in takers]
        if environment == "base" or (environment is None and (any(of_app) or not takers)):
            group.base = group.base if environment is None and group.base is not None else each
            group.whole = each if environment is None else group.whole
        elif environment and (not takers or (environment in environments and all(of_app))):
            group.overlays[environment] = each
    return groups, taken.keys()


def _common(tree: RepositoryTree, overlays: Iterable[str]) -> str | None:
    """The only folder that every overlay includes, wherever it is."""
    found = set.intersection(*(set(tree.taken_in(each)) for each in overlays))
    return found.pop() if len(found) == 1 else None


def _only_lists(
    tree: RepositoryTree,
    folder: str,
    environments: Collection[str],
    way: frozenset[str] = frozenset(),
) -> bool:
    """A kustomization that only includes other apps, or such lists, without changing them.

    way: folders visited so far, since kustomizations may include each other in a cycle.
    """
    content = tree.kustomization(folder)
    if not content or not content.keys() <= _PLAIN:
        return False
    listed = content.get("resources") or content.get("bases")
    found = tree.taken_in(folder)
    if not isinstance(listed, list) or not found or len(found) != len(listed):
        return False
    app, environment = place_of(folder, environments)
    way |= {folder}
    lists = [
        each for each in found if each not in way and _only_lists(tree, each, environments, way)
    ]
    places = {place_of(each, environments) for each in found if each not in lists}
    if any(each[0] == app for each in places):
        return False
    if not places:
        return True
    return environment is None or {each[1] for each in places} == {environment}


def _charts(
    tree: RepositoryTree, title: str, environments: Collection[str], of_values: Collection[str]
) -> Iterator[DiscoveredApp | RefusedApp]:
    """of_values: environments to recognise in names of values files."""
    by_app: dict[str, list[str]] = {}
    for folder in sorted(filter(tree.is_searched, tree.charts - tree.app_charts)):
        app, environment = place_of(folder, environments)
        by_app.setdefault(app if environment not in (None, "base") else folder, []).append(folder)
    for app, folders in sorted(by_app.items()):
        folder = folders[0]
        environment = place_of(folder, environments)[1]
        if folder != app and environment != "base":
            yield RefusedApp(
                _name(app, title),
                folder,
                "each environment has a different chart, but an app can have only one"
                if len(folders) > 1
                else f"its chart is in the folder of an environment ({environment})",
                f"{tree.origin.command(_name(app, title), folder)}, then edit the copies of the "
                "environments in the app repository",
            )
            continue
        try:
            chart = chart_file({"Chart.yaml": tree.read(join(folder, "Chart.yaml"))})
        except UsageError as error:
            yield RefusedApp(
                _name(app, title), folder, error.message, error.next or "correct its Chart.yaml"
            )
            continue
        values, notes = values_of(tree, folder, of_values)
        yield DiscoveredApp(
            name=_name(folder, chart.name),
            form="helm",
            where=join(folder, "Chart.yaml"),
            path=folder,
            values=values,
            environments=tuple(sorted(values)),
            notes=notes,
        )


def values_of(
    tree: RepositoryTree, chart: str, environments: Collection[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """({environment: values file of a chart}, notes on values files of unknown environments)."""
    known = known_environments(tree, environments)
    found: dict[str, str] = {}
    others = []
    for path in tree.below(chart):
        name = path.removeprefix(f"{chart}/" if chart else "")
        if name.startswith(("templates/", "charts/", "ci/")):
            continue
        if match := _VALUES.fullmatch(name):
            word = next(each for each in match.groupdict().values() if each is not None)
            if word in known:
                found.setdefault(word, name)
            elif word != "schema":
                others.append((word, name))
    notes = [
        f"{name} is skipped: {word} is not a known environment (--map {quote(word)}=ENV maps it)"
        for word, name in others
    ]
    if len(notes) > _MOST_NOTES:
        words = some_of([word for word, _ in others], _MOST_NOTES)
        notes = [
            f"{len(others)} values files are skipped, since these are not known environments: "
            f"{words} (--map {quote(others[0][0])}=ENV maps one)"
        ]
    return found, tuple(notes)


def _plain(
    tree: RepositoryTree, title: str, environments: Collection[str]
) -> Iterator[DiscoveredApp | RefusedApp]:
    """Folders with manifests that nothing else includes."""
    covered = set(tree.closure(sorted(tree.kustomizations)))
    folders: dict[str, list[str]] = {}
    broken: dict[str, UsageError] = {}
    for path in tree.names:
        folder = path.rpartition("/")[0]
        if not tree.is_searched(folder) or folder.rpartition("/")[2] == "patches":
            continue
        if path in covered or tree.in_chart(path) or folder in tree.kustomizations:
            continue
        if (path.endswith(".jsonnet") and may_be_objects(tree, path)) or (
            path.endswith((".yaml", ".yml", ".json")) and _is_manifest(tree.read(path), path)
        ):
            folders.setdefault(folder, []).append(path)
        elif path.endswith((".yaml", ".yml")) and (error := _broken(tree.read(path), path)):
            broken.setdefault(folder, error)
    groups: dict[str, dict[str | None, str]] = {}
    for folder in sorted(_tops(tree, folders)):
        app, environment = place_of(folder, environments)
        groups.setdefault(app, {})[environment] = folder
    for app, found in sorted(groups.items()):
        alone = found.keys() <= {None, "base"}
        for folder in list(found.values()) if alone else [min(found.values())]:
            name = _name(folder if alone else app, title)
            try:
                manifests = _manifests(tree, folder)
                _refuse_flux(manifests)
                _refuse_kargo(tree, folder)
                refuse_templates(manifests, tree.origin.command(name, folder))
                if alone:
                    yield plain_finding(tree, name, folder, folder)
                else:
                    yield _with_kustomizations(tree, name, found)
            except NotImportable as error:
                yield error.refusal(name, folder or ".")
            except UsageError as error:
                yield RefusedApp(name, folder or ".", error.message, error.next or "correct it")
    for folder, problem in broken.items():
        # Beside or below readable manifests, it was the error of these.
        if not any(within(folder, one) for found in groups.values() for one in found.values()):
            name, advice = _name(folder, title), problem.next or "correct it"
            yield RefusedApp(name, folder or ".", problem.message, advice)


def _tops(tree: RepositoryTree, folders: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Folders that are one app including their subfolders.

    If there are other apps below such a folder, its subfolders are listed as well. folders:
    {folder: its manifests}.
    """
    waiting = [*folders]
    while waiting:
        below = {
            each: [one for one in waiting if one != each and within(one, each)] for each in waiting
        }
        lower = {one for each, found in below.items() if each for one in found}
        top = [each for each in waiting if each not in lower]
        yield from top
        apps = {
            each
            for each in top
            for other in (*tree.kustomizations, *tree.charts)
            if each and within(other, each)
            if not any(name.endswith(".jsonnet") for name in folders[each])
        }
        waiting = [one for each in apps for one in below[each]]


def _manifests(tree: RepositoryTree, folder: str) -> dict[str, bytes]:
    """The files below a folder that may be manifests, without those of charts."""
    return {
        path: tree.read(path)
        for path in tree.below(folder)
        if path.endswith((".yaml", ".yml", ".json")) and not tree.in_chart(path)
    }


def _refuse_flux(manifests: Mapping[str, bytes]) -> None:
    """Raise NotImportable for Flux objects beside manifests: no cluster here has these kinds."""
    files = [path for path, content in manifests.items() if b"fluxcd.io/" in content]
    if files:
        raise NotImportable(
            f"{files[0]} beside its manifests contains objects of Flux, which are not supported "
            "(the topology uses Argo CD)",
            "move its manifests to a folder of their own, and add that by `ucp app add`",
        )


def _refuse_kargo(tree: RepositoryTree, folder: str) -> None:
    """Raise NotImportable for a folder with a Kargo pipeline and nothing else."""
    contents = {path: tree.read(path) for path in tree.below(folder)}
    # Most folders have nothing of Kargo, and parsing their manifests takes long.
    if not any(b"kargo.akuity.io/" in content for content in contents.values()):
        return
    manifests = [content for path, content in contents.items() if _is_manifest(content, path)]
    if manifests and all(b"kargo.akuity.io/" in each for each in manifests):
        raise NotImportable(
            "it is a Kargo pipeline, which promotes apps but isn't an app",
            "declare the order of environments (promotesFrom in ucp.yaml), then ucp promote APP",
        )


def plain_finding(tree: RepositoryTree, name: str, folder: str, where: str) -> DiscoveredApp:
    """An app from a folder without kustomization and chart. Raises NotImportable."""
    start = f"{folder}/" if folder else ""
    files = {each.removeprefix(start): tree.read(each) for each in tree.below(folder)}
    try:
        form = find_form(files).form
    except SeveralFolders as error:
        here = {name: content for name, content in files.items() if "/" not in name}
        first = next(iter(manifest_files(here)), "FILE")
        raise NotImportable(
            f"its folder also contains other apps ({', '.join(error.folders[:3])}), which are "
            "listed separately",
            f"{tree.origin.command(name, start + first)}, and so on for each file",
        ) from error
    except UsageError as error:
        raise NotImportable(
            error.message, error.next or "select its folder with ucp app add"
        ) from error
    if form == "jsonnet" and not folder and (tree.kustomizations or tree.charts):
        raise NotImportable(
            "its jsonnet is at the top of the repository, beside other apps, and imports may be "
            "anywhere below",
            f"copy what it uses to a folder of its own, then: ucp app add {name} FOLDER",
        )
    return DiscoveredApp(name=name, form=form, where=where or ".", path=folder)


def _with_kustomizations(
    tree: RepositoryTree, name: str, found: Mapping[str | None, str]
) -> DiscoveredApp:
    """Plain manifests for several environments: each folder gets a kustomization.

    Raises NotImportable.
    """
    generated: dict[str, bytes] = {}
    overlays = {}
    base = found.get("base", found.get(None))
    for environment, folder in found.items():
        start = f"{folder}/" if folder else ""
        files = {each.removeprefix(start): tree.read(each) for each in tree.below(folder)}
        if any(each.endswith(".jsonnet") for each in files):
            if b"tanka.dev/" in files.get("spec.json", b""):
                raise NotImportable(
                    "Tanka renders its environments",
                    "commit what `tk export` writes, and add that by `ucp app add`",
                )
            raise NotImportable(
                "each environment has different jsonnet, but an app can have only one",
                tree.origin.command(name, folder),
            )
        content = {"resources": manifest_files(files)}
        generated[join(folder, "kustomization.yaml")] = dump_all([content]).encode()
        if environment not in (None, "base"):
            overlays[str(environment)] = folder
    return DiscoveredApp(
        name=name,
        form="kustomize",
        where=min(found.values()),
        path=base,
        overlays=overlays,
        environments=tuple(sorted(overlays)),
        generated=generated,
        notes=("plain manifests for each environment: each gets a kustomization",),
    )


def _is_manifest(content: bytes, path: str) -> bool:
    if b"apiVersion" not in content or b"kind" not in content or _OTHERS.search(content):
        return False
    try:
        return bool(manifest_files({path.rpartition("/")[2]: content}))
    except UsageError:
        return False


def _broken(content: bytes, path: str) -> UsageError | None:
    """Why a file that was meant to be a manifest is not one: it isn't valid YAML, or a template."""
    if problem := ytt_problem({path: content}):
        return problem
    if not all(each.search(content) for each in _MEANT) or _OTHERS.search(content):
        return None
    return invalid(content, path)


def _name(folder: str, title: str) -> str:
    return named_by(folder, title)[1]


def known_environments(tree: RepositoryTree, names: Iterable[str]) -> frozenset[str]:
    """The names and those of folders below `overlays` and the like."""
    found = set(names)
    for folder in tree.folders:
        segments = folder.split("/")
        for parent, name in itertools.pairwise(segments):
            if parent in PARENTS and name != "base" and not tree.in_chart(folder):
                found.add(name)
    return frozenset(found)
