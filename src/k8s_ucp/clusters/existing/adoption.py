"""Records which existing cluster is used: in the workspace, and by a mark on the cluster.

The mark, a ConfigMap in kube-system, names the owner, so that two topologies never use the same
cluster. The record in the workspace contains the cluster's identity, so that a context that later
points to another cluster is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import (
    CONFIG_MAP,
    NAMESPACE,
    Conflict,
    Forbidden,
    Kube,
    Unreachable,
    mapping_in,
)
from k8s_ucp.workspace import write_private_json
from k8s_ucp.workspace.records import parse_json, record_of

MARK, MARK_NAMESPACE = "k8s-ucp-cluster", "kube-system"


@dataclass(frozen=True)
class AdoptionRecord:
    """What the workspace records about an adopted cluster."""

    context: str
    uid: str
    """UID of its namespace kube-system: Kubernetes has no better identity of a cluster."""
    version: str
    stopped: bool = False
    since: str = ""
    """When the cluster was first marked, by its own clock: older objects are not ours."""


def read_record(file: Path) -> AdoptionRecord | None:
    """The record of an adopted cluster; None if there is none that can be read."""
    try:
        return record_of(AdoptionRecord, parse_json(file.read_text("utf-8")))
    except (OSError, ValueError):
        return None


def write_record(file: Path, record: AdoptionRecord) -> None:
    """Write the record of an adopted cluster, readable only by the user."""
    write_private_json(file, record)


def uid_of(kube: Kube) -> str:
    """The identity of a cluster: the UID of kube-system."""
    uid = kube.get(NAMESPACE, MARK_NAMESPACE)["metadata"].get("uid")
    if not uid:
        raise Unreachable(f"{kube.server}: the namespace {MARK_NAMESPACE} has no UID")
    return str(uid)


def check_identity(kube: Kube, record: AdoptionRecord) -> None:
    """Raises UcpError if the context points to another cluster than the adopted one."""
    if uid_of(kube) != record.uid:
        raise UcpError(
            f"the context {record.context} now refers to another cluster than when it was adopted",
            next="restore the context, or set another context in ucp.yaml",
        )


def check_admin(kube: Kube, context: str) -> None:
    """Raises UcpError unless everything is allowed: components come with their own roles."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    if not mapping_in(kube.request("POST", path, body=review), "status").get("allowed"):
        raise UcpError(
            f"the user of the context {context} is not cluster-admin",
            next="use a context whose user has the ClusterRole cluster-admin",
        )


def check_owner(kube: Kube, name: str, owner: str) -> bool:
    """Whether our mark exists. Raises UcpError if the mark is another owner's."""
    mark = kube.find(CONFIG_MAP, MARK, MARK_NAMESPACE)
    if mark is None:
        return False
    data = mapping_in(mark, "data")
    if data.get("owner") != owner:
        raise UcpError(
            f"the cluster for {name} is already used by a topology of another "
            f"workspace or machine, as {data.get('name')}",
            next=(
                "stop that topology first; if it no longer exists: kubectl -n "
                f"{MARK_NAMESPACE} delete configmap {MARK}"
            ),
        )
    if data.get("name") != name:
        raise UcpError(
            f"the cluster for {name} is already used as cluster {data.get('name')} of "
            "this topology",
            next="use a different context for each",
        )
    return True


def marked_at(kube: Kube) -> str:
    """When the cluster was marked, as RFC 3339 text, which sorts by time."""
    return str(kube.get(CONFIG_MAP, MARK, MARK_NAMESPACE)["metadata"].get("creationTimestamp"))


def put_mark(kube: Kube, name: str, owner: str) -> bool:
    """Mark the cluster as ours; False if it was already. Raises UcpError if it is another's."""
    if check_owner(kube, name, owner):
        return False
    try:
        labels = {"app.kubernetes.io/managed-by": "k8s-ucp"}
        data = {"owner": owner, "name": name}
        kube.create(CONFIG_MAP.object(MARK, MARK_NAMESPACE, labels=labels, data=data))
    except Conflict:
        # Another process created the mark first; it may have been one of ours.
        return not check_owner(kube, name, owner)
    except Forbidden as error:
        raise UcpError(
            f"failed to write the ownership mark to the cluster for {name}: {error.message}"
        ) from error
    return True


def remove_mark(kube: Kube, name: str, owner: str) -> None:
    """Remove the mark if it is ours."""
    mark = kube.find(CONFIG_MAP, MARK, MARK_NAMESPACE)
    data = mapping_in(mark or {}, "data")
    if mark and (data.get("owner"), data.get("name")) == (owner, name):
        kube.delete(CONFIG_MAP, MARK, MARK_NAMESPACE, uid=mark["metadata"].get("uid"))


def check_version(request: ClusterRequest, found: str) -> None:
    """Raises UcpError if the cluster runs another version than requested."""
    wanted, running = (request.version or found).removeprefix("v"), found.removeprefix("v")
    if wanted != running and not running.startswith((f"{wanted}.", f"{wanted}-", f"{wanted}+")):
        raise UcpError(
            f"{request.name} runs Kubernetes {running}, but ucp.yaml requires {wanted}",
            next=f"set version: {running}, or remove the key",
        )
