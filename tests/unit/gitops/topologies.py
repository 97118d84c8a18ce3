"""Topologies and render inputs that several tests of this package use."""

from __future__ import annotations

from typing import Any

from k8s_ucp.gitops.render.repositories import RenderInputs
from k8s_ucp.topology import App, Environment, Metadata, Spec, Topology

FACTS = RenderInputs(
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


_ENVIRONMENTS: list[dict[str, Any]] = [
    {
        "name": "stage",
        "cluster": {
            "provider": "gke",
            "region": "europe-west1-b",
            "size": "e2-standard-4",
            "version": "1.33",
        },
    },
    {"name": "auto", "cluster": {"provider": "gke", "autopilot": True, "network": "shared-vpc"}},
    {"name": "eu", "cluster": {"provider": "eks", "region": "us-east-1"}, "access": "scoped"},
    {"name": "az", "cluster": {"provider": "aks"}, "deletionProtection": True},
    {
        "name": "do",
        "cluster": {"provider": "digitalocean", "version": "1.33.1-do.0"},
        "managementPolicies": ["Observe"],
    },
    {"name": "prod", "cluster": {"provider": "gke"}, "deletionProtection": True},
    {"name": "dev", "cluster": {"provider": "kind"}},
]
_DATABASES: list[dict[str, Any]] = [
    {"name": "quotes", "provider": "gcp", "environments": ["stage", "prod", "auto"]},
    {"name": "orders", "provider": "aws", "environments": ["eu", "stage"], "size": "medium"},
    {"name": "scratch-pad", "provider": "local", "environments": ["dev"]},
]


def on_clouds(
    environments: list[str] | None = None, databases: list[str] | None = None, **spec: Any
) -> Topology:
    """Topology `shop` on every cloud; environments, databases: only those."""
    chosen = [
        each for each in _ENVIRONMENTS if environments is None or each["name"] in environments
    ]
    data = {
        "core": {"provider": "kind"},
        "environments": chosen,
        "apps": [{"name": "echo", "image": "ealen/echo-server", "tag": "0.9.2"}],
        "databases": [
            each for each in _DATABASES if databases is None or each["name"] in databases
        ],
        "credentials": {"gcp": {"file": "creds/gcp.json", "project": "my-project"}},
        **spec,
    }
    return Topology(metadata=Metadata(name="shop"), spec=Spec.model_validate(data))
