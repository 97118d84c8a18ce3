"""Changes of clusters that `remove --plan` previews from objects on the core cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.editing import removal_plan
from k8s_ucp.cli.editing.removal_plan import (
    preview_app,
    preview_applications,
    preview_environment,
)
from k8s_ucp.cli.editing.team_drain import preview_claims
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.topology import Topology, default
from k8s_ucp.topology.parts import Database, Team

TRACKED = {"argocd.argoproj.io/tracking-id": "ucp-team-shop.claims:x"}


class Core:
    """A fake of the core cluster's API."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self.items = items

    def list_all(self, kind: Any, *_: Any, **__: Any) -> Sequence[dict[str, Any]]:
        return [each for each in self.items if each["kind"] == kind.kind]

    def close(self) -> None: ...


def application(app: str, environment: str, *resources: dict[str, str]) -> dict[str, Any]:
    labels = {"k8s-ucp.io/app": app, "k8s-ucp.io/topology": "demo"}
    return {
        "kind": "Application",
        "metadata": {"name": f"{app}-{environment}", "labels": labels},
        "spec": {"destination": {"name": f"demo-{environment}"}},
        "status": {"resources": list(resources)},
    }


VOLUME = {"kind": "PersistentVolumeClaim", "name": "data"}
CORE = Core(application("echo", "stage", VOLUME), application("web", "prod"))


def topology(provider: str) -> Topology:
    base = default()
    cluster = base.spec.environments[0].cluster.model_copy(update={"provider": provider})
    environments = tuple(
        each.model_copy(update={"cluster": cluster}) for each in base.spec.environments
    )
    databases = (Database(name="orders", provider="gcp"),)
    update = {"environments": environments, "databases": databases}
    return base.model_copy(update={"spec": base.spec.model_copy(update=update)})


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Invocation:
    monkeypatch.setattr(removal_plan, "open_core", lambda *_: CORE)
    return Invocation.__new__(Invocation)


def by_object(found: Sequence[PlannedChange]) -> dict[str, tuple[str, str]]:
    return {each.object: (each.action, each.lost) for each in found}


def test_removing_an_environment_deletes_its_cluster_and_keeps_cloud_databases(
    call: Invocation,
) -> None:
    demo = topology("kind")
    found = by_object(list(preview_environment(call, demo, demo.spec.environments[0])))
    lost = "everything on demo-stage that is not in a repository, with all data in its volumes"
    assert found == {
        "Application echo-stage": ("delete", "all data in the volumes data on demo-stage"),
        "drain of demo-stage": ("wait", ""),
        "database orders of stage": ("keep", ""),
        "cluster demo-stage": ("delete", lost),
    }


def test_an_existing_cluster_is_kept(call: Invocation) -> None:
    demo = topology("existing")
    found = by_object(list(preview_environment(call, demo, demo.spec.environments[0])))
    assert found["cluster demo-stage"] == ("keep", "")


def test_removing_an_app_deletes_only_its_own_applications(
    call: Invocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal_plan, "preview_kinds", lambda *_: ())
    monkeypatch.setattr(removal_plan, "preview_namespaces", lambda *_: ())
    demo = topology("kind")
    found = by_object(list(preview_app(call, demo, "echo", demo.spec.apps[0])))
    assert list(found) == ["Application echo-stage", "project of echo"]


def test_volumes_of_simulated_clusters_are_not_reported_as_lost_data() -> None:
    (found,) = preview_applications(topology("embedded"), [CORE.items[0]])
    assert found.lost == ""


def test_a_tracked_claim_loses_its_data_and_an_untracked_one_is_waited_for() -> None:
    claims = [
        {"kind": "Postgres", "metadata": {"name": "shop-orders", "annotations": TRACKED}},
        {"kind": "Postgres", "metadata": {"name": "shop-mine"}},
    ]
    core: Any = Core(*claims)
    found = by_object(list(preview_claims(core, Team(name="shop"), {"claims/orders.yaml": b""})))
    assert found["shop: claims/orders.yaml"] == ("delete", "")
    assert found["Postgres shop-orders"] == ("delete", "Postgres shop-orders of shop with its data")
    assert found["Postgres shop-mine"] == ("wait", "")
