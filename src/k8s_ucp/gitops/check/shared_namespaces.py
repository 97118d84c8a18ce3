"""Objects that apps create for each other in a namespace. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from k8s_ucp.gitops.check.created import created_by
from k8s_ucp.gitops.check.objects.item import Object, misshapen, name_of
from k8s_ucp.gitops.manifests.yaml_text import part
from k8s_ucp.gitops.render.values.permissions import namespaces_of
from k8s_ucp.topology import Topology

_READ = ("ConfigMap", "Secret")
"""Kinds that pods refer to by name."""


class SharedNamespaces:
    """What each app creates in which namespace, in one environment."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], list[Object]] = {}
        """{(app, namespace): its objects}"""
        self._used: dict[str, set[str]] = {}
        """{app: namespaces}"""

    def add(self, app: str, home: str, objects: Iterable[Object]) -> None:
        """Add objects of an app. home: the namespace of objects that name none."""
        for each in objects:
            if misshapen(each):
                continue
            namespace = str(part(each, "metadata").get("namespace") or home)
            self._objects.setdefault((app, namespace), []).append(each)
            self._used.setdefault(app, {home}).add(namespace)

    def neighbors(self, app: str) -> list[Object]:
        """Objects of other apps in the namespaces to which the app writes."""
        used = self._used.get(app, ())
        return [
            each
            for (other, namespace), objects in self._objects.items()
            if other != app and namespace in used
            for each in objects
        ]


def provided_by(neighbors: Sequence[Object]) -> set[str]:
    """`Kind/name` of the Secrets and ConfigMaps that these objects are or create."""
    made = {(str(each.get("kind")), name_of(each)) for each in neighbors} | created_by(neighbors)
    return {f"{kind}/{name}" for kind, name in made if kind in _READ}


def with_neighbors(apps: Collection[str], topology: Topology | None) -> set[str]:
    """The apps, and all that may write to their namespaces, also through other apps."""
    found = set(apps)
    spaces: Mapping[str, Sequence[str]] = {
        each.name: namespaces_of(each) for each in (topology.spec.apps if topology else ())
    }
    waiting = [each for each in spaces if each in found]
    while waiting:
        used = spaces[waiting.pop()]
        more = [name for name, each in spaces.items() if not {*each}.isdisjoint(used)]
        waiting += [each for each in more if each not in found]
        found |= {*more}
    return found
