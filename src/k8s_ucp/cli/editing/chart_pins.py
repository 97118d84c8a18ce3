"""Pins the charts that apps are added from: to an exact version, with the digest of its content."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from k8s_ucp.errors import UcpError

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.git.environment import Credential
    from k8s_ucp.gitops.manifests.chart_source import ChartRef, PinnedChart
    from k8s_ucp.topology import Topology

AT_ONCE = 8
"""Maximum number of charts that are fetched at the same time; helm mostly waits."""


@dataclass(frozen=True)
class UnpinnedChart:
    """A chart of a repository. version: a version or a range; None: the newest version."""

    place: ChartRef
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
    return pin(helm, chart.place, chart.version, cache_folder(), chart.credential)


@contextlib.contextmanager
def pinned_at_once(
    call: Invocation, topology: Topology, charts: Sequence[UnpinnedChart]
) -> Iterator[Pin]:
    """Fetch charts at the same time, while the block runs; each is waited for when it is needed."""
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.gitops.manifests.chart_source import pin
    from k8s_ucp.process import RunningPrograms
    from k8s_ucp.workspace import cache_folder

    one_by_one = partial(pin_now, call, topology)
    try:
        helm = pinned_helm(call, topology) if len(charts) > 1 else None
    except UcpError:  # Said of each app.
        helm = None
    if helm is None:
        yield one_by_one
        return
    programs, cache = RunningPrograms(), cache_folder()
    pool = ThreadPoolExecutor(max_workers=AT_ONCE)
    pinned: dict[tuple[ChartRef, str | None], Future[PinnedChart]] = {}
    try:
        for each in charts:
            if (each.place, each.version) not in pinned:
                pinned[each.place, each.version] = pool.submit(
                    pin, helm, each.place, each.version, cache, each.credential, programs
                )
        yield lambda chart: pinned[chart.place, chart.version].result()
    finally:
        programs.end()
        pool.shutdown(cancel_futures=True)
