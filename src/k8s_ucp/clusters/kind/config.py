"""The configuration file of a kind cluster. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from k8s_ucp.loopback import ADDRESS

API = 6443
LONGEST_NAME = 63 - len("-control-plane")
"""The node is called `<cluster>-control-plane`, which must be a valid host name."""

KUBELET_ON_CGROUP_1 = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
"""
"""Without it the kubelet refuses machines with cgroup v1."""


@dataclass(frozen=True)
class KindSettings:
    """Settings of one cluster with one node."""

    name: str
    api_port: int
    """Port on this machine."""
    ports: Mapping[int, int] = field(default_factory=dict)
    """Port of the node -> port of this machine."""
    mounts: Mapping[str, Path] = field(default_factory=dict)
    """Path in the node -> folder of this machine; read-only."""
    cgroup: int = 2


def config_text(settings: KindSettings) -> str:
    """kind's configuration (v1alpha4) as JSON, which is valid YAML."""
    node: dict[str, Any] = {
        "role": "control-plane",
        "labels": {"ingress-ready": "true"},
        "extraMounts": [
            {"hostPath": str(folder), "containerPath": path, "readOnly": True}
            for path, folder in sorted(settings.mounts.items())
        ],
        "extraPortMappings": [
            {
                "containerPort": inner,
                "hostPort": outer,
                "listenAddress": ADDRESS,
                "protocol": "TCP",
            }
            for inner, outer in sorted(settings.ports.items())
        ],
    }
    config: dict[str, Any] = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": settings.name,
        "networking": {"apiServerAddress": ADDRESS, "apiServerPort": settings.api_port},
        "nodes": [node],
    }
    if settings.cgroup == 1:
        config["kubeadmConfigPatches"] = [KUBELET_ON_CGROUP_1]
    return json.dumps(config, indent=2) + "\n"


def node_name(cluster: str) -> str:
    """Container of its only node, and host name under which other nodes reach it."""
    return f"{cluster}-control-plane"


def image_version(image: str) -> str | None:
    """Kubernetes version (with "v") in the tag of a node image; None if the tag has none."""
    tag = image.partition("@")[0].rpartition(":")[2]
    return tag if tag.startswith("v") and tag[1:2].isdigit() else None


def kubeconfig(cluster: str, admin: Mapping[str, Any], server: str) -> dict[str, Any]:
    """The admin kubeconfig of a node, with the context named like the cluster.

    admin: kubeadm's kubeconfig from the node; server: URL of the API server.
    """
    authority = admin["clusters"][0]["cluster"]["certificate-authority-data"]
    user = admin["users"][0]["user"]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": cluster,
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "clusters": [
            {
                "name": cluster,
                "cluster": {"server": server, "certificate-authority-data": authority},
            }
        ],
        "users": [
            {
                "name": cluster,
                "user": {key: user[key] for key in ("client-certificate-data", "client-key-data")},
            }
        ],
    }
