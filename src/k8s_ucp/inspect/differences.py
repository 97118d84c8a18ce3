"""Differences between topology, repositories and clusters: the data of `ucp diff`. Pure.

Users' commits are not a difference: tags, holds and edits are valid, as the topology only sets
their initial values. Differences are objects of the topology that the repositories lack, and
objects of the repositories that no cluster runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from k8s_ucp.errors import command_line
from k8s_ucp.inspect import status
from k8s_ucp.inspect.applications import health_of, is_settled
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.status import environment_of
from k8s_ucp.kube import Object, labels_of
from k8s_ucp.names import APP
from k8s_ucp.sync_status import sync_of
from k8s_ucp.topology import Topology

ABSENT = "-"
UNKNOWN = "?"
"""The core cluster does not respond."""
_FOLDERS = re.compile(
    r"(?:core: clusters|apps: apps/(?P<app>[^/]+))/overlays/(?P<environment>[^/]+)/"
)


@dataclass(frozen=True)
class Difference:
    """One object that differs, and its state in each of the three."""

    object: str
    topology: str
    repository: str
    cluster: str
    next: str

    def data(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True)
class Committed:
    """Content of the repositories."""

    environments: Collection[str]
    versions: Mapping[str, Mapping[str, Sequence[str]]]
    """{app: {environment: images with versions}}"""
    changes: Mapping[str, str] = field(default_factory=dict)
    """{`core: PATH` or `apps: PATH`: create, change or delete}, as `ucp start` would do."""
    conflicts: Collection[str] = ()
    """Files in which the render and users changed the same lines."""
    providers: Mapping[str, str] = field(default_factory=dict)
    """{environment: provider of its cluster}"""


def differences(
    topology: Topology, committed: Committed, snapshot: ClusterSnapshot
) -> list[Difference]:
    """Environments first, then apps, other Applications and files."""
    environments = list(_environments(topology, committed, snapshot))
    apps = list(_apps(topology, committed, snapshot))
    covered = {each.object for each in (*environments, *apps)}
    core = topology.core_cluster
    away = Difference(f"cluster {core}", "declared", "declared", "not responding", "ucp start")
    return [
        *([] if snapshot.core_ready else [away]),
        *environments,
        *apps,
        *_others(snapshot),
        *_files(committed, covered),
    ]


def _environments(
    topology: Topology, committed: Committed, snapshot: ClusterSnapshot
) -> Iterator[Difference]:
    declared = {each.name: each for each in topology.spec.environments}
    existing = {
        environment_of(each): each for each in (*snapshot.registrations, *snapshot.clusters)
    }
    rows = {each["name"]: each for each in status.summarize(topology, snapshot)["environments"]}
    for name in [*rows, *sorted({*committed.environments} - rows.keys())]:
        environment, row = declared.get(name), rows.get(name)
        provider = row["cluster"]["provider"] if row else committed.providers.get(name, "")
        wanted = environment.state == "running" if environment else name in committed.environments
        if not snapshot.core_ready:
            cluster, runs = UNKNOWN, wanted
        elif name in existing and row:
            runs = True
            cluster = "draining" if row["state"] == "draining" else "running"
        else:
            cluster, runs = ABSENT, False
        if (
            environment
            and name in committed.environments
            and runs == wanted
            and cluster != "draining"
        ):
            continue
        yield Difference(
            f"environment {name}",
            f"{environment.cluster.provider}, {environment.state}" if environment else ABSENT,
            "declared" if name in committed.environments else ABSENT,
            cluster,
            _advise_on_environment(
                name,
                provider,
                declared=environment is not None,
                committed=name in committed.environments,
            ),
        )


def _advise_on_environment(name: str, provider: str, *, declared: bool, committed: bool) -> str:
    if committed and not declared:
        return (
            f"ucp env add {name} --cluster {provider or 'P'} adopts it into ucp.yaml; then "
            f"`ucp env remove {name}` can remove it"
        )
    if declared and not committed:
        return "ucp start"
    return "ucp status; if it persists: ucp doctor"


def _apps(
    topology: Topology, committed: Committed, snapshot: ClusterSnapshot
) -> Iterator[Difference]:
    apps = {each.name for each in topology.spec.apps}
    stopped = {each.name for each in topology.spec.environments if each.state == "stopped"}
    declared = {each.name for each in topology.spec.environments}
    known = declared | {*committed.environments}
    running = {
        (str(app), environment): application
        for application in snapshot.applications
        if (app := labels_of(application).get(APP)) and (environment := environment_of(application))
    }
    overlays = {
        (app, env): pins for app, found in committed.versions.items() for env, pins in found.items()
    }
    # What runs in an environment that only a commit added, the app repository alone says.
    wanted = {(app, env) for app in apps for env in declared}
    for app, env in sorted({*wanted, *overlays, *running}):
        item, pins = running.get((app, env)), overlays.get((app, env))
        expected = pins is not None and env in known - stopped
        same = not snapshot.core_ready or (item is not None) == expected
        same = same and (item is None or (is_settled(item) and _runs(pins or (), item)))
        if same and (app in apps) == (pins is not None):
            continue
        yield Difference(
            f"app {app} on {env}",
            "declared" if app in apps else ABSENT,
            ABSENT if pins is None else ", ".join(pins) or "declared",
            _deployed(item) if snapshot.core_ready else UNKNOWN,
            _advise_on_app(topology.name, app, env, committed, declared=app in apps),
        )


def _advise_on_app(
    topology: str, app: str, env: str, committed: Committed, *, declared: bool
) -> str:
    folder = f"apps/{app}/overlays/{env}/"
    overlaid = env in committed.versions.get(app, ())
    if declared and not overlaid:
        pending = any(each.startswith(f"apps: {folder}") for each in committed.changes)
        if pending:
            return "ucp start"
        log = f"git -C gitops/{topology}/apps log -1 -- {folder}"
        return f"{log} (shows the commit that deleted it: revert it, and push)"
    if overlaid and not declared:
        return (
            f"declare {app} in apps of ucp.yaml, or: ucp app remove {app} (if a commit added "
            f"it: delete apps/{app})"
        )
    return "ucp doctor"


def _runs(pins: Sequence[str], application: Object) -> bool:
    """Whether the cluster runs the pinned version of each image that a pin names."""
    if (application.get("status") or {}).get("sourceType") == "Helm":
        # The pin is a chart, which may have the same name as an image.
        return True
    images = [_parts(each) for each in _images(application)]
    for name, version in map(_parts, pins):
        found = [each for other, each in images if other == name]
        if found and version and not any(_same(version, each) for each in found):
            return False
    return True


def _parts(reference: str) -> tuple[str, str]:
    """Name and version; `TAG:sha256:...` if it has both."""
    folder, slash, last = reference.replace("@", ":").rpartition("/")
    name, _, version = last.partition(":")
    return f"{folder}{slash}{name}", version


def _same(one: str, other: str) -> bool:
    """Equal, or one lacks the tag, which kustomize drops if there is a digest."""
    return f":{one}".endswith(f":{other}") or f":{other}".endswith(f":{one}")


def _images(application: Object) -> list[str]:
    return ((application.get("status") or {}).get("summary") or {}).get("images") or []


def _deployed(application: Object | None) -> str:
    if application is None:
        return ABSENT
    return ", ".join([*_images(application), sync_of(application), health_of(application)])


def _others(snapshot: ClusterSnapshot) -> Iterator[Difference]:
    """Applications of the platform that are not settled."""
    for each in snapshot.applications:
        if not labels_of(each).get(APP) and not is_settled(each):
            name = f"Application {each['metadata']['name']}"
            yield Difference(name, "", "declared", _deployed(each), "ucp doctor")


def _files(committed: Committed, covered: Collection[str]) -> Iterator[Difference]:
    """Changed files that belong to no environment or app in `covered`."""
    for path, change in sorted(committed.changes.items()):
        found = _FOLDERS.match(path)
        environment = found["environment"] if found else ""
        objects = {
            f"environment {environment}",
            f"app {found['app'] if found else ''} on {environment}",
        }
        if not objects & {*covered}:
            topology = ABSENT if change == "delete" else "rendered"
            repository = ABSENT if change == "create" else "an earlier render"
            yield Difference(path, topology, repository, "", "ucp start")
    for path in sorted(committed.conflicts):
        ours, theirs = (command_line("ucp", "start", each, path) for each in ("--ours", "--theirs"))
        advice = f"{ours}, or: {theirs}"
        yield Difference(path, "rendered", "changed by hand", "", advice)
