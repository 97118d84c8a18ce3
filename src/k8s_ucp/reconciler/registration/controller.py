"""The registration controller: registers clusters with Argo CD, and deregisters them.

Effects only; rules.py decides. A key is a source, `<namespace>/<Secret>`.
"""

from __future__ import annotations

from dataclasses import replace

from k8s_ucp import names
from k8s_ucp.kube import (
    SECRET,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    Object,
    Unauthorized,
    Unreachable,
    labels_of,
)
from k8s_ucp.reconciler.access.authenticators.base import NoAccess
from k8s_ucp.reconciler.access.cluster_secret import (
    Registration,
    access_change,
    build,
    label_change,
)
from k8s_ucp.reconciler.access.owners import same_but_status
from k8s_ucp.reconciler.access.sources import KubeconfigSource
from k8s_ucp.reconciler.controller import Controller, Runtime
from k8s_ucp.reconciler.registration.app_access import AppAccess
from k8s_ucp.reconciler.registration.deregistration import Deregistration
from k8s_ucp.reconciler.registration.observation import Observer
from k8s_ucp.reconciler.registration.rules import (
    NOT_NAMED,
    OWNER_UNREADABLE,
    UNPROVEN,
    Decision,
    Deregister,
    Keep,
    Refuse,
    Register,
    Relabel,
)
from k8s_ucp.reconciler.registration.status_reporter import RegistrationOutcome, StatusReporter
from k8s_ucp.reconciler.runtime.conditions import Condition
from k8s_ucp.reconciler.runtime.settings import REGISTRATION
from k8s_ucp.reconciler.runtime.work_queue import WorkQueue
from k8s_ucp.timestamps import stamp

SOON = 0.3
"""Seconds until the next attempt if the informer doesn't show the cluster Secret yet."""
UNPROVEN_SECONDS = 3.0
"""The same if the owner's status, which isn't watched, lacks the address."""


