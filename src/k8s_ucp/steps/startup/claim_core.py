"""On an existing core cluster: records the objects to create before creating them.

It stops if one of them exists and isn't ours, since applying would change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.clusters.existing.provider import make
from k8s_ucp.components import argocd, crossplane, reconciler
from k8s_ucp.components.manifests import only_yaml, read
from k8s_ucp.components.ownership.inventory import Inventory
from k8s_ucp.components.ownership.ledger import Ledger, LedgerEntry, find
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError, some_of
from k8s_ucp.gitops.render.values.addons import chosen, on_core
from k8s_ucp.gitops.render.values.clouds import clouds
from k8s_ucp.names import CLUSTERS_NAMESPACE
from k8s_ucp.steps.startup.apply_manifests import first_applications

WORKERS = 8


def _preview_claim(context: StartContext) -> Iterator[PlannedChange]:
    if context.planned is None:
        return
    known = Ledger(context.state.ledger).entries()
    for each in sorted({*intended(context)} - known):
        yield PlannedChange("create", str(each), "ucp records it, then creates it")


@step("Record objects to install on the core cluster", preview=_preview_claim)
def claim_core(context: StartContext, report: Report) -> None:
    ledger = Ledger(context.state.ledger)
    known = ledger.entries()
    new = sorted(set(intended(context)) - known)
    adopted = make(context.workspace, context.topology)
    since = adopted.since(context.topology.core_cluster)
    ours = Inventory(context.kube, known, since, context.topology.name)
    with ThreadPoolExecutor(WORKERS, "claim") as pool:
        found = dict(zip(new, pool.map(lambda each: find(context.kube, each), new), strict=True))
    foreign = [each for each, item in found.items() if item and not ours.is_made(item)]
    if stopping := [each for each in foreign if not is_shared(each)]:
        raise UcpError(
            f"{context.topology.core_cluster} already has objects that ucp did not "
            "create and would overwrite: "
            f"{some_of(stopping)}",
            next="delete these objects, or use another cluster",
        )
    if claimed := [each for each in new if each not in foreign]:
        report(f"{len(claimed)} objects")
        ledger.add(claimed)


def intended(context: StartContext) -> Iterable[LedgerEntry]:
    """Objects that `ucp start` applies itself, and namespaces that Argo CD creates for add-ons."""
    core = context.published.core
    for name in (argocd.NAME, crossplane.NAME, reconciler.NAME):
        files = core.read(f"platform/{name}")
        yield from map(LedgerEntry.of, read(only_yaml(files)))
    yield from map(LedgerEntry.of, read(only_yaml(core.read("projects"))))
    yield from map(LedgerEntry.of, first_applications(context))
    yield from map(LedgerEntry.of, context.repository_secrets())
    for cloud in clouds(context.topology):
        yield LedgerEntry("v1", "Secret", crossplane.NAMESPACE, CLOUDS[cloud].secret)
    yield from addon_namespaces(context)


def is_shared(entry: LedgerEntry) -> bool:
    """Whether it is a namespace that others may own, for an add-on or mirrors; it stays theirs."""
    own = (argocd.NAMESPACE, crossplane.NAMESPACE, CLUSTERS_NAMESPACE)
    return entry.kind == "Namespace" and entry.name not in own


def addon_namespaces(context: StartContext) -> list[LedgerEntry]:
    """Namespaces of the add-ons on the core cluster."""
    names = {each.namespace for each in chosen(context.topology) if on_core(context.topology, each)}
    return [LedgerEntry("v1", "Namespace", "", each) for each in sorted(names)]
