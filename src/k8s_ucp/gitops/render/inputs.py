"""Inputs of a render besides the topology, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from k8s_ucp.topology import App


@dataclass(frozen=True)
class RenderInputs:
    """What a render needs to know beside the topology."""

    machine: str
    """Id of the workspace's machine: who makes the LocalClusters."""
    core_url: str
    apps_url: str
    """Addresses of the repositories, as Argo CD reads them; without credentials."""
    topology_file: bytes
    """ucp.yaml as the user wrote it."""
    manifests: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """Of apps given by path: {app: {path below its folder: content}}."""
    engine: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """Pinned manifests: {component: {file name: content}}."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """{component: version} of those manifests."""
    vendored: Mapping[str, bytes] = field(default_factory=dict)
    """Manifests of charts, rendered beforehand: {path in the core repository: content}."""
    reconciler_image: str = ""
    """For pods placement: name and tag, or digest."""
    repositories: str = ""
    """For local repositories read by pods: the folder of both, as the core's nodes see it."""
    owner: int = 0
    """Who owns that folder: user id."""
    team_urls: Mapping[str, str] = field(default_factory=dict)
    """Addresses of teams' repositories, as Argo CD reads them: {team: URL}."""
    departing: tuple[App, ...] = ()
    """Apps that this render drops. Their Applications need their projects to the end: what a
    project doesn't admit, Argo CD doesn't delete."""


@dataclass(frozen=True)
class Rendered:
    """Every file of both repositories: {path: content}."""

    core: dict[str, bytes]
    apps: dict[str, bytes]
