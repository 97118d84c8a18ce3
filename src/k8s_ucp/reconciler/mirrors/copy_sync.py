"""Reconciles one copy: observes, decides, writes, and records the result."""

from __future__ import annotations

import json
from dataclasses import dataclass

from k8s_ucp import names
from k8s_ucp.kube import Conflict, Forbidden, KubeError, NotFound, Unauthorized, Unreachable
from k8s_ucp.reconciler.mirrors.copies import Copy, ObjectRef, desired_digest
from k8s_ucp.reconciler.mirrors.deletion_guard import DeletionGuard, DeletionVerdict
from k8s_ucp.reconciler.mirrors.index import DesiredCopy, MirrorIndex
from k8s_ucp.reconciler.mirrors.rules import (
    Action,
    CopyFailed,
    CopyProblem,
    InSync,
    NoCopy,
    Orphan,
    Remove,
    decide,
    duplicate,
)
from k8s_ucp.reconciler.mirrors.session import Session
from k8s_ucp.reconciler.mirrors.status import State, SyncCounters
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.redaction import Redaction, secret_values

SOON = 0.3
"""Seconds until an unfinished copy is reconciled again."""
UNSURE_SECONDS = 2.0
TROUBLE_SECONDS = 30.0
"""Seconds until a failed copy is retried if the informers show no change."""


@dataclass(frozen=True)
class _Visit:
    """One reconciliation of one copy."""

    session: Session
    ref: ObjectRef
    desired_copies: tuple[DesiredCopy, ...]

    @property
    def desired(self) -> DesiredCopy | None:
        """The desired copy that takes precedence."""
        return self.desired_copies[0] if self.desired_copies else None

    @property
    def key(self) -> tuple[str, str]:
        return self.session.cluster, str(self.ref)


