"""The app repository: which files a template stands for, and with which values. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from k8s_ucp.topology import App, Environment, Topology


def places(path: str, topology: Topology) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every (path, values) that a template's path stands for; none where it isn't wanted."""
    if "{app}" not in path:
        yield path, {}
        return
    for app in topology.spec.apps:
        if path.endswith(("/ingress.yaml", "/hosts.yaml")) and not app.hosts:
            continue
        place = path.replace("{app}", app.name)
        if "{environment}" not in place:
            yield place, {"app": app}
            continue
        for environment in topology.spec.environments:
            values = _overlay(topology, app, environment)
            yield place.replace("{environment}", environment.name), values


def _overlay(topology: Topology, app: App, environment: Environment) -> dict[str, Any]:
    domain = topology.spec.domain
    return {
        "app": app,
        "environment": environment,
        "hosts": [f"{host}.{environment.name}.{domain}" for host in app.hosts],
        "simulated": environment.cluster.provider == "embedded",
    }
