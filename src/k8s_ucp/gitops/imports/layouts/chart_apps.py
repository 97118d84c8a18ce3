"""Apps of Helm charts, with values files for environments. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator
from shlex import quote

from k8s_ucp.errors import UsageError, some_of
from k8s_ucp.gitops.imports.findings import PARENTS, DiscoveredApp, RefusedApp
from k8s_ucp.gitops.imports.layouts.app_folders import app_and_environment, name_of
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.forms import chart_file
from k8s_ucp.gitops.manifests.reachable import join
from k8s_ucp.gitops.manifests.yaml_text import OBJECT

_VALUES = re.compile(
    r"(?:values[-._](?P<a>[^/]+?)|(?P<b>[^/]+)-values|values/(?:values[-._])?(?P<c>[^/]+)"
    r"|(?:environments|envs|env)/(?P<d>[^/]+))\.ya?ml|(?P<e>[^/]+)/values\.yaml"
)
"""Usual paths of an environment's values file in a chart."""
_MOST_NOTES = 3
"""Maximum number of values files with a note of their own; examples of a chart can be dozens."""


def find_charts(
    tree: RepositoryTree, title: str, environments: Collection[str], of_values: Collection[str]
) -> Iterator[DiscoveredApp | RefusedApp]:
    """of_values: environments to recognize in names of values files."""
    by_app: dict[str, list[str]] = {}
    for folder in sorted(filter(tree.is_searched, tree.charts - tree.app_charts)):
        app, environment = app_and_environment(folder, environments)
        by_app.setdefault(app if environment not in (None, "base") else folder, []).append(folder)
    known = known_environments(tree, of_values)
    outside = _yaml_outside(tree)
    for app, folders in sorted(by_app.items()):
        folder = folders[0]
        environment = app_and_environment(folder, environments)[1]
        if folder != app and environment != "base":
            yield RefusedApp(
                name_of(app, title),
                folder,
                "each environment has a different chart, but an app can have only one"
                if len(folders) > 1
                else f"its chart is in the folder of an environment ({environment})",
                f"{tree.origin.command(name_of(app, title), folder)}, then edit the copies of the "
                "environments in the app repository",
            )
            continue
        if folder in tree.kustomizations:
            command = tree.origin.command(name_of(folder, title), folder)
            yield RefusedApp(
                name_of(folder, title),
                folder,
                "its folder has a chart and a kustomization, of which Argo CD builds the latter",
                f"{command}, with --as helm for the chart",
            )
            continue
        try:
            chart = chart_file({"Chart.yaml": tree.read(join(folder, "Chart.yaml"))})
        except UsageError as error:
            yield RefusedApp(
                name_of(app, title), folder, error.message, error.next or "correct its Chart.yaml"
            )
            continue
        values, notes = values_of(tree, folder, of_values)
        alone, names = len(by_app) == 1, {chart.name, folder.rpartition("/")[2]}
        if not values and (beside := _values_beside(tree, names, outside, known, alone=alone)):
            command = tree.origin.command(name_of(folder, chart.name), folder)
            notes += (
                f"{some_of(beside, _MOST_NOTES)} may be its values, which are not imported: "
                f"{command} --values ENV=FILE",
            )
        yield DiscoveredApp(
            name=name_of(folder, chart.name),
            form="helm",
            where=join(folder, "Chart.yaml"),
            path=folder,
            values=values,
            environments=tuple(sorted(values)),
            notes=notes,
        )


def _values_beside(
    tree: RepositoryTree,
    names: Collection[str],
    files: Iterable[str],
    environments: Collection[str],
    *,
    alone: bool,
) -> list[str]:
    """Files outside of charts that may be the values of a chart for an environment.

    Their paths have the names of both, such as `environments/prod/web.yaml`. names: of the chart
    and its folder. alone: there is no other chart, so that they may be missing.
    """
    return [
        each
        for each in files
        if _names_both(each, names, environments, alone=alone)
        and not OBJECT.search(tree.read(each))
    ]


def _names_both(
    path: str, names: Collection[str], environments: Collection[str], *, alone: bool
) -> bool:
    *folders, file = path.rpartition(".")[0].split("/")
    name = file.removeprefix("values-").removesuffix("-values")
    words = {*folders, name}
    if any(name in (f"{a}-{b}", f"{b}-{a}") for a in names for b in environments):
        return True
    is_of_chart = not words.isdisjoint(names) or (alone and file.startswith("values"))
    return is_of_chart and not words.isdisjoint(environments)


def _yaml_outside(tree: RepositoryTree) -> list[str]:
    """YAML files outside of charts and kustomizations."""
    return [
        each
        for each in tree.names
        if each.endswith((".yaml", ".yml")) and tree.is_searched(each) and not tree.in_chart(each)
        if each.rpartition("/")[0] not in tree.kustomizations
    ]


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


def known_environments(tree: RepositoryTree, names: Iterable[str]) -> frozenset[str]:
    """The names and those of folders below `overlays` and the like."""
    found = set(names)
    for folder in tree.folders:
        segments = folder.split("/")
        for parent, name in itertools.pairwise(segments):
            if parent in PARENTS and name != "base" and not tree.in_chart(folder):
                found.add(name)
    return frozenset(found)
