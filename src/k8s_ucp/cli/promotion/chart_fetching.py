"""`ucp promote --chart-version`: a version that no environment has yet. Imported only for it."""

from __future__ import annotations

from k8s_ucp.cli.app_sources import credential_for, pinned_helm
from k8s_ucp.cli.command import Invocation
from k8s_ucp.errors import UcpError
from k8s_ucp.git.environment import Credential
from k8s_ucp.gitops.manifests.chart_source import ChartRef, pull
from k8s_ucp.gitops.manifests.forms import chart_file
from k8s_ucp.gitops.promotion.overlay import config_file
from k8s_ucp.gitops.promotion.targets.chart import ChartContent, ChartMissing
from k8s_ucp.workspace import cache_folder


def fetch_chart(call: Invocation, missing: ChartMissing) -> ChartContent:
    """From the chart's repository, as `.promotion.yaml` or the workspace's topology names it.

    Raises UcpError.
    """
    place, credential = _source(call, missing)
    files = pull(pinned_helm(), place, missing.version, cache_folder(), credential)
    found = chart_file(files)
    if (found.name, found.version) != (missing.chart, missing.version):
        raise UcpError(
            f"{place} {missing.version} is the chart {found.name} {found.version}",
            next=f"use its exact version; the app {missing.app} has the chart {missing.chart}",
        )
    return ChartContent(missing.version, files)


def _source(call: Invocation, missing: ChartMissing) -> tuple[ChartRef, Credential | None]:
    if missing.repo:
        return ChartRef(missing.repo.rstrip("/"), missing.chart), None
    topology_file = call.workspace.topology_file
    if topology_file.is_file():
        from k8s_ucp.topology import load

        topology = load(topology_file)
        for app in topology.spec.apps:
            if app.name == missing.app and app.chart:
                place = ChartRef(app.chart.repo, app.chart.name)
                return place, credential_for(call, topology, app)
    raise UcpError(
        missing.message,
        next=f"name its repository in {config_file(missing.app)}: "
        f"targets: [{{chart: {missing.chart}, repo: https://…}}]",
    )
