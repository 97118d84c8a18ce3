"""Checks the components to adopt on an existing core cluster (spec.core.adopt).

All requirements are checked before the first change. Adopted components are never changed:
incompatible settings are refused, settings that could be better are noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from k8s_ucp.clusters.existing.adoption import check_owner, marked_at
from k8s_ucp.clusters.existing.provider import make
from k8s_ucp.clusters.local import core_request
from k8s_ucp.components import argocd, crossplane
from k8s_ucp.components.adoption import adopted_argocd
from k8s_ucp.components.adoption.adopted import (
    CONTROLLER,
    TRAITS,
    AdoptedComponent,
    Installation,
    find_component,
)
from k8s_ucp.components.ownership.inventory import Inventory
from k8s_ucp.components.ownership.ledger import Ledger, LedgerEntry
from k8s_ucp.context import StartContext, TopologyView
from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.kube import APPLICATION_SET, CONFIG_MAP, CRD, Kube, KubeError, NotFound, Object
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.required import relied_on
from k8s_ucp.topology.placement import core_is_existing
from k8s_ucp.topology.values import in_seconds

SERVED: Mapping[str, Mapping[str, str]] = {
    argocd.NAME: {
        "applications.argoproj.io": "v1alpha1",
        "applicationsets.argoproj.io": "v1alpha1",
        "appprojects.argoproj.io": "v1alpha1",
    },
    crossplane.NAME: {
        "providers.pkg.crossplane.io": "v1",
        "functions.pkg.crossplane.io": "v1",
        "deploymentruntimeconfigs.pkg.crossplane.io": "v1beta1",
        "compositeresourcedefinitions.apiextensions.crossplane.io": "v2",
        "compositions.apiextensions.crossplane.io": "v1",
    },
}
"""{component: {CRD: the version that ucp writes}}"""


@dataclass(frozen=True)
class AdoptedCore:
    """An existing core cluster. inventory: None if it is not marked as ours yet."""

    kube: Kube
    inventory: Inventory | None

    def is_ours(self, item: Object) -> bool:
        """Whether ucp created it, or Argo CD did for ucp."""
        ours = self.inventory
        if ours is None:
            return False
        return ours.is_young(item) and (LedgerEntry.of(item) in ours.entries or ours.is_made(item))


@contextmanager
def opened_core(context: StartContext) -> Iterator[AdoptedCore]:
    """The existing core cluster, after checking that we may use it. Raises UcpError."""
    topology = context.topology
    request = core_request(context.workspace, topology)
    existing = make(context.workspace, topology)
    with existing.opened(request) as kube:
        noted = request.name in existing.names()
        marked = check_owner(kube, request.name, context.workspace.machine_id(topology.name))
        inventory = None
        if noted or marked:
            since = existing.since(request.name) if noted else marked_at(kube)
            entries = Ledger(context.state.ledger).entries()
            inventory = Inventory(kube, entries, since, topology.name)
        yield AdoptedCore(kube, inventory)


def check_adopted(context: StartContext) -> None:
    """Check that adopted components exist, are compatible and are ready. Raises UcpError."""
    adopt = context.topology.spec.core.adopt
    if not core_is_existing(context.topology) or not adopt:
        return
    with opened_core(context) as core:
        for name in adopt:
            found = AdoptedComponent(name, core.kube).found()
            _check_installation(context, core, found)
            _check_version(found, relied_on(context.topology)[name])
            _check_kinds(core.kube, found)
            if name == argocd.NAME:
                _check_argocd(context, core.kube, found)
            _check_ready(context, core.kube, found)
            tested = f"v{CATALOGUE[name].version}"
            if found.version != tested:
                context.notes.append(
                    f"the existing {TRAITS[name].title} is "
                    f"{found.version or 'of unknown version'}; this version of ucp is "
                    f"tested with {tested}"
                )


def kubectl(context: TopologyView) -> str:
    """kubectl with the context of the core cluster, for advice."""
    return command_line("kubectl", "--context", context.topology.spec.core.context)


def _check_installation(context: StartContext, core: AdoptedCore, found: Installation) -> None:
    traits = TRAITS[found.name]
    where = f"the cluster of context {context.topology.spec.core.context}"
    without = f"remove {found.name} from --adopt and from spec.core.adopt in ucp.yaml"
    if not found.items:
        raise UcpError(
            f"{traits.title} is not installed on {where} and can't be adopted",
            next=f"{without}: ucp installs its own",
        )
    if traits.namespace not in found.namespaces:
        raise UcpError(
            f"{traits.title} on {where} runs in the namespace "
            f"{', '.join(found.namespaces)}, but can be adopted in {traits.namespace} "
            "only",
            next="move it to that namespace, or use another cluster",
        )
    if found.missing:
        raise UcpError(
            f"{traits.title} on {where} is incomplete: {', '.join(found.missing)}",
            next="install it completely, or use another cluster",
        )
    if any(core.is_ours(each) for each in found.parts.values()):
        raise UcpError(
            f"{traits.title} on {where} was installed by ucp and can't be adopted",
            next=f"{without}, or first: ucp stop",
        )


def _check_version(found: Installation, wanted: str | None) -> None:
    if wanted and wanted.removeprefix("v") != found.version.removeprefix("v"):
        raise UcpError(
            f"spec.{found.name}.version is {wanted}, but the existing "
            f"{TRAITS[found.name].title} is {found.version or 'of unknown version'}",
            next="change the key in ucp.yaml, or install that version on the cluster",
        )


def _check_kinds(kube: Kube, found: Installation) -> None:
    lacking = list(unserved(SERVED[found.name], kube.list_all(CRD)))
    if lacking:
        raise UcpError(
            f"{TRAITS[found.name].title} {found.version} is not supported by ucp: it "
            f"does not serve {', '.join(lacking)}",
            next=(
                "install a version that ucp is tested with, such as "
                f"v{CATALOGUE[found.name].version}"
            ),
        )


def unserved(wanted: Mapping[str, str], crds: Iterable[Object]) -> Iterator[str]:
    """Kinds that aren't served in the version that ucp writes."""
    served = {
        each["metadata"]["name"]: {one["name"] for one in each["spec"]["versions"] if one["served"]}
        for each in crds
    }
    for name, version in wanted.items():
        if version not in served.get(name, ()):
            yield f"{name} {version}"


