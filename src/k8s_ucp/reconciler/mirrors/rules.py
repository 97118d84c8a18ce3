"""Decides what to do about one copy; pure, so that every rule can be tested without a cluster.

An object without our annotations for this very target is never changed or deleted, unless the entry
has `conflictPolicy: Adopt`; and even then it is only changed, never deleted.
"""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp import names
from k8s_ucp.reconciler.mirrors.copies import (
    Copy,
    CopySource,
    KeyMissing,
    ObjectRef,
    desired_content,
)
from k8s_ucp.reconciler.mirrors.index import DesiredCopy

SOURCE_MISSING = "SourceMissing"
"""Reason of the condition Ready if an object to copy does not exist."""


@dataclass(frozen=True)
class CopyProblem:
    """Why a copy is not in sync. The message is stable while nothing changes."""

    reason: str
    message: str


@dataclass(frozen=True)
class InSync:
    """The copy is as desired."""


@dataclass(frozen=True)
class NoCopy:
    """No copy is desired, and none of ours exists."""


@dataclass(frozen=True)
class Create:
    """Create a copy that does not exist."""

    desired: DesiredCopy
    source: CopySource


@dataclass(frozen=True)
class Update:
    """Correct the content, labels or annotations of our copy."""

    desired: DesiredCopy
    source: CopySource
    found: Copy


@dataclass(frozen=True)
class TakeOver:
    """Replace the whole object, at the version that was read: adopt it, or restore our label."""

    desired: DesiredCopy
    source: CopySource
    found: Copy


@dataclass(frozen=True)
class Recreate:
    """Delete and create our copy again, because the change is not possible in place."""

    desired: DesiredCopy
    source: CopySource
    found: Copy


@dataclass(frozen=True)
class Remove:
    """Delete our copy, which nothing requires any more; to be confirmed by the DeletionGuard."""

    found: Copy
    problem: CopyProblem | None = None
    """What to report afterwards."""


@dataclass(frozen=True)
class Orphan:
    """Like Remove, but keep the object and only remove our labels and annotations."""

    found: Copy
    problem: CopyProblem | None = None


@dataclass(frozen=True)
class CopyFailed:
    """The copy can't be made; nothing is changed on the cluster."""

    problem: CopyProblem


Action = InSync | NoCopy | Create | Update | TakeOver | Recreate | Remove | Orphan | CopyFailed


def decide(
    ref: ObjectRef, desired: DesiredCopy | None, source: CopySource | None, found: Copy | None
) -> Action:
    """Decide what one copy needs. source: of the desired copy; found: the existing object."""
    if desired is None:
        if found is None or not found.ours:
            return NoCopy()
        return _end(found)
    if source is None:
        return _without_source(desired, found)
    if source.barred:
        problem = CopyProblem("NotMirrored", f"{_named(source)}: {source.barred}")
        return _no_copy(desired, found, problem)
    if not source.may_be_copied_by(desired.entry.syncer):
        return _no_copy(desired, found, _not_shared(source, desired))
    try:
        content = desired_content(source, desired.entry)
    except KeyMissing as error:
        text = f"{error}; the copy is unchanged until the source is complete"
        return _no_copy(desired, found, CopyProblem("KeyMissing", text))
    if content.size > names.MOST_DATA:
        text = (
            f"the copy of {_named(source)} would have {content.size} bytes; the limit of "
            f"Kubernetes is {names.MOST_DATA}"
        )
        return _no_copy(desired, found, CopyProblem("TooLarge", text))
    if found is None:
        return Create(desired, source)
    if not found.ours:
        return _adoption(ref, desired, source, found, content.digest, content.type)
    changed = found.digest != content.digest
    retyped = ref.kind == "Secret" and found.type != (content.type or "Opaque")
    if changed and (found.immutable or retyped):
        if found.adopted:
            return _undeletable(ref, found, content.type)
        return Recreate(desired, source, found)
    if not found.labeled:
        return TakeOver(desired, source, found)
    marked = (found.syncer, found.source, found.retain)
    due = (desired.entry.syncer, f"{source.namespace}/{source.name}", desired.entry.retain)
    return Update(desired, source, found) if changed or marked != due else InSync()


