"""AppProjects of apps, and what they permit. Pure.

Each app of the topology has its own AppProject: its namespaces on the app clusters, and the
cluster-scoped kinds in `clusterKinds`. An app that exists only in the app repository uses the
project `applications`. That project can't exclude the other apps' namespaces: Argo CD honors a
denied namespace only together with a pattern of server URLs, and those of the app clusters are
unknown here. `ucp check` and the push hook reject such objects instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k8s_ucp.topology.rules.names import PLATFORM_NAMESPACES

if TYPE_CHECKING:
    from k8s_ucp.topology import App, Topology

PREFIX = "ucp-"
"""Prefix of an app's name in the name of its AppProject."""
OTHERS = "applications"
"""The AppProject of apps that the topology doesn't declare."""
_SEGMENT = "(index .path.segments 1)"
"""In an ApplicationSet: the app of the current folder."""

SET_PROJECT = f"{{{{ if has {_SEGMENT}"
"""Beginning of the project template in ucp's ApplicationSets."""


@dataclass(frozen=True)
class AppProject:
    """One app's AppProject, as the template renders it."""

    name: str
    app: str
    namespaces: tuple[str, ...]
    kinds: tuple[tuple[str, str], ...]
    """(group, kind) of cluster-scoped kinds; "*" for any group."""

    @property
    def any_namespace(self) -> bool:
        """Whether it permits Namespace objects of any name."""
        return ("*", "Namespace") in self.kinds


def denied_namespaces() -> list[str]:
    """Namespaces of the platform, as patterns of Argo CD: no app may deploy these objects.

    Its projects deny a name for cluster-scoped objects, but not for namespaced ones in them.
    """
    return ["kube-*", *sorted(each for each in PLATFORM_NAMESPACES if not each.startswith("kube-"))]


def project_of(app: App) -> AppProject:
    """The AppProject of an app in the topology."""
    kinds = []
    for each in app.cluster_kinds:
        kind, dot, group = each.partition(".")
        kinds.append((group if dot else "*", kind))
    return AppProject(PREFIX + app.name, app.name, namespaces_of(app), tuple(sorted(kinds)))


def namespaces_of(app: App) -> tuple[str, ...]:
    """Namespaces that an app may write to, its own one first."""
    return tuple(dict.fromkeys((app.home, *app.namespaces)))


def taken_namespaces(topology: Topology) -> list[str]:
    """Namespaces reserved for apps and teams of the topology."""
    apps = {name for app in topology.spec.apps for name in namespaces_of(app)}
    return sorted(apps | {each.namespace for each in topology.spec.teams})


def set_values(topology: Topology) -> dict[str, str]:
    """Project and namespace in the ApplicationSets, as Argo CD templates."""
    apps = topology.spec.apps
    project, namespace = OTHERS, "{{ index .path.segments 1 }}"
    if apps:
        known = _words(each.name for each in apps)
        project = (
            f"{SET_PROJECT} (list {known}) }}}}{PREFIX}{namespace}"
            f"{{{{ else }}}}{OTHERS}{{{{ end }}}}"
        )
    if elsewhere := [each for each in apps if each.home != each.name]:
        pairs = _words(word for each in elsewhere for word in (each.name, each.home))
        namespace = f"{{{{ get (dict {pairs}) {_SEGMENT} | default {_SEGMENT} }}}}"
    return {"set_project": project, "set_namespace": namespace}


def _words(words: Iterable[str]) -> str:
    """Names contain no characters that would end a string in a template."""
    return " ".join(f'"{each}"' for each in words)
