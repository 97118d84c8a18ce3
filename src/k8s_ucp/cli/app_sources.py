"""How apps that lie elsewhere get here: with which cache, which helm and which credential."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from k8s_ucp.workspace import cache_folder

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.git.environment import Credential
    from k8s_ucp.gitops.render.app_manifests import SourceFetcher
    from k8s_ucp.topology import App, Topology


def fetcher_of(call: Invocation, topology: Topology) -> SourceFetcher:
    """For the apps of a topology."""
    from k8s_ucp.gitops.render.app_manifests import SourceFetcher

    def credential(app: App) -> Credential | None:
        return credential_for(call, topology, app)

    return SourceFetcher(cache_folder(), pinned_helm, credential)


def pinned_helm() -> Path:
    """Installed where it is missing. Raises UcpError."""
    from k8s_ucp.tools.installer import Installer

    return Installer(cache_folder(), lambda _: None).install(("helm",)).path("helm")


def credential_for(call: Invocation, topology: Topology, app: App) -> Credential | None:
    """The one that the app names; for a repository beside the topology's own, that of git.auth.

    Raises BadCredential.
    """
    from k8s_ucp.cli.git_credentials import credential_of, named_credential

    name = app.chart.auth if app.chart else app.auth
    if name is not None:
        return named_credential(name, topology, call.workspace)
    git = topology.spec.git
    ours = {_site(each) for each in (git.core, git.apps) if each}
    return credential_of(topology, call.workspace) if _site(app.repo or "") in ours else None


def _site(url: str) -> str:
    """Scheme and host: what a credential is meant for."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else url
