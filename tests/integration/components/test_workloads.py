"""The engines' own manifests for pods, with the topology's settings."""

from __future__ import annotations

from ruamel.yaml import YAML

from k8s_ucp.components.pods.workloads import of_crossplane
from k8s_ucp.tools.catalogue import CATALOGUE, PODS
from k8s_ucp.tools.installer import Installer
from k8s_ucp.topology import CrossplaneSettings
from tests.conftest import CACHE


def test_settings_of_crossplane_reach_its_pod() -> None:
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
