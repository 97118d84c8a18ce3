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
    """Safe to share between threads; a place is in one hand at a time."""

    def __init__(
        self, plan: MirrorIndex, tally: SyncCounters, proof: DeletionGuard, log: Log
    ) -> None:
        self._plan = plan
        self._tally = tally
        self._proof = proof
        self._log = log
        self._altered: dict[tuple[str, str], tuple[bytes, bytes]] = {}
        """(wanted, got) of copies that the cluster itself changes while they are written."""

    def forget(self, cluster: str) -> None:
        """The cluster is known no more."""
        for spot in [each for each in self._altered.copy() if each[0] == cluster]:
            self._altered.pop(spot, None)

    def settled(self, session: Session, text: str) -> bool:
        """A look without any effort: all is as it should be. Tells so."""
        wishes = self._plan.wishes(session.cluster, text)
        found = session.found(ObjectRef.parse(text))
        if len(wishes) != 1 or found is None:
            return False
        entry, source = wishes[0].entry, self._plan.source(wishes[0].source)
        if source is None or source.barred or not found.labelled:
            return False
        if not source.may_be_copied_by(entry.syncer):
            return False
        marked = (found.syncer, found.source, found.retain)
        if marked != (entry.syncer, f"{source.namespace}/{source.name}", entry.retain):
            return False
        if found.digest != wanted_digest(source, entry):
            return False
        self._tally.record(session.cluster, text, ((entry.syncer, True),))
        return True

    def reconcile(self, session: Session, text: str) -> float | None:
        """Answers when to look again; None for at the next change. Raises Unreachable."""
        place = ObjectRef.parse(text)
        wishes = self._plan.wishes(session.cluster, text)
        wish = wishes[0] if wishes else None
        refusal = session.refusal(place.namespace)
        if refusal:
            problem = CopyProblem("NamespaceRefused", f"namespace {place.namespace}: {refusal}")
            self._tell(session, place, wishes, problem)
            return None
        if not session.ready(place):
            self._tell(session, place, wishes, False)
            return None
        try:
            return self._bring(session, place, wishes, wish)
        except Conflict:
            self._tell(session, place, wishes, False)
            return SOON
        except (Unreachable, Unauthorized):
            self._tell(session, place, wishes, False)
            raise
        except KubeError as error:
            return self._refused(session, place, wishes, error)

    def _bring(
        self,
        session: Session,
        place: ObjectRef,
        wishes: tuple[DesiredCopy, ...],
        wish: DesiredCopy | None,
    ) -> float | None:
        source = self._plan.source(wish.source) if wish else None
        action = decide(place, wish, source, session.found(place))
        try:
            return self._act(session, place, wishes, action)
        except (Conflict, NotFound):
            # What the watch has shown isn't the newest: ask, and decide on that.
            found = session.writer().look(place)
            return self._act(session, place, wishes, decide(place, wish, source, found))

    def _act(
        self, session: Session, place: ObjectRef, wishes: tuple[DesiredCopy, ...], action: Action
    ) -> float | None:
        match action:
            case InSync():
                self._altered.pop((session.cluster, str(place)), None)
                self._tell(session, place, wishes, True)
                return None
            case NoCopy():
                self._altered.pop((session.cluster, str(place)), None)
                self._tell(session, place, wishes, False)
                return None
            case CopyFailed(problem):
                self._tell(session, place, wishes, problem)
                return TROUBLE_SECONDS if problem.reason in _OTHERS else None
            case Remove() | Orphan():
                return self._remove(session, place, wishes, action)
        spot = (session.cluster, str(place))
        want = wanted_digest(action.source, action.wish.entry)
        known = self._altered.get(spot)
        if known and known[0] == want and _got(action) == known[1]:
            self._tell(session, place, wishes, _ALTERED)
            return TROUBLE_SECONDS
        got = session.writer().perform(place, action)
        if got is not None and got.digest != want:
            self._altered[spot] = (want, got.digest)
            self._tell(session, place, wishes, _ALTERED)
            return TROUBLE_SECONDS
        self._altered.pop(spot, None)
        self._tell(session, place, wishes, True)
        return None

    def _remove(
        self,
        session: Session,
        place: ObjectRef,
        wishes: tuple[DesiredCopy, ...],
        action: Remove | Orphan,
    ) -> float | None:
        try:
            standing = self._standing(session, place, wishes, action.found)
        except KubeError:
            # The core doesn't answer: what stands behind the copy can't be known.
            standing = DeletionVerdict.UNSURE
        if standing is not DeletionVerdict.NOTHING:
            return UNSURE_SECONDS if standing is DeletionVerdict.UNSURE else TROUBLE_SECONDS
        session.writer().perform(place, action)
        self._altered.pop((session.cluster, str(place)), None)
        self._tell(session, place, wishes, action.problem or False)
        self._log.info(
            "copy released" if isinstance(action, Orphan) else "copy removed",
            cluster=session.cluster,
            copy=str(place),
            syncer=action.found.syncer,
        )
        return None

    def _standing(
        self, session: Session, place: ObjectRef, wishes: tuple[DesiredCopy, ...], found: Copy
    ) -> DeletionVerdict:
        wish = wishes[0] if wishes else None
        mine = wish and (wish.entry.syncer, wish.source) == (
            found.syncer,
            f"{place.kind}/{found.source}",
        )
        if not mine:
            return self._proof.behind(found, session.cluster, place)
        gone = self._proof.live_source(wishes[0].source) is None
        return DeletionVerdict.NOTHING if gone else DeletionVerdict.UNSURE

    def _refused(
        self, session: Session, place: ObjectRef, wishes: tuple[DesiredCopy, ...], error: KubeError
    ) -> float:
        lacks_rights = isinstance(error, Forbidden) and names.MIRROR_IDENTITY in error.message
        if lacks_rights or isinstance(error, NotFound):
            # The namespace, or our rights in it, went: they are looked at first.
            session.shake()
            self._tell(session, place, wishes, False)
            return SOON
        reason = "TooLarge" if error.status == 413 else "Refused"
        problem = CopyProblem(reason, f"the cluster rejected it: {error.message}")
        self._tell(session, place, wishes, problem)
        return TROUBLE_SECONDS

    def _tell(
        self, session: Session, place: ObjectRef, wishes: tuple[DesiredCopy, ...], state: State
    ) -> None:
        shares: dict[str, State] = {}
        if wishes:
            shares[wishes[0].entry.syncer] = state
        for other in wishes[1:]:
            shares[other.entry.syncer] = duplicate(place, wishes[0], other)
        self._tally.record(session.cluster, str(place), tuple(shares.items()))


_ALTERED = CopyProblem(
    "Altered", "the cluster modifies the written object (an admission webhook?); not overwritten"
)

_OTHERS = ("Taken", "TypeDiffers", "Immutable")
"""What others do on the app cluster, where no watch of ours would show it."""


def _got(action: Action) -> bytes | None:
    found: Copy | None = getattr(action, "found", None)
    return found.digest if found else None