def _no_copy(desired: DesiredCopy, found: Copy | None, problem: CopyProblem) -> Action:
    """The desired copy can't be made: keep its previous version.

    A copy of another entry with the same reference is removed.
    """
    if found is None or not found.ours or _is_of(found, desired):
        return CopyFailed(problem)
    return _end(found, problem)


def _not_shared(source: CopySource, desired: DesiredCopy) -> CopyProblem:
    namespace = desired.entry.syncer.partition("/")[0]
    # A selector must not reveal names of objects that the Syncer may not copy.
    what = _named(source) if desired.entry.name else f"a {source.kind} in {source.namespace}"
    return CopyProblem(
        "NotShared",
        f"{what} is not shared with Syncers in namespace {namespace}; annotate it with "
        f"{names.SYNCER_NAMESPACES}={namespace}, or move the Syncer to "
        f"{source.namespace}",
    )


def _without_source(desired: DesiredCopy, found: Copy | None) -> Action:
    kind, namespace, name = desired.source.split("/", 2)
    problem = CopyProblem(
        SOURCE_MISSING, f"the source {kind} {namespace}/{name} does not exist yet"
    )
    if found is None or not _is_of(found, desired):
        return _no_copy(desired, found, problem)
    if desired.entry.retain or found.retain:
        return _failed(
            SOURCE_MISSING,
            f"the source {kind} {namespace}/{name} was deleted; its copy is retained",
        )
    return _end(found, problem)


def _end(found: Copy, problem: CopyProblem | None = None) -> Action:
    if found.retain or found.adopted:
        return Orphan(found, problem)
    return Remove(found, problem)


def _is_of(found: Copy, desired: DesiredCopy) -> bool:
    return (found.syncer, found.source) == (desired.entry.syncer, desired.source.split("/", 1)[1])


def _adoption(
    ref: ObjectRef,
    desired: DesiredCopy,
    source: CopySource,
    found: Copy,
    digest: bytes,
    type: str,
) -> Action:
    exists = f"{ref.kind} {ref.namespace}/{ref.name} already exists"
    if not desired.entry.adopt:
        return _failed(
            "Taken",
            f"{exists} and was not created by ucp; delete it, choose another "
            "targetName, or set conflictPolicy: Adopt",
        )
    other_type = ref.kind == "Secret" and found.type != (type or "Opaque")
    if other_type or (found.immutable and found.digest != digest):
        return _undeletable(ref, found, type)
    return TakeOver(desired, source, found)


def _undeletable(ref: ObjectRef, found: Copy, type: str) -> CopyFailed:
    """Why an existing object, which would have to be recreated, can't become the copy."""
    exists = f"{ref.kind} {ref.namespace}/{ref.name} already exists"
    if ref.kind == "Secret" and found.type != (type or "Opaque"):
        return _failed(
            "TypeDiffers",
            f"{exists} with type {found.type}, but the source has {type or 'Opaque'}; "
            "types are immutable: delete it by hand",
        )
    return _failed("Immutable", f"{exists} and is immutable: delete it by hand to have it copied")


def duplicate(ref: ObjectRef, granted: DesiredCopy, other: DesiredCopy) -> CopyProblem:
    """The problem of a desired copy whose name is taken by one with precedence."""
    where = f"{ref.kind} {ref.namespace}/{ref.name}"
    first = f"data[{granted.entry.number}] of Syncer {granted.entry.syncer}"
    return CopyProblem(
        "Duplicate",
        f"{where} is already a copy of {granted.source.split('/', 1)[1]} by {first}; "
        "choose another targetName or targetNamespace for "
        f"{other.source.split('/', 1)[1]}",
    )


def _failed(reason: str, message: str) -> CopyFailed:
    return CopyFailed(CopyProblem(reason, message))


def _named(source: CopySource) -> str:
    return f"{source.kind} {source.namespace}/{source.name}"
