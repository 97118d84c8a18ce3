"""Pods killed, nodes and Docker restarted: a kind core becomes Synced and Healthy again."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace

import psutil
import pytest

from k8s_ucp import yaml_io
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.gitops.render.values import function_package
from k8s_ucp.kube import APPLICATION, DEPLOYMENT, NAMESPACE, SECRET, Kind, Object
from tests.docker_restart import COMMAND, DockerRestart
from tests.e2e.echo_app import answer
from tests.e2e.kind_world import POD, SECONDS, containers_of, helpers, well
from tests.e2e.mirrored_secret import SYNCER, connection, password
from tests.e2e.world import Workbench, until
from tests.integration.components.platform_api import POSTGRES, serve_platform_api
from tests.unit.compositions.platform import claim, composed
from tests.unit.gitops.topologies import FACTS, on_clouds

pytestmark = [pytest.mark.kind, pytest.mark.parametrize("demo", ["kind"], indirect=True)]

FUNCTION = Kind("pkg.crossplane.io/v1", "Function", "functions", namespaced=False)
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)

PODS = {
    "stores": [
        ("argocd", "argocd-redis"),
        ("argocd", "argocd-repo-server"),
        ("ucp-git", "git-server"),
    ],
    "controllers": [
        ("argocd", "argocd-application-controller"),
        ("argocd", "argocd-applicationset-controller"),
        ("argocd", "argocd-server"),
        ("crossplane-system", "crossplane"),
        ("crossplane-system", "crossplane-rbac-manager"),
        ("ucp-clusters", "reconciler"),
    ],
}
"""Namespace and workload of the pods that are killed at once, by name.

An ApplicationSet controller that starts while no repo server answers retries only after three
minutes, so these two aren't killed together.
"""

HELPERS = {
    "programs": ["port-forward", "reconciler run", "components.watcher"],
    "supervisord": ["supervisord"],
}
"""A word of the command line of each; the watcher and supervisord restart each other."""


def node(world: Workbench, cluster: str) -> str:
    return f"{world.topology}-{cluster}-control-plane"


def pods(world: Workbench, namespace: str, name: str) -> dict[str, str]:
    """Pods of a workload: name -> uid."""
    kube = world.kube("core")
    try:
        found = kube.list_all(POD, namespace)
    finally:
        kube.close()
    owned = [
        each
        for each in found
        if any(
            owner["name"] == name or owner["name"].rpartition("-")[0] == name
            for owner in each["metadata"].get("ownerReferences") or []
        )
    ]
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in owned}


def test_mirrors_work_from_a_pod(demo: Workbench) -> None:
    """With only the permissions of its ServiceAccount, and without any file of this machine."""
    until("well before", lambda: well(demo), SECONDS)
    core = demo.kube("core")
    core.create(connection("first"))
    with demo.commit("core", "Mirror the quotes' database") as clone:
        (clone / "mirrors/db.yaml").write_text(SYNCER)
    for each in ("stage", "prod"):
        until(f"{each} has it", lambda each=each: password(demo, each) == "first", SECONDS)
    core.apply(connection("second"), manager="test")
    until("prod follows", lambda: password(demo, "prod") == "second", SECONDS)
    with demo.commit("core", "Stop mirroring") as clone:
        (clone / "mirrors/db.yaml").unlink()
    until("prod lets go", lambda: password(demo, "prod") is None, SECONDS)
    core.delete(SECRET, "quotes-conn", "crossplane-system")
    core.close()


def test_claim_is_composed_by_the_function_package(demo: Workbench) -> None:
    """With the same Compositions as on a host; no provider creates the composed resources here."""
    core = demo.kube("core")
    deployment = core.get(DEPLOYMENT, "reconciler", "ucp-clusters")
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    files = render(on_clouds(), replace(FACTS, reconciler_image=image)).core
    for each in yaml_io.load_all(files["api/functions.yaml"].decode()):
        core.apply(each)
    until("it is healthy", lambda: is_healthy(core.get(FUNCTION, function_package.NAME)), SECONDS)
    serve_platform_api(core)
    core.apply(composable())
    core.apply(claim())

    def children() -> set[tuple[str, str]]:
        found = [each.kind for each in KINDS.values()]
        labels = "crossplane.io/composite=orders"
        there = [item for kind in found for item in core.list_all(kind, "team-a", labels=labels)]
        return {(each["kind"], each["metadata"]["name"]) for each in there}

    wanted = {(each["kind"], each["metadata"]["name"]) for each in composed(claim())}
    wanted = {each for each in wanted if each[0] != "Secret"}
    until("it is composed", lambda: children() == wanted, SECONDS)
    core.delete(POSTGRES, "orders", "team-a")
    until("it is gone", lambda: not children(), SECONDS)
    core.delete(FUNCTION, function_package.NAME)
    core.delete(CLUSTER_ROLE, "composes-aws")
    core.close()


def composable() -> Object:
    """RBAC for AWS's kinds: Crossplane's RBAC manager grants it with a provider's package."""
    groups = sorted({each.kind.group for each in KINDS.values()})
    return CLUSTER_ROLE.object(
        "composes-aws",
        labels={"rbac.crossplane.io/aggregate-to-crossplane": "true"},
        rules=[{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}],
    )


