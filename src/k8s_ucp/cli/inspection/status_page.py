"""The page that `ucp status` prints: a table each of clusters, applications, mirrors and claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from k8s_ucp.cli.console import table
from k8s_ucp.components import cloud
from k8s_ucp.errors import NEXT_STEP, some_of
from k8s_ucp.gitops.promotion.message import shorten_digests
from k8s_ucp.inspect import status
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.overlay_versions import on_hold
from k8s_ucp.inspect.status import Status
from k8s_ucp.topology.placement import NO_DATA

SHOWN_IMAGES = 2
SHOWN_CLAIMS = 20
WIDE = 100
"""Minimum width of a terminal, in columns, for the commits and images of applications."""
PLACES = {"host": "host process", "pods": "pods"}

Rows = list[list[str]]


def page(
    summary: Status,
    snapshot: ClusterSnapshot,
    databases: Mapping[str, Sequence[str]],
    width: int | None = None,
    start: str = "ucp start",
) -> str:
    """Render a summary of `status.summarize` as text.

    databases: {simulated database: its environments}. width: of the terminal, in columns; None:
    not a terminal. start: the command that starts this topology.
    """
    if "destroyed" in summary:
        return _destroyed(summary, width)
    why = {} if snapshot.stopped else status.reasons(snapshot)
    rows = [*_core(summary, snapshot), *_components(summary, snapshot, why)]
    rows += [*_environments(summary, snapshot, why), *_databases(databases)]
    tables = [
        table(("what", "name", "how", "state", "why"), rows, width=width),
        *_applications(summary, why, width),
        *_mirrors(summary, why, width),
        *_claims(summary, why, width),
        *_abandoned(summary, width),
    ]
    what = summary["topology"]
    if snapshot.stopped:
        what = NEXT_STEP.join(status.why_stopped(what, snapshot, start))
    return "\n\n".join([_head(f"topology {what}", summary), *tables])


def _head(first: str, summary: Status) -> str:
    return "\n".join([first, *map(_unfinished, summary.get("unfinished", ()))])


def _core(summary: Status, snapshot: ClusterSnapshot) -> Rows:
    core, fence = summary["core"], summary["fence"]
    away = "" if core["ready"] or snapshot.stopped else "not responding: ucp start, or ucp doctor"
    if snapshot.core_problem:
        away = f"{snapshot.core_problem}; ucp start repairs it"
    rows = [["core cluster", core["name"], core["provider"], _state(core["ready"], snapshot), away]]
    if fence and fence["message"]:
        advice = f"{fence['message']}; see ucp doctor"
        rows.append(["fence", core["name"], f"epoch {fence['epoch']}", fence["state"], advice])
    return rows


def _components(summary: Status, snapshot: ClusterSnapshot, why: Mapping[str, str]) -> Rows:
    return [
        [
            "component",
            each["name"],
            ", ".join(
                [
                    each["version"] or "version unknown",
                    *(["adopted"] if each.get("adopted") else []),
                    *(["simulated"] if each["name"] == cloud.NAME else []),
                    PLACES[each["placement"]],
                ]
            ),
            _state(each["ready"], snapshot),
            why.get(each["name"], ""),
        ]
        for each in summary["components"]
    ]


def _environments(summary: Status, snapshot: ClusterSnapshot, why: Mapping[str, str]) -> Rows:
    return [
        [
            f"environment {each['name']}",
            each["cluster"]["name"],
            _provider(each["cluster"]),
            "stopped" if snapshot.stopped else _environment_state(each),
            _why(each, snapshot, why),
        ]
        for each in summary["environments"]
    ]


def _why(environment: Status, snapshot: ClusterSnapshot, why: Mapping[str, str]) -> str:
    if snapshot.core_ready:
        return status.why_environment(environment, why)
    if snapshot.stopped or environment["state"] != "running":
        return ""
    # It may well be ready: only the core tells.
    return "unknown while the core cluster does not respond"


def _databases(databases: Mapping[str, Sequence[str]]) -> Rows:
    return [
        [f"database {name}", ", ".join(environments), "local", NO_DATA, ""]
        for name, environments in databases.items()
    ]


def _applications(summary: Status, why: Mapping[str, str], width: int | None) -> list[str]:
    if not summary["applications"]:
        return []
    narrow = width is not None and width < WIDE
    rows = [
        [
            each["name"],
            each["environment"],
            each["sync"] or "Unknown",
            each["health"] or "Unknown",
            *([] if narrow else [(each["revision"] or "")[:8], _images(each["images"])]),
            "; ".join(filter(None, [why.get(each["name"], ""), on_hold(each.get("held", ()))])),
        ]
        for each in summary["applications"]
    ]
    more = () if narrow else ("commit", "images")
    columns = ("application", "environment", "sync", "health", *more, "why")
    return [table(columns, rows, width=width)]


def _mirrors(summary: Status, why: Mapping[str, str], width: int | None) -> list[str]:
    if not summary["mirrors"]:
        return []
    rows = [
        [
            each["name"],
            ", ".join(target["cluster"] for target in each["targets"] if target["ready"]),
            ", ".join(target["cluster"] for target in each["targets"] if not target["ready"]),
            _ready(each["ready"]),
            why.get(f"mirror {each['name']}", ""),
        ]
        for each in summary["mirrors"]
    ]
    return [table(("mirror", "done", "not yet", "state", "why"), rows, width=width)]


def _claims(summary: Status, why: Mapping[str, str], width: int | None) -> list[str]:
    """Claims that are not ready, the first SHOWN_CLAIMS of them."""
    waiting = [each for each in summary["claims"] if not each["ready"]]
    if not waiting:
        return []
    rows = [
        [_claim(each), _ready(each["ready"]), why.get(f"claim {_claim(each)}", "")]
        for each in waiting[:SHOWN_CLAIMS]
    ]
    if len(waiting) > SHOWN_CLAIMS:
        rows.append([f"and {len(waiting) - SHOWN_CLAIMS} more", "", "see -o json"])
    return [table(("claim", "state", "why"), rows, width=width)]


def _destroyed(summary: Status, width: int | None) -> str:
    """A destroyed topology has nothing left that could be asked, and nothing has failed."""
    found = summary["destroyed"]
    head = _head(f"topology {found['message']}{NEXT_STEP}{found['next']}", summary)
    return "\n\n".join([head, *_abandoned(summary, width)])


def _abandoned(summary: Status, width: int | None) -> list[str]:
    """The resources that `--abandon` left behind."""
    if not (abandoned := summary.get("abandoned")):
        return []
    rows = [[each["object"], each["since"], each["error"]] for each in abandoned]
    columns = ("abandoned, may still be billed", "since", "last error")
    return [table(columns, rows, width=width)]


def _unfinished(run: Status) -> str:
    return f"{run['message']}{NEXT_STEP}{run['next']}" if run["next"] else str(run["message"])


def _images(images: list[str]) -> str:
    """The first few images; `-o json` lists all of them."""
    return shorten_digests(some_of(images, SHOWN_IMAGES))


def _claim(each: Status) -> str:
    """Kind, namespace and name, as in the keys of `status.reasons`."""
    return f"{each['kind']} {'/'.join(filter(None, (each['namespace'], each['name'])))}"


def _provider(cluster: Status) -> str:
    """The provider, whether it is simulated, and the address of the ingress on this machine."""
    words = [cluster["provider"], *(["simulated"] if cluster["simulated"] else [])]
    words += [f"http {each}" for name, each in cluster["addresses"].items() if name == "http"]
    return ", ".join(words)


def _state(ready: bool, snapshot: ClusterSnapshot) -> str:
    return "stopped" if snapshot.stopped else _ready(ready)


def _ready(ready: bool) -> str:
    return "ready" if ready else "NOT READY"


def _environment_state(environment: Status) -> str:
    cluster = environment["cluster"]
    if environment["state"] != "running":
        return str(environment["state"])
    if not cluster["ready"]:
        return "NOT READY"
    if not cluster["registered"]:
        return "not registered"
    return "ready" if cluster["reachable"] else "not reachable"
