"""A new core cluster observes existing cloud resources before it may change any of them.

Until all of them were observed and compared with their declarations, managed resources may only be
observed, and what declares them is paused in Argo CD and Crossplane. An annotation records their
previous settings, so that an interrupted run can be continued.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from k8s_ucp.aws.crds import CLUSTER_PROVIDER_CONFIG
from k8s_ucp.context import StartContext, persistent
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import some_of
from k8s_ucp.inspect.crossplane_objects import composites
from k8s_ucp.inspect.resource_conditions import WAITS_FOR_ANOTHER
from k8s_ucp.kube import APPLICATION, Kind, Kube, Object, annotations_of
from k8s_ucp.managed.comparison import differences
from k8s_ucp.managed.policies import policies_of
from k8s_ucp.names import ARGOCD_NAMESPACE, EXTERNAL_NAME, GROUP, PAUSED, REFRESH
from k8s_ucp.reconciler.backup_content import EXTERNAL_NAMES
from k8s_ucp.reconciler.runtime.conditions import find

ADOPTING = f"{GROUP}/adopting"
"""Annotation of a resource that is only observed, or of a paused object: its previous policies, as
JSON."""
RESTS = "argocd.argoproj.io/skip-reconcile"
"""Annotation that makes Argo CD skip an Application."""
SECONDS = 600.0
SETTLE_SECONDS = 20.0
"""How long resources that wait for others, missing in the cloud, may delay the end."""
_ABSENT = re.compile(r"external resource does not exist")


def begin_observing(context: StartContext, applications: Iterable[str]) -> None:
    """Before any provider has the account. applications: those that declare managed resources."""
    kube = context.kube
    for name in applications:
        _rest(kube, APPLICATION, name, ARGOCD_NAMESPACE, RESTS)
    for each in composites(kube):
        about = each["metadata"]
        kind = kube.kind_of(each["apiVersion"], each["kind"])
        if PAUSED not in annotations_of(each):
            _rest(kube, kind, about["name"], about.get("namespace"), PAUSED)
    for _, kind, item in context.core_state.managed():
        policies = policies_of(item)
        if is_adopting(item) or policies.only_observed or policies.paused:
            continue
        about, listed = item["metadata"], item["spec"].get("managementPolicies")
        change = {
            "metadata": {"annotations": {ADOPTING: json.dumps(listed)}},
            "spec": {"managementPolicies": ["Observe"]},
        }
        kube.patch(kind, about["name"], about.get("namespace"), change)


def has_begun(context: StartContext) -> bool:
    """Whether an earlier run was interrupted during the observation or its end. Raises KubeError.

    Owners of the resources are paused before these are only observed, and resumed after they are
    managed.
    """
    kube = context.kube
    managed = (each for _, _, each in context.core_state.managed())
    keepers = (*composites(kube), *kube.list_all(APPLICATION, ARGOCD_NAMESPACE))
    return any(map(is_adopting, keepers)) or any(map(is_adopting, managed))


def has_account(context: StartContext) -> bool:
    """Whether the simulated cloud's provider may act already. Raises KubeError."""
    return context.simulates_cloud and (
        context.kube.find(CLUSTER_PROVIDER_CONFIG, "default") is not None
    )


def _preview_adoption(context: StartContext) -> Iterator[PlannedChange]:
    if context.core_responds() and EXTERNAL_NAMES in context.core_state.restored():
        return
    why = "each is observed and compared with git before anything may be changed"
    yield PlannedChange("wait", "existing cloud resources", why)


