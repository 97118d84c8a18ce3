"""The status of Syncers, with counters that follow every change of a copy."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import Object
from k8s_ucp.reconciler.mirrors.index import Destination
from k8s_ucp.reconciler.mirrors.rules import CopyProblem
from k8s_ucp.reconciler.mirrors.spec import Syncer
from k8s_ucp.reconciler.runtime.clock import Clock
from k8s_ucp.reconciler.runtime.conditions import Condition, written
from k8s_ucp.timestamps import stamp

NO_TARGET = "NoTarget"
"""Reason of the condition Ready if no registered cluster is selected."""
SHOWN = 3
"""Problems that a message quotes; the others are counted."""


@dataclass
class Count:
    """Counters of one Syncer in one cluster."""

    copies: int = 0
    synced: int = 0
    problems: dict[str, CopyProblem] = field(default_factory=dict)
    """By the copy's reference."""


State = CopyProblem | bool
"""True: in sync; False: pending."""
CopyStates = tuple[tuple[str, State], ...]
"""State of one copy, for each Syncer that declares it."""


class SyncCounters:
    """States of all copies, and their counts. Safe to share between threads."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        """changed: called with the Syncer whose counts changed; must not block."""
        self._changed = changed
        self._states: dict[str, dict[str, CopyStates]] = defaultdict(dict)
        """By cluster and reference."""
        self._counts: dict[tuple[str, str], Count] = {}
        self._synced: dict[str, CopyStates] = {}
        """The most frequent value of each Syncer, shared by its tens of thousands of copies."""
        self._lock = threading.Lock()

    def record(self, cluster: str, ref: str, states: CopyStates) -> None:
        """Set the states of a copy; empty if none is desired."""
        if len(states) == 1 and states[0][1] is True:
            states = self._synced.setdefault(states[0][0], states)
        with self._lock:
            copies = self._states[cluster]
            before = copies.get(ref, ())
            if before == states:
                return
            for syncer, state in before:
                self._add(-1, syncer, cluster, ref, state)
            for syncer, state in states:
                self._add(1, syncer, cluster, ref, state)
            if states:
                copies[ref] = states
            else:
                copies.pop(ref, None)
        for syncer in {each for each, _ in (*before, *states)}:
            self._changed(syncer)

    def forget(self, cluster: str) -> None:
        """Drop a cluster that is no longer registered."""
        with self._lock:
            self._states.pop(cluster, None)
            pairs = [pair for pair in self._counts if pair[1] == cluster]
            for pair in pairs:
                del self._counts[pair]
        for syncer, _ in pairs:
            self._changed(syncer)

    def count(self, syncer: str, cluster: str) -> Count:
        """A copy of the current counters, with problems sorted by reference."""
        with self._lock:
            found = self._counts.get((syncer, cluster)) or Count()
            return Count(found.copies, found.synced, dict(sorted(found.problems.items())))

    def clusters(self, syncer: str) -> list[str]:
        """Clusters with counters of a Syncer."""
        with self._lock:
            return [where for who, where in self._counts if who == syncer]

    def _add(self, sign: int, syncer: str, cluster: str, ref: str, state: State) -> None:
        count = self._counts.setdefault((syncer, cluster), Count())
        count.copies += sign
        if state is True:
            count.synced += sign
        elif isinstance(state, CopyProblem):
            if sign > 0:
                count.problems[ref] = state
            else:
                count.problems.pop(ref, None)
        if not count.copies:
            del self._counts[syncer, cluster]


def target_condition(count: Count, away: CopyProblem | None) -> Condition:
    """Whether one cluster has all copies. away: why it can't be reached or written to now."""
    if away is not None:
        rest = count.copies - count.synced
        message = away.message + (f"; {rest} of {count.copies} copies pending" if rest else "")
        return Condition(names.SYNCED, "False", away.reason, message)
    if count.problems:
        texts = [each.message for each in list(count.problems.values())[:SHOWN]]
        more = len(count.problems) - len(texts)
        if more:
            texts.append(f"and {more} more")
        reasons = {each.reason for each in count.problems.values()}
        reason = reasons.pop() if len(reasons) == 1 else "SeveralProblems"
        return Condition(names.SYNCED, "False", reason, "; ".join(texts))
    if count.synced < count.copies:
        return Condition(
            names.SYNCED,
            "False",
            "Copying",
            f"{count.copies - count.synced} of {count.copies} copies pending",
        )
    if not count.copies:
        return Condition(names.SYNCED, "True", "NothingToCopy", "no object to copy yet")
    return Condition(names.SYNCED, "True", "Synced", f"{_copies(count.copies)} in sync")


def status_of(
    item: Object,
    syncer: Syncer,
    targets: Mapping[str, tuple[Destination | None, Count, CopyProblem | None]],
    clock: Clock,
) -> dict[str, Any]:
    """The whole status. targets: by cluster, with None for a cluster that isn't registered."""
    now = stamp(clock())
    targets_before = {
        each["cluster"]: each for each in (item.get("status") or {}).get("targets") or []
    }
    rows, behind = [], []
    for cluster, (target, count, away) in sorted(targets.items()):
        condition = target_condition(count, away)
        if condition.status != "True":
            behind.append(cluster)
        before = {"metadata": item["metadata"], "status": targets_before.get(cluster) or {}}
        rows.append(
            {
                "cluster": cluster,
                **({"environment": target.environment} if target and target.environment else {}),
                "copies": count.copies,
                "synced": count.synced,
                "conditions": written(before, [condition], now),
            }
        )
    ready = _ready(syncer, rows, behind)
    return {
        "observedGeneration": syncer.generation,
        "copies": sum(each["copies"] for each in rows),
        "synced": sum(each["synced"] for each in rows),
        "targets": rows,
        "conditions": written(item, [ready], now),
    }


def _ready(syncer: Syncer, rows: list[dict[str, Any]], behind: list[str]) -> Condition:
    if syncer.deleting:
        return Condition(names.READY, "False", "Leaving", "its copies are being deleted")
    if syncer.mistakes:
        text = "; ".join(syncer.mistakes[:SHOWN])
        text += "; its copies are not deleted until this is fixed"
        return Condition(names.READY, "False", "Mistaken", text)
    if not rows:
        return Condition(names.READY, "False", NO_TARGET, "no app cluster matches its targets yet")
    if behind:
        where = next(each for each in rows if each["cluster"] in behind)
        first = where["conditions"][0]
        rest = f" (and {len(behind) - 1} more clusters)" if len(behind) > 1 else ""
        message = f"{where['cluster']}: {first['message']}{rest}"
        return Condition(names.READY, "False", first["reason"], message)
    return Condition(names.READY, "True", "Synced", "all targets are in sync")


def _copies(number: int) -> str:
    return "1 copy" if number == 1 else f"{number} copies"
