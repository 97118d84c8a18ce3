"""A real core cluster with all components."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp import process
from k8s_ucp.components import argocd, composition_functions, crossplane, manifests
from k8s_ucp.components.argocd import ArgoCD
from k8s_ucp.components.component import Health, combine
from k8s_ucp.components.composition_functions import CompositionFunctions, UserCode
from k8s_ucp.components.crossplane import Crossplane
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.redis import Redis
from k8s_ucp.components.manifests import Manifest
from k8s_ucp.components.watcher import Watcher
from k8s_ucp.git.repository import Repository
from k8s_ucp.kube import Kube
from k8s_ucp.process import ProcessIdentity
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import CrossplaneSettings
from k8s_ucp.workspace import StateFolder
from tests.control_planes import PATIENCE, ControlPlanes, eventually, made_with, namespace

from .platform_api import early_kinds

PORTS = (*argocd.PORTS, *crossplane.PORTS, *composition_functions.PORTS)
CORE = "demo-core"
USER_FUNCTION = "stores"
PROGRAMS = ("redis", *argocd.PROGRAMS, "crossplane", "function", "watcher")


@dataclass
class Stack:
    """All components but the reconciler, which has its own tests."""

    host: Host
    placement: HostPlacement
    kube: Kube

    @property
    def redis(self) -> Redis:
        return Redis(self.host)

    @property
    def argocd(self) -> ArgoCD:
        return ArgoCD(self.host)

    @property
    def crossplane(self) -> Crossplane:
        return Crossplane(self.host, CrossplaneSettings())

    @property
    def functions(self) -> CompositionFunctions:
        code = UserCode((USER_FUNCTION,), self.core_repository.folder, "refs/heads/main")
        return CompositionFunctions(self.host, code)

    @property
    def core_repository(self) -> Repository:
        return Repository(self.host.state.root / "core.git")

    def push(self, files: Mapping[str, str]) -> None:
        """Replace the content of the core repository by these files."""
        core = self.core_repository
        if not core.folder.exists():
            core.folder.mkdir()
            core.git("init", "--quiet", "--bare", "--initial-branch=main")
        contents = {path: text.encode() for path, text in files.items()}
        made = core.write_commit("These alone\n", contents, parent=None)
        core.git("update-ref", "refs/heads/main", made)

    def health(self) -> Health:
        return combine(
            {
                "redis": self.redis.ready,
                "argocd": self.argocd.ready,
                "crossplane": self.crossplane.ready,
                "function": self.functions.ready,
            }
        )

    def up(self) -> None:
        """Start everything, as `ucp start` does on a core that was created with its CRDs."""
        self.placement.ensure_running()
        self.placement.start([*self.redis.programs(), *self.argocd.early_programs()])
        for name in (argocd.NAMESPACE, crossplane.NAMESPACE):
            self.kube.apply(namespace(name))
        engine = [*engines(self.host.toolbox), *manifests.read(self._settings())]
        manifests.apply_all(self.kube, [each for each in engine if not each.is_crd])
        self.argocd.prepare(self.kube)
        self.placement.start(self.argocd.programs())
        self.crossplane.initialize()
        self.crossplane.fetch_certificates(self.kube)
        self.functions.ensure_certificate(self.kube)
        self.placement.start(self.functions.programs())
        self.functions.register(self.kube)
        self.placement.start(self.crossplane.programs())
        self.placement.start(Watcher(self.placement).programs())
        self.wait_well()

    def wait_well(self, seconds: float = PATIENCE) -> None:
        eventually(lambda: self.health().ready, self.health, seconds)

    def pid(self, name: str) -> int:
        state = self.placement.states().get(name)
        return state.pid if state else 0

    def pids(self) -> dict[str, int]:
        return {name: state.pid for name, state in self.placement.states().items()}

    def processes(self) -> list[ProcessIdentity]:
        """All running processes that supervisord ever started for this stack."""
        url = f"unix://{self.placement.runtime / 'supervisor.sock'}"
        found = process.marked(("SUPERVISOR_SERVER_URL", url))
        return [each for each, session in found if session != each.pid]

    def wait_for_new(self, name: str, old: int, seconds: float) -> None:
        """Wait until the program has a process other than `old`."""
        until = time.monotonic() + seconds
        while self.pid(name) in (0, old):
            assert time.monotonic() < until, f"{name} did not come back: {self.placement.states()}"
            time.sleep(0.05)

    def _settings(self) -> dict[str, bytes]:
        folder = self.host.toolbox.module("argocd") / "manifests/base/config"
        found = {}
        for name in ("argocd-cm", "argocd-cmd-params-cm", "argocd-rbac-cm"):
            text = (folder / f"{name}.yaml").read_text()
            found[name] = text.replace(
                "metadata:\n", "metadata:\n  namespace: argocd\n", 1
            ).encode()
        return found


def engines(toolbox: Toolbox) -> list[Manifest]:
    """Manifests of Argo CD and Crossplane."""
    return manifests.read(
        {
            **argocd.engine_manifests(toolbox.module("argocd")),
            **{
                f"crossplane-{name}": text
                for name, text in crossplane.engine_manifests(toolbox.module("crossplane")).items()
            },
        }
    )


@contextlib.contextmanager
def stack(planes: ControlPlanes, runtime: Path, toolbox: Toolbox) -> Iterator[Stack]:
    """A running stack, of which nothing remains after the block."""
    state = StateFolder(planes.root / "one" / "my files")
    state.make()
    provider = planes.provider()
    kinds = [each for each in engines(toolbox) if each.is_crd]
    kinds += [manifests.written(each, "platform") for each in early_kinds()]
    kube = made_with(provider, CORE, toolbox, kinds)
    kubeconfig = state.kubeconfig(CORE)
    kubeconfig.write_text(_text(provider.kubeconfig(CORE)))
    kubeconfig.chmod(0o600)
    owner = str(state.components)
    host = Host(state, runtime, toolbox, planes.ports.reserve(owner, PORTS), kubeconfig)
    found = Stack(host, HostPlacement(state, runtime), kube)
    try:
        found.up()
        yield found
    finally:
        found.placement.stop_all()
        left = found.processes()
        process.terminate_all(left, grace=0)
        planes.ports.release(owner)
        kube.close()
        assert not left


def _text(kubeconfig: object) -> str:
    import json

    return json.dumps(kubeconfig)
