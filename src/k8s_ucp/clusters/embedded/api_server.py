"""The API server of an embedded cluster as a client sees it: kubeconfig, readiness, nodes."""

from __future__ import annotations

import base64
import json
import platform
import re
import time
from collections.abc import Collection, Iterator
from typing import Any

from k8s_ucp.clusters.api_server import READY, failure_of
from k8s_ucp.clusters.embedded.folder import VITAL, ClusterFolder
from k8s_ucp.clusters.embedded.processes import find_component
from k8s_ucp.clusters.embedded.stages import GATEWAY_VERSION
from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.kube import NODE, Conflict, Kube, KubeError, NotFound, Unreachable, api_resources

SERVING = (
    "/readyz?exclude=poststarthook/rbac/bootstrap-roles"
    "&exclude=poststarthook/scheduling/bootstrap-system-priority-classes"
)
"""Ready for the admin. The two excluded hooks write default roles and priority classes one by one,
which takes a second or more; a client with the admin's certificate need not wait for them."""
DEFAULTS_SECONDS = 20.0
PAUSE = 0.05
CHECK_SECONDS = 0.3
LAST_WORDS = 3
"""Lines of a dead process's log that an error includes."""


def kubeconfig(folder: ClusterFolder, port: int) -> dict[str, Any]:
    """Admin kubeconfig, certificates inlined. Raises UcpError if the cluster's keys are missing."""
    name = folder.name
    try:
        ca, certificate, key = (
            base64.b64encode(folder.certificate(each).read_bytes()).decode()
            for each in ("ca.crt", "admin.crt", "admin.key")
        )
    except OSError as error:
        raise UcpError(f"failed to read the keys of cluster {name}: {error}") from error
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": f"https://127.0.0.1:{port}",
                    "certificate-authority-data": ca,
                },
            }
        ],
        "users": [
            {"name": name, "user": {"client-certificate-data": certificate, "client-key-data": key}}
        ],
    }


def wait_serving(folder: ClusterFolder, config: dict[str, Any], until: float) -> None:
    """Wait until the API server serves the admin. until: on the clock of time.monotonic().

    Raises UcpError as soon as a vital process has exited, and DeadlineExceeded.
    """
    began = checked = time.monotonic()
    kube = Kube(config)
    try:
        while reason := failure_of(kube, SERVING):
            now = time.monotonic()
            if now - checked > CHECK_SECONDS:
                _refuse_deaths(folder)
                checked = now
            if now >= until:
                raise DeadlineExceeded(
                    f"an API server that serves cluster {folder.name}", until - began, reason
                )
            time.sleep(PAUSE)
    finally:
        kube.close()


def has_defaults(config: dict[str, Any], until: float) -> bool:
    """Whether a new API server has written its default objects; waits up to DEFAULTS_SECONDS.

    until: on the clock of time.monotonic().
    """
    until = min(until, time.monotonic() + DEFAULTS_SECONDS)
    kube = Kube(config)
    try:
        while failure_of(kube, READY):
            if time.monotonic() >= until:
                return False
            time.sleep(PAUSE)
    finally:
        kube.close()
    return True


def gateway_kinds(kube: Kube) -> set[str] | None:
    """Kinds of the Gateway API that the API server has; None if it can't be asked."""
    try:
        found = api_resources(kube, GATEWAY_VERSION, timeout=2)
    except NotFound:
        return set()
    except KubeError:
        return None
    return {each.kind.kind for each in found}


def wait_described(
    folder: ClusterFolder, config: dict[str, Any], kinds: Collection[str], until: float
) -> None:
    """Wait until the OpenAPI document includes these kinds of the Gateway API.

    The kinds are served a second or more before they are in the document, and kwok exits if one is
    missing there. until: on the clock of time.monotonic(). Raises DeadlineExceeded with the missing
    kinds.
    """
    began = time.monotonic()
    kube = Kube(config)
    try:
        while missing := set(kinds) - set(_described(kube)):
            if time.monotonic() >= until:
                raise DeadlineExceeded(
                    f"schemas of the Gateway API's kinds in cluster {folder.name}",
                    until - began,
                    f"missing: {', '.join(sorted(missing))}",
                )
            time.sleep(PAUSE)
    finally:
        kube.close()