class Copier:
    """Safe to share between threads, of which one at a time processes a copy."""

    def __init__(
        self, index: MirrorIndex, counters: SyncCounters, guard: DeletionGuard, log: Log
    ) -> None:
        self._index = index
        self._counters = counters
        self._guard = guard
        self._log = log
        self._altered: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        """(desired, actual) digests of copies that the cluster itself modifies when they are
        written."""

    def forget(self, cluster: str) -> None:
        """Drop what is remembered of a cluster that is no longer registered."""
        for copy_key in [each for each in self._altered.copy() if each[0] == cluster]:
            self._altered.pop(copy_key, None)

    def settled(self, session: Session, text: str) -> bool:
        """Whether a copy is in sync, by a check without requests; records it if so."""
        desired_copies = self._index.desired_copies(session.cluster, text)
        found = session.found(ObjectRef.parse(text))
        if len(desired_copies) != 1 or found is None:
            return False
        entry, source = desired_copies[0].entry, self._index.source(desired_copies[0].source)
        if source is None or source.barred or not found.labeled:
            return False
        if not source.may_be_copied_by(entry.syncer):
            return False
        marked = (found.syncer, found.source, found.retain)
        if marked != (entry.syncer, f"{source.namespace}/{source.name}", entry.retain):
            return False
        if found.digest != desired_digest(source, entry):
            return False
        self._counters.record(session.cluster, text, ((entry.syncer, True),))
        return True

    def reconcile(self, session: Session, text: str) -> float | None:
        """Returns the seconds until the next time; None: at the next change. Raises Unreachable."""
        ref = ObjectRef.parse(text)
        visit = _Visit(session, ref, self._index.desired_copies(session.cluster, text))
        refusal = session.refusal(ref)
        if refusal:
            problem = CopyProblem("NamespaceRefused", f"namespace {ref.namespace}: {refusal}")
            self._count(visit, problem)
            return None
        if not session.ready(ref):
            self._count(visit, False)
            return None
        try:
            return self._bring(visit)
        except Conflict:
            self._count(visit, False)
            return SOON
        except (Unreachable, Unauthorized):
            self._count(visit, False)
            raise
        except KubeError as error:
            return self._refused(visit, error)

    def _bring(self, visit: _Visit) -> float | None:
        ref, desired = visit.ref, visit.desired
        source = self._index.source(desired.source) if desired else None
        try:
            found = visit.session.found(ref)
            return self._act(visit, decide(ref, desired, source, found))
        except (Conflict, NotFound):
            # The informer's version is outdated: decide again with the current one.
            found = visit.session.writer().read(ref)
            return self._act(visit, decide(ref, desired, source, found))

    def _act(self, visit: _Visit, action: Action) -> float | None:
        match action:
            case InSync() | NoCopy():
                self._altered.pop(visit.key, None)
                self._count(visit, isinstance(action, InSync))
                return None
            case CopyFailed(problem):
                self._count(visit, problem)
                return TROUBLE_SECONDS if problem.reason in _OTHERS else None
            case Remove() | Orphan():
                return self._remove(visit, action)
        digest = desired_digest(action.source, action.desired.entry)
        known = self._altered.get(visit.key)
        if known and known[0] == digest and _actual(action) == known[1]:
            self._count(visit, _ALTERED)
            return TROUBLE_SECONDS
        actual = visit.session.writer().perform(visit.ref, action)
        if actual is not None and actual.digest != digest:
            self._altered[visit.key] = (digest, actual.digest)
            self._count(visit, _ALTERED)
            return TROUBLE_SECONDS
        self._altered.pop(visit.key, None)
        self._count(visit, True)
        return None

    def _remove(self, visit: _Visit, action: Remove | Orphan) -> float | None:
        try:
            verdict = self._verdict(visit, action.found)
        except KubeError:
            # Without a response of the core cluster, deleting the copy can't be justified.
            verdict = DeletionVerdict.UNSURE
        if verdict is not DeletionVerdict.NOTHING:
            return UNSURE_SECONDS if verdict is DeletionVerdict.UNSURE else TROUBLE_SECONDS
        visit.session.writer().perform(visit.ref, action)
        self._altered.pop(visit.key, None)
        self._count(visit, action.problem or False)
        self._log.info(
            "copy released" if isinstance(action, Orphan) else "copy removed",
            cluster=visit.session.cluster,
            copy=str(visit.ref),
            syncer=action.found.syncer,
        )
        return None

    def _verdict(self, visit: _Visit, found: Copy) -> DeletionVerdict:
        desired = visit.desired
        behind = (found.syncer, f"{visit.ref.kind}/{found.source}")
        if desired is None or (desired.entry.syncer, desired.source) != behind:
            return self._guard.check(found, visit.session.cluster, visit.ref)
        deleted = self._guard.live_source(desired.source) is None
        return DeletionVerdict.NOTHING if deleted else DeletionVerdict.UNSURE

    def _refused(self, visit: _Visit, error: KubeError) -> float:
        lacks_rights = isinstance(error, Forbidden) and names.MIRROR_IDENTITY in error.message
        if lacks_rights or isinstance(error, NotFound):
            # The namespace, or our rights in it, were deleted; the session checks them first.
            visit.session.invalidate()
            self._count(visit, False)
            return SOON
        reason = "TooLarge" if error.status == 413 else "Refused"
        message = self._without_values(visit, error.message)
        self._count(visit, CopyProblem(reason, f"the cluster rejected it: {message}"))
        return TROUBLE_SECONDS

    def _without_values(self, visit: _Visit, message: str) -> str:
        """A cluster's message without the Secret's values, which its admission may quote.

        The message becomes a status, an Event and a log line, for people who can't read Secrets.
        """
        source = self._index.source(visit.desired.source) if visit.desired else None
        if source is None or source.kind != "Secret":
            return message
        data = json.loads(source.content).get("data") or {}
        return Redaction(secret_values(data)).exact(message)

    def _count(self, visit: _Visit, state: State) -> None:
        states: dict[str, State] = {}
        if visit.desired:
            states[visit.desired.entry.syncer] = state
            for other in visit.desired_copies[1:]:
                states[other.entry.syncer] = duplicate(visit.ref, visit.desired, other)
        self._counters.record(*visit.key, tuple(states.items()))


_ALTERED = CopyProblem(
    "Altered", "the cluster modifies the written object (an admission webhook?); not overwritten"
)

_OTHERS = ("Taken", "TypeDiffers", "Immutable")
"""Problems caused by objects of others on the app cluster, which our informers don't show."""


def _actual(action: Action) -> bytes | None:
    found: Copy | None = getattr(action, "found", None)
    return found.digest if found else None
