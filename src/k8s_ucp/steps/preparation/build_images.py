"""Have the reconciler's image in the container engine, built from the code that runs here."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report


@dataclass(frozen=True)
class BuildImages:
    id: str = "build-images"
    title: str = "Build the reconciler image"

    def run(self, context: Context, report: Report) -> None:
        if context.topology.spec.reconciler.image is None:
            context.reconciler_image.ensure(
                context.engine, report, programs=context.cancel.programs
            )
