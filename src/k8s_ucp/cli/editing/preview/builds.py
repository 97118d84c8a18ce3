"""Builds the objects of an app in one environment, from a rendered app repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.errors import UcpError, UsageError, command_line

if TYPE_CHECKING:
    from k8s_ucp.process import RunningPrograms
    from k8s_ucp.topology import Topology

_SHOWN = 4
_GENERATOR = {
    "name": "chartName",
    "repo": "chartRepoUrl",
    "version": "chartVersion",
    "releaseName": "releaseName",
    "valuesFile": "values",
}
"""Keys of `helmCharts`, and those of the older `helmChartInflationGenerator`."""
ChartRenderer = Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]]
"""Renders a chart with further values; returns its objects. Raises UcpError."""


@dataclass(frozen=True)
class BuiltOverlay:
    """What an app creates in an environment."""

    text: str
    """As YAML."""
    objects: list[Mapping[str, Any]]


@dataclass(frozen=True)
class OverlayBuilder:
    """Builds overlays of a rendered app repository, which is the folder `apps`."""

    kustomize: Path
    helm: Path
    apps: Path
    topology: Topology
    programs: RunningPrograms | None = None

    def build(self, app: str, environment: str) -> BuiltOverlay:
        """Build an app for an environment. Raises UcpError."""
        from k8s_ucp.gitops.manifests.build_many import objects

        folder = _overlay(app, environment)
        if (self.apps / folder / "kustomization.yaml").exists():
            text = self._kustomized(app, environment)
        elif (self.apps / folder / "Chart.yaml").exists():
            return self._templated(app, environment)
        else:
            text = _as_they_are(self.apps / folder)
        return BuiltOverlay(text, objects(text))

    def chart_renderer(self, app: str, environment: str) -> ChartRenderer | None:
        """What renders the app's chart with further values; None if the app isn't a chart."""
        from k8s_ucp.gitops.manifests.build_charts import build_charts

        folder = _overlay(app, environment)
        if not (self.apps / folder / "Chart.yaml").exists():
            return None
        homes = {folder: self._home(app)}

        def render(values: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
            built = build_charts(self.helm, self.apps, [folder], homes, values)
            if folder in built.failures:
                raise UcpError(built.failures[folder])
            return built.objects[folder]

        return render

    def _kustomized(self, app: str, environment: str) -> str:
        from k8s_ucp.git.failures import HostUnreachable, classify
        from k8s_ucp.gitops.manifests.kustomize import BuildFailed, LoadsFromOutside, build
        from k8s_ucp.gitops.manifests.sources import transports

        folder = _overlay(app, environment)
        try:
            also = transports(self.topology)
            return build(self.kustomize, self.apps / folder, also=also, programs=self.programs)
        except LoadsFromOutside as error:
            # Paths in the app repository mean nothing to the user.
            error.message = f"{app} on {environment}: {error.message}".replace(
                f"{self.apps}/apps/{app}/base/", ""
            ).replace(f"{self.apps}/", "")
            raise
        except BuildFailed as error:
            if "--enable-helm" in error.message:
                raise _inflates_charts(self.apps, app, environment) from error
            why = classify("fetch", folder, error.message)
            raise BuildFailed(
                f"{app} on {environment}: {error.message.replace(f'{self.apps}/', '')}",
                next=why.next
                if isinstance(why, HostUnreachable)
                else "fix the kustomization, then run the command again",
            ) from error

    def _templated(self, app: str, environment: str) -> BuiltOverlay:
        from k8s_ucp.gitops.manifests.build_charts import build_charts
        from k8s_ucp.gitops.manifests.yaml_text import dump_all

        folder = _overlay(app, environment)
        built = build_charts(self.helm, self.apps, [folder], {folder: self._home(app)})
        if folder in built.failures:
            why = built.failures[folder]
            raise UcpError(f"{app} on {environment}: {why}", next=chart_advice(why))
        found = built.objects[folder]
        return BuiltOverlay(dump_all(found, for_files=False), found)

    def _home(self, app: str) -> str:
        return next(each.home for each in self.topology.spec.apps if each.name == app)


def chart_advice(why: str) -> str:
    """What to do about a chart that helm can't render. why: helm's message."""
    if "requires kubeVersion" in why:
        return "use a version of the chart that supports this version of Kubernetes"
    if "missing in charts/" in why or 'no template "' in why:
        return (
            "put the charts that it depends on, and those that they depend on, into charts/ "
            "folders by `helm dependency build`"
        )
    return "run the command again with --values FILE, if the chart lacks values"


def _overlay(app: str, environment: str) -> str:
    return f"apps/{app}/overlays/{environment}"


def _as_they_are(folder: Path) -> str:
    """The manifests of a folder without a kustomization or chart; jsonnet by name only."""
    from k8s_ucp.gitops.manifests.forms import manifest_files

    files = {
        each.relative_to(folder).as_posix(): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }
    shown = [files[each].decode("utf-8", "replace").rstrip() for each in manifest_files(files)]
    shown += [f"# {each}: rendered by Argo CD" for each in files if each.endswith(".jsonnet")]
    return "\n---\n".join(shown) + "\n"


def _inflates_charts(apps: Path, name: str, environment: str) -> UsageError:
    """The error of an app whose kustomization has charts, with the commands for these."""
    from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
    from k8s_ucp.gitops.manifests.yaml_text import first_map, maps, part

    files = sorted(
        each for each in (apps / "apps" / name).rglob("*") if each.name in KUSTOMIZATIONS
    )
    contents = [first_map(file.read_bytes(), file.name) for file in files]
    charts = [
        {**each, "home": part(content, "helmGlobals").get("chartHome") or "charts"}
        for content in contents
        for each in maps(content, "helmCharts")
    ]
    charts += [
        {new: each.get(old) for new, old in _GENERATOR.items()} | {"home": "charts"}
        for content in contents
        for each in maps(content, "helmChartInflationGenerator")
    ]
    commands = list(dict.fromkeys(filter(None, map(_command_of_chart, charts))))
    add = "; ".join(commands[:_SHOWN]) or "ucp app add NAME CHART"
    names = ", ".join(dict.fromkeys(str(each.get("name")) for each in charts)) or "helmCharts"
    noun = "charts" if ", " in names else "chart"
    return UsageError(
        f"{name} on {environment}: its kustomization inflates the {noun} {names} (helmCharts), "
        "which Argo CD doesn't do here",
        next=f"add the chart as an app of its own ({add}), and the rest without helmCharts",
    )


def _command_of_chart(chart: Mapping[str, Any]) -> str:
    """The command that adds a chart of a kustomization; "" for one without a name."""
    from k8s_ucp.gitops.imports.findings import RemoteSource

    url, name, version = (str(chart.get(key) or "") for key in ("repo", "name", "version"))
    if not name:
        return ""
    values = ("--values", "FILE") if chart.get("valuesFile") or chart.get("valuesInline") else ()
    app = str(chart.get("releaseName") or name)
    if not url:
        # It is beside the kustomization, as a folder or packaged.
        command = command_line("ucp", "app", "add", app, f"{chart['home']}/{name}", *values)
        return f"{command}; if it is a .tgz, unpack it first"
    return RemoteSource(url, version or None, name).command(app, flags=values)
