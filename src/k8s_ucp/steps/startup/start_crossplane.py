"""Initialise Crossplane, whose kinds are applied, and start it."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.components import crossplane
from k8s_ucp.components.manifests import digest, read
from k8s_ucp.context import Context, await_ready
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.steps.startup.apply_manifests import is_applied, note_applied


@dataclass(frozen=True)
class StartCrossplane:
    id: str = "start-crossplane"
    title: str = "Start Crossplane"

    def run(self, context: Context, report: Report) -> None:
        path = f"platform/{crossplane.NAME}/engine"
        kinds = read(context.published.core.read(path))
        known = digest(kinds)
        if not is_applied(context.kube, self.id, known, kinds):
            report("certificates and default objects")
            context.crossplane.initialise(programs=context.cancel.programs)
            note_applied(context.kube, self.id, known)
        context.crossplane.fetch_certificates(context.kube)
        report("controllers")
        context.placement.start(context.crossplane.programs())
        await_ready(context, crossplane.NAME, context.crossplane.ready)
