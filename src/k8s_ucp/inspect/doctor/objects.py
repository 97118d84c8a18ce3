"""Objects stuck in deletion, not reconciled by any controller, or not known to be ours. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from k8s_ucp.inspect.doctor.finding import Finding
from k8s_ucp.inspect.resource_conditions import kubectl_words
from k8s_ucp.kube import Object, annotations_of, conditions_of, mapping_in, mappings_in
from k8s_ucp.managed.ownership import may_be_foreign
from k8s_ucp.names import OWNED, PAUSED
from k8s_ucp.timestamps import parse_stamp

STUCK_SECONDS = 300.0
"""A deletion that takes longer is reported with its finalizers."""

_PAUSES = {
    PAUSED: "Crossplane does not reconcile it",
    "argocd.argoproj.io/skip-reconcile": "Argo CD does not reconcile it",
}
"""Annotations that stop a controller's reconciliation if they are "true"."""

_OWNERS = (
    ("resources-finalizer.argocd.argoproj.io", "Argo CD", "ucp logs argocd"),
    ("finalizer.managedresource.crossplane.io", "its Crossplane provider", ""),
    ("in-use.crossplane.io", "Crossplane: other objects use it", ""),
    ("apiextensions.crossplane.io", "Crossplane", "ucp logs crossplane"),
    ("k8s-ucp.io", "the reconciler", "ucp logs reconciler"),
    ("foregroundDeletion", "the garbage collector: objects that it owns are still there", ""),
    ("kubernetes.io/pvc-protection", "Kubernetes: a Pod still uses it", ""),
    ("kubernetes.io/pv-protection", "Kubernetes: a claim still uses it", ""),
    ("service.kubernetes.io/load-balancer-cleanup", "the cloud's load-balancer controller", ""),
    ("customresourcecleanup.apiextensions.k8s.io", "Kubernetes: objects of it are still there", ""),
)
"""(suffix of a finalizer's name or domain, its controller, command that shows that one's errors)"""
_REMAINING = ("NamespaceContentRemaining", "NamespaceFinalizersRemaining")
"""Conditions of a namespace that say what blocks its deletion."""


def stuck(cluster: str, kubectl: str, objects: Iterable[Object], now: float) -> Iterator[Finding]:
    """Objects that were deleted more than STUCK_SECONDS ago and still exist.

    kubectl: the command with the cluster's kubeconfig.
    """
    for each in objects:
        since = parse_stamp(each["metadata"].get("deletionTimestamp"))
        if since is None or now - since < STUCK_SECONDS:
            continue
        owners = [_owner(name) for name in each["metadata"].get("finalizers") or ()]
        why = _remaining(each) or ", ".join(words for words, _ in owners)
        logs = next((command for _, command in owners if command), "")
        yield Finding(
            f"deletion/{cluster}/{_id(each)}",
            "error",
            f"{_words(each)} on {cluster} has been terminating for {_age(now - since)}: "
            f"{why or 'no finalizer holds it'}",
            logs or f"{kubectl} {kubectl_words('describe', each)}",
        )


def paused(cluster: str, kubectl: str, objects: Iterable[Object], now: float) -> Iterator[Finding]:
    """Objects whose reconciliation is paused by an annotation."""
    for each in objects:
        annotations = annotations_of(each)
        for name, words in _PAUSES.items():
            if annotations.get(name) != "true":
                continue
            manager, since = _set_by(each, name)
            age = f" for {_age(now - since)}" if since is not None else ""
            by = f", set by {manager}" if manager else ""
            yield Finding(
                f"paused/{cluster}/{_id(each)}",
                "warning",
                f"{_words(each)} on {cluster} has been paused{age} ({name}{by}): {words}",
                f"{kubectl} {kubectl_words('annotate', each)} {name}-",
            )


def foreign(cluster: str, kubectl: str, objects: Iterable[Object], _: float) -> Iterator[Finding]:
    """Clusters and databases in a cloud that may belong to another topology of the same name."""
    for each in objects:
        if may_be_foreign(each):
            yield Finding(
                f"foreign/{cluster}/{_id(each)}",
                "warning",
                f"{_words(each)} was in the cloud before {cluster} managed it, and may belong to "
                "another topology of the same name: its deletion is refused",
                f"if it is yours: {kubectl} {kubectl_words('annotate', each)} {OWNED}=true; if "
                "not, give this topology another metadata.name",
            )


def _owner(finalizer: str) -> tuple[str, str]:
    for end, owner, command in _OWNERS:
        if finalizer.partition("/")[0].endswith(end) or finalizer.endswith(end):
            return f"finalizer {finalizer} of {owner}", command
    domain = finalizer.partition("/")[0]
    return f"finalizer {finalizer} of the controller for {domain}", ""


def _remaining(item: Object) -> str:
    found = {
        str(each.get("type")): str(each.get("message", ""))
        for each in conditions_of(item)
        if each.get("status") == "True"
    }
    return " ".join(found[name] for name in _REMAINING if found.get(name))


def _set_by(item: Object, annotation: str) -> tuple[str, float | None]:
    """(field manager, time) of the last write of an annotation; empty if no manager owns it."""
    for each in mappings_in(item, "metadata", "managedFields"):
        if f"f:{annotation}" in mapping_in(each, "fieldsV1", "f:metadata", "f:annotations"):
            return str(each.get("manager", "")), parse_stamp(str(each.get("time") or ""))
    return "", None


def _id(item: Object) -> str:
    metadata = item["metadata"]
    return "/".join(filter(None, (item["kind"], metadata.get("namespace"), metadata["name"])))


def _words(item: Object) -> str:
    return _id(item).replace("/", " ", 1)


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 60:.0f} min"
