"""Waits until objects removed by a commit are gone from the core cluster, and deletes leftovers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.plan_runner import EditKept
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.engine.waiting import Cancel, wait_until
from k8s_ucp.errors import UcpError, UsageError, some_of
from k8s_ucp.fence.files import FenceFiles
from k8s_ucp.fence.record import FenceRecord
from k8s_ucp.inspect.cluster_deletion import (
    ClusterDeletion,
    cluster_resources,
    needed_until_deleted,
    remaining,
    to_hold,
    to_release,
)
from k8s_ucp.kube import APPLICATION, Kind, Kube, KubeError, NotFound, Object, annotations_of
from k8s_ucp.names import APP, ARGOCD_NAMESPACE, PROTECTED, TOPOLOGY, TRACKING_ID
from k8s_ucp.reconciler.draining import end_sync, set_held

if TYPE_CHECKING:
    from k8s_ucp.topology import Environment, Topology

DELETION_SECONDS = 180.0


def deletion_of(call: Invocation, topology: Topology, environment: str) -> ClusterDeletion | None:
    """The deletion of an environment's cluster, to be observed; None if the core is silent."""
    kube = open_core(call, topology)
    if kube is None:
        return None
    try:
        applications = kube.list_all(APPLICATION, ARGOCD_NAMESPACE)
    except NotFound:
        applications = []
    resources = cluster_resources(kube, applications, environment)
    return ClusterDeletion(kube, topology.app_cluster(environment), resources)


@contextlib.contextmanager
def clusters_first(deletions: Iterable[ClusterDeletion]) -> Iterator[None]:
    """Hold networks and roles of the clusters that a commit inside of the block removes.

    `await_cluster_deleted` has them deleted once the clusters are gone, also after an interruption
    if the commit was pushed. Raises KubeError.
    """
    held: list[tuple[Kube, Object]] = []
    try:
        for each in deletions:
            for item in to_hold(remaining(each.kube, each.resources)):
                held.append((each.kube, item))
                set_held(each.kube, item, held=True)
        yield
    except EditKept:
        raise
    except BaseException:
        for kube, item in held:
            with contextlib.suppress(KubeError):
                set_held(kube, item, held=False)
        raise


def refuse_unattended(deletions: Iterable[ClusterDeletion], again: str) -> None:
    """Refuse a removal that nobody waits for if a cluster would lose its roles before it is gone.

    again: the command without --wait. Raises UsageError, KubeError.
    """
    for each in deletions:
        needed = needed_until_deleted(remaining(each.kube, each.resources))
        if needed:
            roles = some_of([item["metadata"]["name"] for item in needed])
            raise UsageError(
                f"--wait 0: {each.cluster} can't be deleted without its roles, which only a "
                f"command that waits holds: {roles}",
                next=again,
            )


def await_cluster_deleted(
    deletion: ClusterDeletion, again: str, report: Report = lambda _: None, *, seconds: float
) -> None:
    """Wait until an environment's cluster is drained and deleted. Raises DeadlineExceeded.

    again: the command that continues the wait.
    """

    def pending() -> str:
        for each in to_release(remaining(deletion.kube, deletion.resources)):
            set_held(deletion.kube, each, held=False)
        return deletion.left()

    wait_for(
        f"deletion of cluster {deletion.cluster}",
        pending,
        report,
        seconds=seconds,
        next=f"fix the cause, then run {again} again: it continues",
    )


def refuse_protected(environments: Iterable[Environment], path: Path) -> None:
    """Raises UsageError for protected environments, which Argo CD would never prune."""
    for each in environments:
        if each.deletion_protection:
            raise UsageError(
                f"the environment {each.name} is protected from deletion",
                next=(
                    f"remove its deletionProtection from {path}, run ucp start, then "
                    "run the command again"
                ),
            )


def how_far(call: Invocation, topology: Topology, command: str) -> str:
    """What to type after something was added. command: shows the progress on a running core."""
    kube = open_core(call, topology)
    if kube is None:
        return "the core cluster is not running: run `ucp start`"
    kube.close()
    return f"`{command}` shows the progress"


def require_core(call: Invocation, topology: Topology, app: str) -> None:
    """Require the core to respond if an app has Applications in protected environments.

    No commit deletes those, so without the core they would remain unnoticed. Raises UcpError.
    """
    gitops = call.workspace.gitops(topology.name).core
    protected = {each.name for each in topology.spec.environments if each.deletion_protection}
    for file in gitops.glob("clusters/overlays/*/kustomization.yaml"):
        if PROTECTED in file.read_text("utf-8", errors="replace"):
            protected.add(file.parent.name)
    if not protected or not gitops.exists():
        return
    kube = open_core(call, topology)
    if kube is None:
        raise UcpError(
            f"{core_silence(call, topology)}, but is needed to delete {app} from "
            f"protected environments ({', '.join(sorted(protected))})",
            next=f"ucp start, then: ucp app remove {app}",
        )
    kube.close()


