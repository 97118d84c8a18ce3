"""Deregisters clusters: deletes Applications while credentials work, the cluster Secret last."""

from __future__ import annotations

import time
from collections.abc import Callable

from k8s_ucp import names
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import APPLICATION, SECRET, NotFound, Object
from k8s_ucp.reconciler import draining
from k8s_ucp.reconciler.access.authenticators.base import AuthInfo
from k8s_ucp.reconciler.access.cluster_secret import Registration, drain_change
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.registration.app_access import AppAccess
from k8s_ucp.reconciler.registration.rules import Deregister, why_give_up
from k8s_ucp.reconciler.registration.status_reporter import RegistrationOutcome
from k8s_ucp.reconciler.runtime.conditions import Condition
from k8s_ucp.timestamps import parse_stamp, stamp

SETTLED = 1.5
"""Seconds for which an ApplicationSet may still generate after the environment label is gone."""
PAUSE = 0.3
"""Seconds between two looks at the Applications of a draining cluster."""


class Deregistration:
    """Drains and deregisters a cluster in steps; what lasts is only in its cluster Secret."""

    def __init__(
        self, runtime: Runtime, access: AppAccess, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._kube = runtime.kube
        self._settings = runtime.settings
        self._clients = runtime.clients
        self._metrics = runtime.metrics
        self._log = runtime.log
        self._clock = runtime.clock
        self._access = access
        self._drains = draining.DrainTimer(monotonic)
        """By UID of the cluster Secret."""
        self._asked: dict[str, float] = {}
        """Applications that Argo CD was asked to refresh, with the time."""

    def reconcile(self, key: str, decision: Deregister) -> RegistrationOutcome:
        """Do the next step."""
        existing = decision.existing
        if existing.environment or parse_stamp(existing.draining_since) is None:
            change = drain_change(existing, stamp(self._clock()))
            self._kube.patch(SECRET, existing.name, names.ARGOCD_NAMESPACE, change)
            self._log.info("draining", cluster=existing.cluster, environment=existing.environment)
            self._drains.restart(existing.uid)
        waited = self._drains.waited(existing.uid)
        applications = self._delete_applications(existing)
        left, others = applications or ([], [])
        if left:
            words = draining.in_words(left, "Application")
            silent = self._silent_for(key, existing)
            given_up = why_give_up(decision, self._settings, since=waited, silent=silent)
            if given_up is None:
                if silent and not decision.is_known_dead:
                    words += f"; {self._warning()}"
                return _outcome("False", "Unreachable" if silent else "Draining", words, PAUSE)
            self._deregister(key, existing, given_up)
            return _outcome("True", "GivenUp", f"{given_up}; {words}", None)
        if applications and waited < SETTLED:
            message = "waiting for ApplicationSets to release the cluster"
            return _outcome("False", "Draining", message, PAUSE)
        if decision.owner_deleted:
            self._deregister(key, existing, "its declaration was deleted")
            return RegistrationOutcome()
        message = "all its Applications are deleted"
        if others:
            message += f"; kept, not created by ucp: {', '.join(others)}"
        return _outcome("True", "Drained", message, self._settings.resync_seconds)

    def _delete_applications(self, existing: Registration) -> tuple[list[str], list[str]] | None:
        """(names of our Applications that still exist, names of others); None without Argo CD."""
        try:
            everyone = self._kube.list_all(APPLICATION, names.ARGOCD_NAMESPACE)
        except NotFound:
            return None
        ours, others = draining.applications_of(everyone, existing.cluster, existing.access[0])
        draining.delete_applications(self._kube, ours)
        self._retry_failures(ours)
        return _names(ours), _names(others)

    def _retry_failures(self, applications: list[Object]) -> None:
        now = self._clock()
        asked = {each: at for each, at in self._asked.items() if now - at < draining.ASK_AGAIN}
        failed = draining.failed_deletions(applications, asked, now=now)
        draining.request_refresh(self._kube, failed)
        self._asked = asked | dict.fromkeys(failed, now)

    def _silent_for(self, key: str, existing: Registration) -> float:
        secret = self._kube.find(SECRET, existing.name, names.ARGOCD_NAMESPACE)
        namespaces = tuple(filter(None, existing.access[2].split(",")))
        return self._access.silent_for(key, secret, namespaces) if secret else 0.0

    def _warning(self) -> str:
        return (
            f"the cluster is not responding: after {self._settings.dead_seconds:g} s "
            "it is deregistered without a drain, and cloud resources of its load "
            "balancers and volumes are kept"
        )

    def _deregister(self, key: str, existing: Registration, why: str) -> None:
        secret = self._kube.find(SECRET, existing.name, names.ARGOCD_NAMESPACE)
        self._kube.delete(SECRET, existing.name, names.ARGOCD_NAMESPACE, uid=existing.uid)
        self._drains.forget(existing.uid)
        left = self._access.withdraw(self._auth_info(key), secret) if secret else ""
        self._access.forget(key)
        self._metrics.forget_cluster(existing.cluster)
        self._log.info("deregistered", cluster=existing.cluster, why=why, identities_left=left)

    def _auth_info(self, key: str) -> AuthInfo | None:
        try:
            return self._clients.of(key)
        except UcpError:
            return None


def _outcome(status: str, reason: str, message: str, again: float | None) -> RegistrationOutcome:
    deregistered = Condition(names.REGISTERED, "False", "Leaving", "the cluster is deregistered")
    return RegistrationOutcome(
        (deregistered, Condition(names.DRAINED, status, reason, message)), again
    )


def _names(applications: list[Object]) -> list[str]:
    return sorted(each["metadata"]["name"] for each in applications)
