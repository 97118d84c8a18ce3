"""Take everything of ours away from a core cluster that somebody else made, and let it go.

Whoever would bring things back ends first: Argo CD's controllers, then the other workloads. Nobody
is left then to take finalizers off, so that is done here. App clusters keep what they run, and the
repositories everything that brings the core back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from k8s_ucp.clusters import local
from k8s_ucp.clusters.adoption import check_owner
from k8s_ucp.clusters.local import core_request
from k8s_ucp.components import argocd
from k8s_ucp.components.belongings import Belongings, find, is_on_core, services_of
from k8s_ucp.components.ledger import Entry, Ledger
from k8s_ucp.components.pods import POD, WORKLOADS
from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.gitops.rendering.core import of_others
from k8s_ucp.kube import (
    APPLICATION,
    CRD,
    FIELD_MANAGER,
    NAMESPACE,
    Conflict,
    Kind,
    Kube,
    KubeError,
    NotFound,
    Object,
)
from k8s_ucp.pipeline import Report
from k8s_ucp.steps.context import Context
from k8s_ucp.steps.stop_clusters import forget_access
from k8s_ucp.waiting import wait_until

SECONDS = 180.0
SYNC_SECONDS = 20.0
PAUSE = 0.2
SHOWN = 5
ROOT = "root"
"""The Application that was applied by hand."""
BRINGING = (argocd.CONTROLLER, argocd.APPLICATION_SETS)
"""Workloads that would make again what is deleted."""
ARGOCD_MANAGER = "argocd-controller"
"""As which Argo CD applies."""
HOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def check_core_of_others(context: Context) -> None:
    """Nothing that others made goes with what is ours. Raises UcpError, also for a silent core."""
    belongings = belongings_of(context)
    if belongings is None:
        _check_unknown(context)
        return
    try:
        foreign = belongings.foreign()
    except KubeError as error:
        raise UcpError(
            f"{context.topology.core_cluster} does not tell what is on it: {error.message}",
            next="mend that, then: ucp stop",
        ) from error
    if foreign:
        more = f" and {len(foreign) - SHOWN} more" if len(foreign) > SHOWN else ""
        raise UcpError(
            f"others made {', '.join(foreign[:SHOWN])}{more} on {context.topology.core_cluster}, "
            "which would go with the components that ucp put there",
            next="move or delete these, then: ucp stop",
        )


def _check_unknown(context: Context) -> None:
    """Our notes may have been lost, and everything be there all the same."""
    topology = context.topology
    if not of_others(topology):
        return
    request = core_request(context.workspace, topology)
    try:
        with local.existing(context.workspace, topology).opened(request) as kube:
            marked = check_owner(kube, request.name, context.workspace.machine_id(topology.name))
    except UcpError:
        # Nothing of ours, as far as can be seen.
        return
    if marked:
        raise UcpError(
            f"{request.name} is in use by this topology, but what ucp put there is written down "
            "nowhere any more",
            next="ucp start (which writes it down anew), then: ucp stop",
        )


@dataclass(frozen=True)
class RemoveFromCore:
    id: str = "remove-from-core"
    title: str = "Take what is ours away from the core cluster"

    def run(self, context: Context, report: Report) -> None:
        name = context.topology.core_cluster
        belongings = belongings_of(context)
        if belongings is None:
            return
        _Removal(context, belongings, report).run()
        local.existing(context.workspace, context.topology).delete(name)
        Ledger(context.state.ledger).remove()
        forget_access(context, name)


def belongings_of(context: Context) -> Belongings | None:
    """None where the core isn't somebody else's, or holds nothing of ours."""
    name, adopted = (
        context.topology.core_cluster,
        local.existing(context.workspace, context.topology),
    )
    if name not in adopted.names():
        return None
    # As the user's kubeconfig has it now: what start wrote down may be old.
    kube = Kube(adopted.kubeconfig(name))
    entries = Ledger(context.state.ledger).entries()
    return Belongings(kube, entries, adopted.since(name), context.topology.name)


@dataclass(frozen=True)
class _Removal:
    context: Context
    belongings: Belongings
    report: Report

    def run(self) -> None:
        found = self.belongings
        # Looked at while all of it is there.
        things = [*found.brought, *found.applied, *found.cluster_secrets]
        namespaces, kinds, hooks = found.namespaces, found.kinds, self._hooks()
        lent = found.lent
        applications = found.applications
        workloads = [each for each in things if each["kind"] in WORKLOADS]
        self.report("Argo CD's controllers")
        self._let_rest(applications)
        self._end([each for each in workloads if each["metadata"]["name"] in BRINGING])
        self.report("the other workloads")
        self._end([each for each in workloads if each["metadata"]["name"] not in BRINGING])
        self.report("objects and kinds")
        self._delete_all(hooks)
        for kind, item in found.instances():
            self._release(kind, item)
        self._delete_all([*applications, *(each for each in things if not _is_shell(each))])
        self._delete_all(kinds)
        self._await_gone(kinds, "our kinds gone")
        self.report("namespaces")
        for each in lent:
            self._give_back(each)
        self._delete_all(namespaces)
        self._await_gone(namespaces, "our namespaces gone")

    @property
    def kube(self) -> Kube:
        return self.belongings.kube

    def _let_rest(self, applications: Sequence[Object]) -> None:
        """Have Argo CD keep nothing on the core any more, the root first: it keeps the others."""
        resting = [each for each in applications if is_on_core(each)]
        names = [each["metadata"]["name"] for each in resting]
        for name in sorted(names, key=lambda each: each != ROOT):
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
                # Where nobody works on it any more, it stays like that.
                self._wait("end of syncs", busy, SYNC_SECONDS)

    def _end(self, workloads: Sequence[Object]) -> None:
        """Delete workloads, and wait for their pods to go."""
        self._delete_all(workloads)

        def left() -> str:
            pods = [
                each["metadata"]["name"]
                for item in workloads
                for each in self.kube.list_all(
                    POD, item["metadata"]["namespace"], labels=_selector(item)
                )
            ]
            return ", ".join(pods[:SHOWN])

        self._wait("end of pods", left)

    def _hooks(self) -> list[Object]:
        """Webhooks that call our namespaces: Crossplane makes them itself."""
        inner = {each["metadata"]["name"] for each in self.belongings.namespaces}
        return [
            item
            for name in HOOKS
            for item in self.kube.list_all(
                self.kube.kind_of("admissionregistration.k8s.io/v1", name)
            )
            if self.belongings.is_young(item) and inner & set(services_of(item))
        ]

    def _give_back(self, item: Object) -> None:
        """Take our fields off an object of others: applying none of them says so."""
        bare = {
            "apiVersion": item["apiVersion"],
            "kind": item["kind"],
            "metadata": {"name": item["metadata"]["name"]},
        }
        for manager in (FIELD_MANAGER, ARGOCD_MANAGER):
            self.kube.apply(bare, manager=manager)

    def _release(self, kind: Kind, item: Object) -> None:
        """Take finalizers off an object whose kind goes."""
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
            # Gone already, or another object by now: then it isn't ours.
            with suppress(NotFound, Conflict):
                kind = self.kube.kind_of(item["apiVersion"], item["kind"])
                self.kube.delete(kind, about["name"], about.get("namespace"), uid=about["uid"])

    def _await_gone(self, items: Sequence[Object], what: str) -> None:
        def left() -> str:
            there = [
                (each, now)
                for each in items
                if (now := find(self.kube, Entry.of(each))) is not None
            ]
            same = [now for each, now in there if now["metadata"]["uid"] == each["metadata"]["uid"]]
            return "; ".join(map(_what_keeps, same[:SHOWN]))

        self._wait(what, left)

    def _wait(self, what: str, look: Callable[[], str], seconds: float = SECONDS) -> None:
        def seen() -> str:
            try:
                return look()
            except KubeError as error:
                return error.message

        wait_until(
            f"{what} on {self.context.topology.core_cluster}",
            seen,
            seconds=seconds,
            cancel=self.context.cancel,
            pause=PAUSE,
            next="ucp stop",
        )


def _is_syncing(application: Object) -> bool:
    operation = (application.get("status") or {}).get("operationState") or {}
    return "operation" in application or operation.get("phase") == "Running"


def _is_shell(item: Object) -> bool:
    """It goes after what is in it."""
    return item["kind"] in (NAMESPACE.kind, CRD.kind)


def _selector(workload: Object) -> str:
    labels = workload["spec"]["selector"].get("matchLabels") or {}
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def _what_keeps(item: Object) -> str:
    """Name of something that is going, and why it isn't gone, as the server says."""
    conditions = (item.get("status") or {}).get("conditions") or []
    said = [
        str(each.get("message"))
        for each in conditions
        if each["status"] == "True" and each["type"] not in ("Established", "NamesAccepted")
    ]
    return f"{item['metadata']['name']}: {said[0][:200] if said else 'it is going'}"
