"""The app repository: maps templates to files and their values. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from k8s_ucp.gitops.manifests.forms import is_kustomization, manifest_files, overlays
from k8s_ucp.gitops.manifests.images_and_ports import SHIPPED, images_in, service_port, without_tags
from k8s_ucp.gitops.render.kustomize_images import images_of
from k8s_ucp.gitops.render.user_manifests import (
    base_of,
    form_of,
    generated_files,
    user_files,
    values_file,
)
from k8s_ucp.gitops.render.values import databases
from k8s_ucp.gitops.render.values.addons import INGRESS_CLASSES, gateway
from k8s_ucp.gitops.render.values.pipelines import pipeline_values, provider_of
from k8s_ucp.providers import PROVIDERS

VALUES = "values-{environment}.yaml"

if TYPE_CHECKING:
    from k8s_ucp.gitops.render.inputs import RenderInputs
    from k8s_ucp.topology import App, Environment, Topology


def values_of(topology: Topology, inputs: RenderInputs) -> dict[str, dict[str, Any]]:
    """{app: the values of its templates that are the same in every environment}."""
    return {
        app.name: _values(topology, app, inputs.manifests.get(app.name, {}))
        for app in topology.spec.apps
    }


def rendered_paths(
    path: str, topology: Topology, inputs: RenderInputs, apps: Mapping[str, dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """All (path, values) for which a template is rendered; none if it isn't needed.

    apps: see values_of.
    """
    if provider := provider_of(path):
        values = pipeline_values(topology)
        if values and provider == values["ci"].provider:
            yield path, values
        return
    if "{app}" not in path:
        yield path, {}
        return
    for app in topology.spec.apps:
        own = inputs.manifests.get(app.name, {})
        values = apps[app.name]
        name = path.rpartition("/")[2]
        if name not in _files(app, values):
            continue
        filled = path.replace("{app}", app.name)
        if "{environment}" not in filled:
            has_base = is_kustomization(own) or overlays(own) or app.overlays
            if values["form"] == "kustomize" and not has_base:
                yield filled, values
            continue
        for environment in topology.spec.environments:
            if name == VALUES and values_file(own, environment.name) in own:
                continue
            more = _overlay(topology, app, own, environment)
            target = filled.replace("{environment}", environment.name)
            yield target, {**values, **more}


def copies(topology: Topology, inputs: RenderInputs) -> dict[str, bytes]:
    """Files of users, copied unchanged: {path in the repository: content}."""
    files: dict[str, bytes] = {}
    for app in topology.spec.apps:
        own = inputs.manifests.get(app.name, {})
        if (app.path or "").startswith(SHIPPED):
            own = {path: without_tags(content) for path, content in own.items()}
        environments = [each.name for each in topology.spec.environments]
        files |= user_files(app, own, environments)
    return files


def _files(app: App, values: Mapping[str, Any]) -> set[str]:
    """Names of the generated files of an app."""
    if values["form"] != "kustomize":
        return generated_files(app, values["form"])
    files = {"kustomization.yaml"}
    if app.hosts:
        files.add("hosts.yaml")
    if app.form == "image":
        files |= {f"{values['workload'].lower()}.yaml", "service.yaml"}
        files |= {_entrance(values)} if app.hosts else set()
    return files


def _entrance(values: Mapping[str, Any]) -> str:
    """The file of the base that exposes the app."""
    return "route.yaml" if values["gateway"] else "ingress.yaml"


def _values(topology: Topology, app: App, own: Mapping[str, bytes]) -> dict[str, Any]:
    """Values that are the same in every environment."""
    addons = topology.spec.addons
    workload = "none"
    if app.form == "image":
        workload = "Rollout" if addons.argo_rollouts else "Deployment"
    entrance = {"gateway": gateway(topology)}
    form = form_of(app, own)
    plain = form == "kustomize" and not is_kustomization(own) and not app.overlays
    return {
        **entrance,
        "app": app,
        "form": form,
        "workload": workload,
        "patched": (app.hosts and app.form == "image") or workload == "Rollout",
        "resources": _resources(app, workload, own, _entrance(entrance)) if plain else [],
        "service_port": service_port(app.name, own) if app.hosts and form != "helm" else 0,
        # The tag follows the last colon; a registry's port adds another one.
        "tag_index": (app.image or "").count(":") + 1,
        "ingress_class": INGRESS_CLASSES.get(addons.ingress or "", ""),
        "connection": databases.COPY,
        "connection_keys": databases.KEYS,
    }


def _overlay(
    topology: Topology, app: App, own: Mapping[str, bytes], environment: Environment
) -> dict[str, Any]:
    domain = topology.spec.domain
    kustomized = form_of(app, own) == "kustomize"
    base = base_of(app, own, environment.name) if kustomized else ""
    return {
        "environment": environment,
        "base": f"../../base/{base}".rstrip("/"),
        "images": _images(app, own, base) if kustomized else [],
        "values_file": values_file(own, environment.name),
        "hosts": [f"{host}.{environment.name}.{domain}" for host in app.hosts],
        "unserved": _is_unserved(topology, environment),
    }


def _is_unserved(topology: Topology, environment: Environment) -> bool:
    """Its hosts never get an address, or only after Argo CD has begun to wait for it."""
    simulated = PROVIDERS[environment.cluster.provider].simulated
    if gateway(topology):
        return simulated
    return not simulated and topology.spec.addons.ingress in (None, "none")


def _resources(app: App, workload: str, own: Mapping[str, bytes], entrance: str) -> list[str]:
    """The resources of the base."""
    if app.form == "image":
        files = [f"{workload.lower()}.yaml", "service.yaml"]
        return [*files, entrance] if app.hosts else files
    if app.form == "repo" and not own:
        folder = f"//{app.path}" if app.path else ""
        return [f"{app.repo}{folder}?ref={app.revision}"]
    return manifest_files(own)


def _images(app: App, own: Mapping[str, bytes], base: str) -> list[tuple[str, str, str]]:
    """(image, tag, digest) of an overlay: what promotions change."""
    kustomized = base or is_kustomization(own)
    images = dict(images_of(own, base) if kustomized else images_in(own))
    if app.image is not None and app.tag is not None:
        images[app.image] = app.tag
    return sorted((name, *_parts(version)) for name, version in images.items())


def _parts(version: str) -> tuple[str, str]:
    tag, _, digest = version.partition("@")
    return tag, digest
