"""docs/walkthroughs, run as they stand, one after the other, on the embedded engine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from k8s_ucp.kube import APP_PROJECT, APPLICATION, DEPLOYMENT, SECRET
from tests.chart_servers import web_files
from tests.e2e.world import World, until

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "walkthroughs"
PAGES = (
    *("everything-from-scratch", "a-new-version", "a-new-service-with-a-database"),
    "an-app-that-you-have",
)
"""In the order of a reader."""


def lines(page: str) -> list[str]:
    """The commands of a page, in order."""
    blocks = re.findall(r"```sh\n(.*?)```", (FOLDER / f"{page}.md").read_text("utf-8"), re.S)
    return [line for block in blocks for line in block.splitlines() if line.startswith("ucp ")]


def follow(
    world: World, page: str, before: Mapping[str, Callable[[], None]] | None = None
) -> dict[str, str]:
    """Type every command of a page: {command: what it said}. before: a look ahead of a command."""
    found = {}
    for line in lines(page):
        if before and line in before:
            before[line]()
        done = world.ucp(*shlex.split(line)[1:], timeout=300)
        found[line] = done.stdout + done.stderr
    return found


def healthy(world: World, name: str) -> bool:
    found = world.application(name)
    return found is not None and (found["sync"], found["health"]) == ("Synced", "Healthy")


def test_every_page_is_followed() -> None:
    assert sorted(PAGES) == sorted(each.stem for each in FOLDER.glob("*.md"))


def test_everything_from_scratch(newcomer: World) -> None:
    said = follow(newcomer, "everything-from-scratch")
    assert "no problems found" in said["ucp check"]
    assert "eu" in said["ucp env list"]
    names = [each["name"] for each in newcomer.status()["environments"]]
    assert names == ["stage", "prod"]


def test_a_new_version(reader: World) -> None:
    said = follow(reader, "a-new-version")
    assert "0.9.3" in said["ucp history echo"]
    row = next(each for each in said["ucp app list"].splitlines() if "ealen" in each)
    assert row.index("0.9.3") < row.index("0.9.2")
    until(
        "both versions run",
        lambda: healthy(reader, "echo-stage") and healthy(reader, "echo-prod"),
    )


def test_a_new_service_with_a_database(reader: World) -> None:
    def has_its_database() -> None:
        """The Deployment reads what its Syncer has brought."""
        stage = reader.kube("stage")
        until("the connection is there", lambda: stage.find(SECRET, "database", "orders"))
        brought = stage.get(SECRET, "database", "orders")["data"]
        until("the app is there", lambda: stage.find(DEPLOYMENT, "orders", "orders"))
        spec = stage.get(DEPLOYMENT, "orders", "orders")["spec"]["template"]["spec"]
        read = {
            reference["key"]
            for each in spec["containers"][0]["env"]
            if (reference := (each.get("valueFrom") or {}).get("secretKeyRef"))
            and reference["name"] == "database"
        }
        assert read == {"endpoint", "port", "username", "password", "database"}
        assert read <= brought.keys()
        until("the app is well", lambda: healthy(reader, "orders-stage"))

    page = "a-new-service-with-a-database"
    said = follow(reader, page, {"ucp app remove orders": has_its_database})
    assert "orders" in said["ucp app list"]
    assert reader.application("orders-stage") is None
    assert not (reader.gitops / "apps" / "apps" / "orders").exists()


def test_an_app_that_you_have(reader: World) -> None:
    for path, text in web_files("1.2.3").items():
        file = reader.home / "charts" / "web" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def runs() -> None:
        """Argo CD renders the chart, in the app's own project."""
        for environment in ("stage", "prod"):
            name = f"web-{environment}"
            until(f"{name} is well", lambda name=name: healthy(reader, name))
            found = reader.kube(environment).get(DEPLOYMENT, "web", "web")
            assert found["metadata"]["labels"]["chart"] == "1.2.3"
            project = reader.kube("core").get(APPLICATION, name, "argocd")["spec"]["project"]
            assert project == "ucp-web"

    page = "an-app-that-you-have"
    said = follow(reader, page, {"ucp app remove web": runs})
    assert "web: Helm chart web, version 1.2.3" in said["ucp app add web --path charts/web"]
    assert "kind: Deployment" in said["ucp app add web --path charts/web --dry-run"]
    assert "web" in said["ucp app list"]
    until(
        "its project is gone",
        lambda: not reader.kube("core").find(APP_PROJECT, "ucp-web", "argocd"),
    )
    assert reader.application("web-prod") is None
    assert reader.kube("stage").find(DEPLOYMENT, "web", "web") is None
