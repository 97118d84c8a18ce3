"""Random histories of mirrors: changes by users and apps, crashes, and our reconciliation.

The real code plans, decides and writes against an API server (in memory, or a real one); the
expected result is computed here independently of that code.
"""

from __future__ import annotations

import base64
import copy
import random
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, SECRET, Conflict, Kube, NotFound, Object
from k8s_ucp.reconciler.mirrors import copies
from k8s_ucp.reconciler.mirrors.copies import Copy, ObjectRef
from k8s_ucp.reconciler.mirrors.copy_sync import Copier
from k8s_ucp.reconciler.mirrors.deletion_guard import DeletionGuard
from k8s_ucp.reconciler.mirrors.index import Destination, MirrorIndex
from k8s_ucp.reconciler.mirrors.spec import parse
from k8s_ucp.reconciler.mirrors.status import SyncCounters
from k8s_ucp.reconciler.mirrors.writes import Writer
from k8s_ucp.reconciler.runtime.logs import Log
from tests.unit.reconciler.fake_api import FakeApi

SOURCES, CLUSTER = "src", "demo-stage"
NAMES = ("a", "b", "c")
SYNCERS = ("one", "two")
KINDS = {"secrets": SECRET, "configmaps": CONFIG_MAP}


class Unheard:
    """A stream that discards its text."""

    def write(self, text: str) -> None:
        pass

    def flush(self) -> None:
        pass


class ModelSession:
    """A session whose view of the cluster may be outdated."""

    cluster = CLUSTER

    def __init__(self, app: Any, namespaces: tuple[str, ...]) -> None:
        self._app = app
        self._namespaces = namespaces
        self.seen: dict[str, Copy] = {}

    def look(self) -> None:
        """Update the view to what a watch by label eventually shows."""
        self.seen = {}
        for plural, kind in KINDS.items():
            for namespace in self._namespaces:
                for item in self._app.request("GET", kind.path(namespace))["items"]:
                    labels = item["metadata"].get("labels") or {}
                    if labels.get(names.MIRROR) == "demo":
                        item["kind"] = kind.kind
                        name = item["metadata"]["name"]
                        self.seen[f"{kind.kind}/{namespace}/{name}"] = copies.copy_of(item, CLUSTER)
            assert plural

    def found(self, ref: ObjectRef) -> Copy | None:
        return self.seen.get(str(ref))

    def ready(self, ref: ObjectRef) -> bool:
        return True

    def refusal(self, namespace: str) -> str | None:
        return None

    def invalidate(self) -> None:
        raise AssertionError("no right is missing here")

    def writer(self) -> Writer:
        return Writer(self._app, CLUSTER, "demo")


