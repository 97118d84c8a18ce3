"""The configuration file of a kind cluster. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

API = 6443
LOOPBACK = "127.0.0.1"
LONGEST_NAME = 63 - len("-control-plane")
"""The node is called `<cluster>-control-plane`, and that is a host name."""

KUBELET_ON_CGROUP_1 = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
"""
"""Without it the kubelet refuses machines with version 1 of control groups."""


@dataclass(frozen=True)
class KindSettings:
    """One cluster with one node."""

    name: str
    api_port: int
    """On this machine."""
    ports: Mapping[int, int] = field(default_factory=dict)
    """Port of the node -> port of this machine."""
    mounts: Mapping[str, Path] = field(default_factory=dict)
    """Path in the node -> folder of this machine; read-only."""
    cgroup: int = 2


def config_text(settings: KindSettings) -> str:
    """kind's configuration (v1alpha4). JSON is YAML too."""
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
                "listenAddress": LOOPBACK,
                "protocol": "TCP",
            }
            for inner, outer in sorted(settings.ports.items())
        ],
    }
    config: dict[str, Any] = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": settings.name,
        "networking": {"apiServerAddress": LOOPBACK, "apiServerPort": settings.api_port},
        "nodes": [node],
    }
    if settings.cgroup == 1:
        config["kubeadmConfigPatches"] = [KUBELET_ON_CGROUP_1]
    return json.dumps(config, indent=2) + "\n"


def node_name(cluster: str) -> str:
    """The container that is its one node, and the host name by which other nodes reach it."""
    return f"{cluster}-control-plane"


def image_version(image: str) -> str | None:
    """Kubernetes version (with its v) that the tag of a node image tells; None: it tells none."""
    tag = image.partition("@")[0].rpartition(":")[2]
    return tag if tag.startswith("v") and tag[1:2].isdigit() else None


def kubeconfig(cluster: str, admin: Mapping[str, Any], server: str) -> dict[str, Any]:
    """The admin's kubeconfig of a node, with the context named like the cluster.

    admin: kubeadm's, as it lies in the node; server: the URL to put into it.
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
