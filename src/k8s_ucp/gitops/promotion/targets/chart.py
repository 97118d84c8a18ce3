"""The files of a chart in an environment's folder, replaced as a whole on promotion. Pure.

The environment's own files are kept: values files, `.argocd-source.yaml` and `.promotion.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from k8s_ucp.gitops.manifests.value_edit import text_at
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder
from k8s_ucp.gitops.promotion.targets.helm import CHART_FILE, value_files

_OWN = (".argocd-source", ".promotion.yaml")


ChartKey = tuple[str, str, str]
"""(app, name of the chart, version)."""


@dataclass(frozen=True)
class ChartContent:
    """A chart's files in one version. kept: names of environments' values files, never replaced."""

    version: str
    files: Mapping[str, bytes]
    kept: frozenset[str] = frozenset()


class ChartMissing(NotEditable):
    """A chart version that must be fetched first."""

    def __init__(self, app: str, chart: str, version: str, repo: str) -> None:
        self.app, self.chart, self.version, self.repo = app, chart, version, repo
        self.key: ChartKey = (app, chart, version)
        super().__init__(
            f"no environment of {app} has the chart {chart} {version}",
            next=f"--from an environment that has it, or see docs/promotion.md on {chart}",
        )


def content_of(folder: EnvironmentFolder, env: str) -> ChartContent:
    """The chart in an environment's folder. Raises NotEditable."""
    kept = _kept(folder, env)
    files = {
        name: folder.source.read(f"{folder.path}/{name}") or b""
        for name in folder.names()
        if name not in kept and not name.startswith(_OWN)
    }
    return ChartContent(text_at(folder.tree(CHART_FILE), ("version",)) or "", files, kept)


def exchange(folder: EnvironmentFolder, env: str, content: ChartContent) -> dict[str, bytes | None]:
    """Changes to the folder that replace its chart; None deletes a file. Raises NotEditable."""
    kept = _kept(folder, env) | content.kept
    if "values.yaml" in kept or not _kept(folder, env):
        raise NotEditable(
            f"{folder.path} has no values file of its own, so its values would be lost",
            next=f"name one under helm.valueFiles in {folder.path}/.argocd-source.yaml",
        )
    wanted = {
        name: data
        for name, data in content.files.items()
        if name not in kept and not name.startswith(_OWN)
    }
    found: dict[str, bytes | None] = {
        name: None
        for name in folder.names()
        if name not in wanted and name not in kept and not name.startswith(_OWN)
    }
    for name, data in wanted.items():
        if folder.source.read(f"{folder.path}/{name}") != data:
            found[name] = data
    return found


def _kept(folder: EnvironmentFolder, env: str) -> frozenset[str]:
    return frozenset(value_files(folder, env))
