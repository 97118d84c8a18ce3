"""The board's content at one moment, as rows by key in sections; and the difference of two.

Pure. Combines the data of `ucp status`, `ucp doctor` and `ucp history`. Texts from outside are
redacted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp.board.versions import Deployed
from k8s_ucp.gitops.promotion.history import HistoryEvent
from k8s_ucp.gitops.promotion.message import are_some, from_to
from k8s_ucp.inspect import status
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.doctor.finding import Finding
from k8s_ucp.inspect.events import event_line, newest
from k8s_ucp.inspect.status import Status
from k8s_ucp.kube import Object, conditions_of
from k8s_ucp.redaction import without_secrets
from k8s_ucp.topology import Topology

Row = dict[str, Any]
Snapshot = dict[str, dict[str, Row]]
"""{section: {key: row}}"""

EVENTS = 100
"""Maximum number of events; the newest."""
_LONGEST = 600
"""Maximum length of a text from outside, in characters."""


@dataclass(frozen=True)
class BoardState:
    """Everything known at one moment; what could not be queried is empty or unchanged."""

    topology: Topology
    cluster_snapshot: ClusterSnapshot | None = None
    """None: nothing was queried yet."""
    core_lost: bool = False
    """The core does not respond: `cluster_snapshot` is its last known state."""
    heard: float | None = None
    """Time of the core's last response, in seconds since the epoch."""
    findings: Sequence[Finding] = ()
    versions: Mapping[tuple[str, str], Deployed] = field(default_factory=dict)
    versions_problem: str = ""
    """Why the app repository could not be read."""
    resources: Sequence[Object] = ()
    """Crossplane's objects."""
    events: Sequence[Object] = ()
    may_change: bool = False


def snapshot(state: BoardState) -> Snapshot:
    """The sections of the board."""
    cluster_snapshot = state.cluster_snapshot or ClusterSnapshot(core_ready=False)
    summary = status.summarize(state.topology, cluster_snapshot)
    why = status.reasons(cluster_snapshot)
    applications = {each["metadata"]["name"]: each for each in cluster_snapshot.applications}
    apps = [each for each in summary["applications"] if each["app"] and each["environment"]]
    return {
        "about": {"": _about(state, summary, apps)},
        "apps": _apps(apps, applications, why, state.versions),
        "environments": {each["name"]: _environment(each, why) for each in summary["environments"]},
        "components": {
            each["name"]: {**each, "why": _text(why.get(each["name"], ""))}
            for each in summary["components"]
        },
        "applications": {
            application["name"]: {
                "name": application["name"],
                "sync": application["sync"] or "Unknown",
                "health": application["health"] or "Unknown",
                "revision": (application["revision"] or "")[:12],
                "why": _text(why.get(application["name"], "")),
            }
            for application in summary["applications"]
            if not (application["app"] and application["environment"])
        },
        "mirrors": {each["name"]: _mirror(each, why) for each in summary["mirrors"]},
        "findings": {each.id: _finding(each) for each in state.findings},
        "resources": dict(_resources(state.resources)),
        "events": dict(_events(state.events)),
    }


def difference(before: Snapshot, after: Snapshot) -> dict[str, dict[str, Any]]:
    """The changes from one to the other: {section: {"put": {key: row}, "drop": [key]}}."""
    found: dict[str, dict[str, Any]] = {}
    for section in {**before, **after}:
        old, new = before.get(section, {}), after.get(section, {})
        put = {key: row for key, row in new.items() if old.get(key) != row}
        drop = [key for key in old if key not in new]
        if put or drop:
            found[section] = {"put": put, "drop": drop}
    return found


def _about(state: BoardState, summary: Status, apps: Sequence[Status]) -> Row:
    environments = [each["name"] for each in summary["environments"]]
    others = {each["environment"] for each in apps} | {env for _, env in state.versions}
    return {
        "topology": summary["topology"],
        "core": summary["core"],
        "environments": [*environments, *sorted(others - set(environments))],
        "asked": state.cluster_snapshot is not None,
        "lost": state.core_lost,
        "lostSince": state.heard if state.core_lost else None,
        "problem": _text(state.versions_problem),
        "write": state.may_change,
    }