def _check_ready(context: StartContext, kube: Kube, found: Installation) -> None:
    health = AdoptedComponent(found.name, kube).rolled_out()
    if not health.ready:
        raise UcpError(
            f"the adopted {TRAITS[found.name].title} on "
            f"{context.topology.core_cluster} is not ready: {health.message}",
            next=f"{kubectl(context)} -n {TRAITS[found.name].namespace} get pods",
        )


def settings_of(kube: Kube, name: str) -> Mapping[str, str]:
    """Data of an adopted component's ConfigMap; empty if there is none."""
    found = kube.find(CONFIG_MAP, name, argocd.NAMESPACE) or {}
    return {key: str(value) for key, value in (found.get("data") or {}).items()}


def adopted_settings(context: TopologyView) -> tuple[list[tuple[str, str]], list[str]]:
    """Of an adopted Argo CD: (incompatible settings with commands, effects of missing settings)."""
    if not context.adopts(argocd.NAME):
        return [], []
    try:
        return _settings(context, context.kube, find_component(context.kube, argocd.NAME))
    except KubeError:
        return [], []


def _settings(
    context: TopologyView, kube: Kube, found: Installation
) -> tuple[list[tuple[str, str]], list[str]]:
    spec = context.topology.spec
    settings = settings_of(kube, adopted_argocd.SETTINGS)
    parameters = settings_of(kube, adopted_argocd.PARAMETERS)
    protects = any(each.deletion_protection for each in spec.environments)
    wrong = adopted_argocd.unfit(settings, parameters, found.version, protects=protects)
    poll = f"{in_seconds(spec.git.poll)}s"
    lacking = adopted_argocd.lacking(settings, poll)
    try:
        sets = kube.list_all(APPLICATION_SET, argocd.NAMESPACE)
    except NotFound:
        sets = []
    for name in adopted_argocd.sets_for_all_clusters(sets):
        lacking.append(
            f"the existing ApplicationSet {name} has a cluster generator without a "
            "selector: it also deploys to the environments' clusters"
        )
    return [(each.message, each.command(kubectl(context))) for each in wrong], lacking


def _check_argocd(context: StartContext, kube: Kube, found: Installation) -> None:
    wrong, lacking = _settings(context, kube, found)
    if wrong:
        raise UcpError(
            f"the existing Argo CD can't be used: {'; '.join((message for message, _ in wrong))}",
            next="; ".join(command for _, command in wrong),
        )
    account = str(
        found.parts[CONTROLLER]["spec"]["template"]["spec"].get("serviceAccountName", "default")
    )
    if not _may_do_all(kube, account):
        raise UcpError(
            f"the existing Argo CD (ServiceAccount {account}) is not cluster-admin, "
            "which the core repository requires",
            next=f"{kubectl(context)} create clusterrolebinding {account} "
            f"--clusterrole=cluster-admin --serviceaccount={argocd.NAMESPACE}:{account}",
        )
    context.notes += [f"the existing Argo CD: {each}" for each in lacking]


def _may_do_all(kube: Kube, account: str) -> bool:
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{argocd.NAMESPACE}:{account}",
            "groups": [
                "system:serviceaccounts",
                f"system:serviceaccounts:{argocd.NAMESPACE}",
                "system:authenticated",
            ],
            "resourceAttributes": {"verb": "*", "group": "*", "resource": "*"},
        },
    }
    return bool(kube.request("POST", path, body=review)["status"].get("allowed"))
