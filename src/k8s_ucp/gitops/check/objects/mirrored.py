"""Secrets and ConfigMaps that mirrors copy to the namespace of an app. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from k8s_ucp.gitops.check.objects.item import Object
from k8s_ucp.gitops.render.values import databases


@dataclass(frozen=True)
class Mirrored:
    """Secrets and ConfigMaps that Syncers copy to a namespace: {(kind, name): keys}."""

    keys: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    def and_also(self, objects: Iterable[str]) -> Mirrored:
        """Add objects that something else creates there, as `Kind/name`; their keys are unknown."""
        others = [each.split("/", 1) for each in objects]
        return Mirrored({(kind, name): frozenset[str]() for kind, name in others} | {**self.keys})


_KINDS = {"secret": "Secret", "configmap": "ConfigMap"}


def mirrored_in(core: Iterable[Object], app: str, environment: str) -> Mirrored | None:
    """Secrets and ConfigMaps that Syncers copy to an app's namespace in an environment.

    None if a Syncer selects its sources by labels, since the result is then known only at runtime.
    """
    keys: dict[tuple[str, str], frozenset[str]] = {}
    for item in core:
        if item.get("kind") != "Syncer":
            continue
        for entry in (item.get("spec") or {}).get("data") or ():
            if not _concerns(entry, app, environment):
                continue
            source = entry.get("sourceName")
            name = entry.get("targetName") or source
            if source is None or "{" in str(name):
                return None
            kind = _KINDS.get(str(entry.get("kinds", "secret")), "Secret")
            known = frozenset(entry.get("keys") or ())
            if not known and str(source).endswith(databases.SUFFIX):
                known = frozenset(databases.KEYS)
            keys[kind, str(name)] = known
    return Mirrored(keys)


def _concerns(entry: Mapping[str, str], app: str, environment: str) -> bool:
    cluster = entry.get("targetCluster")
    if cluster is not None and not str(cluster).endswith(f"-{environment}"):
        return False
    namespace = str(entry.get("targetNamespace"))
    return namespace == app or "{" in namespace
