"""Mirrors between real clusters: sources on the core, copies on two app clusters."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import (
    CONFIG_MAP,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SYNCER,
    Kind,
    Kube,
    NotFound,
    Object,
)
from k8s_ucp.reconciler.runtime.conditions import find
from tests.integration.reconciler.world import Clusters, clear, eventually

SOURCES = "crossplane-system"
STAGE, PROD = "demo-stage", "demo-prod"
ALL: dict[str, Any] = {"targetSelector": {}}
_GROUP = "admissionregistration.k8s.io/v1"
_POLICY = Kind(_GROUP, "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
_POLICY_BINDING = Kind(
    _GROUP, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"
)
CONNECTION = "connection.crossplane.io/v1alpha1"


def encoded(data: dict[str, str]) -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}


def decoded(item: Object | None) -> dict[str, str] | None:
    if item is None:
        return None
    return {
        name: base64.b64decode(value).decode() for name, value in (item.get("data") or {}).items()
    }


def secret(name: str, namespace: str, data: dict[str, str], **parts: Any) -> Object:
    labels = parts.pop("labels", {})
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": encoded(data),
        **parts,
    }


@contextlib.contextmanager
def denying(
    app: Kube, rule: dict[str, list[str]], validation: dict[str, str], denies: Callable[[], bool]
) -> Iterator[None]:
    """An admission policy of a cluster, in force. denies: whether it denies what it should."""
    spec = {
        "matchConstraints": {"resourceRules": [{"apiVersions": ["v1"], **rule}]},
        "validations": [validation],
    }
    chosen = {"policyName": "denying", "validationActions": ["Deny"]}
    try:
        app.apply(_POLICY.object("denying", None, spec=spec), manager="test")
        app.apply(_POLICY_BINDING.object("denying", None, spec=chosen), manager="test")
        eventually(denies, "the policy is in force")
        yield
    finally:
        app.delete(_POLICY_BINDING, "denying")
        app.delete(_POLICY, "denying")


class Mirrors:
    """Operations on mirrors in a Clusters."""

    def __init__(self, world: Clusters) -> None:
        self.world = world
        self.core = world.core

    def started(self, *environments: str, **settings: Any) -> Mirrors:
        """Start a reconciler, and register these environments, or stage."""
        self.world.start(**settings)
        for each in environments or ("stage",):
            self.world.declare(each)
        for each in environments or ("stage",):
            self.world.await_registered(f"demo-{each}")
        return self

    def source(self, name: str, data: dict[str, str], **parts: Any) -> Object:
        item = secret(name, parts.pop("namespace", SOURCES), data, **parts)
        return self.core.apply(item, manager="test")

    def syncer(self, name: str, *entries: dict[str, Any], namespace: str = SOURCES) -> Object:
        return self.core.apply(
            {
                "apiVersion": "k8s-ucp.io/v1alpha1",
                "kind": "Syncer",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"data": list(entries)},
            },
            manager="test",
        )

    def app(self, cluster: str = STAGE) -> Kube:
        return self.world.apps[cluster]

    def copy(self, name: str, namespace: str = "quote", cluster: str = STAGE) -> Object | None:
        return self.app(cluster).find(SECRET, name, namespace)

    def await_copy(
        self, name: str, data: dict[str, str], namespace: str = "quote", cluster: str = STAGE
    ) -> Object:
        def same() -> Object | None:
            found = self.copy(name, namespace, cluster)
            return found if decoded(found) == data else None

        return self._eventually(same, f"{namespace}/{name} on {cluster}")

    def await_none(self, name: str, namespace: str = "quote", cluster: str = STAGE) -> None:
        self._eventually(
            lambda: self.copy(name, namespace, cluster) is None, f"no {namespace}/{name}"
        )

    def status(self, name: str, namespace: str = SOURCES) -> Object:
        found = self.core.find(SYNCER, name, namespace)
        return (found or {}).get("status") or {}

    def await_ready(self, name: str, reason: str = "Synced", namespace: str = SOURCES) -> Object:
        """Wait until Ready has this reason for the current generation; returns the status."""

        def told() -> Object | None:
            item = self.core.find(SYNCER, name, namespace)
            ready = find(item, names.READY) if item else None
            if item is None or ready is None or ready["reason"] != reason:
                return None
            fresh = item["status"]["observedGeneration"] == item["metadata"]["generation"]
            status: Object = item["status"]
            return status if fresh else None

        try:
            return eventually(told, f"{name} Ready: {reason}")
        except AssertionError as error:
            raise AssertionError(
                f"{error}\n{self.status(name, namespace)}\n{self._log()}"
            ) from None

    def message(self, name: str) -> str:
        found = find({"status": self.status(name)}, names.READY)
        return str(found["message"]) if found else ""

    def _eventually(self, check: Any, what: str) -> Any:
        try:
            return eventually(check, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._log()}") from None

    def _log(self) -> str:
        return self.world.logs.getvalue()[-4000:]


def empty_mirrors(core: Kube, apps: dict[str, Kube]) -> None:
    """Delete Syncers, the mirrors' RBAC and all objects in namespaces that tests copy into."""
    for item in core.list_all(SYNCER):
        metadata = item["metadata"]
        try:
            change = {"metadata": {"finalizers": None}}
            core.patch(SYNCER, metadata["name"], metadata["namespace"], change)
            core.delete(SYNCER, metadata["name"], metadata["namespace"])
        except NotFound:
            continue
    for kube in apps.values():
        for kind in (ROLE_BINDING, ROLE):
            for item in kube.list_all(kind, fields=f"metadata.name={names.MIRROR_IDENTITY}"):
                kube.delete(kind, names.MIRROR_IDENTITY, item["metadata"]["namespace"])
        for kind in (SECRET, CONFIG_MAP):
            clear(kube, kind, _is_copied_into)


def _is_copied_into(namespace: str) -> bool:
    return not namespace.startswith("kube-") and namespace != names.IDENTITY_NAMESPACE
