"""The summary of `ucp start`: what it names beside what ucp.yaml declares."""

from __future__ import annotations

from k8s_ucp.cli.lifecycle.start_summary import (
    app_cluster_rows,
    new_tag,
    undeclared,
    without_stopped,
)
from k8s_ucp.topology import default


def test_what_only_the_repositories_have_is_named() -> None:
    topology = default(environments=("stage", "prod"), apps=("echo",))

    assert undeclared(topology, ["stage", "prod", "eu"], {"echo", "web"}) == [
        "environment eu",
        "app web",
    ]
    assert undeclared(topology, ["stage", "prod"], {"echo"}) == []


def test_a_stopped_environment_is_not_said_to_run_anything() -> None:
    """No command that follows the summary may need its cluster, which doesn't exist."""
    topology = default(environments=("stage", "prod"), apps=("echo",))
    stage, prod = topology.spec.environments
    stopped = stage.model_copy(update={"state": "stopped"})
    spec = topology.spec.model_copy(update={"environments": (stopped, prod)})
    topology = topology.model_copy(update={"spec": spec})
    overlays = {("echo", "stage"), ("echo", "prod"), ("web", "stage"), ("echo", "eu")}

    assert app_cluster_rows(topology, ["stage", "prod", "eu"], overlays) == [
        ["environment stage", "demo-stage", "stopped; to start it: ucp recreate --env stage"],
        ["environment prod", "demo-prod", "embedded, simulated"],
        ["environment eu", "demo-eu", "embedded, simulated"],
        ["app echo", "prod, eu", "embedded, simulated"],
    ]
    assert without_stopped(topology, ["stage", "prod", "eu"]) == ["prod", "eu"]


def test_the_hint_for_a_new_version_names_an_app_that_has_one() -> None:
    environments, where = ["stage", "prod"], "gitops/demo/apps"
    without = {
        f"apps/agent/overlays/{each}/kustomization.yaml": b"resources: [../../base]\n"
        for each in environments
    }
    chart = {f"apps/chart/overlays/{each}/Chart.yaml": b"name: chart\n" for each in environments}
    tagged = {
        f"apps/web/overlays/{each}/kustomization.yaml": b"images:\n- {name: web, newTag: '1'}\n"
        for each in environments
    }

    assert new_tag(without, environments, where) == []
    assert new_tag({**without, **chart}, environments, where) == [
        "  a new tag    ucp promote chart --env stage --tag TAG"
    ]
    assert new_tag({**without, **chart, **tagged}, environments, where) == [
        "  a new tag    change newTag in apps/web/overlays/stage/kustomization.yaml, commit, push;",
        "               the repository: gitops/demo/apps",
    ]
