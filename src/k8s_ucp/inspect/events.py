"""Events of a topology's clusters, merged in the order of time: the data of `ucp events`.

Argo CD, Crossplane, the reconciler and Kubernetes itself all write Kubernetes Events, about objects
of the cluster that they write them to. Which app and environment an Event is about follows from
that cluster, and from the object's name and namespace.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp.gitops.render.values.permissions import namespaces_of
from k8s_ucp.inspect.status import APP, environment_of
from k8s_ucp.kube import Object
from k8s_ucp.redaction import without_secrets
from k8s_ucp.topology import Topology

EventLine = dict[str, Any]


def event_line(event: Object) -> EventLine:
    """What an Event tells."""
    about = event.get("involvedObject") or {}
    series = event.get("series") or {}
    return {
        "last": series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp"),
        "count": series.get("count") or event.get("count") or 1,
        "type": event.get("type"),
        "about": f"{about.get('kind')} {about.get('namespace', '')}/{about.get('name')}",
        "reason": event.get("reason"),
        "message": event.get("message"),
    }


def newest(events: Iterable[Object], count: int) -> list[Object]:
    """The last `count`, the newest first."""
    return heapq.nlargest(count, events, key=lambda each: _moment(event_line(each)))


def merged(lines: Iterable[EventLine], count: int) -> list[EventLine]:
    """Of several clusters: the last `count`, the oldest first; as they came within a second.

    That is by name, and the names of Events of an object grow with time.
    """
    found = sorted(lines, key=_moment)
    return found[max(0, len(found) - count) :]


def _moment(line: EventLine) -> tuple[str, str]:
    """To the second in either notation, with or without fractions; those break ties."""
    stamp = str(line["last"] or "")
    return stamp[:19], stamp


@dataclass(frozen=True)
class Places:
    """What belongs to which app and environment."""

    core: str
    environments: Mapping[str, str]
    """By app cluster."""
    applications: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """App and environment, by the Application's name."""
    namespaces: Mapping[str, str] = field(default_factory=dict)
    """Apps, by the namespaces that they write to on app clusters."""

    @classmethod
    def of(
        cls, topology: Topology, clusters: Sequence[Object], applications: Sequence[Object]
    ) -> Places:
        """From what is declared, and from what is there: its LocalClusters, its Applications."""
        spec = topology.spec
        owners = {}
        for each in applications:
            app = str((each["metadata"].get("labels") or {}).get(APP, ""))
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

    def line(self, cluster: str, event: Object) -> EventLine:
        """An Event of a cluster, with what it is about."""
        about = event.get("involvedObject") or {}
        kind, name = str(about.get("kind")), str(about.get("name"))
        app, environment = "", self.environments.get(cluster, "")
        if cluster != self.core:
            app = self.namespaces.get(str(about.get("namespace")), "")
        elif kind == "Application":
            app, environment = self.applications.get(name, ("", ""))
        else:
            # What declares a cluster, and its parts: their names begin with the cluster's.
            owners = (each for each in self.environments if f"{name}-".startswith(f"{each}-"))
            environment = self.environments.get(max(owners, key=len, default=""), "")
        found = event_line(event)
        return {
            **found,
            "message": without_secrets(str(found["message"] or "")),
            "source": (event.get("source") or {}).get("component")
            or event.get("reportingComponent"),
            "cluster": cluster,
            "app": app or None,
            "environment": environment or None,
        }


@dataclass(frozen=True)
class Filter:
    """What is wanted; "" for everything."""

    app: str = ""
    environment: str = ""
    object: str = ""
    """NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME."""

    def keeps(self, line: EventLine) -> bool:
        kind, _, place = line["about"].partition(" ")
        name = place.rpartition("/")[2]
        names = (name, place, f"{kind}/{name}", f"{kind}/{place}".replace("//", "/"))
        return (
            self.app in ("", line["app"])
            and self.environment in ("", line["environment"])
            and (not self.object or self.object.lower() in {each.lower() for each in names})
        )
