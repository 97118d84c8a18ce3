"""Objects of a rendered topology, as kustomize builds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from k8s_ucp.gitops.manifests.kustomize import build
from k8s_ucp.gitops.manifests.yaml_text import load_all
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Topology
from tests.unit.gitops.topologies import FACTS


def built(topology: Topology, toolbox: Toolbox, folder: Path, *roots: str) -> list[Any]:
    render_to(folder, render(topology, FACTS))
    return [
        each
        for root in roots
        for each in load_all(build(toolbox.path("kustomize"), folder / "core" / root))
        if each
    ]
