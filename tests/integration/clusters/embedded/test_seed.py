"""Clusters that are created with CRDs in their etcd, on real control planes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k8s_ucp.cluster_provider import ClusterRequest, Seed
from k8s_ucp.clusters import seeds
from k8s_ucp.clusters.api_server import READY, failure_of
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.components import argocd
from k8s_ucp.components.manifests import apply_all, digest, read, wait_served
from k8s_ucp.kube import CLUSTER_ROLE_BINDING, CRD, NAMESPACE, Kind, Kube, Object
from k8s_ucp.steps.startup.seed import settled
from tests.control_planes import GOGC, ControlPlanes, eventually, quiet

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox


DEFAULTS = (
    Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
    CLUSTER_ROLE_BINDING,
    Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses"),
    Kind("apiregistration.k8s.io/v1", "APIService", "apiservices"),
)


def versions(kube: Kube) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in kube.list_all(CRD)
    }


def identity(kube: Kube, folder: ClusterFolder) -> set[object]:
    """Values that are unique to a cluster."""
    keys = [path.read_bytes() for path in (folder.home / "pki").iterdir() if path.is_file()]
    # The API server creates the last namespaces some time after it is ready.
    eventually(lambda: len(kube.list_all(NAMESPACE)) > 3)
    spaces = [each["metadata"]["uid"] for each in kube.list_all(NAMESPACE)]
    assert len(keys) > 3
    return {*spaces, *keys, *etcd_identity(folder)}


def etcd_identity(folder: ClusterFolder) -> list[str]:
    """Cluster and member id, which etcd logs when it starts."""
    lines = map(json.loads, folder.log("etcd").read_text("utf-8").splitlines())
    found = next(each for each in lines if "cluster-id" in each and "local-member-id" in each)
    return [found["cluster-id"], found["local-member-id"]]


def defaults(kube: Kube) -> dict[tuple[str, str], Object]:
    """Objects that an API server creates itself, by kind and name, once all of them exist."""
    eventually(lambda: failure_of(kube, READY) is None)
    return {
        (kind.kind, each["metadata"]["name"]): each
        for kind in DEFAULTS
        for each in kube.list_all(kind)
        if not each["metadata"]["name"].endswith("argoproj.io")
    }


def said(objects: Mapping[tuple[str, str], Object]) -> dict[tuple[str, str], object]:
    """The objects without cluster-specific fields and without aggregated rules."""
    return {
        each: [content.get("subjects"), content.get("roleRef"), content.get("value")]
        if "aggregationRule" in content
        else [content.get(part) for part in ("rules", "subjects", "roleRef", "value", "spec")]
        for each, content in objects.items()
    }


@pytest.mark.slow
def test_seed_provides_crds_but_no_identity_of_its_cluster(
    planes: ControlPlanes,
    provider: EmbeddedProvider,
    toolbox: Toolbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The first cluster creates its default objects, and the others get copies of them.
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path))
    engine = read({"crds": argocd.engine_manifests(toolbox.module(argocd.NAME))[argocd.CRDS]})
    # The largest CRD costs an API server as much as all others; other tests' seeds include it.
    kinds = [each for each in engine if not each.name.startswith("applicationsets.")]
    names = {each.name for each in kinds}

    def made(name: str, seed: Seed | None) -> Kube:
        provider.create(ClusterRequest(name, seed=seed, parameters={"gogc": GOGC}), quiet)
        return Kube(provider.kubeconfig(name))

    # A truncated seed file is ignored, and the CRDs are applied.
    seeds.keep(tmp_path, "key", Seed("digest", {"x": "{}"}))
    file = tmp_path / "seeds" / "key.json"
    file.write_bytes(file.read_bytes()[:-1])
    first = made("first", seeds.find(tmp_path, "key"))
    assert provider.seeded_with("first") == ""
    apply_all(first, kinds)
    wait_served(first, kinds)
    stored = provider.stored_crds("first")
    assert settled(stored, names)
    seeds.keep(tmp_path, "key", Seed(digest(kinds), stored))
    seed = seeds.find(tmp_path, "key")
    assert seed

    with ThreadPoolExecutor() as pool:
        one, other = pool.map(made, ("one", "other"), (seed, seed))
    for name, kube in (("one", one), ("other", other)):
        assert provider.seeded_with(name) == digest(kinds)
        wait_served(kube, kinds)
        before = versions(kube)
        assert before.keys() == names
        apply_all(kube, kinds)
        assert versions(kube) == before
        assert dict(provider.stored_crds(name)) == dict(stored)
    found = [
        identity(kube, ClusterFolder(planes.folder(), name))
        for name, kube in (("first", first), ("one", one), ("other", other))
    ]
    assert len(set.union(*found)) == sum(map(len, found))
    by_itself, *given = map(defaults, (first, one, other))
    assert len(by_itself) > 130
    for each in given:
        assert said(each) == said(by_itself)
    uids = {each["metadata"]["uid"] for objects in (by_itself, *given) for each in objects.values()}
    assert len(uids) == 3 * len(by_itself)
    for each in (first, one, other):
        each.close()
