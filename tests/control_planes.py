"""Real embedded control planes for tests: created in the test's own folder, deleted at its end."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp import process
from k8s_ucp.cluster_provider import ClusterProvider, ClusterRequest, ClusterState, Seed
from k8s_ucp.clusters import seeds
from k8s_ucp.clusters.embedded.cached import default_objects
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.processes import find_down
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.clusters.ports import Ports, default_registry
from k8s_ucp.components import manifests
from k8s_ucp.components.manifests import Manifest
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import Kube
from k8s_ucp.process import ProcessIdentity
from k8s_ucp.steps.startup.seed import settled
from k8s_ucp.workspace import cache_folder
from tests.end_of_run import ends_with_this_run

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox


PATIENCE = 100.0
"""Seconds that tests wait for what takes a few on an idle machine.

Less than the reconciler's own timeouts, such as that of a drain, which would hide a fault.
"""
_RESTART_SECONDS = 10.0
_WITHOUT_WATCHER: weakref.WeakSet[ClusterProvider] = weakref.WeakSet()
"""Providers whose exited controllers nothing but a wait of these tests restarts."""
_WATCHED: weakref.WeakSet[ClusterProvider] = weakref.WeakSet()
"""Those whose test runs a watcher."""


def quiet(line: str) -> None:
    """Report that discards its lines."""


class ControlPlanes:
    """Embedded providers below one root folder, one for each workspace."""

    def __init__(
        self, root: Path, toolbox: Toolbox, kind: type[EmbeddedProvider] = EmbeddedProvider
    ) -> None:
        self.root = root
        self.toolbox = toolbox
        self.kind = kind
        self.ports = Ports(default_registry())
        self._providers: list[EmbeddedProvider] = []

    def provider(self, workspace: str = "one") -> EmbeddedProvider:
        """Embedded provider of the topology in that workspace."""
        found = self.kind(self.folder(workspace), self.toolbox, ports=self.ports)
        self._providers.append(found)
        leave_to_waits(found)
        return found

    def folder(self, workspace: str = "one") -> Path:
        """Folder of that workspace's clusters; the path contains a space on purpose."""
        return self.root / workspace / "my files" / "clusters"

    def processes(self, workspace: str = "") -> list[ProcessIdentity]:
        """All running processes of that workspace's clusters, or of any workspace."""
        return process.working_in(self.folder(workspace) if workspace else self.root)

    def remove(self) -> None:
        """Stop and delete everything, and check that nothing is left."""
        for provider in self._providers:
            for name in provider.names():
                provider.delete(name)
        left = self.processes()
        process.terminate_all(left, grace=0)
        assert not left
        assert not [each for each in self.ports.owners() if each.startswith(f"{self.root}/")]


@contextlib.contextmanager
def control_planes(
    root: Path, toolbox: Toolbox, kind: type[EmbeddedProvider] = EmbeddedProvider
) -> Iterator[ControlPlanes]:
    """Yield providers that are cleaned up at the end."""
    ends_with_this_run(root)
    planes = ControlPlanes(root, toolbox, kind)
    try:
        yield planes
    finally:
        planes.remove()


GOGC = "200"
"""Of the API servers: a fifth less CPU time until they are ready, and 60 MiB more each."""


def made(provider: EmbeddedProvider, name: str, seed: Seed | None = None) -> Kube:
    """Create a cluster, wait until it is ready, and return a client with admin rights."""
    leave_to_waits(provider)
    provider.create(ClusterRequest(name, seed=seed, parameters={"gogc": GOGC}), quiet)

    eventually(lambda: _restart_exited(provider, name).ready, lambda: provider.state(name).message)
    return Kube(provider.kubeconfig(name))


def start_what_ended(provider: EmbeddedProvider, base: Path) -> None:
    """Restart the exited programs of all clusters, which are below the folder `base`."""
    for name in provider.names():
        # A fraction of what the provider's state costs, which asks the programs as well.
        if find_down(ClusterFolder(base, name)):
            _restart_exited(provider, name)


def _restart_exited(
    provider: ClusterProvider, name: str, *, only_if_serving: bool = False
) -> ClusterState:
    """Restart what exited, as a topology's watcher would on a slow machine.

    only_if_serving: not if the API server exited, too. Returns the state before.
    """
    found = provider.state(name)
    if found.message.startswith("not running") and (found.running or not only_if_serving):
        provider.start(name)
    return found


def made_with(
    provider: EmbeddedProvider, name: str, toolbox: Toolbox, kinds: Sequence[Manifest]
) -> Kube:
    """Create a cluster that serves these CRDs, which the first run applies and keeps as a seed.

    CRDs that exist when an API server starts cost half the CPU of CRDs that are applied later.
    """
    digest = manifests.digest(kinds)
    programs = {each: toolbox.path(each) for each in default_objects.PROGRAMS}
    key = f"{default_objects.key(programs)}-{digest[:32]}"
    cache = cache_folder() / "tests"
    kube = made(provider, name, seeds.find(cache, key))
    if provider.seeded_with(name) == digest:
        manifests.wait_served(kube, kinds)
        return kube
    manifests.apply_all(kube, kinds)
    manifests.wait_served(kube, kinds)
    stored = provider.stored_crds(name)
    if settled(stored, {each.name for each in kinds}):
        seeds.keep(cache, key, Seed(digest, stored))
    return kube


def leave_to_waits(provider: ClusterProvider) -> None:
    """Restart its exited controllers during each wait; the caller keeps a reference to it."""
    _WITHOUT_WATCHER.add(provider)


def leave_to_watcher(provider: ClusterProvider) -> None:
    """Restart none of its controllers during a wait, since the test runs a watcher."""
    _WATCHED.add(provider)


class Restarts:
    """During a wait, restarts controllers that exited, as a topology's watcher would.

    On a slow machine one may exit while it starts. An API server is left to the test that ended it.
    """

    def __init__(self) -> None:
        self._next = time.monotonic() + _RESTART_SECONDS

    def look(self) -> None:
        if time.monotonic() < self._next:
            return
        for provider in {*_WITHOUT_WATCHER} - {*_WATCHED}:
            for name in provider.names():
                with contextlib.suppress(UcpError):
                    _restart_exited(provider, name, only_if_serving=True)
        self._next = time.monotonic() + _RESTART_SECONDS


def eventually(
    condition: Callable[[], object], seen: Callable[[], object] = str, seconds: float = PATIENCE
) -> None:
    """Wait for a condition; at the deadline, fail with the result of `seen`."""
    until, restarts = (looked := time.monotonic()) + seconds, Restarts()
    while not condition():
        assert time.monotonic() < until, f"not within {seconds} s; last state: {seen()}"
        restarts.look()
        # Leave processor time for the work that this waits for.
        time.sleep(min(1, max(0.05, 3 * (time.monotonic() - looked))))
        looked = time.monotonic()


def namespace(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


PAUSE_IMAGE = "registry.k8s.io/pause:3.10"


def kind_of_any_fields(group: str, kind: str, version: str) -> dict[str, object]:
    """The CRD of a namespaced kind whose spec can have any fields."""
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            # Required for the groups below k8s.io.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }


def deployment(name: str, image: str = PAUSE_IMAGE) -> dict[str, object]:
    """A Deployment with two replicas in namespace default."""
    labels = {"app": name}
    pods = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": pods},
    }
