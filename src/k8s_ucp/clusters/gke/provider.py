"""The gke provider: clusters of Google Kubernetes Engine, created by `gcloud`.

A cluster is ours by its label k8s-ucp-owner; others are never touched. Operations are started
asynchronously and polled, so that a rerun after an interruption finds the cluster. A GKE cluster
can't be stopped, but its node pool can be scaled to zero: then it costs only its management fee and
keeps its data.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.cluster_provider import ClusterRequest, ClusterState, ProviderInfo, Reach, Report
from k8s_ucp.clusters.gke import checks as gke_checks
from k8s_ucp.clusters.gke.gcloud import Gcloud
from k8s_ucp.clusters.gke.gcloud_failures import Busy, NotThere, OutOfReach, incomplete_list
from k8s_ucp.clusters.gke.settings import (
    NAME,
    NODES,
    OWNER,
    POOL,
    GkeSettings,
    admin_kubeconfig,
    is_zone,
    location_flag,
)
from k8s_ucp.credentials import credential_ref, load
from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.kube import Kube, KubeError
from k8s_ucp.locks import locked
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import Workspace, make_private_folder

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

CREATE_SECONDS = 1200.0
DELETE_SECONDS = 900.0
CLEANING_SECONDS = 1500.0
"""Timeout for deleting a cluster whose creation failed: GKE completes the creation first."""
PAUSE = 5.0

Cluster = Mapping[str, Any]


class GkeProvider:
    """One topology's GKE clusters. Implements ClusterProvider; safe between threads."""

    def __init__(
        self,
        folder: Path,
        *,
        owner: str,
        key: Callable[[], str],
        project: str | None = None,
        pause: float = PAUSE,
    ) -> None:
        """folder: for gcloud's configuration and locks. key: reads the service account's key.

        owner: of the clusters (a-z, 0-9), such as Workspace.machine_id. project: default is the
        key's. pause: seconds between two polls of an operation.
        """
        self._base = folder.resolve()
        self._owner = owner
        self._gcloud = Gcloud(self._base / "gcloud", key, project)
        self._pause = pause

    @property
    def info(self) -> ProviderInfo:
        return PROVIDERS["gke"]

    def check_machine(self, _: int) -> None:
        """Nothing to check: its clusters run elsewhere. Implements ClusterProvider."""

    def preflight(
        self,
        request: ClusterRequest,
        *,
        reach: Reach = Reach.MACHINE,  # noqa: ARG002 (one address for all)
    ) -> None:
        """Check everything that can be checked before the first change. Raises UcpError."""
        self._checked(request)

    def create(
        self, request: ClusterRequest, report: Report, *, timeout: float = CREATE_SECONDS
    ) -> None:
        """Create the cluster if absent, scale it up if stopped, keep it if it runs.

        Raises DeadlineExceeded or UcpError; a failed creation leaves nothing behind.
        """
        until = time.monotonic() + timeout
        settings, version = self._checked(request)
        name = request.name
        with self._locked(name, timeout):
            found = self._find(name)
            if found and found["status"] in ("ERROR", "STOPPING"):
                report(f"deleting the cluster {name}, whose creation or deletion was interrupted")
                self._remove(name, found, until)
                found = None
            made = found is None
            try:
                if made:
                    report(f"creating cluster {name} in {settings.location} (takes minutes)")
                    self._gcloud.json(*settings.create_arguments(self._owner, version))
                running = self._await_running(name, report, until)
                if not running.get("currentNodeCount"):
                    self._resize(name, running, NODES, until)
                self._await_served(name, until)
            except Exception:
                # KeyboardInterrupt is not handled: cleaning up takes minutes, and a rerun finds the
                # cluster.
                if made:
                    report(f"deleting the cluster {name} again")
                    self._clear(name)
                raise

    def start(self, name: str, *, timeout: float = CREATE_SECONDS) -> None:
        """Scale the node pool up again. Raises UcpError if there is no such cluster."""
        until = time.monotonic() + timeout
        self._require(name)
        with self._locked(name, timeout):
            running = self._await_running(name, lambda _: None, until)
            if not running.get("currentNodeCount"):
                self._resize(name, running, NODES, until)
            self._await_served(name, until)

    def stop(self, name: str, *, timeout: float = DELETE_SECONDS) -> None:
        """Scale the node pool to zero and keep the data. Does nothing if absent or stopped."""
        until = time.monotonic() + timeout
        found = self._find(name)
        if found and found.get("currentNodeCount"):
            with self._locked(name, timeout):
                self._resize(name, found, 0, until)

    def delete(self, name: str, *, timeout: float = DELETE_SECONDS) -> None:
        """Delete it with its data. Does nothing if it is absent."""
        found = self._find(name)
        if found:
            with self._locked(name, timeout):
                self._remove(name, found, time.monotonic() + timeout)
                self._lock_file(name).unlink(missing_ok=True)

    def state(self, name: str) -> ClusterState:
        found = self._find(name)
        if found is None:
            return ClusterState(name, False, False, False, "the cluster does not exist")
        version = f"v{found.get('currentMasterVersion', '')}"
        if found["status"] not in ("RUNNING", "RECONCILING"):
            message = found.get("statusMessage") or found["status"].lower()
            return ClusterState(name, True, False, False, message, version)
        if not found.get("currentNodeCount"):
            return ClusterState(name, True, False, False, "stopped", version)
        reason = self._silence(name)
        return ClusterState(name, True, True, not reason, reason, version)

    def names(self) -> list[str]:
        """Sorted names of this owner's clusters. Raises OutOfReach."""
        listed, silent = self._gcloud.list_clusters(f"resourceLabels.{OWNER}={self._owner}")
        if silent:
            raise incomplete_list(silent, self._gcloud.account.project)
        return sorted(each["name"] for each in listed)

    def remains(self, _: Collection[str]) -> Mapping[str, str]:
        """Always empty: nothing of them runs on this machine."""
        return {}

    def kubeconfig(
        self,
        name: str,
        *,
        reach: Reach = Reach.MACHINE,  # noqa: ARG002 (one address for all)
    ) -> dict[str, Any]:
        """An admin kubeconfig with a token for about an hour; Google issues no longer ones.

        Raises UcpError.
        """
        found = self._require(name)
        if not found.get("endpoint"):
            raise UcpError(f"the cluster {name} has no endpoint yet: {found['status'].lower()}")
        return admin_kubeconfig(name, found, self._gcloud.token())

    def _checked(self, request: ClusterRequest) -> tuple[GkeSettings, str | None]:
        settings = GkeSettings.of(request)
        gke_checks.check_project(self._gcloud)
        version = gke_checks.choose_version(self._gcloud, settings)
        called = self._called(request.name)
        if not called:
            gke_checks.check_quota(self._gcloud, settings)
        elif not self._is_ours(called[0], request.name):
            raise UcpError(
                f"the cluster {request.name} in {called[0]['location']} already exists "
                "and was not created by this workspace",
                next=(
                    "choose another name for the topology (metadata.name), or delete that cluster"
                ),
            )
        return settings, version

    def _called(self, name: str) -> list[Cluster]:
        """All clusters of that name in the project, in any location; ours come first.

        Raises OutOfReach if ours may be in a zone that did not respond: it must not be mistaken
        for deleted.
        """
        listed, silent = self._gcloud.list_clusters(f"name={name}")
        found = [each for each in listed if each["name"] == name]
        found.sort(key=lambda each: not self._is_ours(each, name))
        if silent and not (found and self._is_ours(found[0], name)):
            raise incomplete_list(silent, self._gcloud.account.project)
        return found

    def _find(self, name: str) -> Cluster | None:
        """Our cluster of that name."""
        return next((each for each in self._called(name) if self._is_ours(each, name)), None)

    def _is_ours(self, found: Cluster, name: str) -> bool:
        labels = found.get("resourceLabels", {})
        return (labels.get(OWNER), labels.get(NAME)) == (self._owner, name)

    def _require(self, name: str) -> Cluster:
        found = self._find(name)
        if found is None:
            raise UcpError(f"the GKE cluster {name} does not exist", next="ucp start")
        return found

    def _silence(self, name: str) -> str:
        """Why its API server does not serve us; empty if it does."""
        try:
            with contextlib.closing(Kube(self.kubeconfig(name))) as kube:
                kube.version()
        except KubeError as error:
            return error.message
        return ""

    def _await_running(self, name: str, report: Report, until: float) -> Cluster:
        seen: dict[str, Cluster] = {}

        def pending() -> str:
            found = seen["last"] = self._require(name)
            status = str(found["status"])
            if status in ("ERROR", "DEGRADED"):
                raise UcpError(
                    f"GKE failed to create the cluster {name}: "
                    f"{found.get('statusMessage') or 'no reason given'}",
                    next="fix the cause, then: ucp start",
                )
            report(f"{name}: {status.lower()}")
            return "" if status == "RUNNING" else status.lower()

        self._wait(f"cluster {name} running", pending, until)
        return seen["last"]

    def _await_served(self, name: str, until: float) -> None:
        what = f"an API server that serves cluster {name}"
        self._wait(what, lambda: self._silence(name), until)

    def _wait(self, what: str, pending: Callable[[], str], until: float) -> None:
        """Poll until `pending` returns "", not a state. Tolerates outages of Google meanwhile."""
        began = time.monotonic()
        while True:
            try:
                last = pending()
            except (Busy, OutOfReach) as error:
                last = error.message
            if not last:
                return
            now = time.monotonic()
            if now >= until:
                raise DeadlineExceeded(what, round(until - began, 1), last)
            time.sleep(min(self._pause, until - now))

    def _resize(self, name: str, found: Cluster, nodes: int, until: float) -> None:
        per_zone = nodes if is_zone(found["location"]) or not nodes else 1
        arguments = ("container", "clusters", "resize", name, location_flag(found["location"]))
        flags = (f"--node-pool={POOL}", f"--num-nodes={per_zone}", "--async")

        def change() -> str:
            self._gcloud.json(*arguments, *flags)
            return ""

        def pending() -> str:
            seen = self._require(name)
            count = seen.get("currentNodeCount", 0)
            done = bool(count) == bool(nodes) and seen["status"] == "RUNNING"
            return "" if done else f"{count} nodes, {seen['status'].lower()}"

        self._wait(f"lock to resize cluster {name}", change, until)
        self._wait(f"cluster {name} with {nodes} nodes", pending, until)

    def _remove(self, name: str, found: Cluster, until: float) -> None:
        """Delete our cluster and wait until it is gone."""
        where = location_flag(found["location"])
        arguments = ("container", "clusters", "delete", name, where, "--async")

        def change() -> str:
            with contextlib.suppress(NotThere):
                self._gcloud.json(*arguments)
            return ""

        def pending() -> str:
            # Not in the list of all locations, which lacks it while a zone doesn't respond.
            seen = self._gcloud.find("container", "clusters", "describe", name, where)
            return str(seen["status"]).lower() if seen and self._is_ours(seen, name) else ""

        if found["status"] != "STOPPING":
            self._wait(f"lock to delete cluster {name}", change, until)
        self._wait(f"deletion of cluster {name}", pending, until)

    def _clear(self, name: str) -> None:
        """Clean up after a failed creation. Failures are reported: remains cost money."""
        try:
            found = self._find(name)
            if found:
                self._remove(name, found, time.monotonic() + CLEANING_SECONDS)
            self._lock_file(name).unlink(missing_ok=True)
        except UcpError as error:
            raise UcpError(
                f"failed to create the cluster {name}, and failed to delete its "
                f"remains: {error.message}",
                next=f"gcloud container clusters delete {name} --project "
                f"{self._gcloud.account.project}",
            ) from error

    def _lock_file(self, name: str) -> Path:
        return self._base / f"{name}.lock"

    def _locked(self, name: str, timeout: float) -> Any:
        make_private_folder(self._base)
        return locked(self._lock_file(name), f"the lock of cluster {name}", timeout=timeout)


def make(workspace: Workspace, topology: Topology, _: Toolbox | None) -> GkeProvider:
    """Provider of a core cluster; Crossplane creates environments on GKE."""
    gcp = topology.spec.credentials.gcp
    return GkeProvider(
        workspace.state(topology.name).root / PROVIDERS["gke"].state_folder,
        owner=workspace.machine_id(topology.name),
        key=lambda: load("gcp", credential_ref(topology, workspace, "gcp")),
        project=gcp.project if gcp else None,
    )