class History:
    """One random sequence. app: a FakeApi or a Kube; namespaces: two existing ones of it."""

    def __init__(self, seed: int, app: FakeApi | Kube, namespaces: tuple[str, str]) -> None:
        self.chance = random.Random(seed)
        self.app = app
        self.namespaces = namespaces
        self.core = FakeApi()
        self.foreign: dict[tuple[str, str, str], Object] = {}
        """Foreign objects by (plural, namespace, name), as their owners last wrote them."""
        self.restart()

    # The reconciler.

    def restart(self) -> None:
        """Lose everything in memory, and read it again from the API servers."""
        self.index = MirrorIndex()
        self.counters = SyncCounters(lambda syncer: None)
        guard = DeletionGuard(self.core, self._shown, self.index)  # type: ignore[arg-type]
        self.copier = Copier(self.index, self.counters, guard, Log(Unheard()))  # type: ignore[arg-type]
        self.session = ModelSession(self.app, self.namespaces)
        self.session.look()
        for plural in KINDS:
            for item in self.core.all(plural, SOURCES):
                source = copies.source_of(item)
                self.index.set_source(source.key, source)
        for name in SYNCERS:
            self.hear_of_syncer(name)
        self.index.set_targets([Destination(CLUSTER, "stage", {names.ENVIRONMENT: "stage"})])

    def _shown(self, key: str) -> Object | None:
        return self.core.objects.get(("syncers", *key.split("/")))  # type: ignore[arg-type]

    def hear_of_syncer(self, name: str) -> None:
        item = self._shown(f"{SOURCES}/{name}")
        syncer = parse(item, frozenset({SOURCES})) if item else None
        self.index.set_syncer(f"{SOURCES}/{name}", syncer)

    def hear_of_source(self, plural: str, name: str) -> None:
        kind = KINDS[plural]
        item = self.core.find(kind, name, SOURCES)
        source = copies.source_of(item) if item else None
        self.index.set_source(f"{kind.kind}/{SOURCES}/{name}", source)

    def refs(self) -> list[str]:
        return sorted(
            {
                *self.session.seen,
                *(
                    ref
                    for namespace in self.namespaces
                    for kind in KINDS.values()
                    for ref in self.index.refs(CLUSTER, namespace, kind.kind)
                ),
            }
        )

    def work(self, refs: list[str]) -> bool:
        """Reconcile the copies; True if none of them is requeued soon."""
        settled = True
        for ref in refs:
            again = self.copier.reconcile(self.session, ref)  # type: ignore[arg-type]
            settled = settled and (again is None or again >= 30)
        return settled

    # Changes from outside.

    def step(self) -> None:
        self.chance.choice(
            [
                self.write_source,
                self.write_source,
                self.delete_source,
                self.write_syncer,
                self.write_syncer,
                self.delete_syncer,
                self.somebody_writes,
                self.somebody_writes,
                self.somebody_deletes,
                self.drift,
                self.drift,
                self.restart,
                self.session.look,
                self.some_work,
                self.some_work,
                self.some_work,
            ]
        )()
        self.check_foreign()

    def some_work(self) -> None:
        refs = self.refs()
        self.work(self.chance.sample(refs, self.chance.randint(0, len(refs))))

    def write_source(self) -> None:
        plural, name = self._kind(), self.chance.choice(NAMES)
        item = self._content(plural)
        item["metadata"] = {
            "name": name,
            "namespace": SOURCES,
            "labels": {"tier": self.chance.choice(["db", "web"])},
        }
        before = self.core.find(KINDS[plural], name, SOURCES)
        if before and (before.get("immutable") or before.get("type") != item.get("type")):
            self.core.objects.pop((plural, SOURCES, name))
        self.core.put(plural, item)
        if self.chance.random() < 0.8:
            self.hear_of_source(plural, name)

    def delete_source(self) -> None:
        plural, name = self._kind(), self.chance.choice(NAMES)
        self.core.objects.pop((plural, SOURCES, name), None)
        if self.chance.random() < 0.8:
            self.hear_of_source(plural, name)

    def write_syncer(self) -> None:
        name = self.chance.choice(SYNCERS)
        before = self._shown(f"{SOURCES}/{name}")
        generation = (before or {"metadata": {"generation": 0}})["metadata"]["generation"] + 1
        entries = [self._entry() for _ in range(self.chance.randint(1, 3))]
        metadata = {
            "name": name,
            "namespace": SOURCES,
            "generation": generation,
            "creationTimestamp": f"2026-01-01T00:00:0{SYNCERS.index(name)}Z",
        }
        self.core.put("syncers", {"metadata": metadata, "spec": {"data": entries}})
        self.hear_of_syncer(name)

    def delete_syncer(self) -> None:
        """As with its finalizer: marked as deleted, its copies are deleted, then the object."""
        name = self.chance.choice(SYNCERS)
        item = self._shown(f"{SOURCES}/{name}")
        if item is None:
            return
        item["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
        self.hear_of_syncer(name)
        self.session.look()
        for _ in range(5):
            mine = [
                k for k, each in self.session.seen.items() if each.syncer == f"{SOURCES}/{name}"
            ]
            if not mine:
                break
            self.work(mine)
            self.session.look()
        assert not mine, mine
        self.core.objects.pop(("syncers", SOURCES, name))
        self.hear_of_syncer(name)

    def somebody_writes(self) -> None:
        """Create a foreign object with the name of a possible copy, or change a foreign object."""
        plural, key = self._spot()
        live = self._live(key)
        if live is not None and key not in self.foreign:
            return
        item = self._content(plural)
        item["metadata"] = {"name": key[2], "namespace": key[1], "labels": {"mine": "yes"}}
        kind = KINDS[plural]
        if live is not None:
            if live.get("immutable"):
                return
            item["type"] = live.get("type")
            item.pop("immutable", None)
            item["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
            stored = self.app.request("PUT", kind.path(key[1], key[2]), body=item)
        else:
            stored = self.app.request("POST", kind.path(key[1]), body=item)
        self.foreign[key] = stored

    def somebody_deletes(self) -> None:
        _, key = self._spot()
        if key in self.foreign:
            self.app.request("DELETE", KINDS[key[0]].path(key[1], key[2]))
            del self.foreign[key]

    def drift(self) -> None:
        """Delete or change a copy of ours from outside."""
        _, key = self._spot()
        live = self._live(key)
        if live is None or key in self.foreign:
            return
        path = KINDS[key[0]].path(key[1], key[2])
        how = self.chance.choice(["delete", "content", "label"])
        changed = copy.deepcopy(live)
        if how == "delete":
            self.app.request("DELETE", path)
        elif how == "label":
            changed["metadata"]["labels"] = {}
            self.app.request("PUT", path, body=changed)
        elif not live.get("immutable"):
            changed["data"] = {"meddled": "bWVkZGxlZA=="}
            self.app.request("PUT", path, body=changed)

    # Invariants.

    def check_foreign(self) -> None:
        """At any time: foreign objects are unchanged."""
        for key, item in self.foreign.items():
            live = self._live(key)
            assert live is not None, f"{key} was deleted"
            assert _plain(live) == _plain(item), f"{key} was changed"

    def settle(self) -> None:
        """Deliver all events and reconcile until nothing changes."""
        self.restart()
        for _ in range(12):
            settled = self.work(self.refs())
            before = dict(self.session.seen)
            self.session.look()
            if settled and self.session.seen == before:
                return
        raise AssertionError("it never settles")

    def check_end(self) -> None:
        """After `settle`: every copy that can exist exists, once, and no other."""
        self.check_foreign()
        wanted = self._wanted()
        for ref, item in self.session.seen.items():
            assert ref in wanted or item.retain, f"{ref} is an orphan"
        for ref, content in wanted.items():
            key = _key(ref)
            if key in self.foreign or content is None:
                continue
            live = self._live(key)
            assert live is not None, f"{ref} is lost"
            assert (live.get("type"), live.get("data")) == content, f"{ref} is wrong"

    def _wanted(self) -> dict[str, tuple[Any, Any] | None]:
        """{ref: (type, data)} from the declared Syncers; the older Syncer wins.

        None if the source lacks a key: an existing copy may then stay.
        """
        found: dict[str, tuple[Any, Any] | None] = {}
        for name in SYNCERS:
            item = self._shown(f"{SOURCES}/{name}")
            for entry in item["spec"]["data"] if item else []:
                plural = "secrets" if entry["kinds"] == "secret" else "configmaps"
                for source in sorted(
                    self.core.all(plural, SOURCES), key=lambda each: each["metadata"]["name"]
                ):
                    self._add_wanted(found, entry, source)
        return found

    def _add_wanted(
        self, found: dict[str, tuple[Any, Any] | None], entry: Object, source: Object
    ) -> None:
        name = source["metadata"]["name"]
        labels = source["metadata"]["labels"]
        if entry.get("sourceName", name) != name:
            return
        if "sourceSelector" in entry and labels["tier"] != "db":
            return
        target = entry.get("targetName", "{name}").replace("{name}", name)
        ref = f"{source['kind']}/{entry['targetNamespace']}/{target}"
        if ref in found:
            return
        data = source.get("data")
        if "keys" in entry:
            key = entry["keys"]["K"]
            if key not in (data or {}):
                found[ref] = None
                return
            data = {"K": data[key]}
        found[ref] = (source.get("type"), data)

    # Random values.

    def _kind(self) -> str:
        return self.chance.choice(["secrets", "secrets", "configmaps"])

    def _content(self, plural: str) -> Object:
        keys = self.chance.sample(["user", "password", "host"], self.chance.randint(1, 3))
        values = {key: str(self.chance.randint(0, 3)) for key in keys}
        kind = KINDS[plural].kind
        if plural == "configmaps":
            return {"apiVersion": "v1", "kind": kind, "data": values}
        item: Object = {
            "apiVersion": "v1",
            "kind": kind,
            "type": self.chance.choice(["Opaque", "Opaque", "connection.crossplane.io/v1alpha1"]),
            "data": {key: base64.b64encode(text.encode()).decode() for key, text in values.items()},
        }
        if self.chance.random() < 0.15:
            item["immutable"] = True
        return item

    def _entry(self) -> Object:
        entry: Object = {
            "kinds": self.chance.choice(["secret", "secret", "configmap"]),
            "targetNamespace": self.chance.choice(self.namespaces),
        }
        if self.chance.random() < 0.4:
            entry["sourceSelector"] = {"matchLabels": {"tier": "db"}}
        else:
            entry["sourceName"] = self.chance.choice(NAMES)
            if self.chance.random() < 0.3:
                entry["targetName"] = self.chance.choice(NAMES)
        if self.chance.random() < 0.5:
            entry["targetCluster"] = CLUSTER
        else:
            entry["targetSelector"] = {"matchLabels": {names.ENVIRONMENT: "stage"}}
        if self.chance.random() < 0.2:
            entry["keys"] = {"K": self.chance.choice(["user", "password"])}
        return entry

    def _spot(self) -> tuple[str, tuple[str, str, str]]:
        plural = self._kind()
        return plural, (plural, self.chance.choice(self.namespaces), self.chance.choice(NAMES))

    def _live(self, key: tuple[str, str, str]) -> Object | None:
        try:
            found: Object = self.app.request("GET", KINDS[key[0]].path(key[1], key[2]))
        except NotFound:
            return None
        return found


def _plain(item: Object) -> Object:
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
    return {**item, "metadata": metadata}


def _key(ref: str) -> tuple[str, str, str]:
    kind, namespace, name = ref.split("/", 2)
    return ("secrets" if kind == "Secret" else "configmaps", namespace, name)


def run_history(seed: int, app: FakeApi | Kube, namespaces: tuple[str, str], steps: int) -> None:
    """Run a whole history. Raises AssertionError that names the seed."""
    history = History(seed, app, namespaces)
    try:
        for _ in range(steps):
            try:
                history.step()
            except Conflict as error:
                raise AssertionError("a conflict reached the caller") from error
        history.settle()
        history.check_end()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
