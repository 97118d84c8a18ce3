"""Removes all objects of ucp from an existing core cluster.

First it deletes what would recreate objects: Argo CD's controllers or, in an Argo CD of others,
which stays, our Applications. Then the other workloads. As no controller is left to remove
finalizers, this module does. App clusters keep what they run, and the repositories everything that
is needed to restore the core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from k8s_ucp.clusters.existing.provider import make
from k8s_ucp.components import argocd
from k8s_ucp.components.ownership.inventory import Inventory
from k8s_ucp.components.ownership.ledger import Ledger, LedgerEntry, find
from k8s_ucp.components.ownership.tracking import is_on_core
from k8s_ucp.components.pods.component import WORKLOADS, pods_of
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import DeadlineExceeded
from k8s_ucp.kube import (
    APPLICATION,
    APPLICATION_SET,
    CRD,
    FIELD_MANAGER,
    NAMESPACE,
    Conflict,
    Kind,
    Kube,
    NotFound,
    Object,
    conditions_of,
)
from k8s_ucp.names import ARGOCD_MANAGER, ROOT_APPLICATION
from k8s_ucp.preflight.removal import inventory_of
from k8s_ucp.preflight.unresponsive_core import is_given_up
from k8s_ucp.steps.shutdown.stop import forget_access

SECONDS = 180.0
SYNC_SECONDS = 20.0
SHOWN = 5
RECREATING = (argocd.CONTROLLER, argocd.APPLICATION_SETS)
"""Workloads that would recreate deleted objects."""
HOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def _preview_removal(context: StartContext) -> Iterator[PlannedChange]:
    core = context.topology.core_cluster
    if is_given_up(context):
        why = "it is abandoned; if it comes back, delete them yourself"
        yield PlannedChange("keep", f"ucp's objects on {core}", why)
        return
    found = inventory_of(context)
    if found is None:
        return
    removed = [*found.created, *found.applied, *found.cluster_secrets, *found.applications]
    for entry in sorted({str(LedgerEntry.of(each)) for each in [*removed, *found.kinds]}):
        yield PlannedChange("delete", entry, f"ucp installed it on {core}")
    for each in found.namespaces:
        name = each["metadata"]["name"]
        lost = f"everything in the namespace {name} of {core}"
        yield PlannedChange("delete", f"Namespace {name}", f"ucp created it on {core}", lost)
    for each in found.shared:
        yield PlannedChange("keep", f"Namespace {each['metadata']['name']}", "not created by ucp")


@step("Remove ucp's objects from the core cluster", preview=_preview_removal)
def remove_from_core(context: StartContext, report: Report) -> None:
    name, provider = context.topology.core_cluster, make(context.workspace, context.topology)
    if is_given_up(context):
        report(f"{name} is abandoned: what ucp created there is kept")
        provider.forget(name)
    else:
        inventory = inventory_of(context)
        if inventory is None:
            return
        _Removal(context, inventory, report).run()
        provider.delete(name)
    Ledger(context.state.ledger).remove()
    forget_access(context, name)


@dataclass(frozen=True)
class _Removal:
    context: StartContext
    inventory: Inventory
    report: Report

    def run(self) -> None:
        inventory = self.inventory
        # Collected while everything still exists.
        objects = [*inventory.created, *inventory.applied, *inventory.cluster_secrets]
        namespaces, kinds, hooks = inventory.namespaces, inventory.kinds, self._hooks()
        shared = inventory.shared
        applications = inventory.applications
        workloads = [each for each in objects if each["kind"] in WORKLOADS]
        # Applications and workloads are deleted first. Record what they own or wrote, so that a
        # rerun after an interruption still knows that it is ours.
        ours = map(LedgerEntry.of, [*inventory.created, *inventory.made_inside()])
        Ledger(self.context.state.ledger).add(ours)
        self.report("automated sync of Argo CD")
        self._disable_sync(applications)
        if inventory.argocd_is_foreign:
            self.report("Applications")
            for each in shared:
                self._release_fields(each)
            self._delete_applications(
                applications, [each for each in objects if _is_application_set(each)]
            )
        self._delete_workloads(
            [each for each in workloads if each["metadata"]["name"] in RECREATING]
        )
        self.report("the other workloads")
        self._delete_workloads(
            [each for each in workloads if each["metadata"]["name"] not in RECREATING]
        )
        self.report("objects and kinds")
        self._delete_all(hooks)
        for kind, item in inventory.instances():
            self._remove_finalizers(kind, item)
        self._delete_all(
            [*applications, *(each for each in objects if not _is_namespace_or_crd(each))]
        )
        self._delete_all(kinds)
        self._await_deletion(kinds, "deletion of ucp's CRDs")
        self.report("namespaces")
        for each in shared:
            self._release_fields(each)
        self._delete_all(namespaces)
        self._await_deletion(namespaces, "deletion of ucp's namespaces")

    @property
    def kube(self) -> Kube:
        return self.inventory.kube

    def _disable_sync(self, applications: Sequence[Object]) -> None:
        """Disable automated sync of Applications on the core, beginning with root."""
        on_core = [each for each in applications if is_on_core(each)]
        names = [each["metadata"]["name"] for each in on_core]
        for name in sorted(names, key=lambda each: each != ROOT_APPLICATION):
            with suppress(NotFound):
                change = {"spec": {"syncPolicy": {"automated": None}}}
                self.kube.patch(APPLICATION, name, argocd.NAMESPACE, change)

        def busy() -> str:
            items = self.kube.list_all(APPLICATION, argocd.NAMESPACE)
            return ", ".join(
                each["metadata"]["name"]
                for each in items
                if each["metadata"]["name"] in names and _is_syncing(each)
            )

        if names:
            with suppress(DeadlineExceeded):
                # Without a controller that works on it, the operation stays in the status.
                self._wait("end of running syncs", busy, SYNC_SECONDS)

    def _delete_applications(self, applications: Sequence[Object], sets: Sequence[Object]) -> None:
        """Delete Applications of an Argo CD that keeps running; what they deployed is kept.

        First those that would restore the ApplicationSets, then the sets, which would recreate the
        rest.
        """
        on_core = [each for each in applications if is_on_core(each)]
        made = [each for each in applications if not is_on_core(each)]
        for kind, items in ((APPLICATION, on_core), (APPLICATION_SET, sets), (APPLICATION, made)):
            for each in items:
                self._remove_finalizers(kind, each)
            self._delete_all(items)
            if kind is APPLICATION_SET:
                # The garbage collector may not know the dependents of a young set yet and then
                # deletes them, so remove their finalizers at once. A set that is being deleted
                # doesn't restore finalizers.
                for each in made:
                    self._remove_finalizers(APPLICATION, each)
            self._await_deletion(items, f"deletion of ucp's {kind.plural}")

    def _delete_workloads(self, workloads: Sequence[Object]) -> None:
        """Delete workloads, and wait until their pods are gone."""
        self._delete_all(workloads)

        def left() -> str:
            pods = [
                each["metadata"]["name"] for item in workloads for each in pods_of(self.kube, item)
            ]
            return ", ".join(pods[:SHOWN])

        self._wait("termination of pods", left)

    def _hooks(self) -> list[Object]:
        """Webhook configurations for Services in our namespaces; Crossplane creates them itself."""
        inner = {each["metadata"]["name"] for each in self.inventory.namespaces}
        return [
            item
            for name in HOOKS
            for item in self.kube.list_all(
                self.kube.kind_of("admissionregistration.k8s.io/v1", name)
            )
            if self.inventory.is_young(item) and inner & set(webhook_namespaces(item))
        ]

    def _release_fields(self, item: Object) -> None:
        """Give up our fields of an object that ucp did not create, by applying none of them."""
        bare = {
            "apiVersion": item["apiVersion"],
            "kind": item["kind"],
            "metadata": {"name": item["metadata"]["name"]},
        }
        for manager in (FIELD_MANAGER, ARGOCD_MANAGER):
            self.kube.apply(bare, manager=manager)

    def _remove_finalizers(self, kind: Kind, item: Object) -> None:
        """Remove the finalizers of an object whose kind is deleted."""
        about = item["metadata"]
        if about.get("finalizers"):
            with suppress(NotFound, Conflict):
                self.kube.patch(
                    kind,
                    about["name"],
                    about.get("namespace"),
                    {"metadata": {"finalizers": None, "uid": about["uid"]}},
                )

    def _delete_all(self, items: Iterable[Object]) -> None:
        for item in items:
            about = item["metadata"]
            # Applications must not be deleted with their set: their finalizers would delete the
            # apps.
            propagation = "Orphan" if _is_application_set(item) else "Background"
            # It is gone already, or another object by now, which isn't ours.
            with suppress(NotFound, Conflict):
                kind = self.kube.kind_of(item["apiVersion"], item["kind"])
                self.kube.delete(
                    kind,
                    about["name"],
                    about.get("namespace"),
                    uid=about["uid"],
                    propagation=propagation,
                )

    def _await_deletion(self, items: Sequence[Object], what: str) -> None:
        def left() -> str:
            existing = [
                (each, now)
                for each in items
                if (now := find(self.kube, LedgerEntry.of(each))) is not None
            ]
            same = [
                now for each, now in existing if now["metadata"]["uid"] == each["metadata"]["uid"]
            ]
            return "; ".join(map(_what_keeps, same[:SHOWN]))

        self._wait(what, left)

    def _wait(self, what: str, pending: Callable[[], str], seconds: float = SECONDS) -> None:
        what = f"{what} on {self.context.topology.core_cluster}"
        self.context.wait(what, pending, seconds=seconds, next="ucp stop")


def webhook_namespaces(item: Object) -> Iterable[str]:
    """Namespaces of the services that a webhook configuration calls."""
    for each in item.get("webhooks") or []:
        service = (each.get("clientConfig") or {}).get("service") or {}
        yield str(service.get("namespace", ""))


def _is_syncing(application: Object) -> bool:
    operation = (application.get("status") or {}).get("operationState") or {}
    return "operation" in application or operation.get("phase") == "Running"


def _is_application_set(item: Object) -> bool:
    return bool(item["kind"] == APPLICATION_SET.kind)


def _is_namespace_or_crd(item: Object) -> bool:
    """Whether it contains other objects, which are deleted first."""
    return item["kind"] in (NAMESPACE.kind, CRD.kind)


def _what_keeps(item: Object) -> str:
    """Name of an object that is being deleted, and why it still exists, as the server reports."""
    messages = [
        str(each.get("message"))
        for each in conditions_of(item)
        if each["status"] == "True" and each["type"] not in ("Established", "NamesAccepted")
    ]
    return f"{item['metadata']['name']}: {messages[0][:200] if messages else 'being deleted'}"
