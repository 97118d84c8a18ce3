"""The core repository: maps templates to files and their values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.gitops.render.values import (
    addons,
    clouds,
    databases,
    function_package,
    local_databases,
    mirrors,
    permissions,
    policies,
    rbac,
    teams,
)
from k8s_ucp.gitops.render.values.cluster_overlays import cluster_overlay
from k8s_ucp.managed.ownership import NAMED_KINDS
from k8s_ucp.providers import local_providers
from k8s_ucp.topology.placement import can_load_images, in_pods, needs_git_server

if TYPE_CHECKING:
    from k8s_ucp.topology import Environment, Topology


_SET_UP = {"argocd": ("projects/default.yaml",)}
"""Files outside of its folder that configure a component, by the component's name."""

RenderedPath = tuple[str, dict[str, Any]]
"""(path of a file, values that its template is rendered with)"""


def rendered_paths(path: str, topology: Topology) -> Iterator[RenderedPath]:
    """All (path, values) for which a template is rendered; none if it isn't needed."""
    folder = path.partition("/")[0]
    if "/workloads/" in path and not in_pods(topology):
        return  # Workloads are for components that run as pods.
    if path.startswith("platform/git-server/") and not needs_git_server(topology):
        return
    if _is_of(path, topology.spec.core.adopt):
        return  # An adopted component is not ours: none of our files changes it.
    yield from _FOLDERS.get(folder, _as_it_is)(path, topology)


def _is_of(path: str, components: Iterable[str]) -> bool:
    """The file installs or configures one of these components."""
    return path.startswith(
        tuple(
            start
            for each in components
            for start in (
                f"platform/{each}/",
                f"bootstrap/{{core}}/{each}.yaml",
                *_SET_UP.get(each, ()),
            )
        )
    )


def optional_applications(topology: Topology) -> list[str]:
    """Applications of the core repository that not every topology has."""
    found = []
    if needs_git_server(topology):
        found.append("git-server")
    # Crossplane packages are pods: in host placement they are rendered, but not applied.
    if (clouds.clouds(topology) or clouds.other_packages(topology)) and in_pods(topology):
        found.append("providers")
    if clouds.claim_providers(topology) and clouds.composes(topology):
        found.append("api")
    if topology.spec.databases and topology.spec.environments:
        found.append("databases")
    if local_databases.environments_with_local(topology):
        found.append("local-databases")
    if policies.levels(topology):
        found.append("policies")
    if topology.spec.teams:
        found.append("teams")
    return found + [each.name for each in addons.chosen(topology) if addons.targets(topology, each)]


def _as_it_is(path: str, _: Topology) -> Iterator[RenderedPath]:
    yield path, {}


def _bootstrap(path: str, topology: Topology) -> Iterator[RenderedPath]:
    optional = optional_applications(topology)
    filled = path.replace("{core}", topology.spec.core.provider)
    if "{addon}" in path:
        for addon in addons.chosen(topology):
            providers = addons.environment_providers(topology, addon)
            on_core = addons.on_core(topology, addon)
            if on_core or providers:
                values = {
                    "addon": addon,
                    "on_core": on_core,
                    "providers": providers,
                    "parameters": addons.parameters(topology, addon, _ENVIRONMENT_LABEL),
                    "core_parameters": addons.parameters(topology, addon, addons.CORE),
                }
                yield filled.replace("{addon}", addon.name), values
        return
    name = path.rpartition("/")[2].removesuffix(".yaml")
    if name not in _OPTIONAL or name in optional:
        yield (
            filled,
            {
                "optional": optional,
                "guarded": list(policies.levels(topology)),
                "with_local": [
                    each.name for each in local_databases.environments_with_local(topology)
                ],
            },
        )


def _platform(path: str, topology: Topology) -> Iterator[RenderedPath]:
    if path == "platform/reconciler/monitoring.yaml":
        if "prometheus" in optional_applications(topology):
            yield path, {}
        return
    if path == "platform/crossplane/config/people.yaml":
        if rbac.wanted(topology, in_pods(topology)):
            yield path, {"people": rbac.STEPS}
        return
    if path == "platform/crossplane/config/unproven-deletions.yaml":
        if clouds.clouds(topology):
            yield path, {"named_kinds": list(NAMED_KINDS.items())}
        return
    if path == "platform/argocd/ingress.yaml":
        if addons.leads_to_argocd(topology):
            chosen = topology.spec.addons.ingress or ""
            yield path, {"ingress_class": addons.INGRESS_CLASSES.get(chosen, "traefik")}
        return
    if "{provider}" not in path:
        yield path, {}
        return
    for addon in addons.chosen(topology):
        if path.startswith(f"platform/{addon.name}/"):
            for provider in addons.targets(topology, addon):
                yield path.replace("{provider}", provider), addons.values(topology, provider)


_ENVIRONMENT_LABEL = '{{ index .metadata.labels "k8s-ucp.io/environment" }}'
"""In an ApplicationSet: the environment of the current cluster."""
_OPTIONAL = ("git-server", "providers", "api", "databases", "local-databases", "policies", "teams")


def _clusters(path: str, topology: Topology) -> Iterator[RenderedPath]:
    spec = topology.spec
    if path.startswith("clusters/base/{provider}/"):
        used = {each.cluster.provider for each in spec.environments}
        for provider in local_providers():
            if provider in used:
                yield path.replace("{provider}", provider), {"provider": provider}
    elif path.startswith("clusters/base/"):
        if path.split("/")[2] in databases.base_folders(topology):
            yield path, {}
    elif "{environment}" in path:
        for environment in spec.environments:
            overlay = cluster_overlay(topology, environment)
            if overlay.references or not path.endswith("/names.yaml"):
                values = {"environment": environment, "cluster": overlay}
                yield path.replace("{environment}", environment.name), values
    else:
        yield path, {}


