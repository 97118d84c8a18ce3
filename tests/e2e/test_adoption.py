"""A core whose cluster has an Argo CD and a Crossplane of another owner: left unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k8s_ucp import names
from k8s_ucp.components.adoption.adopted_argocd import FORMER_PROJECT, PROJECTS
from k8s_ucp.components.ownership.ledger import Ledger
from k8s_ucp.kube import (
    APP_PROJECT,
    APPLICATION,
    CONFIG_MAP,
    SECRET,
    Kube,
    Object,
)
from k8s_ucp.names import REFRESH
from tests.backing_clusters import merged
from tests.control_planes import eventually, namespace
from tests.e2e.existing_cluster import CONTEXT, TheirCluster, describe
from tests.e2e.world import Workbench
from tests.foreign_components import (
    application,
    install_argocd,
    install_crossplane,
    install_kinds,
    install_package,
    registration,
)
from tests.integration.gitops.promotion.git_servers import HttpGit

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

OURS = {"applications", "clusters", "mirrors", "reconciler", "root"}
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{word: {word}}}\n"
APP = "apps/echo/overlays/stage"
RESYNCED = 240.0
"""Seconds within which Argo CD looks at an Application twice: a first look, soon after its start,
may fail, and the next one follows after two minutes.
"""


@pytest.mark.slow
def test_existing_argo_cd_and_crossplane_are_used_and_left_unchanged(
    world: Workbench, theirs: TheirCluster, git_host: HttpGit, toolbox: Toolbox, tmp_path: Path
) -> None:
    kube = theirs.kube
    (world.home / ".kube").mkdir()
    (world.home / ".kube" / "config").write_text(json.dumps(merged({CONTEXT: theirs.config})))
    describe(world, git_host, f'{{provider: existing, context: "{CONTEXT}"}}')
    kube.create(namespace("of-theirs"))
    install_kinds(kube, toolbox)
    install_crossplane(kube)
    install_package(kube)
    install_argocd(kube, toolbox)
    theirs.wait_for_argocd()
    url = their_repository(git_host, tmp_path)
    for name, path in (("shop", "shop"), ("broken", "nowhere")):
        kube.create(application(name, url, path, "of-theirs"))
    eventually(
        lambda: (kube.find(CONFIG_MAP, "shop", "of-theirs") or {}).get("data") is not None,
        lambda: (kube.find(APPLICATION, "shop", "argocd") or {}).get("status"),
        seconds=RESYNCED,
    )
    eventually(lambda: kube.find(SECRET, "argocd-initial-admin-secret", "argocd") is not None)
    theirs.settled()
    before = theirs.whole()

    started = world.ucp("start", "--adopt", "argocd,crossplane", "--yes", timeout=300)
    assert "adopted (existing installation)" in started.stderr
    assert "adopt: [argocd, crossplane]" in (world.workspace / "ucp.yaml").read_text()
    assert_used(world)
    # A namespace from which the topology reads kubeconfigs is labelled by ucp.
    eventually(
        lambda: before.keys() & differing(theirs, before) == {"Namespace /of-theirs"},
        lambda: before.keys() & differing(theirs, before),
    )
    ledger = Ledger(world.state / "ledger.json").entries()
    assert not {each.name for each in ledger} & {"argocd", "crossplane-system"}
    assert {each["metadata"]["name"] for each in kube.list_all(APP_PROJECT)} == {
        "default",
        *(each for each in PROJECTS if each != FORMER_PROJECT),
    }

    set_up_environment(world, kube, theirs)

    interrupted_stop(world, kube)
    world.ucp("stop", "--yes")
    left = {f"Namespace /{APP.split('/')[1]}"}
    eventually(lambda: differing(theirs, before) == left, lambda: differing(theirs, before))
    assert kube.get(CONFIG_MAP, "echo", "echo")["data"] == {"word": "ours"}, "apps stay"
    assert_works_on(kube, tmp_path)


def their_repository(git_host: HttpGit, folder: Path) -> str:
    """Create a repository of the other owner with a manifest for of-theirs; return its address."""
    bare = git_host.server.root / "theirs.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
    subprocess.run(["git", "clone", "-q", str(bare), str(folder / "theirs")], check=True)
    commit(folder / "theirs", {"shop/config.yaml": CONFIG.format(name="shop", word="theirs")})
    return f"http://127.0.0.1:{git_host.server.server_address[1]}/theirs.git"


def commit(clone: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_text(text)
    who = ("-c", "user.name=p", "-c", "user.email=p@example.org")
    for words in (
        ["add", "-A"],
        [*who, "commit", "-qm", "Change"],
        ["push", "-q", "origin", "HEAD:main"],
    ):
        subprocess.run(["git", "-C", str(clone), *words], check=True, env=dict(os.environ))


def set_up_environment(world: Workbench, kube: Kube, theirs: TheirCluster) -> None:
    """Register an environment with an app, as the reconciler does, at the other address."""
    overlay = "resources: [config.yaml]\n"
    clone = world.gitops / "apps"
    commit(
        clone,
        {
            f"{APP}/kustomization.yaml": overlay,
            f"{APP}/config.yaml": CONFIG.format(name="echo", word="ours"),
        },
    )
    cluster, user = theirs.config["clusters"][0]["cluster"], theirs.config["users"][0]["user"]
    tls = {
        "caData": cluster["certificate-authority-data"],
        "certData": user["client-certificate-data"],
        "keyData": user["client-key-data"],
    }
    labels = {names.TOPOLOGY: "demo", names.ENVIRONMENT: "stage", names.MANAGED_BY: names.OURS}
    kube.create(
        registration(
            "cluster-demo-stage",
            "demo-stage",
            cluster["server"],
            config=json.dumps({"tlsClientConfig": tls}),
            labels=labels,
        )
    )
    eventually(
        lambda: health(kube, "echo-stage") == ("Synced", "Healthy"),
        lambda: (kube.find(APPLICATION, "echo-stage", "argocd") or {}).get("status"),
        seconds=RESYNCED,
    )


def interrupted_stop(world: Workbench, kube: Kube) -> None:
    """Kill a stop right after Argo CD has lost the Applications that ucp created."""
    command = [*world.command, "--workspace", str(world.workspace), "stop", "--yes"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=world.env, cwd=world.home, **silent) as stopping:
        eventually(lambda: kube.find(APPLICATION, "root", "argocd") is None, seconds=120)
        stopping.kill()


def assert_used(world: Workbench) -> None:
    eventually(lambda: world.is_well(clusters="registered", applications=len(OURS)))
    status = world.status()
    assert status["core"] == {"name": "demo-core", "provider": "existing", "ready": True}
    assert {each["name"] for each in status["applications"]} == OURS
    components = {each["name"]: each for each in status["components"]}
    assert {name for name, each in components.items() if each.get("adopted")} == {
        "argocd",
        "crossplane",
    }
    assert components["crossplane"]["version"] == "v2.3.1"
    assert "ask its administrator for a login" in world.ucp("get", "secrets").stdout
    found = json.loads(world.ucp("doctor", "-o", "json").stdout)["findings"]
    assert {each["id"].partition("/")[0] for each in found} == {"adopted"}, found
    assert {each["severity"] for each in found} == {"info"}


def assert_works_on(kube: Kube, folder: Path) -> None:
    """Check that the existing Argo CD still syncs its own Applications."""
    commit(folder / "theirs", {"shop/config.yaml": CONFIG.format(name="shop", word="new")})
    asked = time.monotonic() - 60

    def brought() -> bool:
        nonlocal asked
        if time.monotonic() - asked > 2:
            asked = time.monotonic()
            kube.patch(APPLICATION, "shop", "argocd", {"metadata": {"annotations": REFRESH}})
        return bool(kube.get(CONFIG_MAP, "shop", "of-theirs")["data"] == {"word": "new"})

    eventually(brought)


def health(kube: Kube, name: str) -> tuple[str | None, str | None]:
    status = (kube.find(APPLICATION, name, "argocd") or {}).get("status") or {}
    return (status.get("sync") or {}).get("status"), (status.get("health") or {}).get("status")


def differing(theirs: TheirCluster, before: dict[str, Object]) -> set[str]:
    """Objects that changed, except for those that an app left in its own namespace."""
    now = theirs.whole()
    changed = {each for each in before.keys() | now.keys() if before.get(each) != now.get(each)}
    return {each for each in changed if " echo/" not in each}
