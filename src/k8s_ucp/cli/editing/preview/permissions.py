"""Permissions that an app needs beyond its own namespace, and what no flag allows. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

from k8s_ucp.errors import UsageError, some_of
from k8s_ucp.gitops.manifests.yaml_text import part

if TYPE_CHECKING:
    from k8s_ucp.cli.editing.preview.app_objects import AppObjects
    from k8s_ucp.topology import App

_SHOWN = 4


@dataclass(frozen=True)
class LackingPermissions:
    """Permissions that an app lacks."""

    home: str
    kinds: list[str]
    """Cluster-scoped kinds."""
    namespaces: list[str]
    unmade: list[str]
    """Those of `namespaces` for which the app has no Namespace object."""
    moves: bool
    """All its objects are in a single namespace that isn't its own."""
    outside: list[str]
    """Objects that something else has to create."""
    is_chart: bool = False

    @property
    def any(self) -> bool:
        return bool(self.kinds or self.namespaces or self.outside)

    @property
    def keys(self) -> dict[str, list[str]]:
        """Lists of ucp.yaml to which they would be added."""
        namespaces = [] if self.moves else self.namespaces
        found = {
            "clusterKinds": self.kinds,
            "namespaces": namespaces,
            "fromOutside": self.outside,
        }
        return {key: words for key, words in found.items() if words}

    @property
    def words(self) -> str:
        words = []
        if self.kinds:
            kinds = "kind" if len(self.kinds) == 1 else "kinds"
            words.append(f"it creates the cluster-scoped {kinds} {', '.join(self.kinds)}")
        if self.namespaces:
            namespaces = ", ".join(self.namespaces)
            words.append(f"it writes to {namespaces}, outside of its namespace {self.home}")
        if self.unmade and not self.moves:
            words.append(f"it has no Namespace object for {', '.join(self.unmade)}")
        if self.outside:
            words.append(
                f"it needs {', '.join(self.outside)}, which something else has to create, since "
                "neither the app nor a mirror provides it"
            )
        return " and ".join(words)

    @property
    def advice(self) -> str:
        """What to change instead, or in addition to the flags; "" if they are enough."""
        if self.moves or not self.unmade:
            return ""
        noun = "Namespace" if len(self.unmade) == 1 else "Namespaces"
        add = f"and add the {noun} {', '.join(self.unmade)} to its "
        add += "templates" if self.is_chart else "manifests"
        add += f", because Argo CD creates {self.home} alone"
        if len(self.namespaces) == 1:
            return (
                f"{add}; or use --namespace instead of --also-namespace, so that all its objects "
                f"go to {self.namespaces[0]}"
            )
        if self.is_chart:
            return add
        return (
            f"{add}; or set `namespace: {self.home}` in its kustomizations instead, which needs no "
            "flag for it"
        )

    def flags(self, prefix: str = "") -> str:
        """Flags of the command that grant them."""
        flag = "--namespace" if self.moves else "--also-namespace"
        flags = [("--cluster-kind", each) for each in self.kinds]
        flags += [(flag, each) for each in self.namespaces]
        flags += [("--from-outside", each) for each in self.outside]
        # Names come from the manifests; a shell would expand ${NAME} of a template.
        return " ".join(f"{name} {quote(f'{prefix}{each}')}" for name, each in flags)


def lacking_permissions(app: App, app_objects: AppObjects) -> LackingPermissions:
    """What the app's objects need and its entry in ucp.yaml does not allow."""
    from k8s_ucp.gitops.check.permissions import needed

    found = needed(app_objects.objects, app.home)
    kinds = [each for each in found.kinds if not _is_granted(each, app.cluster_kinds)]
    namespaces = [each for each in found.namespaces if each not in app.namespaces]
    moves = found.alone and not app.namespace
    made = _namespaces_made(app_objects)
    unmade = [each for each in namespaces if each not in made]
    outside = sorted(app_objects.missing)
    is_chart = app_objects.is_chart
    return LackingPermissions(app.home, kinds, namespaces, unmade, moves, outside, is_chart)


