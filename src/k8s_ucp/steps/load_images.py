"""Copy the images that the core's pods need into its nodes, as far as the engine has them.

The others are pulled by the nodes, from `images.mirror` where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.components.images import named_in
from k8s_ucp.pipeline import Report
from k8s_ucp.steps.context import Context


@dataclass(frozen=True)
class LoadImages:
    id: str = "load-images"
    title: str = "Load images into the core cluster"

    def run(self, context: Context, report: Report) -> None:
        texts = context.published.core.read("platform").values()
        wanted = {image for text in texts for image in named_in(text.decode("utf-8"))}
        here = sorted(each for each in wanted if context.engine.has_image(each))
        if here:
            report(", ".join(each.rpartition("/")[2] for each in here))
            context.kind.load_images(context.topology.core_cluster, here)
