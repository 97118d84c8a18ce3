"""Runs docs/walkthroughs literally, one after the other, on the embedded engine."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from k8s_ucp.kube import APP_PROJECT, APPLICATION, DEPLOYMENT, NAMESPACE, SECRET
from tests.chart_servers import web_files
from tests.e2e.pages import FOLDER, blocks, follow, healthy
from tests.e2e.world import Workbench, until

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

PAGES = (
    *("everything-from-scratch", "a-new-version", "a-new-service-with-a-database"),
    *("an-app-that-you-have", "a-new-team", "private-registry-credentials"),
)
"""In a reader's order."""
ELSEWHERE = ("aws-without-an-account",)
"""Followed in test_cloud.py, which starts that topology anyway."""


def test_every_page_is_followed() -> None:
    assert sorted((*PAGES, *ELSEWHERE)) == sorted(each.stem for each in FOLDER.glob("*.md"))


@pytest.mark.slow
def test_page_everything_from_scratch_works(newcomer: Workbench) -> None:
    def is_the_current_context() -> None:
        written = newcomer.state / "kubeconfigs" / f"{newcomer.topology}-eu.yaml"
        until("its cluster runs", written.exists)
        newcomer.ucp("kubeconfig", "eu", "--merge")
        assert newcomer.contexts() == {f"{newcomer.topology}-eu"}

    looks = {"ucp env remove eu": is_the_current_context}
    said = follow(newcomer, "everything-from-scratch", looks)
    assert "no problems found" in said["ucp check"]
    assert "eu" in said["ucp env list"]
    names = [each["name"] for each in newcomer.status()["environments"]]
    assert names == ["stage", "prod"]
    assert not newcomer.contexts(), "the removed cluster leaves none"


@pytest.mark.slow
def test_page_a_new_version_works(reader: Workbench) -> None:
    said = follow(reader, "a-new-version")
    assert "0.9.3" in said["ucp history echo"]
    row = next(each for each in said["ucp app list"].splitlines() if "ealen" in each)
    assert row.index("0.9.3") < row.index("0.9.2")
    until(
        "both versions run",
        lambda: healthy(reader, "echo-stage") and healthy(reader, "echo-prod"),
    )


@pytest.mark.slow
def test_page_a_new_service_with_a_database_works(reader: Workbench) -> None:
    def has_its_database() -> None:
        """Check that the Deployment reads the copy of its Syncer."""
        stage = reader.kube("stage")
        until("the app is there", lambda: stage.find(DEPLOYMENT, "orders", "orders"))
        spec = stage.get(DEPLOYMENT, "orders", "orders")["spec"]["template"]["spec"]
        read = {
            reference["key"]
            for each in spec["containers"][0]["env"]
            if (reference := (each.get("valueFrom") or {}).get("secretKeyRef"))
            and reference["name"] == "database"
        }
        assert read == {"endpoint", "port", "username", "password", "database"}
        # The first copy may lack the password, which is generated later.
        until(
            "the connection is complete",
            lambda: read <= stage.get(SECRET, "database", "orders")["data"].keys(),
        )
        until("the app is well", lambda: healthy(reader, "orders-stage"))

    page = "a-new-service-with-a-database"
    said = follow(reader, page, {"ucp app remove orders": has_its_database})
    assert "orders" in said["ucp app list"]
    assert reader.application("orders-stage") is None
    assert not (reader.gitops / "apps" / "apps" / "orders").exists()


@pytest.mark.slow
def test_page_an_app_that_you_have_works(reader: Workbench) -> None:
    for path, text in web_files("1.2.3").items():
        file = reader.home / "charts" / "web" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def runs() -> None:
        """Check that Argo CD renders the chart, in the app's own project."""
        for environment in ("stage", "prod"):
            name = f"web-{environment}"
            until(f"{name} is well", lambda name=name: healthy(reader, name))
            found = reader.kube(environment).get(DEPLOYMENT, "web", "web")
            assert found["metadata"]["labels"]["chart"] == "1.2.3"
            project = reader.kube("core").get(APPLICATION, name, "argocd")["spec"]["project"]
            assert project == "ucp-web"

    page = "an-app-that-you-have"
    said = follow(reader, page, {"ucp app remove web": runs})
    assert "web: Helm chart web, version 1.2.3" in said["ucp app add web charts/web"]
    assert "kind: Deployment" in said["ucp app add web charts/web --dry-run"]
    assert "web" in said["ucp app list"]
    until(
        "its project is gone",
        lambda: not reader.kube("core").find(APP_PROJECT, "ucp-web", "argocd"),
    )
    assert reader.application("web-prod") is None
    assert reader.kube("stage").find(DEPLOYMENT, "web", "web") is None


@pytest.mark.slow
def test_page_a_new_team_works(reader: Workbench) -> None:
    def is_at_work() -> None:
        # The team's own commits deploy it to the other environments.
        until("the service is well", lambda: healthy(reader, "team-shop.shop.stage"))
        assert reader.kube("stage").find(DEPLOYMENT, "shop", "team-shop")
        assert (reader.application("team-shop.shop.stage") or {})["environment"] == "stage"
        until("its claims are read", lambda: healthy(reader, "team-shop.claims"))

    said = follow(reader, "a-new-team", {"ucp team remove shop": is_at_work})
    assert (
        "apps/shop/base/deployment.yaml" in said["ucp team add shop --template service --dry-run"]
    )
    assert "removed" in said["ucp team remove shop"]
    assert not [each for each in reader.status()["applications"] if "team-shop" in each["name"]]
    for cluster in ("core", "stage", "prod"):
        kube = reader.kube(cluster)
        until("the namespace is gone", lambda kube=kube: not kube.find(NAMESPACE, "team-shop"))


@pytest.mark.slow
def test_page_private_registry_credentials_works(reader: Workbench, toolbox: Toolbox) -> None:
    brought, used, changed, back = blocks("private-registry-credentials")

    def login(environment: str) -> str:
        secret = reader.kube(environment).get(SECRET, "pull", "echo")
        assert secret["type"] == "kubernetes.io/dockerconfigjson"
        text = base64.b64decode(secret["data"][".dockerconfigjson"])
        return str(json.loads(text)["auths"]["registry.example.org"]["password"])

    def pulls_with(environment: str) -> list[str]:
        spec = reader.kube(environment).get(DEPLOYMENT, "echo", "echo")["spec"]["template"]["spec"]
        return [each["name"] for each in spec.get("imagePullSecrets", [])]

    environments = ("stage", "prod")
    reader.shell(brought, toolbox)
    assert [login(each) for each in environments] == ["first", "first"]
    reader.shell(used, toolbox)
    for each in environments:
        until("its pods pull with it", lambda each=each: pulls_with(each) == ["pull"])
    reader.shell(brought.splitlines()[0] + "\n" + changed, toolbox)
    for each in environments:
        until("the new one is there", lambda each=each: login(each) == "second")
    reader.shell(brought.splitlines()[0] + "\n" + back, toolbox)
    for each in environments:
        kube = reader.kube(each)
        until("the copy is gone", lambda kube=kube: not kube.find(SECRET, "pull", "echo"))
        until("nobody pulls with it", lambda each=each: not pulls_with(each))
