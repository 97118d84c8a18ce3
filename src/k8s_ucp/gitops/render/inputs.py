"""Inputs of a render besides the topology, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from k8s_ucp.topology import App


@dataclass(frozen=True)
class RenderInputs:
    """Inputs of a render besides the topology."""

    machine: str
    """Id of the workspace's machine, which creates the LocalClusters."""
    core_url: str
    apps_url: str
    """URLs of the repositories for Argo CD, without credentials."""
    topology_file: bytes
    """ucp.yaml as the user wrote it."""
    manifests: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """Sources of apps: {app: {path relative to its folder: content}}."""
    engine: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """Pinned manifests: {component: {file name: content}}."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """{component: version} of these manifests."""
    vendored: Mapping[str, bytes] = field(default_factory=dict)
    """Pre-rendered manifests of charts: {path in the core repository: content}."""
    reconciler_image: str = ""
    """For pods placement: name and tag, or digest."""
    repositories: str = ""
    """For local repositories read by pods: path of their folder on the core cluster's nodes."""
    owner: int = 0
    """User id of that folder's owner."""
    team_urls: Mapping[str, str] = field(default_factory=dict)
    """URLs of teams' repositories for Argo CD: {team: URL}."""
    departing: tuple[App, ...] = ()
    """Apps that this render removes.

    Their Applications need their AppProjects until the end, because Argo CD doesn't delete objects
    that a project doesn't permit.
    """


@dataclass(frozen=True)
class Rendered:
    """Every file of both repositories: {path: content}."""

    core: dict[str, bytes]
    apps: dict[str, bytes]
