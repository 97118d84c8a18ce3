"""A host with every path and port that components need; none of its programs exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.components import argocd, cloud, crossplane, reconciler
from k8s_ucp.components.host.machine import Host
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import StateFolder

PORTS = (*argocd.PORTS, *crossplane.PORTS, *reconciler.PORTS, *cloud.PORTS)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    module = tmp_path / "cache" / "argocd" / "module"
    (module / "manifests/base/config").mkdir(parents=True)
    (module / "manifests/base/config/argocd-ssh-known-hosts-cm.yaml").write_text(
        "data:\n  ssh_known_hosts: |\n    # hosts\n    example.org ssh-ed25519 AAAA\n"
    )
    programs = ("argocd", "crossplane", "kustomize", "helm", "redis-server")
    state = StateFolder(tmp_path / "a b" / ".ucp" / "demo")
    state.make()
    return Host(
        state,
        tmp_path / "run",
        Toolbox(
            {name: tmp_path / "cache" / name / "bin" / name for name in programs},
            {"argocd": module},
        ),
        {name: 20000 + number for number, name in enumerate(PORTS)},
        state.kubeconfig("demo-core"),
    )
