"""Hosts with the Gateway API: HTTPRoutes on the Gateway of Traefik's chart instead of Ingresses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.gitops.manifests.images_and_ports import service_port
from k8s_ucp.gitops.manifests.yaml_text import load_all
from k8s_ucp.gitops.render.app_manifests import read_manifests
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.gitops.render.values import addons
from k8s_ucp.topology import App, Topology
from tests import provider_fields
from tests.unit.gitops.topologies import FACTS, demo, on_clouds

KINDS = json.loads(provider_fields.TABLE.read_text("utf-8"))["kinds"]
ECHO = App(name="echo", image="a/echo", tag="1", hosts=("echo", "hello"))
QUOTE = App(name="quote", path="ucp:quote", hosts=("quote",))
FAR = App(name="far", repo="https://g/far.git", revision="v1", hosts=("far",))
GATEWAY = {"ingress": "gateway"}


def files(topology: Topology, folder: Path = Path()) -> dict[str, Any]:
    inputs = replace(FACTS, manifests=read_manifests(topology, folder))
    rendered = render(topology, inputs)
    return {
        path: load_all(text.decode())[-1]
        for each in (rendered.core, rendered.apps)
        for path, text in each.items()
        if path.endswith(".yaml")
    }


def test_routes_replace_ingresses() -> None:
    found = files(demo(apps=(ECHO, QUOTE, FAR), addons=GATEWAY))
    assert found["apps/echo/base/kustomization.yaml"]["resources"] == [
        "deployment.yaml",
        "service.yaml",
        "route.yaml",
    ]
    assert "apps/echo/base/ingress.yaml" not in found
    assert {item["kind"] for path, item in found.items() if path.endswith("hosts.yaml")} == {
        "HTTPRoute"
    }
    hosts = found["apps/echo/overlays/stage/hosts.yaml"]["spec"]
    assert hosts == {"hostnames": ["echo.stage.example.org", "hello.stage.example.org"]}


def test_without_the_add_on_there_is_no_route() -> None:
    for ingress in ("traefik", "nginx", "none"):
        found = files(demo(apps=(ECHO, QUOTE), addons={"ingress": ingress}))
        assert not any(item.get("kind") == "HTTPRoute" for item in found.values() if item)
        assert "apps/echo/base/route.yaml" not in found


@pytest.mark.parametrize(
    ("path", "service"),
    [
        ("apps/echo/base/route.yaml", "echo"),
        ("apps/quote/overlays/prod/hosts.yaml", "quote"),
        ("apps/far/overlays/prod/hosts.yaml", "far"),
    ],
)
def test_a_route_names_the_gateway_and_the_service(path: str, service: str) -> None:
    topology = on_clouds(apps=[each.model_dump() for each in (ECHO, QUOTE, FAR)], addons=GATEWAY)
    found = files(topology)
    route = found[path]
    assert provider_fields.problems(route, KINDS) == []
    (parent,) = route["spec"]["parentRefs"]
    (rule,) = route["spec"]["rules"]
    assert (rule["backendRefs"][0]["name"], rule["backendRefs"][0]["port"]) == (service, 80)
    for provider in ("kind", "gke", "eks", "aks", "digitalocean"):
        values = found[f"platform/traefik/values/{provider}.yaml"]
        assert values["providers"]["kubernetesGateway"]["enabled"] is True
        assert values["gateway"]["name"] == parent["name"]
        listener = values["gateway"]["listeners"][parent["sectionName"]]
        # Routes come from the apps' namespaces; the port is that of traefik's entry point.
        assert listener == {"port": 8000, "protocol": "HTTP", "namespacePolicy": {"from": "All"}}
    (traefik,) = [each for each in addons.chosen(topology) if each.name == "traefik"]
    assert parent["namespace"] == traefik.namespace


def test_gke_installs_the_gateway_api_crds_itself() -> None:
    found = files(on_clouds(addons=GATEWAY))
    for base in ("gke", "gke-autopilot"):
        cluster = found[f"clusters/base/{base}/cluster.yaml"]["spec"]["forProvider"]
        assert cluster["gatewayApiConfig"] == {"channel": "CHANNEL_STANDARD"}
    values = {
        provider: found[f"platform/gateway-api/values/{provider}.yaml"]["crds"]["gatewayAPI"]
        for provider in ("gke", "eks", "kind")
    }
    assert [each["enabled"] for each in values.values()] == [False, True, True]
    calm = files(on_clouds())
    assert "gatewayApiConfig" not in calm["clusters/base/gke/cluster.yaml"]["spec"]["forProvider"]


def test_a_route_on_a_simulated_cluster_is_marked_as_simulated() -> None:
    found = files(demo(apps=(ECHO,), addons=GATEWAY))
    annotations = found["apps/echo/overlays/stage/hosts.yaml"]["metadata"]["annotations"]
    assert annotations == {"k8s-ucp.io/simulated": "true"}


SERVICE = b"""\
kind: Service
metadata: {name: web}
spec: {ports: [{name: admin, port: 9000}, {name: http, port: 8080}]}
---
kind: Service
metadata: {name: other}
spec: {ports: [{port: 7000}]}
---
kind: Service
metadata: {name: bare}
---
"""


@pytest.mark.parametrize(
    ("name", "port"), [("web", 8080), ("other", 7000), ("bare", 80), ("nobody", 80)]
)
def test_the_port_of_a_service_is_read_from_its_manifest(name: str, port: int) -> None:
    assert service_port(name, {"a.yaml": SERVICE, "README.md": b"{"}) == port


@pytest.mark.parametrize(
    "fields", [b"metadata: [web]", b"spec: [80]", b"spec: {ports: 80}", b"spec: {ports: [http]}"]
)
def test_the_port_of_a_misshapen_service_is_the_usual_one(fields: bytes) -> None:
    """`ucp check` reports it; `ucp app add` ended with a bug report."""
    content = b"metadata: {name: web}\n" + fields if fields.startswith(b"spec") else fields
    assert service_port("web", {"a.yaml": b"kind: Service\n" + content}) == 80
