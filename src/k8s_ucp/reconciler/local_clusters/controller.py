"""The local-clusters controller: creates, updates and deletes control planes on this machine.

Effects only; rules.py decides. A key is a LocalCluster, `<namespace>/<name>`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from k8s_ucp import names
from k8s_ucp.cluster_provider import ClusterProvider, ClusterState
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import LOCAL_CLUSTER, Conflict, Invalid, NotFound, Object, annotations_of
from k8s_ucp.reconciler import draining
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.reconciler.access.kubeconfig_verification import digest_of
from k8s_ucp.reconciler.access.owners import same_but_status
from k8s_ucp.reconciler.controller import Controller, Runtime
from k8s_ucp.reconciler.local_clusters.kubeconfigs import Kubeconfigs
from k8s_ucp.reconciler.local_clusters.rules import (
    CREATE_FAILED,
    CannotCreate,
    Delete,
    Ensure,
    NextAction,
    classify,
    deletion_blocker,
    next_action,
    not_ready,
    readiness,
)
from k8s_ucp.reconciler.runtime.conditions import Condition, StatusWriter, find, is_true
from k8s_ucp.reconciler.runtime.settings import LOCAL_CLUSTERS
from k8s_ucp.reconciler.runtime.work_queue import BackOff, WorkQueue

PATIENCE = 20.0
"""Seconds that the watcher has to restart dead processes before we start the cluster ourselves."""
STARTING = 0.25
LOOK_AGAIN = 1.0
"""Seconds between two looks at an unfinished change: at first, and later."""


class LocalClustersController(Controller):
    """Reconciles one LocalCluster at a time; safe to share between threads."""

    name = LOCAL_CLUSTERS
    most = 6
    """Control planes created in parallel; their processes do the work, not these threads."""

    def __init__(self, runtime: Runtime) -> None:
        informers, kube, settings = runtime.informers, runtime.kube, runtime.settings
        self.queue = WorkQueue(BackOff(start=1.0, cap=30.0))
        self._kube = kube
        self._settings = settings
        self._providers = runtime.providers
        self._informers = informers
        self._log = runtime.log
        self._clock = runtime.clock
        self._status = StatusWriter(kube, "k8s-ucp-local-clusters", runtime.clock)
        self._kubeconfigs = Kubeconfigs(kube, informers, settings.kubeconfigs, runtime.log)
        self._unready_since: dict[str, float] = {}
        self._done: dict[str, int] = {}
        """Generations that were applied, by UID."""
        self._released: set[str] = set()
        """UIDs of LocalClusters whose finalizer was removed; the informer may still show them."""
        self._drains = draining.DrainTimer()
        """By UID."""
        self._lock = threading.Lock()
        informers.local_clusters.listen(self._local_cluster_changed)
        informers.cluster_secrets.listen(self._cluster_secret_changed)
        informers.sources[names.CLUSTERS_NAMESPACE].listen(self._secret_changed)

    # Wake-ups.

    def _local_cluster_changed(self, before: Object | None, after: Object | None) -> None:
        item = after or before
        assert item is not None
        if after is None:
            self._released.discard(item["metadata"]["uid"])
        if not same_but_status(before, after, watched=(names.DRAINED,)):
            self.queue.add(f"{item['metadata']['namespace']}/{item['metadata']['name']}")

    def _secret_changed(self, before: Object | None, _after: Object | None) -> None:
        if before is None:
            # A new Secret: we have just written it, or its LocalCluster is queued anyway.
            return
        metadata = before["metadata"]
        for each in metadata.get("ownerReferences") or []:
            if each["kind"] == "LocalCluster":
                self.queue.add(f"{metadata['namespace']}/{each['name']}")

    def _cluster_secret_changed(self, before: Object | None, after: Object | None) -> None:
        if before and not after:
            owner = Registration.of(before).owner
            if owner and owner.local_cluster:
                self.queue.add(f"{owner.namespace}/{owner.name}")

    # One LocalCluster.

    def reconcile(self, key: str) -> float | None:
        """Reconcile one LocalCluster. Returns the seconds until the next time."""
        item = self._informers.local_clusters.store.get(key)
        if item is None or item["metadata"]["uid"] in self._released:
            return None
        verdict = classify(item, self._settings, self._providers.keys())
        match verdict:
            case Ensure():
                return self._keep_up(key, item, verdict)
            case Delete(provider):
                return self._release(key, item, self._providers[provider])
            case CannotCreate(reason, message):
                if self._show(item, not_ready(reason, message), {}):
                    self._log.warning("refused", object=key, reason=reason, why=message)
        return None

    def _keep_up(self, key: str, item: Object, ensure: Ensure) -> float:
        provider, name = self._providers[ensure.provider], ensure.request.name
        if names.FINALIZER not in (item["metadata"].get("finalizers") or []):
            item = self._add_finalizer(item)
        done = self._done.get(item["metadata"]["uid"], 0)
        if done or "observedGeneration" in (item.get("status") or {}):
            state = provider.state(name)
        else:
            # Querying the state would take as long as the first steps of creating it.
            state = ClusterState(name, exists=False, running=False, ready=False, message="new")
        what = next_action(
            item,
            state,
            done=done,
            waited=self._unready_for(key, state),
            patience=PATIENCE,
        )
        if what is NextAction.CREATE:
            self._create(item, provider, ensure, state)
            state = provider.state(name)
            self._unready_for(key, state)
        if what is NextAction.WAIT:
            self._show(item, readiness(state))
            return self._look_again(key, state)
        config = provider.kubeconfig(name)
        shared = provider.kubeconfig(name, reach=self._settings.reach)
        # Before the Secret is written, since registration requires this digest to match.
        self._record_digest(item, digest_of(shared))
        if not self._kubeconfigs.write(item, config, shared, state.version):
            secret = names.kubeconfig_secret(name)
            message = f"Secret {secret} already exists and was not created by ucp"
            self._show(item, not_ready("SecretTaken", message))
        else:
            self._show(
                item,
                readiness(state),
                {
                    "server": _server(config),
                    "version": state.version,
                    **({"addresses": dict(state.addresses)} if state.addresses else {}),
                    "observedGeneration": item["metadata"]["generation"],
                },
            )
        return self._settings.resync_seconds if state.ready else self._look_again(key, state)

    def _create(
        self, item: Object, provider: ClusterProvider, ensure: Ensure, state: ClusterState
    ) -> None:
        name = ensure.request.name
        verb = "starting" if state.exists else "creating"
        last = find(item, names.READY)
        if not state.running and (last is None or last["reason"] != CREATE_FAILED):
            # Each retry would hide why the previous one failed.
            condition = not_ready(verb.capitalize(), f"{verb} the control plane")
            self._show(item, condition)
        began = self._clock()
        try:
            provider.create(ensure.request, lambda line: self._log.info(line, cluster=name))
        except UcpError as error:
            self._show(item, not_ready(CREATE_FAILED, error.in_line))
            raise
        self._done[item["metadata"]["uid"]] = item["metadata"]["generation"]
        self._log.info("running", cluster=name, seconds=round(self._clock() - began, 2))

    # Deletion.

    def _release(self, key: str, item: Object, provider: ClusterProvider) -> float | None:
        name = item["metadata"]["name"]
        registered = self._registered(item)
        holding: list[str] = []
        if not registered or is_true(item, names.DRAINED):
            holding = draining.held_on(provider, name)
        blocker = deletion_blocker(
            item,
            registered=registered,
            holding=holding,
            lost=self._is_lost(key, name, provider),
            waited=self._drains.waited(item["metadata"]["uid"]),
            limit=self._settings.drain_seconds,
        )
        if blocker:
            self._show(item, blocker)
            return LOOK_AGAIN
        if holding:
            self._log.warning("kept", cluster=name, what=holding)
        self._show(item, not_ready("Deleting", "deleting the control plane"))
        try:
            provider.delete(name)
        except UcpError as error:
            self._show(item, not_ready("DeleteFailed", error.in_line))
            raise
        self._kubeconfigs.remove(item)
        self._remove_finalizer(item)
        uid = item["metadata"]["uid"]
        self._released.add(uid)
        self._drains.forget(uid)
        self._status.forget(uid)
        self._done.pop(uid, None)
        with self._lock:
            self._unready_since.pop(key, None)
        self._log.info("deleted", cluster=name)
        return None

    def _is_lost(self, key: str, name: str, provider: ClusterProvider) -> bool:
        """Whether a simulated cluster, which holds nothing outside of it, stays silent.

        Nobody repairs a cluster that is being deleted, so a drain would only run into its limit.
        """
        if not provider.info.simulated:
            return False
        return self._unready_for(key, provider.state(name)) > self._settings.gone_seconds

    def _registered(self, item: Object) -> bool:
        for each in self._informers.cluster_secrets.store.all():
            registration = Registration.of(each)
            owner = registration.owner if registration.ours else None
            if owner and owner.uid == item["metadata"]["uid"]:
                return True
        return False

    # Small parts.

    def _add_finalizer(self, item: Object) -> Object:
        """Add our finalizer, before anything is created. Raises Conflict if the object changed."""
        metadata = item["metadata"]
        change = {
            "resourceVersion": metadata["resourceVersion"],
            "finalizers": [*(metadata.get("finalizers") or []), names.FINALIZER],
        }
        return self._kube.patch(
            LOCAL_CLUSTER, metadata["name"], metadata["namespace"], {"metadata": change}
        )

    def _record_digest(self, item: Object, digest: str) -> None:
        """Record the kubeconfig's digest where authors of Secrets can't write.

        Raises Conflict if another object has taken the name.
        """
        if annotations_of(item).get(names.KUBECONFIG_DIGEST, "") == digest:
            return
        annotations = {names.KUBECONFIG_DIGEST: digest or None}
        change = {"metadata": {"uid": item["metadata"]["uid"], "annotations": annotations}}
        self._patch(item, change, type="merge")

    def _remove_finalizer(self, item: Object) -> None:
        """Remove our finalizer, whatever else changed. Raises Conflict if the finalizers did."""
        metadata = item["metadata"]
        kept = [each for each in metadata["finalizers"] if each != names.FINALIZER]
        change = [
            {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
            {"op": "test", "path": "/metadata/finalizers", "value": metadata["finalizers"]},
            {"op": "replace", "path": "/metadata/finalizers", "value": kept},
        ]
        with suppress(NotFound):
            self._patch(item, change, type="json")

    def _patch(self, item: Object, change: Any, *, type: Literal["merge", "json"]) -> None:
        """Change an object. Raises Conflict if the API server finds another UID or finalizers."""
        metadata = item["metadata"]
        try:
            self._kube.patch(
                LOCAL_CLUSTER, metadata["name"], metadata["namespace"], change, type=type
            )
        except Invalid as error:
            raise Conflict(error.message, status=409) from error

    def _unready_for(self, key: str, state: ClusterState) -> float:
        with self._lock:
            if state.ready:
                self._unready_since.pop(key, None)
                return 0.0
            return self._clock() - self._unready_since.setdefault(key, self._clock())

    def _look_again(self, key: str, state: ClusterState) -> float:
        """Seconds until the next look: short at first, longer when a start takes long."""
        return STARTING if self._unready_for(key, state) < PATIENCE / 4 else LOOK_AGAIN

    def _show(
        self, item: Object, condition: Condition, cluster_info: Mapping[str, Any] | None = None
    ) -> bool:
        """Write the status. cluster_info: its other fields; None keeps them."""
        if cluster_info is None:
            status = item.get("status") or {}
            fields = ("server", "version", "addresses", "observedGeneration")
            cluster_info = {name: status[name] for name in fields if name in status}
        return self._status.write(item, [condition], cluster_info)


def _server(config: Mapping[str, Any]) -> str:
    return str(config["clusters"][0]["cluster"]["server"])
