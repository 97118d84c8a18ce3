"""Whether a topology is as well as it was before: what lets an upgrade go on, or has it go back."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

from k8s_ucp.components import argocd, cloud, crossplane, reconciler
from k8s_ucp.context import StartContext
from k8s_ucp.engine.foresight import Foreseen
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.inspect import status
from k8s_ucp.inspect.status import ClusterSnapshot, Status
from k8s_ucp.kube import Object
from k8s_ucp.steps.waiting.argocd_refresh import RefreshRequests, overlooked

STEADY_SECONDS = 5.0
"""Everything has to stay well for so long: a program that ends itself is up for a moment."""
SHOWN = 5


def collect(context: StartContext) -> ClusterSnapshot:
    """Ask everything that counts."""
    names = [argocd.NAME, crossplane.NAME, reconciler.NAME]
    names += [cloud.NAME] if context.simulates_cloud else []
    return status.collect(
        context.topology,
        context.state.kubeconfig,
        lambda: status.ask_components(
            [context.component(name) for name in names], dict.fromkeys(names, "")
        ),
    )


def well(data: Status) -> set[str]:
    """What is well now, as people call it. data: of `status.summarize`."""
    rows: list[tuple[str, bool]] = [
        (f"core cluster {data['core']['name']}", data["core"]["ready"]),
        *((f"component {each['name']}", each["ready"]) for each in data["components"]),
        *((f"mirror {each['name']}", each["ready"]) for each in data["mirrors"]),
    ]
    for each in data["environments"]:
        cluster = each["cluster"]
        up = cluster["ready"] and cluster["registered"] and cluster["reachable"]
        rows.append((f"environment {each['name']}", up))
    for each in data["applications"]:
        settled = (each["sync"], each["health"]) == ("Synced", "Healthy")
        rows.append((f"application {each['name']}", settled))
    for each in data["claims"]:
        name = "/".join(filter(None, (each["namespace"], each["name"])))
        rows.append((f"claim {each['kind']} {name}", each["ready"]))
    return {name for name, ready in rows if ready}


def unwell(
    before: Collection[str], data: Status, why: Mapping[str, str], old: Collection[str] = ()
) -> list[str]:
    """What was well and isn't now, with why.

    why: by the names of the objects. old: Applications that Argo CD has not looked at yet.
    """
    now = well(data) - {f"application {name}" for name in old}
    found = []
    for name in sorted(set(before) - now):
        kind, _, short = name.partition(" ")
        said = why.get(name) or why.get(short) or why.get(f"{kind} {short}", "")
        if kind == "application" and short in old and not said:
            said = "not refreshed yet"
        found.append(f"{name}{f': {said}' if said else ' is not well'}")
    return found


def _foresee_health(_: StartContext) -> Iterator[Foreseen]:
    yield Foreseen(
        "keep", "all that is healthy now", "it is recorded: each part has to leave it so"
    )


@step("Record what is healthy", foresee=_foresee_health)
def record_health(context: StartContext, report: Report) -> None:
    """An upgrade may change nothing of it; what is unwell already holds nobody up."""
    data = status.summarize(context.topology, collect(context))
    context.well = frozenset(well(data))
    report(f"{len(context.well)} clusters, components, applications and claims")


def await_as_well(context: StartContext, report: Report) -> None:
    """Wait until everything that was well is, and stays so for a while. Raises DeadlineExceeded."""
    again = RefreshRequests(context.kube, context.topology.spec.core.adopt)
    since: list[float] = []

    def look() -> str:
        seen = collect(context)
        items: Sequence[Object] = seen.applications
        old = overlooked(items, since=context.argocd_since)
        data = status.summarize(context.topology, seen)
        missing = unwell(context.well, data, status.reasons(seen), old)
        if missing:
            since.clear()
            again.ask(items, since=context.argocd_since)
            more = f"; and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
            return "; ".join(missing[:SHOWN]) + more
        since.append(time.monotonic())
        steady = since[-1] - since[0]
        return "" if steady >= STEADY_SECONDS else f"well for {steady:.0f} s"

    context.wait(
        f"{context.topology.name} as healthy as before",
        look,
        report,
        seconds=context.patience,
        pause=1.0,
    )
