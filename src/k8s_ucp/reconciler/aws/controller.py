"""The controller of all kinds of AWS resources in the simulated cloud."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping

from k8s_ucp.aws import installation
from k8s_ucp.aws.backing import Backing
from k8s_ucp.aws.crds import CONFIGS, USAGE
from k8s_ucp.aws.kind import GROUP, AwsKind
from k8s_ucp.aws.kinds import eks
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.aws.resource import AwsResource
from k8s_ucp.kube import Kind, Kube, NotFound, Object, annotations_of
from k8s_ucp.managed.external import CloudFailed
from k8s_ucp.managed.reconcile import (
    ReferenceMissing,
    Result,
    reconcile,
)
from k8s_ucp.managed.references import ResourceReference, lookups_of, resolve, unresolved_lookups
from k8s_ucp.managed.store import KubeStore
from k8s_ucp.names import CREATION_FAILED, CREATION_PENDING, CREATION_SUCCEEDED, EXTERNAL_NAME
from k8s_ucp.reconciler.access.core_client import connect
from k8s_ucp.reconciler.aws.control_planes import ControlPlanes
from k8s_ucp.reconciler.aws.usages import Usages
from k8s_ucp.reconciler.controller import Controller, Runtime
from k8s_ucp.reconciler.runtime.conditions import is_true
from k8s_ucp.reconciler.runtime.events import Events
from k8s_ucp.reconciler.runtime.informer import Informer, WatchSpec
from k8s_ucp.reconciler.runtime.settings import MANAGED_RESOURCES
from k8s_ucp.reconciler.runtime.work_queue import BackOff, RetryRate, WorkQueue

NEXT_SECONDS = 0.1
"""After a creation: the simulated cloud has the resource already, and others wait for what only the
next reconciliation reports, such as a role's ARN."""
SOON_SECONDS = 1.0
LONGEST_SECONDS = 15.0
"""Longest back-off: the cloud is on this machine, without an account's rate limits."""
PATIENCE_SECONDS = 3.0
"""A new resource that refers to one that isn't in the cloud yet is delayed by this time: many
objects are created at once, and most of them wait for others. It is reconciled earlier once its
references can be resolved."""
WATCH_TURNS = 3
"""Factor by which these watches last longer than others, still short enough to count as alive: two
dozen kinds are watched on a server of this machine, and each new watch costs some milliseconds."""
_OURS = (CREATION_PENDING, CREATION_SUCCEEDED, CREATION_FAILED)
"""Annotations that we write ourselves; changes of them need no reconciliation."""


