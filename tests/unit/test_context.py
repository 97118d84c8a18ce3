"""What steps share: Argo CD's URL on this machine, and retries of unresponsive API servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from k8s_ucp import context as contexts
from k8s_ucp import plans
from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.context import StartContext, TopologyView, persistent
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.errors import ProgramMissing
from k8s_ucp.kube import Invalid, KubeError, Unreachable
from k8s_ucp.topology import Topology
from k8s_ucp.topology.parts import Addons, CoreCluster
from k8s_ucp.workspace import Workspace
from tests.unit.gitops.topologies import demo


def topology(ingress: str | None, **core: Any) -> Topology:
    return demo(
        core=CoreCluster.model_validate({"provider": "kind", **core}),
        addons=Addons.model_validate({"ingress": ingress}),
    )


@pytest.mark.parametrize(
    ("ports", "url"),
    [
        (None, "http://127.0.0.1"),
        ({"http": 18080, "https": 18443}, "http://127.0.0.1:18080"),
    ],
)
def test_the_argo_cd_url_has_the_http_port_of_the_core(
    ports: dict[str, int] | None, url: str
) -> None:
    context = StartContext(Workspace.at(Path("/nowhere")), topology("traefik", ports=ports))
    assert context.argocd_url == url


@pytest.mark.parametrize(
    ("ingress", "wanted", "other"),
    [
        ("traefik", "await-ingress", "forward-argocd"),
        ("none", "forward-argocd", "await-ingress"),
        (None, "forward-argocd", "await-ingress"),
    ],
)
def test_the_start_waits_for_the_ingress_or_forwards_a_port(
    ingress: str | None, wanted: str, other: str
) -> None:
    steps = {each.step.id for each in plans.start(topology(ingress)).tasks}
    assert wanted in steps
    assert other not in steps


def test_a_topology_view_cannot_create_clusters(tmp_path: Path) -> None:
    view = TopologyView(Workspace.at(tmp_path), demo())
    with pytest.raises(ProgramMissing, match="the embedded engine is not installed"):
        view.provider.create(ClusterRequest("demo-core"), lambda _: None)
    assert not view.provider.state("demo-core").exists


@pytest.mark.parametrize(
    ("failures", "tries", "raised"),
    [
        ([], 1, None),
        ([Unreachable("no response within 10 s")] * 2, 3, None),
        ([Invalid("no such field")] * 2, 1, Invalid),
        ([Unreachable("gone")] * 9, 4, Unreachable),
    ],
)
def test_a_step_is_retried_while_the_api_server_does_not_respond(
    failures: list[KubeError],
    tries: int,
    raised: type[KubeError] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = StartContext(Workspace.at(Path("/nowhere")), demo())
    now, tried, told = [100.0], 0, list[str]()

    def pause(seconds: float) -> None:
        now[0] += 20 * seconds

    @persistent
    def step(_: StartContext, report: Report) -> None:
        nonlocal tried
        tried += 1
        if tried <= len(failures):
            raise failures[tried - 1]

    monkeypatch.setattr(contexts.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(context.cancel, "pause", pause)
    if raised:
        with pytest.raises(raised):
            step(context, told.append)
    else:
        step(context, told.append)
    assert tried == tries
    assert told == [each.message for each in failures[: tries - 1]]
