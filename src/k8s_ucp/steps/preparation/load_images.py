"""Copy the images that the core's pods need into its nodes, as far as the engine has them.

The others are pulled by the nodes, from `images.mirror` where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from k8s_ucp.cluster_provider import ImageLoader, NodeImages
from k8s_ucp.clusters.images import named_in
from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report


@dataclass(frozen=True)
class SaveImages:
    """While the core comes up: reading them takes as long as writing them into its nodes."""

    id: str = "save-images"
    title: str = "Collect images for the core cluster"

    def run(self, context: Context, report: Report) -> None:
        _node_images(context).save(context.topology.core_cluster, images_of_pods(context), report)


@dataclass(frozen=True)
class LoadImages:
    id: str = "load-images"
    title: str = "Load images into the core cluster"

    def run(self, context: Context, report: Report) -> None:
        _node_images(context).load(context.topology.core_cluster, images_of_pods(context), report)


def _node_images(context: Context) -> NodeImages:
    """Of a provider that says that it loads images."""
    return cast(ImageLoader, context.provider).images


def images_of_pods(context: Context) -> set[str]:
    """All that the core repository names for the components."""
    texts = context.published.core.read("platform").values()
    return {image for text in texts for image in named_in(text.decode("utf-8"))}


@dataclass(frozen=True)
class BuildImages:
    id: str = "build-images"
    title: str = "Build the reconciler image"

    def run(self, context: Context, report: Report) -> None:
        if context.topology.spec.reconciler.image is None:
            context.reconciler_image.ensure(
                context.engine, report, programs=context.cancel.programs
            )
