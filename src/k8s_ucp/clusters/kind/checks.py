"""Checks before kind creates a cluster. Nothing here changes anything.

Each check raises an UcpError that says what is wrong and what to type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from k8s_ucp.cluster_provider import HTTP, HTTPS, ClusterRequest
from k8s_ucp.clusters.container_engine import ContainerEngine, ContainerNode, EngineInfo
from k8s_ucp.clusters.kind.config import LONGEST_NAME, image_version
from k8s_ucp.clusters.ports import is_taken
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.process import INOTIFY, check_inotify

MEGABYTES = 1800
"""A container engine with less memory can't run a useful cluster."""
WATCHES, INSTANCES, SPARE_INSTANCES = 8192, 32, 32
"""inotify limits: watches in total, instances per cluster (22 were observed), instances to
spare."""
UNPRIVILEGED = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
OTHER_PORTS = tuple((8080 + step, 8443 + step) for step in range(0, 1000, 100))
"""Alternatives to 80 and 443; the first free pair is offered."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def check_name(name: str) -> None:
    if not _LABEL.fullmatch(name) or len(name) > LONGEST_NAME:
        raise UsageError(
            f"{name!r} is not a valid name of a kind cluster: use 1 to {LONGEST_NAME} "
            "of a-z, 0-9 and -, a letter or digit first and last"
        )


def check_version(request: ClusterRequest, image: str) -> None:
    """Check that the node image has the requested version, as far as its tag tells."""
    available = image_version(image)
    if request.version is None or available is None:
        return
    wanted = "v" + request.version.removeprefix("v")
    if wanted != available and not available.startswith(wanted + "."):
        raise UsageError(
            f"Kubernetes {wanted.removeprefix('v')} is not available for {request.name}: the node "
            f"image {image} has {available.removeprefix('v')}",
            next=(
                f"set version: {available.removeprefix('v')}, or set images.nodeImage to "
                "another image"
            ),
        )


def check_engine(engine: ContainerEngine, info: EngineInfo) -> None:
    """Check that it has enough memory, and cgroups that a kubelet can use."""
    megabytes = info.memory // 10**6
    if info.memory and megabytes < MEGABYTES:
        raise UcpError(
            f"{engine.title} has {megabytes} MB of memory, but a kind cluster needs {MEGABYTES} MB",
            next="increase its memory (Docker Desktop: Settings, Resources, Memory)",
        )
    if info.rootless and info.cgroup == 1:
        raise UcpError(
            f"rootless {engine.title} with cgroup v1 can't run kind clusters",
            next=f"boot with systemd.unified_cgroup_hierarchy=1, or run {engine.title} as root",
        )


def check_limits(folder: Path = INOTIFY, *, clusters: int = 1) -> None:
    """Check the limits of inotify, on which pods depend. clusters: how many are to run."""
    check_inotify(
        f"{clusters} kind clusters need",
        watches=WATCHES,
        instances=clusters * INSTANCES + SPARE_INSTANCES,
        folder=folder,
    )


def check_owner(
    engine: ContainerEngine, name: str, nodes: Sequence[ContainerNode], owner: str
) -> None:
    """Check that a kind cluster of that name is ours, if there is one."""
    strange = [each.name for each in nodes if each.owner != owner]
    if strange:
        raise UcpError(
            f"the kind cluster {name} already exists and was not created by this "
            f"workspace ({engine.title}: {', '.join(strange)})",
            next=(
                "choose another name for the topology (metadata.name), or delete that "
                f"cluster: kind delete cluster --name {name}"
            ),
        )


def check_ports(name: str, ports: Mapping[int, int], info: EngineInfo) -> None:
    """Check that the cluster's ports on this machine are free and may be bound."""
    taken = [port for port in ports.values() if is_taken(port)]
    closed = [port for port in ports.values() if info.rootless and port < first_open_port()]
    if not taken and not closed:
        return
    offer = free_pair()
    choice = (
        f"set spec.core.ports in ucp.yaml: {{http: {offer[0]}, https: {offer[1]}}}; "
        f"without a ucp.yaml: ucp start --ports {offer[0]},{offer[1]}"
        if offer
        else "stop the programs that use them"
    )
    if taken:
        numbers = " and ".join(map(str, taken))
        raise UcpError(
            f"port {numbers} for {name} is already in use by another program (sudo ss "
            f"-ltnp 'sport = :{taken[0]}' shows which)",
            next=choice,
        )
    raise UcpError(
        f"a rootless container engine can't bind port {' and '.join(map(str, closed))} for {name}",
        next=choice,
    )


def check_same_ports(request: ClusterRequest, node: ContainerNode) -> None:
    """Check that an existing cluster has the requested ports: a container's can't be changed."""
    other = {
        inner: bound[1]
        for inner, outer in request.ports.items()
        if (bound := node.ports.get(inner)) and bound[1] != outer
    }
    if other:
        had = {**request.ports, **other}
        numbers = " and ".join(map(str, other.values()))
        raise UcpError(
            f"{request.name} listens on port {numbers} of this machine, which can't be "
            "changed after its creation",
            next=(
                f"set spec.core.ports in ucp.yaml back to {{http: {had.get(HTTP, HTTP)}, "
                f"https: {had.get(HTTPS, HTTPS)}}}, or recreate the cluster from the "
                "repositories: ucp stop, then ucp start"
            ),
        )


def check_archives(archives: Iterable[Path]) -> None:
    """Check that the archives are files of the workspace. Raises UsageError, UcpError."""
    for each in archives:
        if ".." in each.parts:
            raise UsageError(
                f"images.archives: {each} may be outside the workspace",
                next="copy the archive into the workspace and set its path",
            )
        if not each.is_file():
            raise UcpError(
                f"images.archives: {each} is not a file",
                next=f"docker save -o {each} IMAGE…, or remove it from ucp.yaml",
            )


def check_mounts(mounts: Mapping[str, Path]) -> None:
    """Check that engines can mount the folders: {path in the node: folder}. Raises UcpError."""
    for each in mounts.values():
        # Characters at which engines split the option for a mount.
        if set(str(each)) & set(':,"\n'):
            raise UcpError(
                f"can't mount the folder {str(each)!r} into kind nodes: its path "
                "contains a colon, a comma, a double quote or a line break",
                next="use a workspace whose path has no such character (--workspace DIR)",
            )


def check_same_mounts(request: ClusterRequest, node: ContainerNode) -> None:
    """Check that an existing node mounts the requested folders. Raises UcpError."""
    for path, folder in request.mounts.items():
        if node.mounts.get(path) != str(folder):
            raise UcpError(
                f"the nodes of {request.name} do not mount {folder}, and mounts of "
                "existing nodes can't be changed",
                next="recreate the cluster from the repositories: ucp stop, then ucp start",
            )


def free_pair() -> tuple[int, int] | None:
    """Two free ports as alternatives to 80 and 443."""
    pairs = (pair for pair in OTHER_PORTS if not any(map(is_taken, pair)))
    return next(pairs, None)


def first_open_port() -> int:
    """The lowest port that an unprivileged program may listen on."""
    try:
        return int(UNPRIVILEGED.read_text("ascii"))
    except (OSError, ValueError):
        return 1024