def _described(kube: Kube) -> Iterator[str]:
    """Kinds of the Gateway API whose GET request is in the OpenAPI document."""
    try:
        found = kube.request("GET", f"/openapi/v3/apis/{GATEWAY_VERSION}", timeout=2)
    except KubeError:
        return
    for path in found["paths"].values():
        kind = path.get("get", {}).get("x-kubernetes-group-version-kind")
        if kind:
            yield kind["kind"]


def _refuse_deaths(folder: ClusterFolder) -> None:
    for component in VITAL:
        if find_component(folder, component) is None:
            words = _last_words(folder, component)
            raise UcpError(
                f"{component} of cluster {folder.name} exited: {words}",
                next=_DAMAGE_ADVICE if component == "etcd" and is_damage(words) else None,
            )


def add_nodes(config: dict[str, Any], count: int, until: float) -> None:
    """Add those of the simulated nodes node-0 … that are missing; kwok makes them Ready.

    An API server that has just started may be too busy to respond in time, so it is asked again.
    until: on the clock of time.monotonic(). Raises KubeError.
    """
    kube = Kube(config)
    try:
        while True:
            try:
                return _add_missing_nodes(kube, count)
            except (Unreachable, Conflict):
                # A request without a response may have created its node.
                if time.monotonic() >= until:
                    raise
            time.sleep(PAUSE)
    finally:
        kube.close()


def _add_missing_nodes(kube: Kube, count: int) -> None:
    present = {node["metadata"]["name"] for node in kube.list_all(NODE)}
    for name in (f"node-{number}" for number in range(count)):
        if name not in present:
            kube.create(_node(name))


def _node(name: str) -> dict[str, Any]:
    """A node with practically no limits: kwok gives it 1000 cores, 1 TiB, a disk and room for pods.

    It has a zone because pods with topology spread constraints are only scheduled to such nodes.
    """
    machine = platform.machine()
    zone = int(name.rpartition("-")[2]) % len(_ZONES)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/arch": _ARCHITECTURES.get(machine, machine),
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/region": "local",
                "topology.kubernetes.io/zone": f"local-{_ZONES[zone]}",
                "type": "kwok",
            },
        },
    }


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_ZONES = "abc"


def _last_words(folder: ClusterFolder, component: str) -> str:
    try:
        text = folder.log(component).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "its log does not exist"
    lines = text.splitlines()
    errors = [_without_trace(line) for line in lines if _ERROR.search(line)]
    return "\n".join((errors or lines)[-LAST_WORDS:]) or "no output"


def _without_trace(line: str) -> str:
    """An error without the stack trace and the place in the sources, if it is JSON."""
    try:
        found = json.loads(line)
        return ": ".join(str(found[key]) for key in ("msg", "error") if found.get(key)) or line
    except (ValueError, AttributeError, TypeError):
        return line


def is_damage(words: str) -> bool:
    """Whether etcd exited because of its data. words: the last lines of its log."""
    return _DAMAGE.search(words) is not None and _DISK.search(words) is None


_DAMAGE = re.compile(
    r"crc mismatch|cannot parse|unexpected EOF|corrupt|invalid database"
    r"|^panic: |^fatal error: fault$",
    re.I | re.M,
)
"""Truncated files make etcd panic, or read memory that no file is behind: a fault."""
_DISK = re.compile(r"no space left|permission denied|read-only file system", re.I)
_DAMAGE_ADVICE = (
    "its data is damaged; of an environment: ucp recreate --env NAME; of the core cluster: "
    "ucp stop --delete-data, then ucp recreate"
)
"""For etcd, which can't start again with such data."""
_ERROR = re.compile(
    r'^[EF]\d{4} |"level":"(error|fatal|panic)"|^([Ee]rror|panic)\b|^(fatal error|runtime): '
)
"""Errors in the formats of klog, of etcd's JSON and of the Go runtime."""
