"""A core on an existing cluster, which is used and left unchanged."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from k8s_ucp.clusters.existing.adoption import MARK, MARK_NAMESPACE
from k8s_ucp.components.ownership.ledger import Ledger, LedgerEntry
from k8s_ucp.kube import APPLICATION, CONFIG_MAP, DEPLOYMENT, NAMESPACE, SECRET
from tests.backing_clusters import merged
from tests.control_planes import deployment, eventually, namespace
from tests.e2e.existing_cluster import CONTEXT, NAME, TheirCluster, describe
from tests.e2e.world import Workbench
from tests.fake_gcloud import FRESH
from tests.gke_clusters import gate, google, key
from tests.integration.gitops.promotion.git_servers import HttpGit

APPLICATIONS = {"applications", "argocd", "clusters", "crossplane", "mirrors", "reconciler", "root"}


def assert_well(world: Workbench, provider: str) -> None:
    status = world.status()
    assert status["core"] == {"name": "demo-core", "provider": provider, "ready": True}
    assert {each["name"] for each in status["applications"]} == APPLICATIONS
    assert {(each["sync"], each["health"]) for each in status["applications"]} == {
        ("Synced", "Healthy")
    }
    assert {each["placement"] for each in status["components"]} == {"pods"}
    assert all(each["ready"] for each in status["components"])


@pytest.mark.slow
def test_existing_cluster_is_used_as_core_and_left_unchanged(
    world: Workbench, theirs: TheirCluster, git_host: HttpGit
) -> None:
    kube = theirs.kube
    (world.home / ".kube").mkdir()
    config = merged({CONTEXT: theirs.config})
    (world.home / ".kube" / "config").write_text(json.dumps(config))
    describe(world, git_host, f'{{provider: existing, context: "{CONTEXT}"}}')
    theirs_namespace = kube.create(namespace("of-theirs"))
    kube.create(deployment("shop"))
    before = theirs.settled()

    kube.create(namespace("argocd"))
    refused = world.ucp("start", "--core", "existing", "--yes", expect=1)
    assert "already runs Argo CD" in refused.stderr
    assert not (world.workspace / ".ucp").exists()
    assert kube.find(CONFIG_MAP, MARK, MARK_NAMESPACE) is None
    kube.delete(NAMESPACE, "argocd")
    eventually(lambda: theirs.contents() == before, lambda: differing(theirs, before))

    started = world.ucp("start", "--core", "existing", "--yes", timeout=300)
    assert "pods of the core cluster" in started.stderr
    assert_well(world, "existing")
    assert kube.get(CONFIG_MAP, MARK, MARK_NAMESPACE)["data"]["name"] == "demo-core"

    written = Ledger(world.state / "ledger.json").entries()
    new = {each for each in theirs.contents() if each not in before}
    assert LedgerEntry("v1", "Namespace", "", "argocd") in written
    assert not [each for each in written if f"{each.kind} {each.namespace}/{each.name}" not in new]
    unchanged = {each: uid for each, uid in theirs.contents().items() if each in before}
    assert unchanged == before

    (world.state / "ledger.json").unlink()
    world.ucp("start", "--yes", timeout=300)
    assert Ledger(world.state / "ledger.json").entries() >= written, "it can be rebuilt"

    kube.create(theirs_in("argocd"))
    license_of_theirs = {"name": "license", "namespace": "argocd"}
    license_ = {"apiVersion": "v1", "kind": "Secret", "metadata": license_of_theirs}
    kube.apply(license_, manager="kubectl")
    refused = world.ucp("stop", "--yes", expect=1)
    assert "Deployment argocd/shop, Secret argocd/license" in (refused.stderr)
    assert kube.find(APPLICATION, "root", "argocd")
    kube.delete(DEPLOYMENT, "shop", "argocd")
    kube.delete(SECRET, "license", "argocd")

    note = world.state / "existing" / "demo-core.json"
    note.rename(world.home / "note")
    refused = world.ucp("stop", "--yes", expect=1)
    assert "the record of the objects that ucp created there is missing" in refused.stderr
    (world.home / "note").rename(note)

    world.ucp("kubeconfig", "demo-core", "--merge")
    assert "demo-core" in (world.home / ".kube" / "config").read_text()
    world.ucp("stop", "--yes")
    assert "demo-core" not in (world.home / ".kube" / "config").read_text()
    eventually(lambda: theirs.contents() == before, lambda: differing(theirs, before))
    about = kube.get(NAMESPACE, "of-theirs")["metadata"]
    assert about.get("annotations") is None
    assert about["labels"] == theirs_namespace["metadata"]["labels"]
    assert theirs.planes.provider().state(NAME).ready
    assert not (world.state / "ledger.json").exists()
    assert not (world.state / "kubeconfigs" / "demo-core.yaml").exists()
    world.ucp("stop", "--yes")


def differing(theirs: TheirCluster, before: dict[str, str]) -> list[str]:
    return sorted({each for each, _ in set(theirs.contents().items()) ^ set(before.items())})


def theirs_in(place: str) -> dict[str, object]:
    item = deployment("shop")
    item["metadata"] = {"name": "shop", "namespace": place}
    return item


@pytest.mark.soak
def test_gke_core_is_created_and_keeps_its_data_through_a_stop(
    world: Workbench, theirs: TheirCluster, git_host: HttpGit, tmp_path: Path
) -> None:
    """gcloud is a stand-in; behind its cluster is the same control plane with simulated pods."""
    describe(world, git_host, "{provider: gke, region: us-east1-b}")
    folder = world.workspace / "creds"
    folder.mkdir()
    (folder / "gcp.json").write_text(key(token_uri="https://oauth2.example.org/token"))
    (folder / "gcp.json").chmod(0o600)
    with google(tmp_path / "google") as cloud, gate(theirs.config, FRESH["token"]) as server:
        cloud.change(apis_of_clusters={"*": server})
        world.environment["PATH"] = f"{cloud.programs}{os.pathsep}{os.environ['PATH']}"
        world.ucp("start", "--core", "gke", "--yes")
        assert_well(world, "gke")
        (made,) = cloud.seen()["clusters"].values()
        assert (made["name"], made["location"]) == ("demo-core", "us-east1-b")
        assert "ya29" in (world.state / "kubeconfigs" / "demo-core.yaml").read_text()
        assert [each for each in cloud.seen()["calls"] if "create" in each["argv"]]

        old = time.time() - 3000
        stale = (world.state / "kubeconfigs" / "demo-core.yaml").read_text()
        path = world.state / "kubeconfigs" / "demo-core.yaml"
        path.write_text(stale.replace("ya29.stand-in", "ya29.expired"))
        os.utime(path, (old, old))
        assert_well(world, "gke")

        world.ucp("stop", "--yes")
        (left,) = cloud.seen()["clusters"].values()
        assert left["currentNodeCount"] == 0
        assert theirs.kube.find(NAMESPACE, "argocd"), "the data stay"
        world.ucp("start", "--yes")
        assert_well(world, "gke")
        world.ucp("stop", "--yes")