class AwsController(Controller):
    """Reconciles each object by one worker at a time, and some objects of a service in parallel."""

    name = MANAGED_RESOURCES
    most = 16

    def __init__(self, runtime: Runtime) -> None:
        settings, account = runtime.settings, runtime.settings.aws
        assert account is not None
        self.queue = WorkQueue(BackOff(start=1.0, cap=LONGEST_SECONDS), lane=_service, width=4)
        self._runtime = runtime
        self._kube = connect(
            settings,
            runtime.clock,
            namespace=installation.NAMESPACE,
            name=installation.NAME,
        )
        self._events = Events(self._kube, runtime.metrics, runtime.log, runtime.clock)
        self._rate = RetryRate(
            settings.max_reconcile_rate, max(1, int(settings.max_reconcile_rate))
        )
        self._rating = threading.Lock()
        backings = _backings(runtime)
        self._resources = {
            name: AwsResource(account, kind, backings.get(kind.backing), runtime.gate)
            for name, kind in KINDS.items()
        }
        self._stores = {name: _store(self._kube, runtime, kind) for name, kind in KINDS.items()}
        self._early: set[str] = set()
        """Keys of changed objects with references that could not be resolved yet."""
        self._stopping = threading.Event()
        self._watches = {name: self._watch(name, kind) for name, kind in KINDS.items()}
        self._usages = Usages(self._kube, self._watch_usages(), self._events)
        self._configs = {name: self._watch_config(kind) for name, kind in CONFIGS.items()}

    def watches(self) -> tuple[Informer, ...]:
        return (*self._watches.values(), *self._configs.values(), self._usages.watch)

    def take_over(self) -> None:
        """Reconcile everything again."""
        for name, watch in self._watches.items():
            for item in watch.store.all():
                self.queue.add(_key(name, item))

    def stop(self) -> None:
        self._stopping.set()

    def reconcile(self, key: str) -> float | None:
        name, namespace, item_name = key.split("/")
        if self._stopping.wait(self._delay()):
            return SOON_SECONDS
        if config := _CONFIGS.get(name):
            return self._usages.account(config, item_name, namespace or None)
        if self._is_early(key):
            return PATIENCE_SECONDS
        store = self._stores[name]
        item = self._kube.find(store.kind, item_name, namespace)
        if item is None:
            return None
        result = reconcile(
            item,
            self._resources[name],
            store,
            connect=self._connect,
            disconnect=self._usages.release,
        )
        if result.event:
            reason, message, warning = result.event
            self._events.record(item, reason, message, warning=warning)
        if not result.deleted:
            try:
                store.show(item, result)
            except NotFound:
                return None
        if result.again == "backoff" and result.synced:
            raise CloudFailed(result.synced[2])
        return self._seconds(result)

    def _connect(self, item: Object) -> None:
        """Require the configuration that an object names to exist, and record its use.

        AWS' own provider does the same.
        """
        ref = item["spec"].get("providerConfigRef") or {}
        kind = CONFIGS.get(ref.get("kind", "ClusterProviderConfig"))
        name = ref.get("name", "default")
        namespace = item["metadata"]["namespace"]
        if kind is None or not self._has_config(kind, name, namespace):
            raise CloudFailed(f"cannot get referenced {ref.get('kind')} {name}: it does not exist")
        self._usages.track(item, kind, name)

    def _has_config(self, kind: Kind, name: str, namespace: str) -> bool:
        watch = self._configs[kind.kind]
        object_name = f"{namespace}/{name}" if kind.namespaced else name
        return bool(watch.store.get(object_name) or self._kube.find(kind, name, namespace))

    def _delay(self) -> float:
        with self._rating:
            return self._rate.wait(time.monotonic())

    def _seconds(self, result: Result) -> float | None:
        if result.again == "never":
            return None
        if result.again == "poll":
            spread = random.uniform(0.9, 1.1)  # noqa: S311 (spreads, hides nothing)
            return self._runtime.settings.cloud_poll_seconds * spread
        return NEXT_SECONDS if result.again == "next" else SOON_SECONDS

    def _watch(self, name: str, kind: AwsKind) -> Informer:
        watch = self._informer(kind.kind)

        def changed(before: Object | None, after: Object | None) -> None:
            if after is None:
                return
            if _is_new(before, after):
                key = _key(name, after)
                if not self._is_resolvable(name, after):
                    self._early.add(key)
                self.queue.add(key)
            if _progress(after) > (_progress(before) if before else 0):
                self._wake_dependents(kind, after, "Synced")
            if kind.backing and is_true(after, "Ready") and not is_true(before or {}, "Ready"):
                # A ClusterAuth was reconciled before its cluster was ready, in vain.
                self._wake_dependents(kind, after, "Ready")

        watch.listen(changed)
        return watch

    def _watch_config(self, kind: Kind) -> Informer:
        watch = self._informer(kind)

        def changed(before: Object | None, after: Object | None) -> None:
            if after is not None and _is_new(before, after):
                self.queue.add(_key(_config_key(kind), after))
                for name in KINDS:
                    for each in self._without(name, "Synced"):
                        self.queue.add(_key(name, each))

        watch.listen(changed)
        return watch

    def _watch_usages(self) -> Informer:
        watch = self._informer(USAGE)

        def changed(before: Object | None, after: Object | None) -> None:
            usage = after or before
            assert usage is not None
            ref = usage["providerConfigRef"]
            if kind := CONFIGS.get(ref["kind"]):
                namespace = usage["metadata"]["namespace"] if kind.namespaced else ""
                self.queue.add(f"{_config_key(kind)}/{namespace}/{ref['name']}")

        watch.listen(changed)
        return watch

    def _informer(self, kind: Kind) -> Informer:
        seconds = WATCH_TURNS * self._runtime.settings.watch_seconds
        return self._runtime.watch(WatchSpec(kind, None), on=self._kube, seconds=seconds)

    def _wake_dependents(self, kind: AwsKind, item: Object, waiting_for: str) -> None:
        """Queue objects that refer to `item` and lack the condition `waiting_for`."""
        named = {kind.kind.kind, _qualified(kind)}
        for name, store in self._stores.items():
            references = [each for each in store.references if each.kind in named]
            for other in self._without(name, waiting_for) if references else ():
                selects = any(each.selects(item) for each in lookups_of(other, references))
                if selects and self._is_resolvable(name, other):
                    self.queue.add(_key(name, other))

    def _is_early(self, key: str) -> bool:
        """Whether to delay the first reconciliation after a change, for missing references."""
        if key not in self._early:
            return False
        self._early.discard(key)
        name, _, object_name = key.partition("/")
        item = self._watches[name].store.get(object_name)
        return item is not None and not self._is_resolvable(name, item)

    def _is_resolvable(self, name: str, item: Object) -> bool:
        """Whether all objects that it refers to are in the cloud, as far as the informers know."""
        if "deletionTimestamp" in item["metadata"]:
            return True
        try:
            for lookup in unresolved_lookups(item, self._stores[name].references):
                store = self._watches[_NAMES[lookup.reference.kind]].store
                if lookup.objects is None:
                    objects = store.all()
                else:
                    found = (store.get("/".join(object_name)) for object_name in lookup.objects)
                    objects = [each for each in found if each]
                resolve(lookup, objects)
        except ReferenceMissing:
            return False
        return True

    def _without(self, name: str, condition: str) -> list[Object]:
        """Objects of a kind without a condition, to be reconciled when an obstacle may be gone."""
        items = self._watches[name].store.all()
        return [each for each in items if not is_true(each, condition)]


