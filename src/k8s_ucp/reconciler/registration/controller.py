"""The registration controller: kubeconfig Secrets become Argo CD cluster Secrets, and leave again.

Effects only; rules.py decides. A key is a source, `<namespace>/<Secret>`.
"""

from __future__ import annotations

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
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.registration.app_access import AppAccess
from k8s_ucp.reconciler.registration.deregistration import Deregistration
from k8s_ucp.reconciler.registration.observation import Observer
from k8s_ucp.reconciler.registration.rules import (
    NOT_NAMED,
    UNPROVEN,
    Deregister,
    Keep,
    Refuse,
    Register,
    Relabel,
    Reserved,
)
from k8s_ucp.reconciler.registration.status_reporter import StatusReporter
from k8s_ucp.reconciler.runtime.clock import stamp
from k8s_ucp.reconciler.runtime.conditions import Condition
from k8s_ucp.reconciler.runtime.informer import Informer
from k8s_ucp.reconciler.runtime.settings import REGISTRATION
from k8s_ucp.reconciler.runtime.work_queue import WorkQueue

SOON = 0.3
"""Seconds until a look that came too early is repeated."""
UNPROVEN_SECONDS = 3.0
"""The same for an owner whose status nobody watches."""


class RegistrationController:
    """Brings one source at a time to where it should be; safe to share between threads."""

    name = REGISTRATION
    most = 64
    """A thread for each cluster that hangs, so that it holds up no other."""

    def __init__(self, runtime: Runtime) -> None:
        informers, kube, settings = runtime.informers, runtime.kube, runtime.settings
        log, clock = runtime.log, runtime.clock
        self.queue = WorkQueue()
        self._kube = kube
        self._settings = settings
        self._informers = informers
        self._log = log
        self._clock = clock
        self._metrics = runtime.metrics
        reserved = Reserved.of(settings.core_cluster, kube.server)
        self._observer = Observer(informers, runtime.owners, runtime.clients, clock, reserved)
        self._access = AppAccess(runtime.clients, runtime.metrics, clock, settings.topology)
        self._reporter = StatusReporter(kube, runtime.events, runtime.metrics, clock, self._sources)
        self._departure = Deregistration(runtime, self._access, self._reporter)
        informers.local_clusters.listen(self._local_cluster_changed)
        informers.cluster_secrets.listen(self._cluster_secret_changed)
        informers.environments.listen(lambda _before, _after: self._add_all())
        for each in informers.sources.values():
            each.listen(self._source_changed)

    def watches(self) -> tuple[Informer, ...]:
        """The shared ones are enough."""
        return ()

    def take_over(self) -> None:
        """Notes are written by whoever leads."""
        self._reporter.start_anew()

    def stop(self) -> None:
        """Nothing was started."""

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
            # A name or an environment may have become free for another source.
            self._add_all()

    def _add_all(self) -> None:
        for key in self._sources():
            self.queue.add(key)

    def _sources(self) -> set[str]:
        """Keys of those that there are now."""
        return set().union(*(each.store.identifiers() for each in self._informers.sources.values()))

    # One source.

    def reconcile(self, key: str) -> float | None:
        """Decide and act. Answers when to look again, in seconds."""
        try:
            owner, decision = self._observer.decide(key)
        except (Forbidden, NotFound) as error:
            return self._owner_unreadable(key, error)
        match decision:
            case Deregister():
                return self._departure.reconcile(key, owner, decision)
            case Refuse():
                return self._refuse(key, owner, decision)
            case Register():
                return self._register(key, owner, decision)
            case Relabel(source, existing):
                self._patch(existing, label_change(source, existing))
                self._log.info("labels updated", cluster=source.cluster)
                return 0
            case Keep():
                return self._keep(key, owner, decision)
            case _:
                self._access.forget(key)
                self._reporter.forget(key)
                self._metrics.forget_source(key)
                return None

    def _owner_unreadable(self, key: str, error: KubeError) -> float:
        """What stands is left as it is: nobody knows whether the owner is gone."""
        secret = self._informers.source(key)
        if secret is None:
            raise error
        about = {**secret, "apiVersion": "v1", "kind": "Secret"}
        refusal = Refuse(
            "OwnerUnreadable",
            f"failed to read the owner of this kubeconfig: {error.message}",
            standing=self._observer.registered(key),
        )
        return self._refuse(key, about, refusal)

    # Effects.

    def _register(self, key: str, owner: Object | None, decision: Register) -> float:
        source, existing = decision.source, decision.existing
        try:
            token = self._access.grant(
                source,
                decision.auth_info,
                lifetime=self._settings.token_lifetime,
                fresh=not existing,
            )
        except NoAccess as error:
            refusal = Refuse(error.reason, error.message, standing=existing is not None)
            return self._refuse(key, owner, refusal)
        except (Unauthorized, Forbidden) as error:
            self._access.refused()
            reason = f"the cluster rejected the kubeconfig's user: {error.message}"
            refusal = Refuse("AccessDenied", reason, standing=existing is not None)
            self._refuse(key, owner, refusal)
            raise
        except KubeError as error:
            return self._unreached(key, owner, error, standing=existing is not None)
        if existing is None:
            refused = self._create(build(source, decision.auth_info, token))
            if refused:
                return self._refuse(key, owner, refused)
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
        self._reporter.set_conditions(key, owner, [_registered(source), _REACHED])
        if existing is not None:
            self._reporter.record_event(
                owner, "TokenRenewed", f"Argo CD has a new token ({decision.why})"
            )
        self._metrics.token_expires.labels(source.cluster).set(token.expires_at)
        self._metrics.cluster_answered(source.cluster)
        return self._pause(token.renew_at(source.cluster))

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

    def _keep(self, key: str, owner: Object | None, decision: Keep) -> float:
        source, existing = decision.source, decision.existing
        secret = self._informers.cluster_secrets.store.get(
            f"{names.ARGOCD_NAMESPACE}/{existing.name}"
        )
        if secret is None:
            return SOON
        namespaces = source.namespaces if source.scoped else ()
        try:
            self._access.probe(key, secret, namespaces)
        except (Unauthorized, Forbidden) as error:
            # The token was revoked with its ServiceAccount, or the rights were taken away.
            if not self._access.ready(decision.auth_info):
                # A server that just starts knows neither its tokens nor its roles yet.
                away = Unreachable("the app cluster is not ready yet")
                return self._unreached(key, owner, away, standing=True, source=source)
            if not self._access.worth_renewing(key):
                rejected = _not_reached("Rejected", error.message)
                self._reporter.set_conditions(key, owner, [_registered(source), rejected])
                self._metrics.cluster_silent(source.cluster)
                return self._access.pause(key)
            return self._register(
                key, owner, Register(source, decision.auth_info, existing, "identity rejected")
            )
        except KubeError as error:
            return self._unreached(key, owner, error, standing=True, source=source)
        self._reporter.set_conditions(key, owner, [_registered(source), _REACHED])
        self._metrics.token_expires.labels(source.cluster).set(existing.expires_at)
        self._metrics.cluster_answered(source.cluster)
        return self._pause(existing.renew_at)

    def _unreached(
        self,
        key: str,
        owner: Object | None,
        error: KubeError,
        *,
        standing: bool,
        source: KubeconfigSource | None = None,
    ) -> float:
        """Nothing is taken away from a cluster that doesn't answer."""
        conditions = [_not_reached("Unreachable", error.message)]
        if source:
            conditions.append(_registered(source))
            self._metrics.cluster_silent(source.cluster)
        else:
            state = "True" if standing else "False"
            message = "the app cluster is not responding; retrying"
            conditions.append(Condition(names.REGISTERED, state, "Unreachable", message))
        if self._reporter.set_conditions(key, owner, conditions):
            self._log.warning("unreachable", object=key, error=error.message)
        return self._access.pause(key)

    def _refuse(self, key: str, owner: Object | None, decision: Refuse) -> float:
        state = "True" if decision.standing else "False"
        condition = Condition(names.REGISTERED, state, decision.reason, decision.message)
        if decision.reason == NOT_NAMED:
            # Told of the Secret itself: a claim must not show on what it claims to belong to.
            secret = self._informers.source(key)
            owner = {**secret, "apiVersion": "v1", "kind": "Secret"} if secret else None
        self._metrics.refusals.labels(key, decision.reason).inc()
        if self._reporter.set_conditions(key, owner, [condition]):
            self._log.warning(
                "not registered", object=key, reason=decision.reason, why=decision.message
            )
        again = self._settings.resync_seconds
        return min(again, UNPROVEN_SECONDS) if decision.reason == UNPROVEN else again

    def _patch(self, existing: Registration, change: Object) -> None:
        self._kube.patch(SECRET, existing.name, names.ARGOCD_NAMESPACE, change)

    def _pause(self, renewal: float) -> float:
        soon = min(self._settings.probe_seconds, self._settings.resync_seconds)
        return max(0.0, min(soon, renewal - self._clock()))


_REACHED = Condition(names.REACHABLE, "True", "Answers", "the cluster accepts Argo CD's identity")


def _registered(source: KubeconfigSource) -> Condition:
    message = f"registered with Argo CD as {source.cluster}, environment {source.environment}"
    return Condition(names.REGISTERED, "True", "Registered", message)


def _not_reached(reason: str, message: str) -> Condition:
    return Condition(names.REACHABLE, "False", reason, message)


def _environment(secret: Object) -> str | None:
    found: str | None = (secret["metadata"].get("labels") or {}).get(names.ENVIRONMENT)
    return found
