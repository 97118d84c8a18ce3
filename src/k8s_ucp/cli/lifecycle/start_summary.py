"""The summary that `ucp start` prints: what runs where, and commands to try next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from k8s_ucp.cli.console import table
from k8s_ucp.components import argocd, cloud, crossplane, reconciler
from k8s_ucp.context import StartContext
from k8s_ucp.errors import some_of
from k8s_ucp.inspect.crossplane_objects import composites, is_ready
from k8s_ucp.inspect.status import claim_name
from k8s_ucp.kube import KubeError
from k8s_ucp.providers import DEFAULT
from k8s_ucp.steps.waiting.await_environments import all_environments
from k8s_ucp.topology import Topology
from k8s_ucp.topology.placement import NO_DATA, is_simulated, simulated_databases

COMPONENTS = (argocd.NAME, crossplane.NAME, reconciler.NAME)
_IMAGES, _CHART = "kustomization.yaml", "Chart.yaml"


def summary_table(context: StartContext, seconds: float) -> str:
    """The table and the next commands; the start has waited until everything is healthy."""
    topology = context.topology
    environments = all_environments(context)
    overlays = _overlays(context)
    running = without_stopped(topology, environments)
    lines = [
        *_adopted(context),
        "",
        table(("what", "where", "how"), _rows(context, environments, overlays)),
        "",
        f"{topology.name} is running ({seconds:.1f} s). Next:",
        "",
        "  status       ucp status",
        f"  Argo CD      {context.argocd_url}",
        "  passwords    ucp get secrets",
    ]
    if running:
        lines.append(f"  kubectl      ucp kubeconfig {running[0]} --merge")
    lines += _new_tag(context, [each for each in overlays if each[1] in running], running)
    lines += _coming(context)
    if names := undeclared(topology, environments, {app for app, _ in overlays}):
        lines.append(f"  undeclared   {some_of(names)}: in the repositories, but not in ucp.yaml;")
        lines.append("               kept until you remove it: ucp diff")
    lines.append(f"  keep         a copy of {context.workspace.backup_key}, elsewhere:")
    lines.append("               it decrypts the backup of passwords in the core repository")
    lines.append("  stop         ucp stop")
    return "\n".join(lines)


def _rows(
    context: StartContext, environments: Sequence[str], overlays: Collection[tuple[str, str]]
) -> list[list[str]]:
    """What runs, where and how."""
    topology = context.topology
    rows = [["core cluster", topology.core_cluster, topology.spec.core.provider]]
    place = "pods of the core cluster" if context.in_pods else "process on this machine"
    rows += [
        ["component", each, "adopted (existing installation)" if context.adopts(each) else place]
        for each in COMPONENTS
    ]
    if context.simulates_cloud:
        rows.append(["component", cloud.NAME, f"{place}, simulated"])
    return rows + app_cluster_rows(topology, environments, overlays)


def app_cluster_rows(
    topology: Topology, environments: Sequence[str], overlays: Collection[tuple[str, str]]
) -> list[list[str]]:
    """The environments, and what runs on those that are not stopped. Pure."""
    providers = {each.name: each.cluster.provider for each in topology.spec.environments}
    running = without_stopped(topology, environments)
    rows = [
        [
            f"environment {environment}",
            topology.app_cluster(environment),
            _how(topology, providers.get(environment, DEFAULT))
            if environment in running
            else f"stopped; to start it: ucp recreate --env {environment}",
        ]
        for environment in environments
    ]
    rows += [
        [f"database {name}", ", ".join(places), NO_DATA]
        for name, places in simulated_databases(topology).items()
    ]
    for app in sorted({app for app, environment in overlays if environment in running}):
        places = [each for each in running if (app, each) in overlays]
        how = {_how(topology, providers.get(each, DEFAULT)) for each in places}
        rows.append([f"app {app}", ", ".join(places), "; ".join(sorted(how))])
    return rows


def without_stopped(topology: Topology, environments: Iterable[str]) -> list[str]:
    """The environments that have a cluster."""
    stopped = topology.stopped_environments
    return [each for each in environments if each not in stopped]


def undeclared(topology: Topology, environments: Iterable[str], apps: Iterable[str]) -> list[str]:
    """What runs only because it is in the repositories: ucp.yaml doesn't, or no longer, have it."""
    declared = {each.name for each in topology.spec.environments}
    names = {each.name for each in topology.spec.apps}
    return [
        *(f"environment {each}" for each in environments if each not in declared),
        *(f"app {each}" for each in sorted(apps) if each not in names),
    ]


def _adopted(context: StartContext) -> list[str]:
    """Cloud resources of a previous core that a new one has found."""
    lines = []
    found_again = context.adoption
    if found_again.adopted:
        lines.append(
            f"{found_again.adopted} cloud resources of the previous core were found and adopted"
        )
    for words, found in (
        ("differed from git and are changed to match it", found_again.differing),
        ("no longer existed and are created again", found_again.recreated),
    ):
        if found:
            lines.append(f"{len(found)} {words}: {some_of(found)}")
    return ["", *lines] if lines else []


def _overlays(context: StartContext) -> set[tuple[str, str]]:
    """(app, environment) of every overlay in the app repository."""
    apps = context.published.apps
    known = set(all_environments(context))
    parts = (path.split("/") for path in apps.clone.listing(apps.commit, "apps"))
    return {
        (each[1], each[3])
        for each in parts
        if len(each) > 4 and each[2] == "overlays" and each[3] in known
    }


def _new_tag(
    context: StartContext, overlays: Iterable[tuple[str, str]], environments: Sequence[str]
) -> list[str]:
    apps = context.published.apps
    folders = [f"apps/{app}/overlays/{environment}" for app, environment in sorted(overlays)]
    names = [f"{each}/{name}" for each in folders for name in (_IMAGES, _CHART)]
    files = apps.clone.read(apps.commit, *names) if names else {}
    return new_tag(files, environments, str(context.gitops.apps))


def new_tag(files: Mapping[str, bytes], environments: Sequence[str], repository: str) -> list[str]:
    """How to deploy a new version of an app, preferably one whose tag is a single line.

    files: kustomizations and charts of overlays, by path.
    """
    tagged = [path for path, text in files.items() if path.endswith(_IMAGES) and b"newTag:" in text]
    found = tagged or [path for path in files if path.endswith(_CHART)]
    if not found:
        return []
    path = min(found, key=lambda each: (environments.index(each.split("/")[3]), each))
    if tagged:
        return [
            f"  a new tag    change newTag in {path}, commit, push;",
            f"               the repository: {repository}",
        ]
    _, app, _, environment, _ = path.split("/")
    return [f"  a new tag    ucp promote {app} --env {environment} --tag TAG"]


def _coming(context: StartContext) -> list[str]:
    """Claims that a cloud is still creating; a start doesn't wait for them, as it may take long."""
    try:
        waiting = [claim_name(each) for each in composites(context.kube) if not is_ready(each)]
    except KubeError:
        return []
    return [f"  not yet      {some_of(waiting)}: ucp status"] if waiting else []


def _how(topology: Topology, provider: str) -> str:
    return f"{provider}, simulated" if is_simulated(topology, provider) else provider
