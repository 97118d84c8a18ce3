"""Make the core cluster's control plane, or start it, or see that it runs."""

from __future__ import annotations

import json
from dataclasses import dataclass

from k8s_ucp.clusters.local import core_request
from k8s_ucp.pipeline import Report
from k8s_ucp.steps.context import Context
from k8s_ucp.workspace import make_private_folder, write_private_file

SECONDS = 600.0
"""An image may have to be pulled."""


@dataclass(frozen=True)
class StartCore:
    id: str = "start-core"
    title: str = "Start the core cluster"

    def run(self, context: Context, report: Report) -> None:
        name = context.topology.core_cluster
        request = core_request(context.workspace, context.topology)
        for folder in request.mounts.values():
            # Else the engine would make it, and as root.
            make_private_folder(folder)
        context.provider.create(request, report, timeout=SECONDS)
        # JSON is YAML too, and much faster to write.
        text = json.dumps(context.provider.kubeconfig(name), indent=2, sort_keys=True) + "\n"
        path = context.state.kubeconfig(name)
        if not path.exists() or path.read_text("utf-8") != text:
            write_private_file(path, text)
