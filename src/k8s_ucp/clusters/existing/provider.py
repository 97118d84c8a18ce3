"""The existing provider: clusters of the user, accessed with a context of the kubeconfig.

They are adopted and released, never created, stopped or deleted: `create` and `start` adopt a
cluster, `stop` and `delete` release it. adoption.py shows what adoption leaves on the cluster.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from k8s_ucp.cluster_provider import (
    CONTEXT,
    ClusterRequest,
    ClusterState,
    ProviderInfo,
    Reach,
    Report,
)
from k8s_ucp.clusters.existing import adoption
from k8s_ucp.clusters.existing.adoption import AdoptionRecord, read_record, write_record
from k8s_ucp.clusters.user_kubeconfig import UserKubeconfig
from k8s_ucp.errors import DeadlineExceeded, UcpError, UsageError, command_line
from k8s_ucp.kube import NODE, Kube, KubeError, Unauthorized, Unreachable, conditions_of
from k8s_ucp.locks import locked
from k8s_ucp.loopback import is_loopback
from k8s_ucp.names import DNS_LABEL
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import Workspace, make_private_folder

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology


class ExistingProvider:
    """One topology's adopted clusters. Implements ClusterProvider; safe between threads."""

    def __init__(
        self,
        folder: Path,
        *,
        owner: str,
        contexts: Mapping[str, str] | None = None,
        kubeconfig: UserKubeconfig | None = None,
    ) -> None:
        """folder: for our records. owner: of the clusters, such as Workspace.machine_id.

        contexts: cluster name -> context, for requests without the parameter `context`.
        """
        self._base = folder.resolve()
        self._owner = owner
        self._contexts = contexts if contexts is not None else {}
        self._kubeconfig = kubeconfig or UserKubeconfig()

    @property
    def info(self) -> ProviderInfo:
        return PROVIDERS["existing"]

    def check_machine(self, _: int) -> None:
        """Nothing to check: its clusters run elsewhere. Implements ClusterProvider."""

    def preflight(self, request: ClusterRequest, *, reach: Reach = Reach.MACHINE) -> None:
        """Check everything that can be checked before the first change. Raises UcpError."""
        with self.opened(request):
            self._reachable(request.name, self._context(request), reach)

    def create(self, request: ClusterRequest, report: Report, *, timeout: float = 120) -> None:
        """Adopt a cluster. Raises DeadlineExceeded or UcpError."""
        until = time.monotonic() + timeout
        with self.opened(request) as kube:
            make_private_folder(self._base)
            with self._locked(request.name, timeout):
                report(f"adopting the cluster of context {self._context(request)}")
                version, uid = kube.version(), adoption.uid_of(kube)
                if time.monotonic() >= until:
                    self._lock_file(request.name).unlink(missing_ok=True)
                    raise DeadlineExceeded(
                        f"adoption of the existing cluster for {request.name}",
                        timeout,
                        "responding slowly",
                    )
                marked = adoption.put_mark(kube, request.name, self._owner)
                try:
                    before = read_record(self._file(request.name))
                    # If somebody deleted the mark, this one is new, so the recorded time counts.
                    since = (before.since if before else "") or adoption.marked_at(kube)
                    record = AdoptionRecord(self._context(request), uid, version, since=since)
                    if before != record:
                        write_record(self._file(request.name), record)
                except BaseException:
                    if marked:
                        adoption.remove_mark(kube, request.name, self._owner)
                    raise

    def start(self, name: str, *, timeout: float = 120) -> None:
        """Use a stopped cluster again. Raises UcpError if there is none."""
        record = self._record(name)
        self.create(
            ClusterRequest(name, parameters={CONTEXT: record.context}),
            lambda _: None,
            timeout=timeout,
        )

    def stop(self, name: str, *, timeout: float = 60) -> None:
        """Mark it as stopped in our record; it keeps running, and keeps our mark."""
        if read_record(self._file(name)) is None:
            return
        with self._locked(name, timeout):
            record = read_record(self._file(name))
            if record and not record.stopped:
                write_record(self._file(name), replace(record, stopped=True))

    def delete(self, name: str, *, timeout: float = 60) -> None:
        """Release it: remove our mark and record, nothing else. Does nothing if absent.

        Raises UcpError.
        """
        if not self._file(name).exists():
            return
        with self._locked(name, timeout):
            record, file = read_record(self._file(name)), self._file(name)
            failed = f"failed to release the existing cluster {name}"
            if record is None and file.exists():
                # Without its context, the mark would stay, and keep other topologies away.
                raise UcpError(
                    f"{failed}: its record is not valid: {file}",
                    next="delete the mark on the cluster (kubectl -n "
                    f"{adoption.MARK_NAMESPACE} delete configmap {adoption.MARK}), then: "
                    + command_line("rm", file),
                )
            if record:
                try:
                    with self._kube(name, record.context) as kube:
                        adoption.check_identity(kube, record)
                        adoption.remove_mark(kube, name, self._owner)
                except UcpError as error:
                    raise UcpError(
                        f"{failed}: {error.message}",
                        next="fix the cause; if the cluster no longer exists: "
                        + command_line("rm", file),
                    ) from error
            self.forget(name)

    def forget(self, name: str) -> None:
        """Release a cluster that no longer exists: only our record is removed."""
        self._file(name).unlink(missing_ok=True)
        self._lock_file(name).unlink(missing_ok=True)

    def state(self, name: str) -> ClusterState:
        record = read_record(self._file(name))
        if record is None:
            return ClusterState(name, False, False, False, "the cluster does not exist")
        if record.stopped:
            return ClusterState(name, True, False, False, "stopped", record.version)
        try:
            with self._kube(name, record.context) as kube:
                adoption.check_identity(kube, record)
                version = kube.version()
                reason = "" if _has_ready_node(kube) else "no node is ready"
        except UcpError as error:
            return ClusterState(name, True, False, False, error.message, record.version)
        return ClusterState(name, True, True, not reason, reason, version)

    def since(self, name: str) -> str:
        """When it was adopted. Raises UcpError if it isn't."""
        return self._record(name).since

    def names(self) -> list[str]:
        """Sorted names of the clusters in use or stopped."""
        return sorted(each.stem for each in self._base.glob("*.json"))

    def remains(self, _: Collection[str]) -> Mapping[str, str]:
        """Always empty: nothing of them runs on this machine."""
        return {}

    def kubeconfig(self, name: str, *, reach: Reach = Reach.MACHINE) -> dict[str, Any]:
        """Admin kubeconfig from the user's current one. Raises UcpError if that can't be used."""
        return self._reachable(name, self._record(name).context, reach)

    def _reachable(self, name: str, context: str, reach: Reach) -> dict[str, Any]:
        config = self._kubeconfig.config(context, name)
        server = str(config["clusters"][0]["cluster"]["server"])
        if reach is Reach.PODS and is_loopback(urlsplit(server).hostname or ""):
            raise UcpError(
                f"the API server of {name} ({server}) is not reachable from pods of "
                "the core cluster",
                next=(
                    f"use a context for {name} with an address that is reachable from "
                    "other machines"
                ),
            )
        return config

    @contextmanager
    def opened(self, request: ClusterRequest) -> Iterator[Kube]:
        """A client for a request's cluster, after all checks; changes nothing. Raises UcpError."""
        if not DNS_LABEL.fullmatch(request.name):
            raise UsageError(
                f"{request.name!r} is not a valid cluster name: use 1 to 63 of a-z, "
                "0-9 and -, a letter or digit first and last"
            )
        context = self._context(request)
        with self._kube(request.name, context) as kube:
            adoption.check_version(request, kube.version())
            if record := read_record(self._file(request.name)):
                adoption.check_identity(kube, replace(record, context=context))
            adoption.check_admin(kube, context)
            adoption.check_owner(kube, request.name, self._owner)
            yield kube

    @contextmanager
    def _kube(self, name: str, context: str) -> Iterator[Kube]:
        kube = Kube(self._kubeconfig.config(context, name))
        nodes = command_line("kubectl", "--context", context, "get", "nodes")
        try:
            yield kube
        except Unauthorized as error:
            raise UcpError(
                f"the API server rejected the credential of the context {context}",
                next=f"renew the credential and verify it: {nodes}",
            ) from error
        except Unreachable as error:
            raise UcpError(
                f"failed to reach the API server of the context {context}: {error.message}",
                next=nodes,
            ) from error
        finally:
            kube.close()

    def _context(self, request: ClusterRequest) -> str:
        context = request.parameters.get(CONTEXT) or self._contexts.get(request.name)
        if context:
            return context
        known = ", ".join(self._kubeconfig.contexts()) or "none"
        raise UsageError(
            f"no context is set for the existing cluster {request.name}; available: {known}",
            next=f"add context: NAME beside provider: existing of {request.name} in ucp.yaml",
        )

    def _record(self, name: str) -> AdoptionRecord:
        record = read_record(self._file(name))
        if record is None:
            raise UcpError(f"no existing cluster is used as {name}", next="ucp start")
        return record

    def _file(self, name: str) -> Path:
        return self._base / f"{name}.json"

    def _lock_file(self, name: str) -> Path:
        return self._base / f"{name}.lock"

    def _locked(self, name: str, timeout: float) -> Any:
        return locked(self._lock_file(name), f"the lock of cluster {name}", timeout=timeout)


def _has_ready_node(kube: Kube) -> bool:
    try:
        nodes = kube.list_all(NODE)
    except KubeError:
        return False
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for node in nodes
        for condition in conditions_of(node)
    )


def make(workspace: Workspace, topology: Topology, _: Toolbox | None = None) -> ExistingProvider:
    return ExistingProvider(
        workspace.state(topology.name).root / PROVIDERS["existing"].state_folder,
        owner=workspace.machine_id(topology.name),
    )
