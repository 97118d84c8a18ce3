"""Bringing one copy to where it should be: look, decide, write, and tell how it went."""

from __future__ import annotations

from k8s_ucp import names
from k8s_ucp.kube import Conflict, Forbidden, KubeError, NotFound, Unauthorized, Unreachable
from k8s_ucp.reconciler.mirrors.copies import Copy, ObjectRef, wanted_digest
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

SOON = 0.3
"""Seconds until something that is under way is looked at again."""
UNSURE_SECONDS = 2.0
TROUBLE_SECONDS = 30.0
"""Until a copy that can't be made is tried again without any change that we would see."""


class Copier:
    """Safe to share between threads; a place is processed by one of them at a time."""

    def __init__(
        self, index: MirrorIndex, counters: SyncCounters, guard: DeletionGuard, log: Log
    ) -> None:
        self._index = index
        self._counters = counters
        self._guard = guard
        self._log = log
        self._altered: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        """(wanted, got) of copies that the cluster itself changes while they are written."""

    def forget(self, cluster: str) -> None:
        """The cluster is known no more."""
        for copy_key in [each for each in self._altered.copy() if each[0] == cluster]:
            self._altered.pop(copy_key, None)

    def settled(self, session: Session, text: str) -> bool:
        """A look without any effort: all is as it should be. Tells so."""
        desired_copies = self._index.desired_copies(session.cluster, text)
        found = session.found(ObjectRef.parse(text))
        if len(desired_copies) != 1 or found is None:
            return False
        entry, source = desired_copies[0].entry, self._index.source(desired_copies[0].source)
        if source is None or source.barred or not found.labelled:
            return False
        if not source.may_be_copied_by(entry.syncer):
            return False
        marked = (found.syncer, found.source, found.retain)
        if marked != (entry.syncer, f"{source.namespace}/{source.name}", entry.retain):
            return False
        if found.digest != wanted_digest(source, entry):
            return False
        self._counters.record(session.cluster, text, ((entry.syncer, True),))
        return True

    def reconcile(self, session: Session, text: str) -> float | None:
        """Answers when to look again; None for at the next change. Raises Unreachable."""
        place = ObjectRef.parse(text)
        desired_copies = self._index.desired_copies(session.cluster, text)
        desired = desired_copies[0] if desired_copies else None
        refusal = session.refusal(place.namespace)
        if refusal:
            problem = CopyProblem("NamespaceRefused", f"namespace {place.namespace}: {refusal}")
            self._tell(session, place, desired_copies, problem)
            return None
        if not session.ready(place):
            self._tell(session, place, desired_copies, False)
            return None
        try:
            return self._bring(session, place, desired_copies, desired)
        except Conflict:
            self._tell(session, place, desired_copies, False)
            return SOON
        except (Unreachable, Unauthorized):
            self._tell(session, place, desired_copies, False)
            raise
        except KubeError as error:
            return self._refused(session, place, desired_copies, error)

    def _bring(
        self,
        session: Session,
        place: ObjectRef,
        desired_copies: tuple[DesiredCopy, ...],
        desired: DesiredCopy | None,
    ) -> float | None:
        source = self._index.source(desired.source) if desired else None
        action = decide(place, desired, source, session.found(place))
        try:
            return self._act(session, place, desired_copies, action)
        except (Conflict, NotFound):
            # What the watch has shown isn't the newest: ask, and decide on that.
            found = session.writer().read(place)
            return self._act(session, place, desired_copies, decide(place, desired, source, found))

    def _act(
        self,
        session: Session,
        place: ObjectRef,
        desired_copies: tuple[DesiredCopy, ...],
        action: Action,
    ) -> float | None:
        match action:
            case InSync():
                self._altered.pop((session.cluster, str(place)), None)
                self._tell(session, place, desired_copies, True)
                return None
            case NoCopy():
                self._altered.pop((session.cluster, str(place)), None)
                self._tell(session, place, desired_copies, False)
                return None
            case CopyFailed(problem):
                self._tell(session, place, desired_copies, problem)
                return TROUBLE_SECONDS if problem.reason in _OTHERS else None
            case Remove() | Orphan():
                return self._remove(session, place, desired_copies, action)
        copy_key = (session.cluster, str(place))
        want = wanted_digest(action.source, action.desired.entry)
        known = self._altered.get(copy_key)
        if known and known[0] == want and _got(action) == known[1]:
            self._tell(session, place, desired_copies, _ALTERED)
            return TROUBLE_SECONDS
        got = session.writer().perform(place, action)
        if got is not None and got.digest != want:
            self._altered[copy_key] = (want, got.digest)
            self._tell(session, place, desired_copies, _ALTERED)
            return TROUBLE_SECONDS
        self._altered.pop(copy_key, None)
        self._tell(session, place, desired_copies, True)
        return None

    def _remove(
        self,
        session: Session,
        place: ObjectRef,
        desired_copies: tuple[DesiredCopy, ...],
        action: Remove | Orphan,
    ) -> float | None:
        try:
            verdict = self._verdict(session, place, desired_copies, action.found)
        except KubeError:
            # The core doesn't answer: what stands behind the copy can't be known.
            verdict = DeletionVerdict.UNSURE
        if verdict is not DeletionVerdict.NOTHING:
            return UNSURE_SECONDS if verdict is DeletionVerdict.UNSURE else TROUBLE_SECONDS
        session.writer().perform(place, action)
        self._altered.pop((session.cluster, str(place)), None)
        self._tell(session, place, desired_copies, action.problem or False)
        self._log.info(
            "copy released" if isinstance(action, Orphan) else "copy removed",
            cluster=session.cluster,
            copy=str(place),
            syncer=action.found.syncer,
        )
        return None

    def _verdict(
        self,
        session: Session,
        place: ObjectRef,
        desired_copies: tuple[DesiredCopy, ...],
        found: Copy,
    ) -> DeletionVerdict:
        desired = desired_copies[0] if desired_copies else None
        mine = desired and (desired.entry.syncer, desired.source) == (
            found.syncer,
            f"{place.kind}/{found.source}",
        )
        if not mine:
            return self._guard.check(found, session.cluster, place)
        gone = self._guard.live_source(desired_copies[0].source) is None
        return DeletionVerdict.NOTHING if gone else DeletionVerdict.UNSURE

    def _refused(
        self,
        session: Session,
        place: ObjectRef,
        desired_copies: tuple[DesiredCopy, ...],
        error: KubeError,
    ) -> float:
        lacks_rights = isinstance(error, Forbidden) and names.MIRROR_IDENTITY in error.message
        if lacks_rights or isinstance(error, NotFound):
            # The namespace, or our rights in it, went: they are looked at first.
            session.invalidate()
            self._tell(session, place, desired_copies, False)
            return SOON
        reason = "TooLarge" if error.status == 413 else "Refused"
        problem = CopyProblem(reason, f"the cluster rejected it: {error.message}")
        self._tell(session, place, desired_copies, problem)
        return TROUBLE_SECONDS

    def _tell(
        self,
        session: Session,
        place: ObjectRef,
        desired_copies: tuple[DesiredCopy, ...],
        state: State,
    ) -> None:
        states: dict[str, State] = {}
        if desired_copies:
            states[desired_copies[0].entry.syncer] = state
        for other in desired_copies[1:]:
            states[other.entry.syncer] = duplicate(place, desired_copies[0], other)
        self._counters.record(session.cluster, str(place), tuple(states.items()))


_ALTERED = CopyProblem(
    "Altered", "the cluster modifies the written object (an admission webhook?); not overwritten"
)

_OTHERS = ("Taken", "TypeDiffers", "Immutable")
"""What others do on the app cluster, where no watch of ours would show it."""


def _got(action: Action) -> bytes | None:
    found: Copy | None = getattr(action, "found", None)
    return found.digest if found else None
