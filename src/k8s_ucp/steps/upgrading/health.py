"""Checks whether a topology is as healthy as before; if not, an upgrade is rolled back."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from k8s_ucp.cluster_provider import ProgramHealth
from k8s_ucp.components import argocd, cloud, crossplane, reconciler
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.inspect import cluster_snapshot, status
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.status import Status
from k8s_ucp.kube import Object
from k8s_ucp.steps.upgrading.parts import (
    AIMED,
    BACK,
    HEALTHY,
    UpgradePart,
    chosen,
    parts,
    provider_of,
    target_versions,
)
from k8s_ucp.steps.waiting.argocd_refresh import RefreshRequests, not_refreshed
from k8s_ucp.topology import Topology

STABLE_SECONDS = 5.0
"""How long everything has to stay healthy: a program that crashes is up for a moment."""
SHOWN = 5


@dataclass(frozen=True)
class HealthObservation:
    """The state of a topology at one moment."""

    topology: Topology
    snapshot: ClusterSnapshot
    programs: Mapping[str, ProgramHealth]
    """Of control planes: `kube-scheduler of demo-core` -> state."""

    def summary(self) -> Status:
        """The result of `status.summarize`, with the programs."""
        summary = status.summarize(self.topology, self.snapshot)
        summary["programs"] = [
            {"name": name, "ready": not each.message} for name, each in self.programs.items()
        ]
        return summary

    def reasons(self) -> dict[str, str]:
        """Why something is not healthy, by its name."""
        of_programs = {f"program {name}": each.message for name, each in self.programs.items()}
        return {**status.reasons(self.snapshot), **of_programs}

    def runs(self, names: Collection[str]) -> dict[str, str]:
        """Current runs of the programs that count, by name. names: result of `healthy_names`."""
        return {name: p.run for name, p in self.programs.items() if f"program {name}" in names}


def observe(context: StartContext) -> HealthObservation:
    """Read the state of everything that counts."""
    return HealthObservation(context.topology, take_snapshot(context), program_health(context))


def program_health(context: StartContext) -> dict[str, ProgramHealth]:
    """All programs of the control planes that ucp upgrades, queried in parallel."""
    clusters = [each for each in parts(context.topology) if each.cluster]

    def query(part: UpgradePart) -> dict[str, ProgramHealth]:
        found = provider_of(context, part).programs(part.cluster)
        return {f"{name} of {part.cluster}": state for name, state in found.items()}

    with ThreadPoolExecutor(max(1, len(clusters)), "programs") as pool:
        return {name: state for found in pool.map(query, clusters) for name, state in found.items()}


def take_snapshot(context: StartContext) -> ClusterSnapshot:
    """Query clusters, components and objects."""
    names = [argocd.NAME, crossplane.NAME, reconciler.NAME]
    names += [cloud.NAME] if context.simulates_cloud else []
    return cluster_snapshot.collect(
        context.topology,
        context.state.kubeconfig,
        lambda: cluster_snapshot.query_components(
            [context.component(name) for name in names], dict.fromkeys(names, "")
        ),
    )


def healthy_names(summary: Status) -> set[str]:
    """What is healthy now, by the names in messages. summary: of `HealthObservation`."""
    rows: list[tuple[str, bool]] = [
        (f"core cluster {summary['core']['name']}", summary["core"]["ready"]),
        *((f"component {each['name']}", each["ready"]) for each in summary["components"]),
        *((f"mirror {each['name']}", each["ready"]) for each in summary["mirrors"]),
        *((f"program {each['name']}", each["ready"]) for each in summary["programs"]),
    ]
    for each in summary["environments"]:
        cluster = each["cluster"]
        up = cluster["ready"] and cluster["registered"] and cluster["reachable"]
        rows.append((f"environment {each['name']}", up))
    for each in summary["applications"]:
        settled = (each["sync"], each["health"]) == ("Synced", "Healthy")
        rows.append((f"application {each['name']}", settled))
    for each in summary["claims"]:
        name = "/".join(filter(None, (each["namespace"], each["name"])))
        rows.append((f"claim {each['kind']} {name}", each["ready"]))
    return {name for name, ready in rows if ready}


def no_longer_healthy(
    before: Collection[str],
    summary: Status,
    reasons: Mapping[str, str],
    stale: Collection[str] = (),
) -> list[str]:
    """What was healthy and isn't now, with reasons.

    reasons: by name of the objects. stale: Applications that Argo CD has not compared again yet.
    """
    now = healthy_names(summary) - {f"application {name}" for name in stale}
    found = []
    for name in sorted(set(before) - now):
        kind, _, short = name.partition(" ")
        reason = reasons.get(name) or reasons.get(short) or reasons.get(f"{kind} {short}", "")
        if kind == "application" and short in stale and not reason:
            reason = "not refreshed yet"
        found.append(f"{name}{f': {reason}' if reason else ' is not healthy'}")
    return found


def _preview_health(_: StartContext) -> Iterator[PlannedChange]:
    yield PlannedChange(
        "keep",
        "everything that is healthy now",
        "it is recorded, and checked again after each part",
    )


@dataclass
class StabilityTimer:
    """How long everything has been healthy, with the same runs of the same programs."""

    _since: float | None = None
    _runs: Mapping[str, str] = field(default_factory=dict)

    def reset(self) -> None:
        """Something is not healthy."""
        self._since = None

    def seconds(self, runs: Mapping[str, str], now: float) -> float:
        """How long everything has been healthy, at `now`. runs: a new run starts the time again."""
        if self._since is None or runs != self._runs:
            self._since, self._runs = now, runs
        return now - self._since


@step("Record what is healthy", preview=_preview_health)
def record_health(context: StartContext, report: Report) -> None:
    """An upgrade must keep this healthy; what is unhealthy already does not matter."""
    before = frozenset(healthy_names(observe(context).summary()))
    context.upgrade.healthy_before = before
    aimed = {
        tool: version for part in chosen(context) for tool, version in target_versions(part).items()
    }
    # A run that continues this one uses it, so that damage done by this one is noticed, too.
    context.journal.keep(**{HEALTHY: sorted(before), AIMED: aimed, BACK: ""})
    report(f"{len(before)} clusters, programs, components, applications and claims")


def await_previous_health(context: StartContext, report: Report) -> None:
    """Wait until everything is as healthy as before, and stable. Raises DeadlineExceeded."""
    refreshes = RefreshRequests(context.kube, context.topology.spec.core.adopt)
    stable, before = StabilityTimer(), context.upgrade.healthy_before

    def pending() -> str:
        current = observe(context)
        items: Sequence[Object] = current.snapshot.applications
        stale = not_refreshed(items, since=context.argocd_since)
        missing = no_longer_healthy(before, current.summary(), current.reasons(), stale)
        if missing:
            refreshes.request_refresh(items, since=context.argocd_since)
            stable.reset()
            more = f"; and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
            return "; ".join(missing[:SHOWN]) + more
        lasted = stable.seconds(current.runs(before), time.monotonic())
        return "" if lasted >= STABLE_SECONDS else f"healthy for {lasted:.0f} s"

    context.wait(
        f"{context.topology.name} as healthy as before",
        pending,
        report,
        seconds=context.upgrade.patience,
        pause=1.0,
    )
