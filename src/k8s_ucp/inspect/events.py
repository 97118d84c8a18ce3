"""Events of a topology's clusters, merged in chronological order: the data of `ucp events`.

Argo CD, Crossplane, the reconciler and Kubernetes itself all write Kubernetes Events about objects
in the same cluster. The app and environment of an Event follow from the cluster, and from the
object's name and namespace.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp.errors import unknown_name
from k8s_ucp.gitops.render.values.permissions import namespaces_of
from k8s_ucp.inspect.status import environment_of
from k8s_ucp.kube import Object, labels_of, mapping_in
from k8s_ucp.names import APP
from k8s_ucp.redaction import without_secrets
from k8s_ucp.topology import Topology

EventLine = dict[str, Any]


def event_line(event: Object) -> EventLine:
    """The fields of an Event that are shown."""
    about, series = mapping_in(event, "involvedObject"), mapping_in(event, "series")
    count = series.get("count") or event.get("count")
    return {
        "last": series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp"),
        "count": count if isinstance(count, int) and count else 1,
        "type": event.get("type"),
        "about": f"{about.get('kind')} {about.get('namespace', '')}/{about.get('name')}",
        "reason": event.get("reason"),
        "message": event.get("message"),
    }


def newest(events: Iterable[Object], count: int) -> list[Object]:
    """The last `count` Events, newest first."""
    return heapq.nlargest(count, events, key=lambda each: _moment(event_line(each)))


def merged(lines: Iterable[EventLine], count: int) -> list[EventLine]:
    """The last `count` lines of several clusters, oldest first.

    Sorting is stable: lines with the same time keep their order, which is by name, and the names of
    an object's Events increase with time.
    """
    found = sorted(lines, key=_moment)
    return found[max(0, len(found) - count) :]


def _moment(line: EventLine) -> tuple[str, str]:
    """Sort key: to the second in both notations (with or without fractions), then fractions."""
    stamp = str(line["last"] or "")
    return stamp[:19], stamp


@dataclass(frozen=True)
class EventScope:
    """Which app and environment objects belong to."""

    core: str
    environments: Mapping[str, str]
    """Environment by app cluster."""
    applications: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """(app, environment) by the Application's name."""
    namespaces: Mapping[str, str] = field(default_factory=dict)
    """App by namespace that it deploys to on app clusters."""

    @classmethod
    def of(
        cls, topology: Topology, clusters: Sequence[Object], applications: Sequence[Object]
    ) -> EventScope:
        """From the declaration, and from existing LocalClusters and Applications."""
        spec = topology.spec
        owners = {}
        for each in applications:
            app = labels_of(each).get(APP, "")
            owners[each["metadata"]["name"]] = (app, environment_of(each))
        return cls(
            topology.core_cluster,
            {topology.app_cluster(each.name): each.name for each in spec.environments}
            | {each["metadata"]["name"]: environment_of(each) for each in clusters},
            {
                f"{app.name}-{environment.name}": (app.name, environment.name)
                for app in spec.apps
                for environment in spec.environments
            }
            | owners,
            {app: app for app, _ in owners.values() if app}
            | {namespace: app.name for app in spec.apps for namespace in namespaces_of(app)},
        )

    def check(self, app: str, environment: str) -> None:
        """Refuse names of apps and environments that don't exist; "" is any. Raises UsageError."""
        for what, name, known in (
            ("app", app, {*self.namespaces.values()}),
            ("environment", environment, {*self.environments.values()}),
        ):
            if name and name not in known:
                raise unknown_name(what, name, sorted(known - {""}), next="ucp status")

    def line(self, cluster: str, event: Object) -> EventLine:
        """The line of a cluster's Event, with app and environment."""
        about = mapping_in(event, "involvedObject")
        kind, name = str(about.get("kind")), str(about.get("name"))
        app, environment = "", self.environments.get(cluster, "")
        if cluster != self.core:
            app = self.namespaces.get(str(about.get("namespace")), "")
        elif kind == "Application":
            app, environment = self.applications.get(name, ("", ""))
        else:
            # Objects that declare a cluster, and its parts, have names that begin with the
            # cluster's.
            owners = (each for each in self.environments if f"{name}-".startswith(f"{each}-"))
            environment = self.environments.get(max(owners, key=len, default=""), "")
        found = event_line(event)
        return {
            **found,
            "message": without_secrets(str(found["message"] or "")),
            "source": mapping_in(event, "source").get("component")
            or event.get("reportingComponent"),
            "cluster": cluster,
            "app": app or None,
            "environment": environment or None,
        }


@dataclass(frozen=True)
class Filter:
    """Conditions on lines; "" matches everything."""

    app: str = ""
    environment: str = ""
    object: str = ""
    """NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME."""

    def keeps(self, line: EventLine) -> bool:
        kind, _, object_name = line["about"].partition(" ")
        name = object_name.rpartition("/")[2]
        names = (name, object_name, f"{kind}/{name}", f"{kind}/{object_name}".replace("//", "/"))
        return (
            self.app in ("", line["app"])
            and self.environment in ("", line["environment"])
            and (not self.object or self.object.lower() in {each.lower() for each in names})
        )