def is_healthy(item: Object) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Healthy" and each["status"] == "True" for each in conditions)


@pytest.mark.parametrize(
    "killed",
    [
        # A reboot ends them, too.
        pytest.param(pods, id=name, marks=pytest.mark.slow if name == "stores" else ())
        for name, pods in PODS.items()
    ],
)
def test_pods_that_are_killed_at_once_are_recreated(
    demo: Workbench, killed: list[tuple[str, str]]
) -> None:
    pods_come_back(demo, killed)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("namespace", "name"), [each for several in PODS.values() for each in several]
)
def test_killed_pod_is_recreated(demo: Workbench, namespace: str, name: str) -> None:
    pods_come_back(demo, [(namespace, name)])


def pods_come_back(world: Workbench, killed: list[tuple[str, str]]) -> None:
    until("well before", lambda: well(world), SECONDS)
    kube = world.kube("core")
    victims: set[str] = set()
    for namespace, name in killed:
        found = pods(world, namespace, name)
        assert found, f"no pod of {name}"
        victims.update(found.values())
        for each, uid in found.items():
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
            kube.request("DELETE", POD.path(namespace, each), body=body)
    kube.close()

    def others() -> bool:
        there = [set(pods(world, *each).values()) for each in killed]
        return all(uids and not uids & victims for uids in there)

    until("others took their places", others, SECONDS)
    until("well again", lambda: well(world), SECONDS)


@pytest.mark.parametrize("killed", HELPERS.values(), ids=HELPERS)
def test_helpers_on_this_machine_that_are_killed_at_once_are_restarted(
    demo: Workbench, killed: list[str]
) -> None:
    """They create the clusters and forward the port of Argo CD; all else runs in pods."""
    helpers_come_back(demo, killed)


@pytest.mark.soak
@pytest.mark.parametrize("program", [each for several in HELPERS.values() for each in several])
def test_killed_helper_on_this_machine_is_restarted(demo: Workbench, program: str) -> None:
    helpers_come_back(demo, [program])


def helpers_come_back(world: Workbench, killed: list[str]) -> None:
    until("well before", lambda: well(world), SECONDS)
    victims = []
    for program in killed:
        (victim,) = helpers(world, program)
        victims.append(victim)
    for each in victims:
        each.kill()

    def others() -> bool:
        there = [helpers(world, program) for program in killed]
        return all(now and not any(each in victims for each in now) for now in there)

    until("others took their places", others, SECONDS)
    until("well again", lambda: well(world), SECONDS)


@pytest.mark.parametrize("cluster", ["core", pytest.param("stage", marks=pytest.mark.slow)])
def test_topology_recovers_from_a_restarted_node(demo: Workbench, cluster: str) -> None:
    until("well before", lambda: well(demo), SECONDS)
    ContainerEngine().run("restart", node(demo, cluster), timeout=120)
    until("well again", lambda: well(demo), SECONDS)
    until("the app answers", lambda: answer(demo, "stage"), SECONDS)


@pytest.mark.slow
def test_start_starts_a_stopped_core_again(demo: Workbench) -> None:
    """The engine doesn't restart it; the app clusters keep running meanwhile."""
    ContainerEngine().run("stop", node(demo, "core"), timeout=120)
    assert answer(demo, "prod")
    demo.ucp("start", "--yes")
    until("well again", lambda: well(demo), SECONDS)
    assert answer(demo, "stage")


def test_pushed_tag_is_deployed_after_all_faults(demo: Workbench) -> None:
    with demo.commit("apps", "echo: 7.0.2 on stage") as clone:
        path = clone / "apps/echo/overlays/stage/kustomization.yaml"
        lines = path.read_text().splitlines()
        path.write_text(
            "\n".join("    newTag: 7.0.2" if "newTag:" in each else each for each in lines) + "\n"
        )
    until(
        "stage follows",
        lambda: (found := demo.application("echo-stage")) and found["images"][0].endswith(":7.0.2"),
        SECONDS,
    )


def identities(world: Workbench) -> dict[str, object]:
    """Identities that must survive a reboot: of containers, clusters and Applications."""
    clusters = {}
    for each in ("core", "stage", "prod"):
        kube = world.kube(each)
        clusters[each] = kube.get(NAMESPACE, "kube-system")["metadata"]["uid"]
        kube.close()
    core = world.kube("core")
    applications = core.list_all(APPLICATION, "argocd")
    core.close()
    return {
        "containers": containers_of(ContainerEngine(), world.topology),
        "clusters": clusters,
        "applications": {
            each["metadata"]["name"]: each["metadata"]["uid"] for each in applications
        },
    }


@pytest.mark.skipif(COMMAND not in os.environ, reason=f"{COMMAND} does not say how")
def test_reboot_recreates_nothing(demo: Workbench, docker_restart: DockerRestart) -> None:
    """No process of ucp is left on this machine, Docker was restarted, and a person runs start."""
    until("well before", lambda: well(demo), SECONDS)
    before = identities(demo)
    for each in demo.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    docker_restart.restart()
    demo.ucp("start", "--yes")
    until("well again", lambda: well(demo), SECONDS)
    until("the app answers", lambda: answer(demo, "prod"), SECONDS)
    assert identities(demo) == before
