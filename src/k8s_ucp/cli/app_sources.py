"""Fetches apps from other repositories: with the cache, the pinned helm and credentials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from k8s_ucp.cli.topology_selection import declared_file
from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import cache_folder

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.git.environment import Credential
    from k8s_ucp.gitops.manifests.chart_source import ChartRef
    from k8s_ucp.gitops.promotion.targets.chart import ChartContent, ChartMissing
    from k8s_ucp.gitops.render.app_manifests import SourceFetcher
    from k8s_ucp.topology import App, Topology


def fetcher_of(call: Invocation, topology: Topology) -> SourceFetcher:
    """The fetcher for the apps of a topology."""
    from k8s_ucp.gitops.render.app_manifests import SourceFetcher

    def credential(app: App) -> Credential | None:
        return credential_for(call, topology, app)

    return SourceFetcher(cache_folder(), lambda: pinned_helm(call, topology), credential)


def pinned_helm(call: Invocation, topology: Topology | None) -> Path:
    """The pinned helm; installed if missing, from the topology's source. Raises UcpError."""
    from k8s_ucp.tools.installer import Installer
    from k8s_ucp.tools.recipe import ProgramSource

    source = ProgramSource(topology.spec.tools.source) if topology else ProgramSource.AUTO
    installer = Installer(cache_folder(), lambda _: None, source=source)
    if installer.missing(("helm",)):
        call.console.say("installing helm, which renders charts: a build takes some minutes")
    return installer.install(("helm",)).path("helm")


def credential_for(call: Invocation, topology: Topology, app: App) -> Credential | None:
    """The app's credential, or that of git.auth on the host of the topology's own repositories.

    Raises BadCredential, UsageError for a URL with a password.
    """
    from k8s_ucp.cli.git_credentials import credential_of, named_credential
    from k8s_ucp.gitops.manifests.sources import refuse_password

    name = app.chart.auth if app.chart else app.auth
    source = app.chart.repo if app.chart else app.repo or ""
    refuse_password(
        source, next="use the URL without it, and --auth NAME with a credential of ucp.yaml"
    )
    if name is not None:
        return named_credential(name, topology, call.workspace, source)
    git = topology.spec.git
    ours = {_site(each) for each in (git.core, git.apps) if each}
    return credential_of(topology, call.workspace) if _site(app.repo or "") in ours else None


def _site(url: str) -> str:
    """Scheme and host, which a credential is valid for."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else url


def fetch_chart(call: Invocation, missing: ChartMissing, *, own: bool) -> ChartContent:
    """Fetch a chart version that no environment has yet, for a promotion.

    From the chart's repository, which `.promotion.yaml` or the workspace's topology specifies. own:
    the promotion is in the workspace's app repository. Raises UcpError.
    """
    from k8s_ucp.gitops.manifests.chart_source import pull
    from k8s_ucp.gitops.manifests.forms import chart_file
    from k8s_ucp.gitops.promotion.targets.chart import ChartContent
    from k8s_ucp.topology import load

    topology_file = declared_file(call)
    topology = load(topology_file) if topology_file.is_file() else None
    if topology and not own:
        _require_allowed_chart(call, missing, topology)
    chart, credential, digest = _chart_of(call, missing, topology)
    files = pull(
        pinned_helm(call, topology),
        chart,
        missing.version,
        cache_folder(),
        credential,
        digest=digest,
    )
    found = chart_file(files)
    if (found.name, found.version) != (missing.chart, missing.version):
        raise UcpError(
            f"{chart} {missing.version} is the chart {found.name} {found.version}",
            next=f"use its exact version; the app {missing.app} has the chart {missing.chart}",
        )
    return ChartContent(missing.version, files)


def _newer_source(app: App) -> str:
    """How to get another version of a chart that is not from a chart repository."""
    everywhere = "(for every environment to which no chart version was promoted)"
    if app.repo:
        return (
            f"set `revision` of {app.name} in ucp.yaml to a commit of {app.repo} that has it, then "
            f"ucp start {everywhere}"
        )
    if app.path:
        return f"copy that version of the chart to {app.path}, then ucp start {everywhere}"
    return ""


def _require_allowed_chart(call: Invocation, missing: ChartMissing, topology: Topology) -> None:
    """Refuse to send what ucp.yaml names if the command names the repository, also in a CI job.

    The job of a service promotes in the folder of a merge request, which may contain a ucp.yaml.
    """
    from k8s_ucp.cli.credential_hosts import require_allowed
    from k8s_ucp.credentials import credential_ref

    for app in topology.spec.apps:
        if app.name == missing.app and app.chart and app.chart.auth:
            ref = credential_ref(topology, call.workspace, app.chart.auth)
            urls = [app.chart.repo]
            require_allowed(app.chart.auth, ref, call.workspace.root, urls, in_ci=True)


def _chart_of(
    call: Invocation, missing: ChartMissing, topology: Topology | None
) -> tuple[ChartRef, Credential | None, str | None]:
    """(repository, credential, digest if ucp.yaml records one for this version)"""
    from k8s_ucp.gitops.manifests.chart_source import ChartRef
    from k8s_ucp.gitops.manifests.sources import refuse_password
    from k8s_ucp.gitops.promotion.overlay import config_file

    if missing.repo:
        refuse_password(
            missing.repo,
            next=f"remove `repo` from .promotion.yaml of {missing.app}, and name the chart's "
            "repository and its credential in ucp.yaml (chart.repo, chart.auth)",
        )
        return ChartRef(missing.repo.rstrip("/"), missing.chart), None, None
    if topology:
        for app in topology.spec.apps:
            if app.name == missing.app and app.chart:
                chart = ChartRef(app.chart.repo, app.chart.name)
                digest = app.chart.digest if app.chart.version == missing.version else None
                return chart, credential_for(call, topology, app), digest
            if app.name == missing.app and (advice := _newer_source(app)):
                raise UcpError(missing.message, next=advice)
    raise UcpError(
        missing.message,
        next=f"name its repository in {config_file(missing.app)}: "
        f"targets: [{{chart: {missing.chart}, repo: https://…}}]",
    )
