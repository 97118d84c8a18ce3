"""Ingress on kind: hosts of the apps on every environment, and the way in to Argo CD on the core.

A chart can't be fetched where these run: the core repository names a controller of the tests in its
place, by commit, as a person would. Everything else is what `addons.ingress: traefik` makes.
"""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.cluster_provider import HTTP
from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.kube import APPLICATION
from tests.e2e.test_path import answer
from tests.e2e.test_pods import SECONDS, helpers, well
from tests.e2e.world import World, until
from tests.kind_images import TAGS, make_ingress

pytestmark = [pytest.mark.kind, pytest.mark.parametrize("demo", ["kind"], indirect=True)]

MANIFESTS = Path(__file__).parents[1] / "images" / "ingress" / "manifests.yaml"
APPLICATIONS = "bootstrap/kind/traefik.yaml"
VENDORED = "platform/traefik/vendored/kind"


def ask(address: str, host: str | None = None, path: str = "/") -> tuple[int, str]:
    """What a GET at an address (host:port) is answered with, for a host by name."""
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path, headers={"Host": host} if host else {})
        found = connection.getresponse()
        return found.status, found.read().decode().strip()
    finally:
        connection.close()


def address(world: World, environment: str) -> str:
    """Where the environment's cluster takes traffic, as `ucp status` tells."""
    found = {each["name"]: each["cluster"] for each in world.status()["environments"]}
    return str(found[environment]["addresses"]["http"])


def core_address(world: World) -> str:
    """Where the core takes traffic: the port that its node has on this machine."""
    (found,) = ContainerEngine().nodes(f"{world.topology}-core")
    return ":".join(map(str, found.ports[HTTP]))


def through_ingress(world: World, environment: str) -> tuple[int, str]:
    return ask(address(world, environment), f"echo.{environment}.example.org")


def name_the_manifests(text: str, core_url: str) -> list[Any]:
    """The add-on's Applications with a folder of the core repository in place of the chart."""
    found = list(YAML(typ="safe").load_all(text))
    for each in found:
        inner = each["spec"]["template"]["spec"] if "template" in each["spec"] else each["spec"]
        del inner["sources"]
        inner["source"] = {"repoURL": core_url, "targetRevision": "main", "path": VENDORED}
    return found


def test_a_start_switches_it_on_and_argocd_is_reached_through_it(demo: World) -> None:
    until("well before", lambda: well(demo), SECONDS)
    root = demo.kube("core").get(APPLICATION, "root", "argocd")
    topology = demo.workspace / "ucp.yaml"
    topology.write_text(topology.read_text() + "  addons: {ingress: traefik}\n")
    rendered = demo.home / "rendered"
    demo.ucp("render", "--out", str(rendered))
    with demo.commit("core", "Take the ingress controller from this repository") as clone:
        text = (rendered / "core" / APPLICATIONS).read_text()
        with (clone / APPLICATIONS).open("w") as stream:
            changed = name_the_manifests(text, root["spec"]["source"]["repoURL"])
            YAML(typ="safe").dump_all(changed, stream)
        (clone / VENDORED).mkdir(parents=True)
        image = make_ingress(ContainerEngine())
        (clone / VENDORED / "manifests.yaml").write_text(
            MANIFESTS.read_text().replace("@IMAGE@", image)
        )
    assert helpers(demo, "port-forward")
    demo.ucp("start", "--yes", "--ours", APPLICATIONS)

    told = json.loads(demo.ucp("get", "secrets", "-o", "json").stdout)[0]
    assert told["url"] == f"http://{core_address(demo)}"
    status, text = ask(core_address(demo), path="/api/version")
    assert (status, json.loads(text)["Version"][:3]) == (200, "v3.")
    assert helpers(demo, "port-forward") == []
    until("all is well", lambda: well(demo), SECONDS)


@pytest.mark.parametrize("environment", ["stage", "prod"])
def test_the_app_answers_through_the_ingress_with_its_tag(demo: World, environment: str) -> None:
    expected = answer(demo, environment)
    assert expected in TAGS
    until("it answers", lambda: through_ingress(demo, environment) == (200, expected))
    # A host that nobody claims.
    assert ask(address(demo, environment), "other.example.org")[0] == 404


def test_a_pushed_tag_changes_one_answer(demo: World) -> None:
    before = {each: through_ingress(demo, each) for each in ("stage", "prod")}
    (wanted,) = set(TAGS) - {before["stage"][1]}
    with demo.commit("apps", f"echo: {wanted} on stage") as clone:
        path = clone / "apps/echo/overlays/stage/kustomization.yaml"
        lines = path.read_text().splitlines()
        changed = [f"    newTag: {wanted}" if "newTag:" in each else each for each in lines]
        path.write_text("\n".join(changed) + "\n")
    until("stage answers with it", lambda: through_ingress(demo, "stage") == (200, wanted), SECONDS)
    assert through_ingress(demo, "prod") == before["prod"]
