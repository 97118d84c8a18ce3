"""A core cluster and two app clusters, all real, and operations on them for tests."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from k8s_ucp import names
from k8s_ucp.cluster_provider import (
    ClusterProvider,
    ClusterRequest,
    ClusterState,
    ProviderInfo,
    Reach,
    Report,
)
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import (
    APPLICATION,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    EVENT,
    LOCAL_CLUSTER,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Conflict,
    Kind,
    Kube,
    KubeError,
    NotFound,
    Object,
)
from k8s_ucp.reconciler.access.cluster_secret import as_argocd
from k8s_ucp.reconciler.manager import Manager
from k8s_ucp.reconciler.registration.notes import read_notes
from k8s_ucp.reconciler.runtime.clock import Clock, system_clock
from k8s_ucp.reconciler.runtime.conditions import find
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.settings import Settings
from tests.control_planes import PATIENCE, Restarts

T = TypeVar("T")
CLUSTERS = names.CLUSTERS_NAMESPACE
ARGOCD = names.ARGOCD_NAMESPACE


def eventually(check: Callable[[], T | None], what: str, *, seconds: float = PATIENCE) -> T:
    """Wait until `check` returns a true value; returns it. Fails with its last value or error."""
    until, restarts = time.monotonic() + seconds, Restarts()
    last: Any = None
    while (looked := time.monotonic()) < until:
        try:
            last = check()
        except KubeError as error:
            last = error
        else:
            if last:
                return last
        restarts.look()
        # Longer pauses after slow checks leave CPU time to the code that is awaited.
        time.sleep(min(1, max(0.03, 3 * (time.monotonic() - looked))))
    raise AssertionError(f"{what}: not within {seconds:g} s; last: {last!r}")


class Standing:
    """A cluster provider that returns existing app clusters instead of creating new ones.

    The real provider is tested in test_local_clusters.py. These clusters count as ones whose load
    balancers and volumes are real.
    """

    info = ProviderInfo("embedded", simulated=False)

    def __init__(self, configs: Mapping[str, dict[str, Any]]) -> None:
        self.configs = dict(configs)
        self.made: dict[str, int] = {}
        self.deleted: list[str] = []
        self.failing = ""

    def preflight(self, request: ClusterRequest) -> None:
        pass

    def create(self, request: ClusterRequest, report: Report, *, timeout: float = 120) -> None:
        if self.failing:
            raise UcpError(self.failing)
        self.made[request.name] = self.made.get(request.name, 0) + 1

    def start(self, name: str, *, timeout: float = 120) -> None:
        self.made.setdefault(name, 1)

    def stop(self, name: str, *, timeout: float = 60) -> None:
        self.made.pop(name, None)

    def delete(self, name: str, *, timeout: float = 60) -> None:
        self.made.pop(name, None)
        self.deleted.append(name)

    def state(self, name: str) -> ClusterState:
        there = name in self.made
        return ClusterState(name, there, there, there, "" if there else "stopped", "v1.35.4")

    def names(self) -> list[str]:
        return sorted(self.made)

    def kubeconfig(self, name: str, *, reach: Reach = Reach.MACHINE) -> dict[str, Any]:
        return self.configs[name]


@dataclass
class Clusters:
    """The core cluster and the app clusters of one test."""

    core: Kube
    core_config: dict[str, Any]
    folder: Path
    provider: Standing
    apps: Mapping[str, Kube]
    """Admin clients by cluster name."""
    logs: io.StringIO = field(default_factory=io.StringIO)
    running: list[Manager] = field(default_factory=list)

    def start(
        self,
        *,
        provider: ClusterProvider | None = None,
        clock: Clock = system_clock,
        config: dict[str, Any] | None = None,
        **settings: Any,
    ) -> Manager:
        """Start a reconciler in this process; it is stopped at the end of the test."""
        path = self.folder / "core.kubeconfig"
        path.write_text(json.dumps(config or self.core_config))
        chosen = {
            "kubeconfig": path,
            "machine": "here",
            "topology": "demo",
            "kubeconfigs": self.folder / "kubeconfigs",
            "resync_seconds": 0.5,
            "dead_seconds": 1.0,
            "gone_seconds": 1.0,
            **settings,
        }
        reconciler = Manager(
            Settings(**chosen),
            {"embedded": provider or self.provider},
            log=Log(self.logs),
            clock=clock,
        )
        self.running.append(reconciler)
        reconciler.start()
        return reconciler

    def stop(self) -> None:
        with contextlib.ExitStack() as ends:
            for each in self.running:
                ends.callback(each.stop, 5)
            self.running.clear()

    def list_environments(self, *environments: str) -> None:
        self.core.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": names.ENVIRONMENTS, "namespace": CLUSTERS},
                "data": dict.fromkeys(environments, ""),
            },
            manager="test",
        )

    def declare(self, environment: str = "stage", **changes: Any) -> Object:
        """Apply a LocalCluster, as after a commit. changes: name, labels, annotations, spec."""
        name = changes.get("name", f"demo-{environment}")
        labels = {names.ENVIRONMENT: environment, names.TOPOLOGY: "demo", names.ACCESS: "admin"}
        return self.core.apply(
            {
                "apiVersion": "k8s-ucp.io/v1alpha1",
                "kind": "LocalCluster",
                "metadata": {
                    "name": name,
                    "namespace": CLUSTERS,
                    "labels": {**labels, **changes.get("labels", {})},
                    "annotations": changes.get("annotations", {}),
                },
                "spec": {"provider": "embedded", "machine": "here", **changes.get("spec", {})},
            },
            manager="test",
        )

    def local_cluster(self, name: str = "demo-stage") -> Object | None:
        return self.core.find(LOCAL_CLUSTER, name, CLUSTERS)

    def delete(self, name: str = "demo-stage") -> None:
        self.core.delete(LOCAL_CLUSTER, name, CLUSTERS)

    def cluster_secret(self, name: str = "demo-stage") -> Object | None:
        return self.core.find(SECRET, f"cluster-{name}", ARGOCD)

    def condition(self, type: str, name: str = "demo-stage") -> tuple[str, str]:
        """(status, reason); two empty strings if the condition doesn't exist."""
        item = self.local_cluster(name)
        found = find(item, type) if item else None
        return (found["status"], found["reason"]) if found else ("", "")

    def message(self, type: str, name: str = "demo-stage") -> str:
        item = self.local_cluster(name)
        found = find(item, type) if item else None
        return str(found["message"]) if found else ""

    def await_condition(
        self, type: str, status: str, reason: str | None = None, name: str = "demo-stage"
    ) -> None:
        def met() -> bool:
            seen = self.condition(type, name)
            return seen[0] == status and reason in (None, seen[1])

        try:
            eventually(met, f"{name} {type}={status} {reason or ''}")
        except AssertionError as error:
            raise AssertionError(
                f"{error}; conditions: {(self.local_cluster(name) or {}).get('status')}"
                f"\n{self.logs.getvalue()[-3000:]}"
            ) from None

    def await_note(self, source: str, reason: str) -> None:
        """Wait for a condition of a source whose owner has no status of ours."""

        def noted() -> list[str]:
            note = read_notes(self.core).get(source) or {}
            return [each["reason"] for each in (note.get("status") or {}).get("conditions") or []]

        eventually(lambda: reason in noted(), f"{source} {reason}\n{self.logs.getvalue()[-2000:]}")

    def events(self, name: str) -> list[tuple[str, str]]:
        """(type, reason) of an object's Events, oldest first."""
        found = [
            each
            for namespace in (CLUSTERS, "crossplane-system")
            for each in self.core.list_all(EVENT, namespace)
            if each["involvedObject"]["name"] == name
        ]
        found.sort(key=lambda each: int(each["metadata"]["resourceVersion"]))
        return [(each["type"], each["reason"]) for each in found]

    def await_registered(self, name: str = "demo-stage") -> Object:
        """Wait until the cluster is registered and reachable; returns the cluster Secret."""
        self.await_condition(names.REGISTERED, "True", "Registered", name)
        self.await_condition(names.REACHABLE, "True", None, name)
        secret = self.cluster_secret(name)
        assert secret is not None
        return secret

    def await_gone(self, name: str = "demo-stage") -> None:
        eventually(lambda: self.local_cluster(name) is None, f"end of {name}\n{self.logs}")
        eventually(lambda: self.cluster_secret(name) is None, f"end of {name}'s registration")

    def versions(self) -> dict[str, str]:
        """Resource versions of all objects that the reconciler may write on the core."""
        kinds = (LOCAL_CLUSTER, SECRET, CONFIG_MAP)
        return {
            f"{kind.kind} {item['metadata']['namespace']}/{item['metadata']['name']}": item[
                "metadata"
            ]["resourceVersion"]
            for kind in kinds
            for namespace in (CLUSTERS, ARGOCD)
            for item in self.core.list_all(kind, namespace)
        }


