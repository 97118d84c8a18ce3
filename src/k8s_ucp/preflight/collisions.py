"""Checks that no objects of others on an existing core collide with those of ucp.

Checked before the first change, for what the topology renders: names of our Applications, projects,
packages, registrations and Secrets must not be taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.components import argocd, crossplane
from k8s_ucp.components.manifests import Manifest, only_yaml, read, refused
from k8s_ucp.components.ownership.ledger import LedgerEntry, find
from k8s_ucp.components.ownership.tracking import tracker
from k8s_ucp.components.repositories import render_all
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError, some_of
from k8s_ucp.gitops.manifests.images_and_ports import split_image
from k8s_ucp.gitops.publish.repositories import SETS
from k8s_ucp.gitops.render.values.clouds import clouds
from k8s_ucp.kube import APPLICATION, SECRET, Kind, NotFound
from k8s_ucp.names import SECRET_TYPE, TOPOLOGY
from k8s_ucp.preflight.adoption import AdoptedCore, opened_core
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.topology.placement import core_is_existing

SHOWN = 5
WORKERS = 8
PROVIDER = Kind("pkg.crossplane.io/v1", "Provider", "providers", namespaced=False)
ITSELF = ("https://kubernetes.default.svc", "in-cluster")
"""The core cluster in Argo CD: address and name."""
GROUPS = {argocd.NAME: ("argoproj.io",), crossplane.NAME: ("crossplane.io",)}
"""{component: suffixes of the API groups of its kinds}"""


def check_collisions(context: StartContext) -> None:
    """Check that our names are free and the server accepts our objects. Raises UcpError."""
    adopt = context.topology.spec.core.adopt
    if not core_is_existing(context.topology) or not adopt:
        return
    with opened_core(context) as core:
        manifests = rendered(context)
        taken = [*_taken(context, core, manifests), *_registered(context, core)]
        if taken:
            raise UcpError(
                f"the cluster of context {context.topology.spec.core.context} already "
                "has objects that ucp did not create and would overwrite: "
                f"{some_of(taken)}",
                next="rename or delete these objects, or use another cluster",
            )
        kinds = [each for each in manifests if _is_of(each, adopt)]
        if wrong := refused(core.kube, kinds):
            raise UcpError(
                f"the cluster of context {context.topology.spec.core.context} rejects "
                f"objects of ucp: {'; '.join(wrong[:SHOWN])}",
                next=(
                    "upgrade the existing components to a version that ucp is tested with "
                    "(docs/cores.md), or allow these objects in the cluster's policies"
                ),
            )


def rendered(context: StartContext) -> list[Manifest]:
    """Objects that the topology's Applications apply to the core in kinds of adopted components."""
    repositories = render_all(
        context.workspace, context.topology, context.topology_file, context.manifests, None
    )
    wanted = ("bootstrap/", "projects/", SETS, "providers/", "api/", "platform/reconciler/")
    core = {path: text for path, text in repositories.core.items() if path.startswith(wanted)}
    return read(only_yaml(core))


def _taken(context: StartContext, core: AdoptedCore, manifests: Iterable[Manifest]) -> list[str]:
    manifests, used = list(manifests), clouds(context.topology)
    entries = {
        *(LedgerEntry.of(each) for each in manifests if "reconciler/" not in each.source),
        *map(LedgerEntry.of, context.repository_secrets()),
        *(LedgerEntry("v1", "Secret", crossplane.NAMESPACE, CLOUDS[each].secret) for each in used),
    }
    # Namespaces of others may have tracking ids of our Applications, which may not exist yet.
    keepers = {each.name for each in manifests if each.kind == APPLICATION.kind}
    shared = {LedgerEntry.of(each) for each in manifests if each.kind == "Namespace"}
    wanted = sorted(entries | shared)
    with ThreadPoolExecutor(WORKERS, "taken") as pool:
        found = list(pool.map(lambda each: find(core.kube, each), wanted))
    existing = [(each, item) for each, item in zip(wanted, found, strict=True) if item]
    taken = [
        str(each)
        for each, item in existing
        if (each in entries and not core.is_ours(item)) or tracker(item) not in ("", *keepers)
    ]
    return [*taken, *_same_packages(core, manifests)]


def _same_packages(core: AdoptedCore, manifests: Iterable[Manifest]) -> list[str]:
    """Providers of the same package under other names: Crossplane installs a package only once."""
    ours = {each.name: package_in(each.text) for each in manifests if each.kind == PROVIDER.kind}
    if not ours:
        return []
    try:
        providers = core.kube.list_all(PROVIDER)
    except NotFound:
        return []
    return [
        f"Provider {each['metadata']['name']} (the package {package})"
        for each in providers
        if (package := package_of(str(each["spec"]["package"]))) in ours.values()
        and each["metadata"]["name"] not in ours
    ]


def package_in(text: str) -> str:
    """The package of a Provider in YAML."""
    line = next(each for each in text.splitlines() if each.strip().startswith("package:"))
    return package_of(line.partition(":")[2].strip().strip("'\""))


def package_of(reference: str) -> str:
    """A package without version and registry, so that mirrors compare as equal."""
    return split_image(reference)[0].rpartition("/")[2]


def _registered(context: StartContext, core: AdoptedCore) -> Iterator[str]:
    topology = context.topology
    names = {topology.app_cluster(each.name) for each in topology.spec.environments}
    for secret in core.kube.list_all(SECRET, argocd.NAMESPACE, labels=f"{SECRET_TYPE}=cluster"):
        registration = Registration.of(secret)
        where = f"Secret {registration.name} in {argocd.NAMESPACE}"
        if registration.cluster in names and registration.labels.get(TOPOLOGY) != topology.name:
            yield f"{where}, which registers {registration.cluster}"
        elif registration.access[0] == ITSELF[0] and registration.cluster != ITSELF[1]:
            yield (
                f"{where}, which names the in-cluster destination {registration.cluster} instead "
                f"of {ITSELF[1]}"
            )


def _is_of(manifest: Manifest, components: Iterable[str]) -> bool:
    """Whether its kind belongs to one of these components."""
    group = manifest.api_version.partition("/")[0]
    ends = tuple(end for each in components for end in GROUPS[each])
    return "/" in manifest.api_version and group.endswith(ends)
