"""A push to a local remote refreshes Argo CD's objects, and no failure of that affects the push."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.clusters.ports import Ports
from k8s_ucp.components import manifests
from k8s_ucp.git.clones import make_clone
from k8s_ucp.git.repository import RefUpdate, Repository
from k8s_ucp.gitops.refresh import ensure_hook
from k8s_ucp.kube import APPLICATION, APPLICATION_SET, NAMESPACE, Kube
from k8s_ucp.tools.toolbox import Toolbox
from tests.control_planes import PATIENCE, made_with, namespace
from tests.integration.gitops.conftest import Repositories

REFRESH = "argocd.argoproj.io/refresh"
REFRESH_SET = "argocd.argoproj.io/application-set-refresh"
STAGE = "apps/echo/overlays/stage/kustomization.yaml"


@pytest.fixture(scope="module")
def core(toolbox: Toolbox) -> Iterator[Path]:
    """Kubeconfig of a real core with Argo CD's CRDs and without its controllers."""
    folder = Path(tempfile.mkdtemp(prefix="ucp test "))
    provider = EmbeddedProvider(folder / "clusters", toolbox, ports=Ports(folder / "ports"))
    try:
        names = ("application-crd.yaml", "applicationset-crd.yaml")
        crds = toolbox.module("argocd") / "manifests/crds"
        kinds = manifests.read({each: (crds / each).read_bytes() for each in names})
        kube = made_with(provider, "core", toolbox, kinds)
        kubeconfig = folder / "core.yaml"
        with kubeconfig.open("w") as stream:
            YAML(typ="safe", pure=True).dump(provider.kubeconfig("core"), stream)
        kube.apply(namespace("argocd"))
        kube.close()
        yield kubeconfig
    finally:
        for name in provider.names():
            provider.delete(name)
        shutil.rmtree(folder, ignore_errors=True)


def eventually(holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            if holds():
                return
        except Exception:
            if time.monotonic() > until:
                raise
        assert time.monotonic() < until, "not reached in time"
        time.sleep(0.1)


@dataclass
class Argo:
    """Applications and ApplicationSets of the two repositories, in a real API server."""

    kube: Kube
    kubeconfig: Path

    def apply(self, world: Repositories) -> None:
        yaml = YAML(typ="safe", pure=True)
        files = {**world.files("core"), **world.files("apps")}
        for path, text in files.items():
            if path.startswith(("bootstrap/", "applications/")) and b"argoproj.io" in text:
                self.kube.apply(yaml.load(text.decode()))
        for name in ("stage", "prod"):
            source = {
                "repoURL": world.folder.apps_remote.as_uri(),
                "path": f"apps/echo/overlays/{name}",
            }
            self.kube.apply(
                {
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "Application",
                    "metadata": {
                        "name": f"echo-{name}",
                        "namespace": "argocd",
                        "annotations": {
                            "argocd.argoproj.io/manifest-generate-paths": ".;../../base"
                        },
                    },
                    "spec": {
                        "project": "applications",
                        "destination": {"name": f"demo-{name}", "namespace": "echo"},
                        "source": source,
                    },
                }
            )

    def refreshed(self) -> set[str]:
        """Names of the objects with a refresh annotation."""
        items = [
            *self.kube.list_all(APPLICATION, "argocd"),
            *self.kube.list_all(APPLICATION_SET, "argocd"),
        ]
        return {each["metadata"]["name"] for each in items if _asked(each)}

    def answer(self) -> None:
        """Remove the annotations, as Argo CD does after a refresh."""
        none = {"metadata": {"annotations": {REFRESH: None, REFRESH_SET: None}}}
        for kind in (APPLICATION, APPLICATION_SET):
            for each in self.kube.list_all(kind, "argocd"):
                self.kube.patch(kind, each["metadata"]["name"], "argocd", none)


def _asked(item: dict[str, Any]) -> bool:
    annotations = item["metadata"].get("annotations") or {}
    return annotations.get(REFRESH) == "normal" or annotations.get(REFRESH_SET) == "true"


@pytest.fixture
def argo(core: Path, world: Repositories) -> Iterator[Argo]:
    world.start()
    kube = Kube.from_file(core)
    argo = Argo(kube, core)
    argo.apply(world)
    for remote in (world.folder.core_remote, world.folder.apps_remote):
        assert ensure_hook(remote, python=Path(sys.executable), kubeconfig=core) is None
    yield argo
    for kind in (APPLICATION, APPLICATION_SET):
        for each in kube.list_all(kind, "argocd"):
            name = each["metadata"]["name"]
            kube.patch(kind, name, "argocd", {"metadata": {"finalizers": None}})
            kube.delete(kind, name, "argocd")
    assert kube.find(NAMESPACE, "argocd")


SETS = {"applications-protected"}
"""An Application and an ApplicationSet are both named `applications`."""


def test_push_refreshes_the_objects_that_it_affects(world: Repositories, argo: Argo) -> None:
    world.edit("apps", STAGE, "0.9.2", "0.9.3")
    eventually(lambda: argo.refreshed() >= {"echo-stage"} | SETS)
    assert "echo-prod" not in argo.refreshed()
    assert not argo.refreshed() & {"root", "clusters", "argocd"}
    argo.answer()
    world.edit("apps", "apps/echo/base/service.yaml", "port: 80\n", "port: 81\n")
    eventually(lambda: argo.refreshed() >= {"echo-stage", "echo-prod"})
    argo.answer()
    world.push("core", {"projects/mine.yaml": b"kind: AppProject\n"})
    eventually(lambda: argo.refreshed() == {"root"})


def test_pushes_of_the_render_refresh_too(world: Repositories, argo: Argo) -> None:
    world.start(domain="example.com")
    eventually(lambda: argo.refreshed() >= {"echo-stage", "echo-prod"})


def test_other_branches_and_rendered_refs_refresh_nothing(world: Repositories, argo: Argo) -> None:
    remote = Repository(world.folder.apps_remote)
    clone = Repository(world.folder.apps)
    tip = remote.resolve("main")
    commit = clone.write_commit("x", {"x": b""}, parent=tip)
    clone.git("push", "-q", "origin", f"{commit}:refs/heads/work", f"{commit}:refs/ucp/rendered")
    assert not (world.folder.apps_remote / "ucp-refresh").exists()


def test_every_push_of_a_burst_is_handled(world: Repositories, argo: Argo) -> None:
    for number in range(12):
        path = STAGE if number % 2 else STAGE.replace("stage", "prod")
        world.push("apps", {path: b"# %d\n" % number})
    eventually(lambda: argo.refreshed() >= {"echo-stage", "echo-prod"})
    notes = world.folder.apps_remote / "ucp-refresh"

    def taken() -> bool:
        # Only this test removes the annotations, and a second program waits for that.
        argo.answer()
        return not any(each.name not in ("log", "lock") for each in notes.iterdir())

    eventually(taken)


def test_push_during_a_refresh_is_followed_by_another_refresh(
    world: Repositories, argo: Argo
) -> None:
    """Argo CD removes the annotation when it is done, including one that was set meanwhile."""
    world.edit("apps", STAGE, "0.9.2", "0.9.3")
    eventually(lambda: "echo-stage" in argo.refreshed())
    world.edit("apps", STAGE, "0.9.3", "0.9.4")
    time.sleep(1)
    argo.answer()
    eventually(lambda: "echo-stage" in argo.refreshed())


def test_program_that_died_while_waiting_is_ignored(world: Repositories, argo: Argo) -> None:
    waiting = world.folder.apps_remote / "ucp-refresh" / "waiting"
    waiting.mkdir(parents=True)
    long_ago = time.time() - 600
    os.utime(waiting, (long_ago, long_ago))
    world.edit("apps", STAGE, "0.9.2", "0.9.3")
    eventually(lambda: "echo-stage" in argo.refreshed())


@pytest.mark.parametrize(
    "broken", ["python gone", "kubeconfig gone", "core down", "python that fails"]
)
def test_push_is_accepted_whatever_is_broken(
    world: Repositories, tmp_path: Path, broken: str
) -> None:
    world.start()
    python, kubeconfig = Path(sys.executable), tmp_path / "kube config.yaml"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "contexts: [{name: a, context: {cluster: a}}]\n"
        "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:9'}}]\n"
    )
    if broken == "python gone":
        python = tmp_path / "no python"
    if broken == "kubeconfig gone":
        kubeconfig.unlink()
    if broken == "python that fails":
        python = Path(shutil.which("false") or "/bin/false")
    assert ensure_hook(world.folder.apps_remote, python=python, kubeconfig=kubeconfig) is None
    world.edit("apps", STAGE, "0.9.2", "0.9.3")
    assert b"0.9.3" in world.files("apps")[STAGE]


