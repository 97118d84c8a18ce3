"""The engines' own manifests for pods placement, with the topology's settings."""

from __future__ import annotations

from ruamel.yaml import YAML

from k8s_ucp.components.pods.workloads import of_argocd, of_crossplane
from k8s_ucp.gitops.render.values import function_package
from k8s_ucp.tools.catalogue import CATALOGUE, PODS
from k8s_ucp.tools.installer import Installer
from k8s_ucp.topology import CrossplaneSettings
from tests.conftest import CACHE


def test_crossplane_settings_are_applied_to_its_pod() -> None:
    toolbox = Installer(CACHE, lambda event: None).install(PODS)
    settings = CrossplaneSettings.model_validate(
        {
            "pollInterval": "7m",
            "maxReconcileRate": 42,
            "realtimeCompositions": False,
            "rbacManager": False,
            "limits": {"cpu": "2", "memory": "3Gi"},
        }
    )
    version = CATALOGUE["crossplane"].version
    text = of_crossplane(toolbox.path("helm"), toolbox.module("crossplane"), version, settings)
    deployments = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]["containers"][0]
        for each in YAML(typ="safe", pure=True).load_all(text.decode())
        if each["kind"] == "Deployment"
    }
    assert list(deployments) == ["crossplane"]
    container = deployments["crossplane"]
    assert {
        "--poll-interval=7m",
        "--max-concurrent-reconciles=42",
        "--enable-realtime-compositions=false",
    } <= set(container["args"])
    assert container["resources"]["limits"] == {"cpu": 2, "memory": "3Gi"}
    assert container["image"].endswith(f":v{version}")
    assert f"helm.sh/chart: crossplane-{version}\n".encode() in text
    assert b"crossplane-0.0.1" not in text


def test_argo_cds_server_does_not_move_manifests_to_the_commit_of_a_webhook() -> None:
    toolbox = Installer(CACHE, lambda event: None).install(PODS)
    documents = YAML(typ="safe", pure=True).load_all(of_argocd(toolbox.module("argocd")).decode())
    (server,) = (
        each
        for each in documents
        if each["kind"] == "Deployment" and each["metadata"]["name"] == "argocd-server"
    )
    (container,) = server["spec"]["template"]["spec"]["containers"]
    disabled = {"name": "ARGOCD_WEBHOOK_MANIFEST_CACHE_WARM_DISABLED", "value": "true"}
    assert disabled in container["env"]


def test_the_package_of_our_function_is_mounted_in_crossplanes_cache() -> None:
    toolbox = Installer(CACHE, lambda event: None).install(PODS)
    text = of_crossplane(
        toolbox.path("helm"),
        toolbox.module("crossplane"),
        CATALOGUE["crossplane"].version,
        CrossplaneSettings(),
        own_function=True,
    )
    documents = list(YAML(typ="safe", pure=True).load_all(text.decode()))
    (package,) = (each for each in documents if each["kind"] == "ConfigMap")
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in documents
        if each["kind"] == "Deployment"
    }
    pod = pods["crossplane"]
    mounts = {each["mountPath"]: each for each in pod["containers"][0]["volumeMounts"]}
    mount = mounts[f"/cache/xpkg/{function_package.FILE}"]
    assert "/cache/xpkg" in mounts, "what Crossplane pulls lies beside it"
    assert mount["subPath"] in package["binaryData"]
    (volume,) = (each for each in pod["volumes"] if each["name"] == mount["name"])
    assert volume["configMap"]["name"] == package["metadata"]["name"]