class RegistrationController(Controller):
    """Reconciles one source at a time; safe to share between threads."""

    name = REGISTRATION
    most = 64
    """Clusters that hang occupy a thread each, and must not delay others."""

    def __init__(self, runtime: Runtime) -> None:
        informers, kube, settings = runtime.informers, runtime.kube, runtime.settings
        self.queue = WorkQueue()
        self._kube = kube
        self._settings = settings
        self._informers = informers
        self._log = runtime.log
        self._clock = runtime.clock
        self._metrics = runtime.metrics
        self._observer = Observer(runtime)
        self._access = AppAccess(runtime)
        self._reporter = StatusReporter(
            kube, runtime.events, runtime.metrics, runtime.clock, self._sources
        )
        self._deregistration = Deregistration(runtime, self._access)
        informers.local_clusters.listen(self._local_cluster_changed)
        informers.cluster_secrets.listen(self._cluster_secret_changed)
        informers.environments.listen(lambda _before, _after: self._add_all())
        for each in informers.sources.values():
            each.listen(self._source_changed)

    def take_over(self) -> None:
        """Read the notes again, since another leader may have written some."""
        self._reporter.restart()

    # Wake-ups.

    def _local_cluster_changed(self, before: Object | None, after: Object | None) -> None:
        item = after or before
        assert item is not None
        if not same_but_status(before, after, watched=(names.READY,)):
            secret = names.kubeconfig_secret(item["metadata"]["name"])
            self.queue.add(f"{item['metadata']['namespace']}/{secret}")

    def _source_changed(self, before: Object | None, after: Object | None) -> None:
        metadata = (after or before or {})["metadata"]
        self.queue.add(f"{metadata['namespace']}/{metadata['name']}")

    def _cluster_secret_changed(self, before: Object | None, after: Object | None) -> None:
        for each in (before, after):
            source = ((each or {}).get("metadata", {}).get("annotations") or {}).get(names.SOURCE)
            if source:
                self.queue.add(source)
        if after is None or before is None or _environment(before) != _environment(after):
            # A name or an environment may have become available for another source.
            self._add_all()

    def _add_all(self) -> None:
        for key in self._sources():
            self.queue.add(key)

    def _sources(self) -> set[str]:
        """Keys of all current sources."""
        return set().union(*(each.store.identifiers() for each in self._informers.sources.values()))

    # One source.

    def reconcile(self, key: str) -> float | None:
        """Decide, act and report. Returns the seconds until the next time."""
        try:
            owner, decision = self._observer.decide(key)
        except (Forbidden, NotFound) as error:
            # Keep an existing registration, since the owner may still exist.
            if self._informers.source(key) is None:
                raise
            why = f"failed to read the owner of this kubeconfig: {error.message}"
            standing = self._observer.registered(key)
            owner, decision = None, Refuse(OWNER_UNREADABLE, why, standing=standing)
        if isinstance(decision, Refuse) and decision.reason in (NOT_NAMED, OWNER_UNREADABLE):
            # Reported on the Secret, not on the owner, which has not confirmed the claim.
            secret = self._informers.source(key)
            owner = {**secret, "apiVersion": "v1", "kind": "Secret"} if secret else None
        outcome = self._act(key, decision)
        changed = self._reporter.show(key, owner, outcome)
        if changed and outcome.warning:
            first = outcome.conditions[0]
            self._log.warning(outcome.warning, object=key, reason=first.reason, why=first.message)
        if outcome.failure:
            raise outcome.failure
        return outcome.requeue_after

    def _act(self, key: str, decision: Decision) -> RegistrationOutcome:
        match decision:
            case Deregister():
                return self._deregistration.reconcile(key, decision)
            case Refuse():
                return self._refuse(key, decision)
            case Register():
                return self._register(key, decision)
            case Relabel(source, existing):
                self._patch(existing, label_change(source, existing))
                self._log.info("labels updated", cluster=source.cluster)
                return RegistrationOutcome(requeue_after=0)
            case Keep():
                return self._keep(key, decision)
            case _:
                self._access.forget(key)
                self._reporter.forget(key)
                self._metrics.forget_source(key)
                return RegistrationOutcome()

    # Effects.

    def _register(self, key: str, decision: Register) -> RegistrationOutcome:
        source, existing = decision.source, decision.existing
        standing = existing is not None
        try:
            token = self._access.grant(
                source,
                decision.auth_info,
                lifetime=self._settings.token_lifetime,
                fresh=not existing,
            )
        except NoAccess as error:
            return self._refuse(key, Refuse(error.reason, error.message, standing=standing))
        except (Unauthorized, Forbidden) as error:
            self._access.refused()
            why = f"the cluster rejected the kubeconfig's user: {error.message}"
            refused = self._refuse(key, Refuse("AccessDenied", why, standing=standing))
            return replace(refused, failure=error)
        except KubeError as error:
            return self._unreached(key, error, standing=standing)
        if existing is None:
            taken = self._create(build(source, decision.auth_info, token))
            if taken:
                return self._refuse(key, taken)
        else:
            self._patch(existing, access_change(source, decision.auth_info, token, existing))
        self._access.renewed(key)
        self._log.info(
            "registered",
            cluster=source.cluster,
            environment=source.environment,
            why=decision.why,
            token_expires=stamp(token.expires_at),
        )
        message = f"Argo CD has a new token ({decision.why})"
        event = ("TokenRenewed", message) if standing else None
        again = token.renew_at(source.cluster)
        return self._succeeded(source, token.expires_at, again, event=event)

    def _create(self, secret: Object) -> Refuse | None:
        try:
            self._kube.create(secret)
        except Conflict:
            found = self._kube.get(SECRET, secret["metadata"]["name"], names.ARGOCD_NAMESPACE)
            registration = Registration.of(found)
            if registration.ours:
                raise
            return Refuse(
                "NameTaken",
                f"Secret {registration.name} in Argo CD's namespace already exists and "
                "was not created by ucp; delete or rename it to register this cluster",
                standing=False,
            )
        return None

    def _keep(self, key: str, decision: Keep) -> RegistrationOutcome:
        source, existing = decision.source, decision.existing
        secret = self._informers.cluster_secrets.store.get(
            f"{names.ARGOCD_NAMESPACE}/{existing.name}"
        )
        if secret is None:
            return RegistrationOutcome(requeue_after=SOON)
        namespaces = source.namespaces if source.scoped else ()
        try:
            self._access.probe(key, secret, namespaces)
        except (Unauthorized, Forbidden) as error:
            # The token was revoked with its ServiceAccount, or the rights were removed.
            if not self._access.ready(decision.auth_info):
                # An API server that is starting knows neither its tokens nor its roles yet.
                away = Unreachable("the app cluster is not ready yet")
                return self._unreached(key, away, standing=True, source=source)
            if not self._access.worth_renewing(key):
                self._metrics.cluster_silent(source.cluster)
                rejected = _not_reached("Rejected", error.message)
                return RegistrationOutcome((_registered(source), rejected), self._access.pause(key))
            again = Register(source, decision.auth_info, existing, "identity rejected")
            return self._register(key, again)
        except KubeError as error:
            return self._unreached(key, error, standing=True, source=source)
        return self._succeeded(source, existing.expires_at, existing.renew_at)

    def _succeeded(
        self,
        source: KubeconfigSource,
        expires_at: float,
        renew_at: float,
        *,
        event: tuple[str, str] | None = None,
    ) -> RegistrationOutcome:
        self._metrics.token_expires.labels(source.cluster).set(expires_at)
        self._metrics.cluster_answered(source.cluster)
        soon = min(self._settings.probe_seconds, self._settings.resync_seconds)
        again = max(0.0, min(soon, renew_at - self._clock()))
        return RegistrationOutcome((_registered(source), _REACHED), again, event=event)

    def _unreached(
        self,
        key: str,
        error: KubeError,
        *,
        standing: bool,
        source: KubeconfigSource | None = None,
    ) -> RegistrationOutcome:
        """A cluster that doesn't respond keeps its registration."""
        if source:
            registered = _registered(source)
            self._metrics.cluster_silent(source.cluster)
        else:
            message = "the app cluster is not responding; retrying"
            registered = Condition(names.REGISTERED, str(standing), "Unreachable", message)
        conditions = (_not_reached("Unreachable", error.message), registered)
        return RegistrationOutcome(conditions, self._access.pause(key), warning="unreachable")

    def _refuse(self, key: str, refusal: Refuse) -> RegistrationOutcome:
        self._metrics.refusals.labels(key, refusal.reason).inc()
        again = self._settings.resync_seconds
        if refusal.reason == UNPROVEN:
            again = min(again, UNPROVEN_SECONDS)
        standing = str(refusal.standing)
        condition = Condition(names.REGISTERED, standing, refusal.reason, refusal.message)
        return RegistrationOutcome((condition,), again, warning="not registered")

    def _patch(self, existing: Registration, change: Object) -> None:
        self._kube.patch(SECRET, existing.name, names.ARGOCD_NAMESPACE, change)


_REACHED = Condition(names.REACHABLE, "True", "Answers", "the cluster accepts Argo CD's identity")


def _registered(source: KubeconfigSource) -> Condition:
    message = f"registered with Argo CD as {source.cluster}, environment {source.environment}"
    return Condition(names.REGISTERED, "True", "Registered", message)


def _not_reached(reason: str, message: str) -> Condition:
    return Condition(names.REACHABLE, "False", reason, message)


def _environment(secret: Object) -> str | None:
    found: str | None = labels_of(secret).get(names.ENVIRONMENT)
    return found
