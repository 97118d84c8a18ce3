"""Installs the programs on this machine, and images that the container engine has on the nodes.

Nodes pull other images, from `images.mirror` if it is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

from k8s_ucp.cluster_provider import ImageLoader, NodeImages, UpgradingProvider
from k8s_ucp.clusters.images import named_in
from k8s_ucp.components import argocd, crossplane
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.forecast import about
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.kept_versions import KEPT, read_kept, write_kept
from k8s_ucp.tools.recipe import Phase, ProgramSource, ToolProgress
from k8s_ucp.tools.required import needed_tools
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import cache_folder


def _preview_tools(context: StartContext) -> Iterator[PlannedChange]:
    installer, needed = _installer(context, kept_tools(context)), needed_tools(context.topology)
    missing = installer.missing(needed)
    for each in missing:
        yield PlannedChange("create", f"program {each}", "it is not in the user's cache")
    if not missing:
        context.toolbox = installer.find(needed)
        yield PlannedChange("keep", "programs", "all pinned programs are installed")


@step("Install the pinned programs", preview=_preview_tools)
def install_tools(context: StartContext, report: Report) -> None:
    """Install the versions that the topology keeps, or those of this ucp for a new topology."""
    context.toolbox = _install(context, kept_tools(context), report)
    write_kept(context.topology, context.state, context.toolbox)


def install_newest(context: StartContext, report: Report) -> Toolbox:
    """Install the versions of this ucp, whatever the topology runs."""
    return _install(context, {}, report)


def find_tools(context: StartContext) -> tuple[Toolbox, Toolbox | None]:
    """(programs that the topology keeps; those of this ucp, or None unless all are installed)

    Raises UcpError if one that it keeps is missing.
    """
    needed = needed_tools(context.topology)
    newest = _installer(context, {})
    newest_tools = None if newest.missing(needed) else newest.find(needed)
    return _installer(context, kept_tools(context)).find(needed), newest_tools


def find_entries(context: StartContext, entries: Mapping[str, str]) -> Toolbox:
    """Programs by tool, from their entries in the cache. Raises UcpError if one is missing."""
    return _installer(context, entries).find(entries)


def kept_tools(context: StartContext) -> Mapping[str, str]:
    """{tool: entry} as recorded, or as running if an older ucp started them without a record."""
    if (kept := read_kept(context.topology, context.state)) or context.in_pods:
        return kept
    programs = (argocd.CONTROLLER, crossplane.NAME)
    paths = [Path(path) for each in programs if (path := context.placement.executable(each))]
    names = {path.parent.parent.name for path in paths}
    found = {tool: name for tool in KEPT for name in names if name.startswith(f"{tool}-")}
    if PROVIDERS[context.topology.spec.core.provider].pinned_version:
        core = cast(UpgradingProvider, context.provider)
        found |= core.entries(context.topology.core_cluster)
    return found


def _installer(
    context: StartContext,
    kept: Mapping[str, str],
    on_progress: Callable[[ToolProgress], None] = lambda _: None,
) -> Installer:
    return Installer(
        cache_folder(),
        on_progress,
        source=ProgramSource(context.topology.spec.tools.source),
        programs=context.cancel.programs,
        kept=kept,
    )


def _install(context: StartContext, kept: Mapping[str, str], report: Report) -> Toolbox:
    going: dict[str, str] = {}

    def on_progress(progress: ToolProgress) -> None:
        if progress.phase is Phase.INSTALLED:
            going.pop(progress.tool, None)
        else:
            going[progress.tool] = f"{progress.tool}: {progress.phase} {progress.detail}".strip()
        left = [about(progress.left)] if progress.left and going else []
        report(" | ".join([*left, *going.values()]))

    return _installer(context, kept, on_progress).install(needed_tools(context.topology))


def _preview_images(context: StartContext) -> Iterator[PlannedChange]:
    name = context.topology.core_cluster
    yield PlannedChange("change", f"images of {name}", "images that its nodes lack are loaded")


def _preview_collection(context: StartContext) -> Iterator[PlannedChange]:
    what = f"archives of images for {context.topology.core_cluster}"
    yield PlannedChange(
        "create", what, "images that the nodes lack are exported from the container engine"
    )


@step("Collect images for the core cluster", preview=_preview_collection)
def save_images(context: StartContext, report: Report) -> None:
    """Runs while the core starts: exporting images takes as long as loading them into nodes."""
    _node_images(context).save(context.topology.core_cluster, images_of_pods(context), report)


@step("Load images into the core cluster", preview=_preview_images)
def load_images(context: StartContext, report: Report) -> None:
    _node_images(context).load(context.topology.core_cluster, images_of_pods(context), report)


def _node_images(context: StartContext) -> NodeImages:
    """The image loader of a provider that has one."""
    return cast(ImageLoader, context.provider).images


def images_of_pods(context: StartContext) -> set[str]:
    """All images in the core repository's manifests of the components."""
    texts = context.published.core.read("platform").values()
    return {image for text in texts for image in named_in(text.decode("utf-8", "replace"))}


def _preview_image(context: StartContext) -> Iterator[PlannedChange]:
    if context.topology.spec.reconciler.image is None:
        name = context.reconciler_image.name
        yield PlannedChange(
            "create", f"image {name}", "it is built unless the container engine already has it"
        )


@step("Build the reconciler image", preview=_preview_image)
def build_images(context: StartContext, report: Report) -> None:
    if context.topology.spec.reconciler.image is None:
        context.reconciler_image.ensure(context.engine, report, programs=context.cancel.programs)
