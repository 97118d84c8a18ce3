"""Takes shapes through the life of an app: added, promoted, rolled back and removed.

Each step is done for all shapes before the next one begins, so that Argo CD works on many at once.
A shape that fails a step is left as it is, and the others continue.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp.git.repository import Repository
from k8s_ucp.kube import Kind, Kube, KubeError, Object
from tests.e2e.corpus.shape import Shape
from tests.e2e.corpus.sources import Sources
from tests.e2e.world import Workbench

ENVIRONMENTS = ("stage", "prod")
_PASSING = (
    *("Event", "Lease", "Endpoints", "EndpointSlice", "Node", "ComponentStatus", "IPAddress"),
    *("APIService", "ServiceAccountIssuer"),
)
"""Kinds that controllers create and delete at any time."""
_WORKLOADS = (
    Kind("apps/v1", "Deployment", "deployments"),
    Kind("apps/v1", "StatefulSet", "statefulsets"),
    Kind("apps/v1", "DaemonSet", "daemonsets"),
    Kind("batch/v1", "CronJob", "cronjobs"),
    Kind("batch/v1", "Job", "jobs"),
    Kind("v1", "Pod", "pods"),
    Kind("argoproj.io/v1alpha1", "Rollout", "rollouts"),
)


@dataclass
class Trial:
    """The shapes on a started topology. failures: what failed, by shape."""

    world: Workbench
    sources: Sources
    shapes: Sequence[Shape]
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """Duration of each step."""

    def run(self, *, traces: bool = True) -> None:
        """Run all steps. traces: also compare all that is left with the state before."""
        before = self.traces() if traces else {}
        self.each("add", self.add)
        self.until("Synced and Healthy", new=())
        self.promote("stage", lambda shape: shape.promoted)
        self.until("promoted on stage", new=("stage",))
        self.promote("prod", lambda _: {"from": "stage"})
        self.until("promoted on prod", new=ENVIRONMENTS)
        self.each("roll back", self.roll_back, at_once=2)
        self.until("rolled back on prod", new=("stage",))
        self.each("remove", self.remove, at_once=2, failed_too=True)
        for what in self._left_over(before) if traces else ():
            self._fail(self._owner(what), f"removed, but not as before: {what}")

    def _left_over(self, before: Mapping[str, str], seconds: float = 90) -> list[str]:
        """Differences at the deadline: projects on the core and volumes are deleted late."""
        deadline = time.monotonic() + seconds
        while True:
            after = self.traces()
            differing = [
                what
                for what in sorted(before.keys() | after.keys())
                if before.get(what) != after.get(what)
            ]
            if not differing or time.monotonic() > deadline:
                return differing
            time.sleep(2)

    def add(self, shape: Shape) -> None:
        words = self.sources.words(shape)
        said = self.world.ucp("app", "add", shape.name, *words, *shape.flags).stderr
        assert shape.said in said, f"said to be {said!r} instead of {shape.said!r}"
        if shape.committed:
            with self.world.commit("apps", f"Set up {shape.name}") as clone:
                for path, text in shape.committed.items():
                    assert isinstance(text, str)
                    (clone / "apps" / shape.name / path).write_text(text)

    def promote(self, environment: str, what: Callable[[Shape], Mapping[str, Any]]) -> None:
        """Promote all shapes in one commit; if that is refused, one by one."""
        started = time.monotonic()

        def batch(shapes: Sequence[Shape]) -> None:
            items = [{"app": each.name, "env": environment, **what(each)} for each in shapes]
            file = self.world.home / "batch.yaml"
            file.write_text(json.dumps(items))
            self.world.ucp("promote", "--batch", str(file))

        try:
            batch(self._left())
        except AssertionError:
            self.each(f"promote to {environment}", lambda shape: batch([shape]))
        self.seconds[f"promote to {environment}"] = time.monotonic() - started

    def roll_back(self, shape: Shape) -> None:
        self.world.ucp("rollback", shape.name, "--env", "prod")

    def remove(self, shape: Shape) -> None:
        """Remove a shape, including one that failed after it was added."""
        if f"name: {shape.name}\n" in (self.world.workspace / "ucp.yaml").read_text():
            self.world.ucp("app", "remove", shape.name, "--yes")

    def traces(self) -> dict[str, str]:
        """Everything that an app could leave behind: {object or file: its identity}."""
        workspace = self.world.workspace
        found = {"ucp.yaml": (workspace / "ucp.yaml").read_text()}
        for name in ("core", "core.git", "apps", "apps.git"):
            repository = Repository(self.world.gitops / name)
            tree = repository.listing("HEAD")
            found |= {f"{name}: {path}": entry.id for path, entry in tree.items()}
            if not name.endswith(".git"):
                found[f"{name}: uncommitted"] = repository.git("status", "--porcelain").decode()
        for cluster in ("core", *ENVIRONMENTS):
            with_kube = self.world.kube(cluster)
            try:
                found |= {f"{cluster}: {each}": "" for each in _contents(with_kube)}
            finally:
                with_kube.close()
        return found

    def _owner(self, what: str) -> str:
        """Name of the shape that a trace belongs to."""
        names = [name for each in self.shapes for name in (each.name, *each.namespaces)]
        found = max((name for name in names if name in what), key=len, default="all")
        owners = {name: each.name for each in self.shapes for name in (each.name, *each.namespaces)}
        return owners.get(found, found)

    def _left(self) -> list[Shape]:
        return [each for each in self.shapes if each.name not in self.failures]

    def each(
        self,
        step: str,
        act: Callable[[Shape], None],
        *,
        at_once: int = 1,
        failed_too: bool = False,
    ) -> None:
        started = time.monotonic()

        def tried(shape: Shape) -> None:
            try:
                act(shape)
            except Exception as error:  # noqa: BLE001 (reported with those of the other shapes)
                self._fail(shape.name, f"{step}: {error}")

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(tried, list(self.shapes) if failed_too else self._left()))
        self.seconds[step] = time.monotonic() - started

    def _fail(self, name: str, words: str) -> None:
        self.failures[name] = "\n".join(filter(None, (self.failures.get(name), words)))

    def until(self, step: str, *, new: Sequence[str], seconds: float = 150) -> None:
        """Wait until all shapes are healthy. new: environments with the promoted version."""
        started = time.monotonic()
        waiting: dict[str, str] = {each.name: "?" for each in self._left()}
        deadline = started + seconds
        looked = 0.0
        while waiting and time.monotonic() < deadline:
            # Leave processor time for the work that this waits for.
            time.sleep(max(1, 3 * looked))
            began = time.monotonic()
            status = {each["name"]: each for each in self.world.status()["applications"]}
            images = {each: self._images(each) for each in ENVIRONMENTS}
            for shape in self._left():
                said = [
                    words
                    for each in ENVIRONMENTS
                    if (words := _unwell(shape, each, status, images[each], new=each in new))
                ]
                if said:
                    waiting[shape.name] = "; ".join(said)
                else:
                    waiting.pop(shape.name, None)
            looked = time.monotonic() - began
        for name, words in waiting.items():
            self._fail(name, f"not {step}: {words}\n{self._conditions(name)}")
        self.seconds[step] = time.monotonic() - started

    def _conditions(self, name: str) -> str:
        """Argo CD's conditions and messages about an app that is not healthy."""
        core = self.world.kube("core")
        try:
            found = []
            for environment in ENVIRONMENTS:
                kind = Kind("argoproj.io/v1alpha1", "Application", "applications")
                status = (core.find(kind, f"{name}-{environment}", "argocd") or {}).get(
                    "status", {}
                )
                found.append(json.dumps(status.get("conditions", [])))
                found.append(str(status.get("operationState", {}).get("message")))
                found += [
                    f"{each.get('kind')} {each.get('name')}: {each.get('status')} {health}"
                    for each in status.get("resources", [])
                    if (health := each.get("health", {})).get("status", "Healthy") != "Healthy"
                    or each.get("status") != "Synced"
                ]
            return "\n".join(found)
        finally:
            core.close()

    def _images(self, environment: str) -> dict[str, set[str]]:
        """Images of the declared workloads on an app cluster, by namespace."""
        found: dict[str, set[str]] = {}
        kube = self.world.kube(environment)
        try:
            for kind in _WORKLOADS:
                try:
                    items = kube.list_all(kind)
                except KubeError:
                    continue  # An app may bring the CRD.
                for item in items:
                    if not _passing(item):
                        images = found.setdefault(item["metadata"]["namespace"], set())
                        images |= set(_images_in(item))
        finally:
            kube.close()
        return found


