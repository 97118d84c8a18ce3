"""What apps may do: which project an Application has, and what that project admits. Pure.

An app of the topology has a project of its own: its namespaces on the app clusters, and the kinds
outside of namespaces that `clusterKinds` names. An app that only the app repository knows has the
project `applications`. That one can't be kept out of the namespaces of the others: Argo CD heeds a
namespace that is denied only with a pattern of server addresses, and those of the app clusters
aren't known here. `ucp check` and the push hook refuse it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from k8s_ucp.topology import App, Topology

PREFIX = "ucp-"
"""In front of an app's name, of its project."""
OTHERS = "applications"
"""The project of apps that the topology doesn't have."""
_SEGMENT = "(index .path.segments 1)"
"""In an ApplicationSet: the app of the folder at hand."""

SET_PROJECT = f"{{{{ if has {_SEGMENT}"
"""How the project begins that our ApplicationSets name."""


@dataclass(frozen=True)
class AppProject:
    """One app's project, as a template writes it."""

    name: str
    app: str
    namespaces: tuple[str, ...]
    kinds: tuple[tuple[str, str], ...]
    """(group, kind) outside of namespaces; "*" for any group."""


def project_of(app: App) -> AppProject:
    """The project of an app of the topology."""
    kinds = []
    for each in app.cluster_kinds:
        kind, dot, group = each.partition(".")
        kinds.append((group if dot else "*", kind))
    return AppProject(PREFIX + app.name, app.name, namespaces_of(app), tuple(sorted(kinds)))


def namespaces_of(app: App) -> tuple[str, ...]:
    """Where an app may write: its own namespace first."""
    return tuple(dict.fromkeys((app.home, *app.namespaces)))


def taken_namespaces(topology: Topology) -> list[str]:
    """Namespaces that apps and teams of the topology have to themselves."""
    apps = {name for app in topology.spec.apps for name in namespaces_of(app)}
    return sorted(apps | {each.namespace for each in topology.spec.teams})


def set_values(topology: Topology) -> dict[str, str]:
    """What the ApplicationSets say of project and namespace, as templates of Argo CD's."""
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
    """Names hold nothing that would end a text in a template."""
    return " ".join(f'"{each}"' for each in words)