def _apps(
    found: Iterable[Status],
    applications: Mapping[str, Object],
    why: Mapping[str, str],
    versions: Mapping[tuple[str, str], Deployed],
) -> dict[str, Row]:
    running = {(each["app"], each["environment"]): each for each in found}
    rows = {}
    for app, env in sorted({*running, *versions}):
        each, version = running.get((app, env)), versions.get((app, env))
        name = each["name"] if each else ""
        rows[f"{app}/{env}"] = {
            "app": app,
            "env": env,
            "application": name,
            "sync": (each and each["sync"]) or ("Unknown" if each else "Missing"),
            "health": (each and each["health"]) or ("Unknown" if each else "Missing"),
            "since": _since(applications[name]) if each else None,
            "why": _text(why.get(name, "")) if each else "no Application in Argo CD yet",
            "images": each["images"] if each else [],
            **(_version(version, versions) if version else _NO_VERSION),
        }
    return rows


_NO_VERSION: Row = {
    "tag": "",
    "pins": {},
    "held": [],
    "changed": None,
    "newer": None,
    "problem": "",
}


def _version(version: Deployed, all_versions: Mapping[tuple[str, str], Deployed]) -> Row:
    tags = {str(pin) for pin in version.pins.values()}
    tag = tags.pop() if len(tags) == 1 else ", ".join(
        f"{name}={pin}" for name, pin in version.pins.items()
    )  # fmt: skip
    newer = None
    if version.newer:
        source = all_versions.get((version.app, version.source))
        newer = {
            "env": version.source,
            "tag": from_to(version.newer, several=are_some(version.newer, version.pins))[1],
            "images": {each.image: str(each.new) for each in version.newer},
            "changed": _change(source),
        }
    return {
        "tag": tag,
        "pins": {name: str(pin) for name, pin in version.pins.items()},
        "held": list(version.held),
        "changed": _change(version),
        "newer": newer,
        "problem": _text(version.problem),
    }


def _change(version: Deployed | None) -> Row | None:
    """The change that introduced the current tags."""
    return change_row(version.changed) if version and version.changed else None


def change_row(event: HistoryEvent) -> Row:
    """One change, as in `ucp history`."""
    old, new = from_to(event.changes, several=event.several)
    return {
        "by": _text(event.author.name),
        "time": event.time,
        "kind": event.kind,
        "commit": event.commit[:12],
        "from": old,
        "to": new,
    }


def _since(application: Object) -> str | None:
    """Time of the last transition of its health, or of its last deployment."""
    found = application.get("status") or {}
    deployed = [str(each.get("deployedAt") or "") for each in found.get("history") or []]
    return (
        (found.get("health") or {}).get("lastTransitionTime") or max(deployed, default="") or None
    )


def _environment(each: Status, why: Mapping[str, str]) -> Row:
    cluster = each["cluster"]
    return {
        "name": each["name"],
        "state": each["state"],
        **{name: cluster[name] for name in ("provider", "ready", "registered", "reachable")},
        "cluster": cluster["name"],
        "simulated": cluster["simulated"],
        "tokenExpiresAt": cluster["tokenExpiresAt"],
        "why": _text(status.why_environment(each, why)),
    }


def _mirror(each: Status, why: Mapping[str, str]) -> Row:
    return {
        "name": each["name"],
        "ready": each["ready"],
        "done": [target["cluster"] for target in each["targets"] if target["ready"]],
        "pending": [target["cluster"] for target in each["targets"] if not target["ready"]],
        "why": _text(why.get(f"mirror {each['name']}", "")),
    }


def _finding(each: Finding) -> Row:
    return {**each.data(), "message": _text(each.message), "next": _text(each.next)}


def _resources(items: Sequence[Object]) -> Iterable[tuple[str, Row]]:
    for each in items:
        about = each["metadata"]
        conditions = {condition.get("type"): condition for condition in conditions_of(each)}
        bad = [
            f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")
            for name in ("Synced", "Ready")
            if (condition := conditions.get(name)) and condition.get("status") != "True"
        ]
        namespace = about.get("namespace") or ""
        yield (
            f"{each['kind']}/{namespace}/{about['name']}",
            {
                "kind": each["kind"],
                "name": f"{namespace}/{about['name']}" if namespace else about["name"],
                "synced": (conditions.get("Synced") or {}).get("status", "Unknown"),
                "ready": (conditions.get("Ready") or {}).get("status", "Unknown"),
                "deleting": bool(about.get("deletionTimestamp")),
                "why": _text(bad[0] if bad else ""),
            },
        )


def _events(items: Sequence[Object]) -> Iterable[tuple[str, Row]]:
    for each in newest(items, EVENTS):
        line = event_line(each)
        key = str(each["metadata"].get("uid") or each["metadata"]["name"])
        yield key, {**line, "message": _text(str(line["message"] or ""))}


def _text(words: str) -> str:
    """A text from outside, redacted and shortened."""
    clean = without_secrets(words[: 4 * _LONGEST])
    return clean if len(clean) <= _LONGEST else clean[:_LONGEST] + " ..."
