"""Why a Crossplane resource isn't ready, according to its conditions. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from k8s_ucp.errors import NEXT_STEP
from k8s_ucp.inspect.applications import shortened
from k8s_ucp.kube import Object, conditions_of
from k8s_ucp.reconciler.runtime.conditions import find, is_true

WAITS_FOR_ANOTHER = re.compile(
    r"cannot resolve references|referenced field was empty|is not in the cloud yet"
    r"|^\S+ \S+ does not exist$|has no key \S+ yet|^no \S+ .*matches "
)
"""Messages of Crossplane's providers and of ours that say it waits for another resource."""


class _Rank(IntEnum):
    """Lower is closer to the root cause."""

    FAILED = 0
    REPORTS_STATE = 1
    UNDER_WAY = 2
    REFERS_TO_ANOTHER = 3
    UNSEEN = 4


@dataclass(frozen=True)
class Cause:
    """What keeps something from being ready."""

    resource: Object
    message: str
    failed: bool
    """Whether it failed, and is not just in progress."""
    next: str = ""
    """The next command, if the resource's message has one."""

    @property
    def title(self) -> str:
        """The resource and the message."""
        return f"{self.resource['kind']} {self.resource['metadata']['name']}: {self.message}"

    def __str__(self) -> str:
        return self.title + (f"{NEXT_STEP}{self.next}" if self.next else "")


def first_cause(resources: Iterable[Object]) -> Cause | None:
    """The root cause among unready resources, as far as it can be told."""
    found = [(*ranked, each) for each in resources if (ranked := _state(each))]
    if not found:
        return None
    rank, message, resource = min(found, key=lambda each: each[0])
    failed = rank is _Rank.FAILED or (rank is _Rank.REFERS_TO_ANOTHER and "yet" not in message)
    what, _, advice = message.partition(NEXT_STEP)
    return Cause(resource, shortened(what), failed, advice)


def _state(item: Object) -> tuple[_Rank, str] | None:
    """(rank, message); None if it is ready."""
    for type in ("Synced", "LastAsyncOperation"):
        condition = find(item, type) or {}
        if condition.get("status") == "False":
            message = str(condition.get("message") or condition.get("reason"))
            if condition.get("reason") == "ReconcilePaused":
                return _Rank.REPORTS_STATE, message
            waits = WAITS_FOR_ANOTHER.search(message)
            return _Rank.REFERS_TO_ANOTHER if waits else _Rank.FAILED, message
    if is_true(item, "Ready"):
        return None
    ready = find(item, "Ready")
    if ready is None:
        # Crossplane writes both conditions at once.
        seen = find(item, "Synced") is not None
        return (_Rank.UNDER_WAY, "not ready yet") if seen else (_Rank.UNSEEN, "not reconciled yet")
    if message := str(ready.get("message") or ""):
        return _Rank.FAILED if NEXT_STEP in message else _Rank.REPORTS_STATE, message
    return _Rank.UNDER_WAY, str(ready.get("reason") or "not ready yet")


def stuck(
    claims: Iterable[Object], find: Callable[[Mapping[str, str]], Object | None] = lambda _: None
) -> Iterator[str]:
    """Descriptions of claims that remain, each with its own message.

    find: a composed resource by its reference; None if it does not exist.
    """
    for each in claims:
        name = f"{each['kind']} {each['metadata']['name']}"
        spec = each.get("spec") or {}
        references = (spec.get("crossplane") or {}).get("resourceRefs") or []
        parts = [part for part in (find(one) for one in references) if part]
        words = [
            f"{part['kind']} {part['metadata']['name']}: {message}"
            for part in parts
            if (message := last_error(part))
        ]
        if not each["metadata"].get("deletionTimestamp"):
            words.insert(0, "it was not deleted: it is not from the team's repository")
        yield f"{name} ({', '.join(words) or last_error(each) or 'it is being deleted'})"


def kubectl_words(verb: str, item: Object) -> str:
    """Arguments of kubectl for a command about an object, without program and kubeconfig."""
    metadata, group = item["metadata"], str(item["apiVersion"]).rpartition("/")[0]
    kind = item["kind"].lower() + (f".{group}" if group else "")
    namespace = f" -n {metadata['namespace']}" if metadata.get("namespace") else ""
    return f"{verb} {kind} {metadata['name']}{namespace}"


def last_error(item: Object) -> str:
    """Messages of the conditions that aren't true."""
    return "; ".join(
        str(each.get("message") or each.get("reason"))
        for each in conditions_of(item)
        if each.get("status") != "True" and (each.get("message") or each.get("type") == "Synced")
    )
