"""Counts the resources that use a configuration of the account, which is kept while there are any.

As in crossplane-runtime (v2): each resource has a ProviderConfigUsage, named by the resource's UID;
a configuration has their number in its status, and a finalizer.
https://github.com/crossplane/crossplane-runtime, pkg/reconciler/providerconfig
"""

from __future__ import annotations

import threading
import time

from k8s_ucp.aws.crds import USAGE
from k8s_ucp.errors import some_of
from k8s_ucp.kube import Kind, Kube, Object, controller_reference
from k8s_ucp.managed.store import MANAGER
from k8s_ucp.reconciler.runtime.conditions import Condition, written
from k8s_ucp.reconciler.runtime.events import Events
from k8s_ucp.reconciler.runtime.informer import Informer
from k8s_ucp.timestamps import stamp

FINALIZER = "in-use.crossplane.io"
NAME_LABEL = "crossplane.io/provider-config"
KIND_LABEL = "crossplane.io/provider-config-kind"
BLOCKED = "Blocking deletion while usages still exist"
PAUSE_SECONDS = 2.0
"""Minimum interval between two counts of a configuration, since many resources come at once."""


class Usages:
    """Safe to share between threads."""

    def __init__(self, kube: Kube, watch: Informer, events: Events) -> None:
        """watch: informer of all usages, not started."""
        self.watch = watch
        self._kube = kube
        self._events = events
        self._lock = threading.Lock()
        self._counted: dict[tuple[str, str | None, str], float] = {}
        """Time of the last count by configuration, on the monotonic clock."""
        self._known: dict[str, tuple[str, str]] = {}
        """Kind and name of the configuration that a resource uses, by UID."""
        watch.listen(self._forget)

    def track(self, item: Object, kind: Kind, name: str) -> None:
        """Record that a resource uses a configuration, instead of a previous one."""
        metadata = item["metadata"]
        uid, ref = metadata["uid"], (kind.kind, name)
        with self._lock:
            if self._known.get(uid) == ref:
                return
        usage = USAGE.object(
            uid,
            metadata["namespace"],
            labels={NAME_LABEL: name, KIND_LABEL: kind.kind},
            ownerReferences=[controller_reference(item)],
            providerConfigRef={"kind": kind.kind, "name": name},
            resourceRef={
                "apiVersion": item["apiVersion"],
                "kind": item["kind"],
                "name": metadata["name"],
            },
        )
        # If the informer lags, the usage is applied again, which changes nothing.
        existing = self.watch.store.get(f"{metadata['namespace']}/{uid}")
        if existing is None or _differs(existing, usage):
            self._kube.apply(usage, manager=MANAGER)
        with self._lock:
            self._known[uid] = ref

    def release(self, item: Object) -> None:
        """A resource no longer uses any configuration."""
        uid = item["metadata"]["uid"]
        with self._lock:
            self._known.pop(uid, None)
        self._kube.delete(USAGE, uid, item["metadata"]["namespace"])

    def account(self, kind: Kind, name: str, namespace: str | None) -> float | None:
        """Count the users of a configuration, and set or remove its finalizer.

        Returns the seconds until the next count, None if it isn't needed. Raises Conflict.
        """
        key = (kind.kind, namespace, name)
        item = self._kube.find(kind, name, namespace)
        if item is None:
            with self._lock:
                self._counted.pop(key, None)
            return None
        deleting = "deletionTimestamp" in item["metadata"]
        with self._lock:
            wait = self._counted.get(key, -PAUSE_SECONDS) + PAUSE_SECONDS - time.monotonic()
            if wait > 0 and not deleting:
                return wait
            self._counted[key] = time.monotonic()
        users = self._users(kind, name, namespace)
        if deleting and not users:
            self._set_finalizer(item, kind, present=False)
            return None
        if not deleting:
            item = self._set_finalizer(item, kind, present=True)
        self._show(item, kind, users, deleting=deleting)
        return None

    def _users(self, kind: Kind, name: str, namespace: str | None) -> list[Object]:
        labels = f"{NAME_LABEL}={name},{KIND_LABEL}={kind.kind}"
        found = []
        for each in self._kube.list_all(USAGE, namespace, labels=labels):
            metadata = each["metadata"]
            if any(owner.get("controller") for owner in metadata.get("ownerReferences") or ()):
                found.append(each)
            else:
                # Restored from a backup: resources that still use it will create a new one.
                self._kube.delete(USAGE, metadata["name"], metadata["namespace"])
        return found

    def _set_finalizer(self, item: Object, kind: Kind, *, present: bool) -> Object:
        metadata = item["metadata"]
        finalizers = metadata.get("finalizers") or []
        if (FINALIZER in finalizers) is present:
            return item
        others = [each for each in finalizers if each != FINALIZER]
        change = {
            "resourceVersion": metadata["resourceVersion"],
            "finalizers": [*others, FINALIZER] if present else others,
        }
        return self._kube.patch(
            kind, metadata["name"], metadata.get("namespace"), {"metadata": change}
        )

    def _show(self, item: Object, kind: Kind, users: list[Object], *, deleting: bool) -> None:
        status = item.get("status") or {}
        desired: Object = {"users": len(users)}
        if deleting:
            who = [f"{each['resourceRef']['kind']} {_user_of(each)}" for each in users]
            message = f"{BLOCKED}: {some_of(who, 3)}"
            self._events.record(item, "UsageAccounting", message, warning=True)
            condition = Condition("Terminating", "True", "InUse", message)
            desired["conditions"] = written(item, [condition], stamp(time.time()))
        if any(status.get(key) != value for key, value in desired.items()):
            metadata = item["metadata"]
            self._kube.patch(
                kind,
                metadata["name"],
                metadata.get("namespace"),
                {"status": desired},
                subresource="status",
            )

    def _forget(self, before: Object | None, after: Object | None) -> None:
        """A deleted usage is created again at the resource's next reconciliation."""
        if before is not None and after is None:
            with self._lock:
                self._known.pop(before["metadata"]["name"], None)


def _differs(existing: Object, usage: Object) -> bool:
    parts = ("providerConfigRef", "resourceRef")
    return any(existing.get(each) != usage[each] for each in parts)


def _user_of(usage: Object) -> str:
    return f"{usage['metadata']['namespace']}/{usage['resourceRef']['name']}"
