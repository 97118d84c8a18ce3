"""Ingress on kind: the apps' hosts in every environment, and Argo CD on the core, with a Helm chart
and the quote app behind it, whose Postgres keeps its data.

The machines that run these tests can't fetch a chart: a commit to the core repository replaces it
with a controller of the tests, as a person could. Everything else is as `addons.ingress: traefik`
creates it.
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
from k8s_ucp.kube import APPLICATION, Kind
from tests.e2e.echo_app import answer
from tests.e2e.kind_world import POD, SECONDS, helpers, well
from tests.e2e.world import Workbench, until
from tests.kind_images import ROLES, TAGS, make_ingress, make_quote

pytestmark = [pytest.mark.kind, pytest.mark.parametrize("demo", ["kind"], indirect=True)]

CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
MANIFESTS = Path(__file__).parents[1] / "images" / "ingress" / "manifests.yaml"
APPLICATIONS = "bootstrap/kind/traefik.yaml"
CHART = Path(__file__).parents[1] / "charts" / "shop"
VENDORED = "platform/traefik/vendored/kind"


def ask(
    address: str, host: str | None = None, path: str = "/", send: object = None
) -> tuple[int, str]:
    """GET an address (host:port) with a Host header and return the answer; send: a body to POST."""
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        method, body = ("GET", None) if send is None else ("POST", json.dumps(send))
        connection.request(method, path, body, headers={"Host": host} if host else {})
        found = connection.getresponse()
        return found.status, found.read().decode().strip()
    finally:
        connection.close()


def address(world: Workbench, environment: str) -> str:
    """Address of the environment's ingress, as `ucp status` shows it."""
    found = {each["name"]: each["cluster"] for each in world.status()["environments"]}
    return str(found[environment]["addresses"]["http"])


def core_address(world: Workbench) -> str:
    """Address of the core's ingress: the port of its node on this machine."""
    (found,) = ContainerEngine().nodes(f"{world.topology}-core")
    return ":".join(map(str, found.ports[HTTP]))


def through_ingress(world: Workbench, environment: str) -> tuple[int, str]:
    return ask(address(world, environment), f"echo.{environment}.example.org")


def name_the_manifests(text: str, core_url: str) -> list[Any]:
    """The add-on's Applications, with a folder of the core repository in place of the chart."""
    found = list(YAML(typ="safe").load_all(text))
    for each in found:
        inner = each["spec"]["template"]["spec"] if "template" in each["spec"] else each["spec"]
        del inner["sources"]
        inner["source"] = {"repoURL": core_url, "targetRevision": "main", "path": VENDORED}
    return found


def test_start_enables_the_ingress_and_argocd_is_reachable_through_it(demo: Workbench) -> None:
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
def test_app_answers_through_the_ingress_with_its_tag(demo: Workbench, environment: str) -> None:
    expected = answer(demo, environment)
    assert expected in TAGS
    until("it answers", lambda: through_ingress(demo, environment) == (200, expected))
    # A host of no app.
    assert ask(address(demo, environment), "other.example.org")[0] == 404


def test_pushed_tag_changes_only_one_answer(demo: Workbench) -> None:
    before = {each: through_ingress(demo, each) for each in ("stage", "prod")}
    (wanted,) = set(TAGS) - {before["stage"][1]}
    with demo.commit("apps", f"echo: {wanted} on stage") as clone:
        path = clone / "apps/echo/overlays/stage/kustomization.yaml"
        lines = path.read_text().splitlines()
        changed = [f"    newTag: {wanted}" if "newTag:" in each else each for each in lines]
        path.write_text("\n".join(changed) + "\n")
    until("stage answers with it", lambda: through_ingress(demo, "stage") == (200, wanted), SECONDS)
    assert through_ingress(demo, "prod") == before["prod"]


def test_chart_answers_through_its_ingress(demo: Workbench) -> None:
    words = ["app", "add", "shop", "--path", str(CHART)]
    for each in ("stage", "prod"):
        values = demo.workspace / f"shop-{each}.yaml"
        values.write_text(
            f"image: {{tag: {TAGS[0]}}}\ningress: {{host: shop.{each}.example.org}}\n"
        )
        words += ["--values", f"{each}={values.name}"]
    assert "Helm chart" in demo.ucp(*words).stderr
    for each in ("stage", "prod"):
        until(
            f"the chart answers on {each}",
            lambda each=each: (
                ask(address(demo, each), f"shop.{each}.example.org") == (200, TAGS[0])
            ),
            SECONDS,
        )


def quotes(world: Workbench, environment: str) -> list[dict[str, Any]]:
    """The quotes that the app shows, read from its database through page, backend and ingress."""
    at = address(world, environment), f"quote.{environment}.example.org"
    status, text = ask(*at, "/api/quote")
    assert status == 200, text
    return list(json.loads(text))


def read(world: Workbench, environment: str) -> list[dict[str, Any]]:
    """The quotes, or an empty list while the app doesn't answer."""
    try:
        return quotes(world, environment)
    except (AssertionError, OSError, http.client.HTTPException, ValueError):
        return []


def test_quote_app_keeps_its_data_in_a_real_postgres(demo: Workbench) -> None:
    images = make_quote(ContainerEngine())
    topology = demo.workspace / "ucp.yaml"
    database = f"{{name: quotes, provider: local, image: '{images['postgres']}'}}"
    topology.write_text(topology.read_text() + f"  databases: [{database}]\n")
    demo.ucp("app", "add", "quote", "--host", "quote", "--database", "quotes")
    with demo.commit("apps", "quote: images that are here") as clone:
        for path in clone.glob("apps/quote/overlays/*/kustomization.yaml"):
            overlay = YAML().load(path.read_text())
            for each in overlay["images"]:
                (role,) = [role for role, name in ROLES.items() if name == each["name"]]
                each["newName"], _, each["newTag"] = images[role].rpartition(":")
            YAML().dump(overlay, path)
    for each in ("stage", "prod"):
        until(f"it reads on {each}", lambda each=each: read(demo, each), SECONDS)

    at = address(demo, "stage"), "quote.stage.example.org"
    written = {"text": "It's kept.", "author": "the tests"}
    assert ask(*at, "/api/quote", send=written) == (201, "")
    stage = demo.kube("stage")
    before = stage.get(POD, "quotes-0", "ucp-databases")["metadata"]["uid"]
    stage.delete(POD, "quotes-0", "ucp-databases", uid=before)
    until(
        "another pod has its place",
        lambda: (
            (found := stage.find(POD, "quotes-0", "ucp-databases"))
            and found["metadata"]["uid"] != before
        ),
        SECONDS,
    )
    stage.close()
    until("it reads again", lambda: read(demo, "stage"), SECONDS)
    assert written.items() <= quotes(demo, "stage")[-1].items()
    assert "the tests" not in [each["author"] for each in quotes(demo, "prod")]
    until("all is well", lambda: well(demo), SECONDS)


def test_volume_of_a_removed_database_is_kept(demo: Workbench) -> None:
    topology = demo.workspace / "ucp.yaml"
    demo.ucp("app", "remove", "quote", "--yes")
    lines = topology.read_text().splitlines()
    topology.write_text(
        "\n".join(each for each in lines if not each.startswith("  databases:")) + "\n"
    )
    demo.ucp("start", "--yes", "--ours", APPLICATIONS)
    stage = demo.kube("stage")
    until("it is gone", lambda: not stage.find(POD, "quotes-0", "ucp-databases"), SECONDS)
    assert stage.find(CLAIM, "data-quotes-0", "ucp-databases")
    stage.close()
    until("all is well", lambda: well(demo), SECONDS)
