"""Real embedded control planes for tests: made in a folder of the test's own, gone at its end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp import process
from k8s_ucp.cluster_provider import ClusterRequest, Seed
from k8s_ucp.clusters import seeds
from k8s_ucp.clusters.embedded import default_objects
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.clusters.ports import Ports, default_registry
from k8s_ucp.components import manifests
from k8s_ucp.components.manifests import Manifest
from k8s_ucp.kube import Kube
from k8s_ucp.process import ProcessIdentity
from k8s_ucp.steps.startup.seed import settled
from k8s_ucp.workspace import cache_folder
from tests.end_of_run import ends_with_this_run

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox


def quiet(line: str) -> None:
    """A report that nobody reads."""


class ControlPlanes:
    """Embedded providers in folders below one, each like a workspace of its own."""

    def __init__(
        self, root: Path, toolbox: Toolbox, kind: type[EmbeddedProvider] = EmbeddedProvider
    ) -> None:
        self.root = root
        self.toolbox = toolbox
        self.kind = kind
        self.ports = Ports(default_registry())
        self._providers: list[EmbeddedProvider] = []

    def provider(self, workspace: str = "one") -> EmbeddedProvider:
        """The provider of a topology in that workspace."""
        found = self.kind(self.folder(workspace), self.toolbox, ports=self.ports)
        self._providers.append(found)
        return found

    def folder(self, workspace: str = "one") -> Path:
        """Where the clusters of that workspace lie; the path holds a space on purpose."""
        return self.root / workspace / "my files" / "clusters"

    def processes(self, workspace: str = "") -> list[ProcessIdentity]:
        """Whatever still runs for clusters of that workspace, or of any."""
        return process.working_in(self.folder(workspace) if workspace else self.root)

    def remove(self) -> None:
        """End and remove everything, and prove that nothing is left."""
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
    """Providers that leave nothing behind."""
    ends_with_this_run(root)
    planes = ControlPlanes(root, toolbox, kind)
    try:
        yield planes
    finally:
        planes.remove()


def made(provider: EmbeddedProvider, name: str, seed: Seed | None = None) -> Kube:
    """A cluster of that name, ready, as its admin."""
    provider.create(ClusterRequest(name, seed=seed), quiet)

    def is_ready() -> bool:
        found = provider.state(name)
        if found.message.startswith("not running"):
            # Where all are slow, a controller ends itself; a topology's watcher starts it again.
            provider.start(name)
        return found.ready

    eventually(is_ready, lambda: provider.state(name).message)
    return Kube(provider.kubeconfig(name))


def made_with(
    provider: EmbeddedProvider, name: str, toolbox: Toolbox, kinds: Sequence[Manifest]
) -> Kube:
    """The same, and it serves these CRDs: the first run applies them and keeps them for the others.

    An API server learns kinds that it finds as it starts at half the CPU of kinds that are applied.
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
    stored = provider.stored_kinds(name)
    if settled(stored, {each.name for each in kinds}):
        seeds.keep(cache, key, Seed(digest, stored))
    return kube


def eventually(
    condition: Callable[[], bool], seen: Callable[[], object] = str, seconds: float = 60
) -> None:
    """Wait for a condition; fails with what `seen` tells when it does not come."""
    until = (looked := time.monotonic()) + seconds
    while not condition():
        assert time.monotonic() < until, f"not within {seconds} s; last state: {seen()}"
        # What is waited for needs the processor, too.
        time.sleep(min(1, max(0.05, 3 * (time.monotonic() - looked))))
        looked = time.monotonic()


def namespace(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


PAUSE_IMAGE = "registry.k8s.io/pause:3.10"


def deployment(name: str, image: str = PAUSE_IMAGE) -> dict[str, object]:
    """Two replicas of something, in namespace default."""
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
