"""Topologies and facts that several tests of this room use."""

from __future__ import annotations

from typing import Any

from k8s_ucp.gitops.render import Facts
from k8s_ucp.topology import App, Environment, Metadata, Spec, Topology

FACTS = Facts(
    machine="0123456789abcdef",
    core_url="file:///work/gitops/demo/core.git",
    apps_url="file:///work/gitops/demo/apps.git",
    topology_file=b"# mine\nkind: Topology\n",
    engine={"argocd": {"crds.yaml": b"kind: CustomResourceDefinition\n"}},
    versions={"argocd": "v1.2.3"},
)


def demo(**spec: Any) -> Topology:
    """Topology `demo` as the wizard's defaults make it, with parts of the spec replaced."""
    defaults: dict[str, Any] = {
        "environments": (
            Environment.model_validate({"name": "stage"}),
            Environment.model_validate({"name": "prod", "promotesFrom": "stage"}),
        ),
        "apps": (App(name="echo", image="ealen/echo-server", tag="0.9.2", hosts=("echo",)),),
    }
    return Topology(metadata=Metadata(name="demo"), spec=Spec(**{**defaults, **spec}))
