"""Pins the charts that apps are added from: to an exact version, with the digest of its content.

Charts in folders have dependencies instead, which are fetched at the same time, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from k8s_ucp.errors import UcpError

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.git.environment import Credential
    from k8s_ucp.gitops.manifests.chart_source import ChartRef, PinnedChart
    from k8s_ucp.gitops.manifests.forms import Files
    from k8s_ucp.gitops.manifests.reachable import FolderTree
    from k8s_ucp.process import RunningPrograms
    from k8s_ucp.topology import Topology

MAX_CONCURRENT = 8
"""Maximum number of charts that are fetched at the same time; helm mostly waits."""


@dataclass(frozen=True)
class UnpinnedChart:
    """A chart of a repository. version: a version or a range; None: the newest version."""

    ref: ChartRef
    version: str | None
    credential: Credential | None


Pin = Callable[[UnpinnedChart], "PinnedChart"]
"""Raises UcpError."""


def pin_now(call: Invocation, topology: Topology, chart: UnpinnedChart) -> PinnedChart:
    """Fetch a chart. Raises UcpError."""
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.gitops.manifests.chart_source import pin
    from k8s_ucp.workspace import cache_folder

    helm = pinned_helm(call, topology)
    return pin(helm, chart.ref, chart.version, cache_folder(), chart.credential)


@contextlib.contextmanager
def pinned_concurrently(
    call: Invocation, topology: Topology, charts: Sequence[UnpinnedChart]
) -> Iterator[Pin]:
    """Fetch charts at the same time, while the block runs; each is waited for when it is needed."""
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.gitops.manifests.chart_source import pin
    from k8s_ucp.workspace import cache_folder

    one_by_one = partial(pin_now, call, topology)
    try:
        helm = pinned_helm(call, topology) if len(charts) > 1 else None
    except UcpError:  # Said of each app.
        helm = None
    if helm is None:
        yield one_by_one
        return
    pinned: dict[tuple[ChartRef, str | None], Future[PinnedChart]] = {}
    with _pool() as (pool, programs):
        for each in charts:
            if (each.ref, each.version) not in pinned:
                pinned[each.ref, each.version] = pool.submit(
                    pin, helm, each.ref, each.version, cache_folder(), each.credential, programs
                )
        yield lambda chart: pinned[chart.ref, chart.version].result()


def fetch_dependencies(
    call: Invocation, topology: Topology, folder_tree: FolderTree, charts: Mapping[str, str]
) -> dict[str, UcpError]:
    """Fetch the dependencies of charts at the same time: {app: error} of those that fail.

    They are then in the cache when a chart is rendered. charts: {app: folder}.
    """
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.gitops.manifests.chart_source import missing_dependencies, with_dependencies
    from k8s_ucp.gitops.manifests.forms import chart_file
    from k8s_ucp.gitops.render.app_manifests import charts_beside

    lacking: dict[str, tuple[Files, Mapping[str, Files]]] = {}
    for app, folder in charts.items():
        with contextlib.suppress(UcpError):  # Said of each app.
            files = folder_tree.below(folder)
            if missing_dependencies(files):
                lacking[app] = files, charts_beside(folder_tree, folder, chart_file(files))
    if len(lacking) < 2:
        return {}
    failures: dict[str, UcpError] = {}
    helm = pinned_helm(call, topology)
    with _pool() as (pool, programs):
        waiting = {
            app: pool.submit(with_dependencies, helm, files, beside, programs)
            for app, (files, beside) in lacking.items()
        }
        for app, fetched in waiting.items():
            try:
                fetched.result()
            except UcpError as error:
                failures[app] = error
    return failures


@contextlib.contextmanager
def _pool() -> Iterator[tuple[ThreadPoolExecutor, RunningPrograms]]:
    """(threads, programs that they start), which end with the block, also if it is interrupted."""
    from k8s_ucp.process import RunningPrograms

    programs, pool = RunningPrograms(), ThreadPoolExecutor(max_workers=MAX_CONCURRENT)
    try:
        yield pool, programs
    finally:
        programs.end()
        pool.shutdown(cancel_futures=True)
