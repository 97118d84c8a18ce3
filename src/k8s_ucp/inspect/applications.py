"""The status of an Application of Argo CD, evaluated and summarized. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from k8s_ucp.errors import some_of
from k8s_ucp.kube import Object
from k8s_ucp.sync_status import sync_of

LENGTH = 300
"""Maximum length of one message, in characters."""
_SHOWN = 3
"""Maximum number of objects to name."""

# Prefixes that Argo CD's programs add to an error when they pass it on.
_PASSED_ON = re.compile(
    r"rpc error: code = \w+ desc = |failed to generate manifest for source \d+ of \d+: "
    # The temporary file that it applied: its name differs at every attempt.
    r"|(?: from)? \"/dev/shm/\d+\"(?=:)"
)
# Argo CD's message while it repeats a sync, from which it has removed the errors of the last one.
_REPEATS = re.compile(r"Retrying operation.*\. Attempt #\d+$")
_Key = tuple[str, str, str, str]
NOT_COMPARED = "Argo CD has not compared it with git yet"


def is_settled(item: Object) -> bool:
    """Whether everything in git is deployed and healthy; deliberately kept objects don't count."""
    return health_of(item) == "Healthy" and (sync_of(item) == "Synced" or bool(kept(item)))


def health_of(item: Object) -> str:
    """Healthy, Progressing, Degraded and the like, or Unknown."""
    return str((_status(item).get("health") or {}).get("status") or "Unknown")


def find_problem(item: Object) -> str:
    """What is wrong, briefly; empty if nothing is known.

    Order: errors of reading or comparing manifests, objects that a sync could not apply, warnings.
    Argo CD retries a sync indefinitely, so one that failed can still be `Running`.
    """
    return _failure(item) or next(_messages(item), "")


def reason(item: Object) -> str:
    """Why an Application isn't Synced and Healthy, as far as Argo CD knows."""
    if failure := _failure(item):
        return failure
    operation = _status(item).get("operationState") or {}
    message = shortened(str(operation.get("message") or ""))
    running = message if operation.get("phase") == "Running" else ""
    if running and not _REPEATS.match(running):
        return running
    resources = _status(item).get("resources") or []
    retained = kept(item)
    unhealthy = [_unhealthy(each) for each in resources if _health(each) in _UNHEALTHY]
    differing = [_shown(each) for each in resources if each.get("status") == "OutOfSync"]
    parts = [
        f"{what}: {some_of(names, _SHOWN)}"
        for what, names in (
            ("not healthy", unhealthy),
            ("out of sync with git", [each for each in differing if each not in retained]),
        )
        if names
    ]
    # Warnings, such as of orphaned objects, leave an Application healthy.
    pending = "" if (_status(item).get("sync") or {}).get("status") else NOT_COMPARED
    return "; ".join(parts) or next(_messages(item), running) or pending


def _failure(item: Object) -> str:
    causes = (str(each.get("message")) for each in _conditions(item) if _is_cause(each))
    texts = [*map(shortened, causes), *_failed_sync(_status(item).get("operationState") or {})]
    return next(iter(texts), "")


def _messages(item: Object) -> Iterator[str]:
    return (shortened(str(each.get("message"))) for each in _conditions(item))


def _conditions(item: Object) -> list[dict[str, Any]]:
    return _status(item).get("conditions") or []


def find_problems(items: Iterable[Object]) -> list[str]:
    """What is wrong with each Application that isn't settled, if anything is known."""
    return [
        f"Application {each['metadata']['name']}: {problem}"
        for each in items
        if not is_settled(each) and (problem := find_problem(each))
    ]


ENDLESS = "without spec.duration it runs until its analyses end, or for ever"
"""Of an Experiment of Argo Rollouts, which Argo CD reports as Progressing while it runs."""
_UNHEALTHY = ("Degraded", "Missing", "Unknown", "Suspended", "Progressing")


def _is_cause(condition: dict[str, Any]) -> bool:
    """Whether it is an error in itself: neither a warning nor the result of a failed sync."""
    kind = str(condition.get("type"))
    return not kind.endswith("Warning") and kind != "SyncError"


def _failed_sync(operation: dict[str, Any]) -> list[str]:
    """The objects that a sync failed to apply, or the message of the whole operation."""
    found = _failed(operation)
    retries = int(operation.get("retryCount") or 0)
    tried = f" (tried {retries + 1} times)" if retries else ""
    if found:
        texts = [f"{name}: {shortened(message)}" for name, message in found[:_SHOWN]]
        more = f"; and {len(found) - _SHOWN} more objects" if len(found) > _SHOWN else ""
        return ["; ".join(texts) + more + tried]
    phase, message = operation.get("phase"), str(operation.get("message") or "")
    repeats = phase == "Running" and retries and not _REPEATS.match(message)
    if phase in ("Failed", "Error") or repeats:
        return [shortened(message)]
    return []


def _failed(operation: dict[str, Any]) -> list[tuple[str, str]]:
    resources = (operation.get("syncResult") or {}).get("resources") or []
    return [
        (_shown(each), str(each.get("message") or "no reason given"))
        for each in resources
        if each.get("status") == "SyncFailed" or each.get("hookPhase") in ("Failed", "Error")
    ]


def _health(resource: dict[str, Any]) -> str:
    return str((resource.get("health") or {}).get("status") or "")


def _unhealthy(resource: dict[str, Any]) -> str:
    """An object that isn't healthy, with Argo CD's message."""
    message = shortened(str((resource.get("health") or {}).get("message") or ""))
    if _key(resource)[:2] == ("argoproj.io", "Experiment") and _health(resource) == "Progressing":
        message = f"{message}; {ENDLESS}" if message else ENDLESS
    return f"{_shown(resource)} ({message})" if message else _shown(resource)


def kept(item: Object) -> list[str]:
    """Names of the kept resources."""
    return sorted(_shown(each) for each in kept_resources(item))


def kept_resources(item: Object) -> list[dict[str, Any]]:
    """Objects removed from git that are deliberately kept, if nothing else differs.

    Namespaces and data are never pruned (`Prune=false`): Argo CD skips them in every sync and keeps
    reporting the Application as OutOfSync.
    """
    status = _status(item)
    results = ((status.get("operationState") or {}).get("syncResult") or {}).get("resources") or []
    skipped = {_key(each) for each in results if each.get("status") == "PruneSkipped"}
    different = [each for each in status.get("resources") or [] if each.get("status") != "Synced"]
    if sync_of(item) != "OutOfSync" or not all(
        each.get("requiresPruning") and _key(each) in skipped for each in different
    ):
        return []
    return different


def shortened(text: str) -> str:
    """One line with beginning and end: what was attempted, and the result."""
    text = " ".join(_PASSED_ON.sub("", text).split())
    if len(text) <= LENGTH:
        return text
    return f"{text[: LENGTH // 3]} ... {text[-2 * LENGTH // 3 :]}"


def _status(item: Object) -> dict[str, Any]:
    return item.get("status") or {}


def _key(resource: dict[str, Any]) -> _Key:
    group, kind = str(resource.get("group", "")), str(resource.get("kind", ""))
    return group, kind, str(resource.get("namespace", "")), str(resource.get("name", ""))


def _shown(resource: dict[str, Any]) -> str:
    _, kind, namespace, name = _key(resource)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