def _providers(path: str, topology: Topology) -> Iterator[RenderedPath]:
    used = clouds.clouds(topology)
    if "{cloud}" in path:
        for cloud in used:
            values = {
                "packages": clouds.packages(topology, cloud),
                "info": CLOUDS[cloud],
                "project": clouds.project_of(topology, cloud),
                "endpoint": clouds.endpoint_of(topology, cloud),
                "services": clouds.services(topology, cloud),
            }
            yield path.replace("{cloud}", cloud), values
        return
    others = clouds.other_packages(topology)
    if path == "providers/packages.yaml":
        if others:
            yield path, {"others": others}
    elif used or others:
        yield path, {"clouds": used, "others": others, "crossplane": topology.spec.crossplane}


def _api(path: str, topology: Topology) -> Iterator[RenderedPath]:
    providers = clouds.claim_providers(topology)
    provider = path.rpartition("/")[2].removesuffix(".yaml")
    if path == "api/functions.yaml" and not in_pods(topology):
        return  # In host placement, a process on this machine is the function.
    others = {*clouds.PLATFORM_CLOUDS, clouds.LOCAL}.difference(providers)
    if providers and provider not in others:
        yield (
            path,
            {
                "claim_providers": providers,
                "functions": clouds.FUNCTIONS,
                "own_function": function_package.REFERENCE if can_load_images(topology) else "",
            },
        )


def _databases(path: str, topology: Topology) -> Iterator[RenderedPath]:
    if path.startswith("databases/local/"):
        yield from _local_databases(path, topology)
        return
    environments = topology.spec.environments
    having = [each for each in environments if databases.databases_of(topology, each.name)]
    accesses = {each.name: databases.database_access(topology, each) for each in having}
    if "{environment}" not in path:
        needed = {base for each in accesses.values() for base in each.bases}
        base = "/".join(path.split("/")[1:3])
        if having and (not base.startswith("base/") or base in needed):
            yield path, {"database_environments": [each.name for each in having]}
        return
    for environment in having:
        filled = path.replace("{environment}", environment.name)
        access = accesses[environment.name]
        found = databases.databases_of(topology, environment.name)
        values = {"environment": environment, "databases": found, "access": access}
        if "{database}" in filled:
            for each in found:
                yield filled.replace("{database}", each.name), _database(each, environment)
        elif access.bases or "/network/" not in path:
            yield filled, values


def _local_databases(path: str, topology: Topology) -> Iterator[RenderedPath]:
    for environment in local_databases.environments_with_local(topology):
        filled = path.replace("{environment}", environment.name)
        found = local_databases.local_databases(topology, environment)
        if "{database}" not in filled:
            yield filled, {"environment": environment, "databases": found}
            continue
        for each in found:
            values = {
                "database": each,
                "local": local_databases.local_database(topology, each),
                "namespace": local_databases.NAMESPACE,
                "secret": each.name + databases.SUFFIX,
            }
            yield filled.replace("{database}", each.name), values


def _database(database: Any, environment: Environment) -> dict[str, Any]:
    local = database.provider == "local"
    return {
        "local_namespace": local_databases.NAMESPACE,
        "environment": environment,
        "database": database,
        "database_name": databases.database_name(database),
        "database_region": "" if local else databases.database_region(database, environment),
    }


def _mirrors(path: str, topology: Topology) -> Iterator[RenderedPath]:
    if "{mirror}" not in path:
        yield path, {}
        return
    for each in mirrors.syncers(topology):
        yield path.replace("{mirror}", each.name), {"mirror": each}


def _policies(path: str, topology: Topology) -> Iterator[RenderedPath]:
    levels, wanted = policies.levels(topology), policies.policies(topology)
    name = path.rpartition("/")[2].removesuffix(".yaml")
    if not levels or (name in policies.ALL and name not in wanted):
        return
    shared = {
        "policies": wanted,
        "platform_namespaces": policies.platform_namespaces(),
        "host_owners": policies.host_owners_expression(topology),
        "host_annotations": policies.HOST_ANNOTATIONS,
        "host_pattern": policies.HOST_PATTERN,
    }
    if "{environment}" in path:
        for environment, level in levels.items():
            yield path.replace("{environment}", environment), {**shared, "level": level}
    else:
        yield path, shared


def _projects(path: str, topology: Topology) -> Iterator[RenderedPath]:
    projects = [permissions.project_of(each) for each in topology.spec.apps]
    denied = {"platform_namespaces": permissions.denied_namespaces()}
    if "{app}" in path:
        for project in projects:
            yield path.replace("{app}", project.app), {**denied, "project": project}
    else:
        yield path, {**denied, "app_projects": projects}


def _applications(path: str, topology: Topology) -> Iterator[RenderedPath]:
    yield path, dict(permissions.set_values(topology))


_FOLDERS = {
    "projects": _projects,
    "applications": _applications,
    "bootstrap": _bootstrap,
    "platform": _platform,
    "clusters": _clusters,
    "providers": _providers,
    "api": _api,
    "databases": _databases,
    "policies": _policies,
    "mirrors": _mirrors,
    "teams": teams.team_paths,
}
"""Top-level folders whose files depend on the topology."""