def _unwell(
    shape: Shape,
    environment: str,
    status: dict[str, Any],
    images: dict[str, set[str]],
    *,
    new: bool,
) -> str:
    """What a shape lacks in an environment; empty if nothing."""
    found = status.get(f"{shape.name}-{environment}")
    if found is None:
        return f"no Application on {environment}"
    if (found["sync"], found["health"]) != ("Synced", "Healthy"):
        return f"{found['sync']} and {found['health']} on {environment}"
    there = {each for name in shape.namespaces for each in images.get(name, ())}
    wanted = shape.running(new=new)
    return (
        "" if there == wanted else f"{sorted(there)} on {environment} instead of {sorted(wanted)}"
    )


def _passing(item: Object) -> bool:
    """Return whether it is a hook or a controller's object; outdated ones of these may remain."""
    about = item["metadata"]
    hook = [each for each in about.get("annotations", {}) if each.endswith(("/hook",))]
    return bool(hook or about.get("ownerReferences") or about.get("deletionTimestamp"))


def _images_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key in ("containers", "initContainers"):
            for each in value.get(key) or ():
                if isinstance(each, dict) and "image" in each:
                    yield each["image"]
        value = [each for key, each in value.items() if key not in ("metadata", "status")]
    if isinstance(value, list):
        for each in value:
            yield from _images_in(each)


def _contents(kube: Kube) -> Iterator[str]:
    """Every object of a cluster."""
    groups = kube.request("GET", "/apis")["groups"]
    roots = [f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups]
    for root in ("/api/v1", *roots):
        for kind in kube.request("GET", root)["resources"]:
            if "list" in kind["verbs"] and kind["kind"] not in _PASSING:
                for item in kube.request("GET", f"{root}/{kind['name']}")["items"]:
                    about = item["metadata"]
                    yield f"{kind['kind']} {about.get('namespace', '')}/{about['name']}"
