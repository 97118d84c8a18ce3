"""The app repository: which files a template stands for, and with which values. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from k8s_ucp.gitops.manifests.own import (
    SHIPPED,
    images_in,
    is_kustomization,
    resources_in,
    service_port,
    without_tags,
)
from k8s_ucp.gitops.render.values import connections
from k8s_ucp.gitops.render.values.addons import INGRESS_CLASSES, gateway
from k8s_ucp.gitops.render.values.pipelines import pipeline_values, provider_of

if TYPE_CHECKING:
    from k8s_ucp.gitops.render.facts import Facts
    from k8s_ucp.topology import App, Environment, Topology


def places(path: str, topology: Topology, facts: Facts) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every (path, values) that a template's path stands for; none where it isn't wanted."""
    if provider := provider_of(path):
        values = pipeline_values(topology)
        if values and provider == values["ci"].provider:
            yield path, values
        return
    if "{app}" not in path:
        yield path, {}
        return
    for app in topology.spec.apps:
        own = facts.manifests.get(app.name, {})
        values = _values(topology, app, own)
        if path.rpartition("/")[2] not in _files(app, values):
            continue
        place = path.replace("{app}", app.name)
        if "{environment}" not in place:
            if not any(is_kustomization(each) for each in own):
                yield place, values
            continue
        for environment in topology.spec.environments:
            more = _overlay(topology, app, environment)
            yield place.replace("{environment}", environment.name), {**values, **more}


def copies(topology: Topology, facts: Facts) -> dict[str, bytes]:
    """Manifests given by path, as they are: {path in the repository: content}."""
    files = {}
    for app in topology.spec.apps:
        shipped = (app.path or "").startswith(SHIPPED)
        for path, content in sorted(facts.manifests.get(app.name, {}).items()):
            text = without_tags(content) if shipped else content
            files[f"apps/{app.name}/base/{path}"] = text
    return files


def _files(app: App, values: Mapping[str, Any]) -> set[str]:
    """Names of the generated files of an app."""
    files = {"kustomization.yaml"}
    if app.hosts:
        files.add("hosts.yaml")
    if app.form == "image":
        files |= {f"{values['workload'].lower()}.yaml", "service.yaml"}
        files |= {_entrance(values)} if app.hosts else set()
    return files


def _entrance(values: Mapping[str, Any]) -> str:
    """The file of the base that lets traffic in."""
    return "route.yaml" if values["gateway"] else "ingress.yaml"


def _values(topology: Topology, app: App, own: Mapping[str, bytes]) -> dict[str, Any]:
    """What is the same on every environment."""
    addons = topology.spec.addons
    workload = "none"
    if app.form == "image":
        workload = "Rollout" if addons.argo_rollouts else "Deployment"
    entrance = {"gateway": gateway(topology)}
    return {
        **entrance,
        "app": app,
        "workload": workload,
        "patched": (app.hosts and app.form == "image") or workload == "Rollout",
        "resources": _resources(app, workload, own, _entrance(entrance)),
        "service_port": service_port(app.name, own),
        "images": _images(app, own),
        # The tag follows the last colon; one more stands before the port of a registry.
        "tag_index": (app.image or "").count(":") + 1,
        "ingress_class": INGRESS_CLASSES.get(addons.ingress or "", ""),
        "connection": connections.COPY,
        "connection_keys": connections.KEYS,
    }


def _overlay(topology: Topology, app: App, environment: Environment) -> dict[str, Any]:
    domain = topology.spec.domain
    return {
        "environment": environment,
        "hosts": [f"{host}.{environment.name}.{domain}" for host in app.hosts],
        # Nothing serves hosts: simulated, or no ingress controller.
        "simulated": environment.cluster.provider == "embedded"
        or topology.spec.addons.ingress in (None, "none"),
    }


def _resources(app: App, workload: str, own: Mapping[str, bytes], entrance: str) -> list[str]:
    """What the base is made of."""
    if app.form == "image":
        files = [f"{workload.lower()}.yaml", "service.yaml"]
        return [*files, entrance] if app.hosts else files
    if app.form == "repo":
        folder = f"//{app.path}" if app.path else ""
        return [f"{app.repo}{folder}?ref={app.revision}"]
    return resources_in(own)


def _images(app: App, own: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """(image, tag) of the overlays: what promotion changes."""
    images = dict(images_in(own))
    if app.image is not None and app.tag is not None:
        images[app.image] = app.tag
    return sorted(images.items())