def remove_applications(
    call: Invocation, topology: Topology, app: str, report: Report = lambda _: None
) -> bool:
    """Delete an app's Applications, and wait until they are gone with everything they deployed.

    Returns False if the core cluster isn't running: they are deleted by the next start. In
    protected environments they survive the removal of the overlay from git, so they are deleted
    here.
    """
    kube = open_core(call, topology)
    if kube is None:
        call.console.say("the core cluster is not running: the app is deleted at the next start")
        return False
    labels = f"{APP}={app},{TOPOLOGY}={topology.name}"

    def pending() -> str:
        applications = kube.list_all(APPLICATION, ARGOCD_NAMESPACE, labels=labels)
        for application in applications:
            # An ApplicationSet that hasn't seen the commit recreates it; the next look deletes it
            # again.
            if application["metadata"].get("deletionTimestamp"):
                end_sync(kube, application)
            else:
                kube.delete(APPLICATION, application["metadata"]["name"], ARGOCD_NAMESPACE)
        return ", ".join(each["metadata"]["name"] for each in applications)

    again = f"ucp status says why; then ucp app remove {app} again: it continues"
    what = f"deletion of the Applications of {app}"
    with contextlib.closing(kube):
        wait_for(what, pending, report, seconds=DELETION_SECONDS, next=again)
    return True


def wait_for(
    what: str,
    pending: Callable[[], str],
    report: Report,
    *,
    seconds: float,
    pause: float = 0.5,
    next: str,
) -> None:
    """Like wait_until, outside of a plan; a KubeError is a state. Raises DeadlineExceeded."""
    wait_until(
        what,
        pending,
        seconds=seconds,
        cancel=Cancel(),
        report=report,
        errors=(KubeError,),
        pause=pause,
        next=next,
    )


def delete_on_each(
    call: Invocation,
    topology: Topology,
    what: str,
    named: Mapping[str, Collection[str]],
    delete: Callable[[Kube, str, str], str],
) -> None:
    """Delete objects in every environment whose cluster has a kubeconfig here.

    named: {environment: names}. delete(kube, name, environment) returns why an object is kept,
    which is printed; it never fails the removal, which is pushed already.
    """
    for name, environment, why in query_each(call, topology, named, delete):
        if why:
            report_kept(call, f"{what} {name}", environment, why)


def report_kept(call: Invocation, what: str, where: str, why: str) -> None:
    """Print why an object is kept that a removal was to delete. what: kind and name."""
    call.console.say(f"note: the {what} on {where} is kept: {why}")


def query_each(
    call: Invocation,
    topology: Topology,
    named: Mapping[str, Collection[str]],
    query: Callable[[Kube, str, str], str],
) -> Iterator[tuple[str, str, str]]:
    """(name, environment, why it is kept) for each; a silent cluster is a reason to keep it."""
    state = call.workspace.state(topology.name)

    def on(environment: str) -> list[tuple[str, str, str]]:
        path = state.kubeconfig(topology.app_cluster(environment))
        reasons = []
        for name in sorted(named[environment]) if path.exists() else ():
            try:
                with contextlib.closing(Kube.from_file(path)) as kube:
                    why = query(kube, name, environment)
            except UcpError as error:
                why = error.message
            reasons.append((name, environment, why))
        return reasons

    with ThreadPoolExecutor(8, "ask") as pool:
        for results in pool.map(on, named):
            yield from results


def is_tracked_by(item: Object, application: str) -> bool:
    """Whether Argo CD applied it for that Application, and deletes it together with it."""
    annotations = annotations_of(item)
    return str(annotations.get(TRACKING_ID)).startswith(f"{application}:")


def delete_and_wait(kube: Kube, kind: Kind, item: Object, what: str, *, seconds: float) -> None:
    """Delete exactly this object, and wait until its name is free. Raises UcpError."""
    name = item["metadata"]["name"]
    kube.delete(kind, name, uid=item["metadata"]["uid"])
    wait_until(
        what,
        lambda: "it still exists" if kube.find(kind, name) else "",
        seconds=seconds,
        cancel=Cancel(),
        pause=0.5,
        next="ucp status",
    )


def refuse_lost_core(call: Invocation, topology: Topology, again: str) -> None:
    """Refuse if another core has the fence, since only that one would do the work. Raises UcpError.

    again: the command, to be run there.
    """
    record = _lost(call, topology)
    if record and record.holder:
        raise UcpError(
            f"another core acts for this topology: {record}; nothing was changed",
            next=f"{record.holder.run_there(again)}; here `ucp stop` stops what is running",
        )


def _lost(call: Invocation, topology: Topology) -> FenceRecord | None:
    return FenceFiles(call.workspace.state(topology.name).fence).lost_to()


def core_silence(call: Invocation, topology: Topology) -> str:
    """What messages say of a core cluster that doesn't respond."""
    from k8s_ucp.context import TopologyView

    return TopologyView(call.workspace, topology).core_silence()


def open_core(call: Invocation, topology: Topology) -> Kube | None:
    """The core cluster; None if it isn't running, or has lost the fence.

    Also None in a copy of a workspace: its kubeconfig is that of the original's core cluster.
    """
    path: Path = call.workspace.state(topology.name).kubeconfig(topology.core_cluster)
    if not path.exists() or call.workspace.original() or _lost(call, topology):
        return None
    try:
        kube = Kube.from_file(path)
        kube.request("GET", "/readyz", timeout=5, text=True)
    except UcpError:
        return None
    return kube