def test_push_does_not_wait_for_the_refresh(world: Repositories, tmp_path: Path) -> None:
    world.start()
    slow = tmp_path / "slow python"
    slow.write_text(f"#!/bin/sh\nsleep 3\necho done > '{tmp_path}/done'\n")
    slow.chmod(0o755)
    kubeconfig = tmp_path / "x"
    kubeconfig.write_text("")
    ensure_hook(world.folder.apps_remote, python=slow, kubeconfig=kubeconfig)
    world.edit("apps", STAGE, "0.9.2", "0.9.3")
    assert not (tmp_path / "done").exists()
    eventually(lambda: (tmp_path / "done").exists())


def test_hook_of_the_user_is_left_alone(world: Repositories, tmp_path: Path) -> None:
    world.start()
    hook = world.folder.apps_remote / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n# mine\n")
    note = ensure_hook(world.folder.apps_remote, python=Path("p"), kubeconfig=Path("k"))
    assert "not created by ucp" in (note or "")
    assert hook.read_text() == "#!/bin/sh\n# mine\n"


def test_hook_is_rewritten_when_its_python_moves(world: Repositories) -> None:
    world.start()
    bare = world.folder.apps_remote
    hook = bare / "hooks" / "post-receive"
    ensure_hook(bare, python=Path("/old venv/python"), kubeconfig=Path("/k"))
    before = hook.stat()
    ensure_hook(bare, python=Path("/old venv/python"), kubeconfig=Path("/k"))
    assert hook.stat().st_mtime_ns == before.st_mtime_ns
    ensure_hook(bare, python=Path("/new venv/it's python"), kubeconfig=Path("/k"))
    assert "/new venv/" in hook.read_text()
    assert hook.stat().st_mode & 0o111


def test_global_hooks_path_of_the_user_does_not_disable_the_hook(
    world: Repositories, home: Path, argo: Argo
) -> None:
    (home / ".gitconfig").write_text(f"[core]\nhooksPath = {home}/hooks\n")
    world.edit("apps", STAGE, "0.9.2", "0.9.3")
    eventually(lambda: "echo-stage" in argo.refreshed())


def test_concurrent_pushes_are_refreshed(world: Repositories, argo: Argo) -> None:
    def push(number: int) -> None:
        clone = make_clone(world.person / f"c{number}", world.folder.core_remote.as_uri())
        clone.fetch()
        commit = clone.write_commit(
            "x", {f"clusters/{number}.yaml": b"x"}, parent=clone.resolve("origin/main")
        )
        clone.push([RefUpdate(f"refs/heads/main{number}", commit)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(push, range(4)))
    world.push("core", {"clusters/x.yaml": b"x"})
    eventually(lambda: "clusters" in argo.refreshed())