@contextlib.contextmanager
def as_argo_cd(secret: Object) -> Iterator[Kube]:
    """A client of the app cluster with the identity in a cluster Secret."""
    config = as_argocd(secret)
    assert config is not None
    kube = Kube(config)
    try:
        yield kube
    finally:
        kube.close()


def token_of(secret: Object) -> str:
    config = json.loads(base64.b64decode(secret["data"]["config"]))
    return str(config.get("bearerToken", ""))


def deployment(name: str, namespace: str) -> Object:
    labels = {"app": name}
    container = {"name": "main", "image": "example.org/nothing:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def assert_no_secret_in_the_open(world: Clusters) -> None:
    """Check that logs, annotations, labels and conditions contain no token and no private key."""
    logs = world.logs.getvalue()
    assert not re.search(r"eyJ[\w-]+\.[\w-]+\.", logs)
    assert "PRIVATE KEY" not in logs
    secrets = [item for each in (CLUSTERS, ARGOCD) for item in world.core.list_all(SECRET, each)]
    values = {value for item in secrets for value in (item.get("data") or {}).values()}
    values |= {token_of(each) for each in secrets if "config" in (each.get("data") or {})}
    shown = [json.dumps(item["metadata"].get("annotations") or {}) for item in secrets]
    shown += [json.dumps(item) for item in world.core.list_all(LOCAL_CLUSTER, CLUSTERS)]
    for value in values:
        if len(value) > 40:
            assert value not in logs
            assert not [text for text in shown if value in text]


def empty(core: Kube, apps: Mapping[str, Kube]) -> None:
    """Delete what a test left behind, in whatever state it is."""
    for item in core.list_all(LOCAL_CLUSTER, CLUSTERS):
        _strip(core, LOCAL_CLUSTER, item)
    with contextlib.suppress(NotFound):
        for item in core.list_all(APPLICATION, ARGOCD):
            _strip(core, APPLICATION, item)
    ours = {CLUSTERS, ARGOCD, "crossplane-system", "default"}
    for kind in (SECRET, CONFIG_MAP, EVENT):
        clear(core, kind, ours.__contains__)
    for kube in apps.values():
        kube.delete(CLUSTER_ROLE_BINDING, names.ARGOCD_IDENTITY)
        end_namespace(kube, names.IDENTITY_NAMESPACE)


def clear(kube: Kube, kind: Kind, wanted: Callable[[str], bool]) -> None:
    """Delete a kind's objects in the chosen namespaces, with one request per namespace."""
    there = [each["metadata"] for each in kube.list_all(kind)]
    found = {each["namespace"] for each in there if each["name"] != _OF_KUBERNETES}
    for namespace in filter(wanted, sorted(found)):
        others = {"fieldSelector": f"metadata.name!={_OF_KUBERNETES}"}
        kube.request("DELETE", kind.path(namespace), query=others)


_OF_KUBERNETES = "kube-root-ca.crt"
"""ConfigMap that Kubernetes creates in every namespace."""


def end_namespace(kube: Kube, name: str) -> None:
    """Complete the deletion of a terminating namespace.

    Kubernetes would do that up to five seconds later, and the next test's registration would wait.
    """
    namespace = kube.find(NAMESPACE, name)
    if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
        return
    for kind in (SERVICE_ACCOUNT, ROLE, ROLE_BINDING, SECRET, CONFIG_MAP):
        for item in kube.list_all(kind, name):
            kube.delete(kind, item["metadata"]["name"], name)
    with contextlib.suppress(NotFound, Conflict):
        body = {**namespace, "spec": {"finalizers": []}}
        kube.request("PUT", f"{NAMESPACE.path(None, name)}/finalize", body=body)


def _strip(core: Kube, kind: Kind, item: Object) -> None:
    metadata = item["metadata"]
    with contextlib.suppress(NotFound):
        core.patch(
            kind, metadata["name"], metadata["namespace"], {"metadata": {"finalizers": None}}
        )
    core.delete(kind, metadata["name"], metadata["namespace"])
