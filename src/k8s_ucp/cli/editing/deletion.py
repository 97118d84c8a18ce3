"""Waits until what was removed by a commit has left the running core cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.cli.command import Invocation
from k8s_ucp.engine.waiting import Cancel, wait_until
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import APPLICATION, LOCAL_CLUSTER, Kube, KubeError
from k8s_ucp.names import PROTECTED

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

LEAVING_SECONDS = 180.0


def await_cluster_gone(call: Invocation, topology: Topology, cluster: str) -> None:
    """Wait for a LocalCluster to be gone, drain included. Raises DeadlineExceeded."""
    kube = open_core(call, topology)
    if kube is None:
        call.console.say(
            "the core cluster is not running: the cluster is deleted at the next start"
        )
        return

    def look() -> str:
        found = kube.find(LOCAL_CLUSTER, cluster, "ucp-clusters")
        if found is None:
            return ""
        conditions = (found.get("status") or {}).get("conditions") or []
        words = [str(each.get("message")) for each in conditions if each.get("status") != "True"]
        return "; ".join(words) or "it still exists"

    _wait(f"deletion of cluster {cluster}", look)


def how_far(call: Invocation, topology: Topology, look: str) -> str:
    """What to type after something was added. look: where the core cluster runs."""
    kube = open_core(call, topology)
    if kube is None:
        return "the core cluster is not running: run `ucp start`"
    kube.close()
    return f"`{look}` shows the progress"


def check_core_answers(call: Invocation, topology: Topology, app: str) -> None:
    """An app's Applications on protected environments can be deleted. Raises UcpError.

    No commit deletes them, so with a core that is silent they would stay, and nobody would notice.
    """
    gitops = call.workspace.gitops(topology.name).core
    protected = {each.name for each in topology.spec.environments if each.deletion_protection}
    for file in gitops.glob("clusters/overlays/*/kustomization.yaml"):
        if PROTECTED in file.read_text("utf-8", errors="replace"):
            protected.add(file.parent.name)
    if protected and gitops.exists() and open_core(call, topology) is None:
        raise UcpError(
            f"the core cluster {topology.core_cluster} is not responding, but is "
            f"needed to delete {app} from protected environments "
            f"({', '.join(sorted(protected))})",
            next=f"ucp start, then: ucp app remove {app}",
        )


def remove_applications(call: Invocation, topology: Topology, app: str) -> bool:
    """Delete an app's Applications and wait until they are gone, with what they deployed.

    False where the core cluster isn't running: they go with the next start. Protected
    environments keep theirs when a commit drops the overlay: they are deleted here.
    """
    kube = open_core(call, topology)
    if kube is None:
        call.console.say("the core cluster is not running: the app is deleted at the next start")
        return False
    labels = f"k8s-ucp.io/app={app},k8s-ucp.io/topology={topology.name}"

    def look() -> str:
        there = kube.list_all(APPLICATION, "argocd", labels=labels)
        for each in there:
            # A set that hasn't seen the commit yet makes it again: the next look deletes that one.
            if not each["metadata"].get("deletionTimestamp"):
                kube.delete(APPLICATION, each["metadata"]["name"], "argocd")
        return ", ".join(each["metadata"]["name"] for each in there)

    _wait(f"deletion of the Applications of {app}", look)
    return True


def _wait(what: str, look: object) -> None:
    def safely() -> str:
        try:
            return str(look())  # type: ignore[operator]
        except KubeError as error:
            return error.message

    wait_until(what, safely, seconds=LEAVING_SECONDS, cancel=Cancel(), pause=0.5, next="ucp status")


def open_core(call: Invocation, topology: Topology) -> Kube | None:
    """The core cluster; None where it isn't running."""
    path: Path = call.workspace.state(topology.name).kubeconfig(topology.core_cluster)
    if not path.exists():
        return None
    try:
        kube = Kube.from_file(path)
        kube.request("GET", "/readyz", timeout=5)
    except UcpError:
        return None
    return kube