def uncreated_namespaces(app: App, app_objects: AppObjects, homes: Collection[str]) -> list[str]:
    """Namespaces that the app may write to and does, but nothing known creates.

    homes: namespaces that Argo CD creates, one for each app.
    """
    from k8s_ucp.gitops.check.permissions import needed

    made = _namespaces_made(app_objects) | {*homes}
    used = needed(app_objects.objects, app.home).namespaces
    return [each for each in used if each in app.namespaces and each not in made]


def _namespaces_made(app_objects: AppObjects) -> set[Any]:
    return {_namespace_made(each) for each in app_objects.objects} | {"default"}


def _is_granted(kind: str, granted: Collection[str]) -> bool:
    return any(each.partition(".")[0] == kind for each in granted)


def is_application(item: Mapping[str, Any]) -> bool:
    """Whether an object is an Application or an ApplicationSet of Argo CD."""
    return _is_of_argocd(item) and item.get("kind") in ("Application", "ApplicationSet")


def _is_of_argocd(item: Mapping[str, Any]) -> bool:
    return str(item.get("apiVersion")).partition("/")[0] == "argoproj.io"


def find_forbidden(app: App, app_objects: AppObjects) -> UsageError | None:
    """What no flag can allow: objects for Argo CD, or in namespaces of the platform."""
    from k8s_ucp.gitops.check.objects.item import named
    from k8s_ucp.gitops.check.permissions import needed
    from k8s_ucp.topology.rules.names import closed_to_apps

    objects = app_objects.objects
    # Applications belong to Argo CD's namespace, which no app's project permits.
    if any(map(is_application, objects)):
        return UsageError(
            f"{app.name} declares Argo CD Applications, which are allowed in the core repository "
            "only",
            next="ucp app import REPO adds the apps that they deploy",
        )
    projects = [
        each for each in objects if _is_of_argocd(each) and each.get("kind") == "AppProject"
    ]
    if projects:
        names = some_of(sorted({named(each) for each in projects}), _SHOWN)
        files = sorted(
            # As the user has them: the app repository's folders don't exist yet.
            {
                re.sub(rf"apps/{re.escape(app.name)}/(?:base|overlays/[^/]+)/", "", path)
                for path, content in app_objects.files.items()
                if b"AppProject" in content
            }
        )
        where = some_of(files, _SHOWN) or "the manifests"
        return UsageError(
            f"{app.name}: it has an AppProject of Argo CD, but each app gets its own ({names})",
            next=f"remove it from {where}; `clusterKinds` and `namespaces` in ucp.yaml say what "
            "the app may do",
        )
    for namespace in filter(closed_to_apps, needed(objects, app.home).namespaces):
        outside = {
            named(item)
            for item in objects
            if namespace in (part(item, "metadata").get("namespace"), _namespace_made(item))
        }
        way = "remove metadata.namespace there, or set `namespace` in the kustomization"
        if app_objects.is_chart:
            way = "set the chart's value for it, if it has one: --values FILE"
        if namespace == "default":
            # The same for all apps of an import, which then lists it once.
            way += "; objects without a namespace go to the one that has the app's name"
        else:
            way += (
                f" (its own namespace is {app.home}); install cluster-wide software with kubectl "
                "instead: ucp kubeconfig ENV --merge"
            )
        return UsageError(
            f"{app.name}: {some_of(sorted(outside), _SHOWN)} would go to the namespace "
            f"{namespace}, which is reserved: no app may write to it",
            next=way,
        )
    return None


def _namespace_made(item: Mapping[str, Any]) -> Any:
    return part(item, "metadata").get("name") if item.get("kind") == "Namespace" else None


def refusals_of(app: App, app_objects: AppObjects, prefix: str = "") -> list[str]:
    """What an app isn't allowed, with the flags that would allow it."""
    if problem := find_forbidden(app, app_objects):
        return [f"{problem.message}; {problem.next}"]
    lacks = lacking_permissions(app, app_objects)
    if not lacks.any:
        return []
    more = f"; {lacks.advice}" if lacks.advice else ""
    return [f"{lacks.words}; allow it with {lacks.flags(prefix)}{more}"]