@step("Compare existing cloud resources, then manage them", preview=_preview_adoption)
@persistent
def adopt_resources(context: StartContext, report: Report) -> None:
    """Raises DeadlineExceeded with the resources that can't be observed."""
    state = context.core_state
    if EXTERNAL_NAMES in state.restored():
        return
    watch = _Observation(context)
    if watch.pending():
        context.wait(
            "observation of existing cloud resources",
            watch.pending,
            report,
            seconds=SECONDS,
            pause=0.5,
            next="fix the cause (ucp doctor)",
        )
    found = [each for _, each in watch.seen if _is_synced(each)]
    result = context.adoption
    result.adopted = len(found)
    for each in found:
        if words := differences(each):
            result.differing.append(f"{_named(each)} ({'; '.join(words)})")
    for each in (item for _, item in watch.seen if not _is_synced(item)):
        result.recreated.append(_named(each))
    differing = f"; {len(result.differing)} differ from git" if result.differing else ""
    report(f"{len(found)} adopted{differing}")
    _own(context, watch.seen)
    state.note_restored("restore-external-names", EXTERNAL_NAMES)


@dataclass
class _Observation:
    """Observation of all resources that may only be observed for now."""

    context: StartContext
    seen: list[tuple[Kind, Object]] = field(default_factory=list)
    _only_references_since: float | None = None

    def pending(self) -> str:
        """Resources that are not observed yet, in words. Raises KubeError."""
        managed = self.context.core_state.managed()
        self.seen = [(kind, each) for _, kind, each in managed if is_adopting(each)]
        waiting = {
            f"{_named(each)}: {why}": bool(WAITS_FOR_ANOTHER.search(why))
            for _, each in self.seen
            if (why := unseen(each))
        }
        if not waiting or not all(waiting.values()):
            self._only_references_since = None
        else:
            now = time.monotonic()
            self._only_references_since = self._only_references_since or now
            if now - self._only_references_since > SETTLE_SECONDS:
                return ""
        return some_of(sorted(waiting))


def is_adopting(item: Object) -> bool:
    """Whether a resource is only observed until it was compared with git."""
    return ADOPTING in annotations_of(item)


def unseen(item: Object) -> str:
    """Why the state of a resource in the cloud is still unknown; "" if it is known. Pure."""
    condition = find(item, "Synced")
    if condition is None:
        return "not observed yet"
    message = str(condition.get("message") or condition.get("reason") or "")
    if condition["status"] == "True" or _ABSENT.search(message):
        return ""
    return message or "not observed yet"


def _is_synced(item: Object) -> bool:
    return (find(item, "Synced") or {}).get("status") == "True"


def _own(context: StartContext, observed: Iterable[tuple[Kind, Object]]) -> None:
    """Make resources managed, then resume their owners, which would undo this otherwise."""
    kube = context.kube
    for kind, item in observed:
        before = json.loads(item["metadata"]["annotations"][ADOPTING])
        # A default value must not get a field manager.
        spec = {"managementPolicies": None if before == ["*"] else before}
        change = {"metadata": {"annotations": {ADOPTING: None}}, "spec": spec}
        kube.patch(kind, item["metadata"]["name"], item["metadata"].get("namespace"), change)
    for each in filter(is_adopting, composites(kube)):
        kind = kube.kind_of(each["apiVersion"], each["kind"])
        _wake(kube, kind, each, {PAUSED: None})
    for each in filter(is_adopting, kube.list_all(APPLICATION, ARGOCD_NAMESPACE)):
        # Argo CD notices changes made meanwhile when asked to, or when its comparison expires.
        _wake(kube, APPLICATION, each, {RESTS: None, **REFRESH})


def _rest(kube: Kube, kind: Kind, name: str, namespace: str | None, annotation: str) -> None:
    change = {"metadata": {"annotations": {annotation: "true", ADOPTING: "null"}}}
    kube.patch(kind, name, namespace, change)


def _wake(kube: Kube, kind: Kind, item: Object, annotations: Mapping[str, str | None]) -> None:
    about = item["metadata"]
    change = {"metadata": {"annotations": {ADOPTING: None, **annotations}}}
    kube.patch(kind, about["name"], about.get("namespace"), change)


def _named(item: Object) -> str:
    name = annotations_of(item).get(EXTERNAL_NAME, "")
    return f"{item['kind']} {name or item['metadata']['name']}"