def _backings(runtime: Runtime) -> Mapping[str, Backing]:
    """What this machine can run for resources; without a backing, they are only recorded."""
    provider = next((each for each in runtime.providers.values() if each.info.simulated), None)
    if provider is None:
        return runtime.backings
    return {
        **runtime.backings,
        eks.CONTROL_PLANE: ControlPlanes(provider, runtime.log, runtime.clock),
    }


def _qualified(kind: AwsKind) -> str:
    """Kind and service, such as `Instance.rds`."""
    return f"{kind.kind.kind}.{kind.kind.group.partition('.')[0]}"


def _store(kube: Kube, runtime: Runtime, kind: AwsKind) -> KubeStore:
    kinds = {each: KINDS[name].kind for each, name in _NAMES.items()}
    references = tuple(ResourceReference(field, named) for field, named in kind.references.items())
    secrets: Mapping[str, str] = {"passwordSecretRef": "password"}
    return KubeStore(kube, kind.kind, references, kinds, secrets, runtime.clock)


def _service(key: str) -> str:
    """The service of a key's object, as its lane: a service that hangs delays no other."""
    return key.split("/")[0].split(".")[1]


def _progress(item: Object) -> int:
    """A number that grows with what other objects can refer to."""
    named = EXTERNAL_NAME in annotations_of(item)
    seen = (item.get("status") or {}).get("atProvider")
    return named + is_true(item, "Synced") + bool(seen)


def _key(name: str, item: Object) -> str:
    metadata = item["metadata"]
    return f"{name}/{metadata.get('namespace', '')}/{metadata['name']}"


def _config_key(kind: Kind) -> str:
    return f"{kind.kind}.{GROUP}"


_NAMES = {each: name for name, kind in KINDS.items() for each in (kind.kind.kind, _qualified(kind))}
"""Names of kinds in the table, by the names that references use."""
_CONFIGS = {_config_key(each): each for each in CONFIGS.values()}


def _is_new(before: Object | None, after: Object) -> bool:
    """Whether a relevant part differs; the status alone is only changed by us."""
    if before is None:
        return True
    return _relevant(before) != _relevant(after)


def _relevant(item: Object) -> list[object]:
    metadata = item["metadata"]
    given = {name: value for name, value in annotations_of(item).items() if name not in _OURS}
    return [given, *(metadata.get(part) for part in ("generation", "labels", "deletionTimestamp"))]
