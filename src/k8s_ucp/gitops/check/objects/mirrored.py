"""Secrets and ConfigMaps that mirrors copy to the namespace of an app. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp.gitops.check.objects.item import Object
from k8s_ucp.gitops.manifests.yaml_text import maps, part
from k8s_ucp.gitops.render.values import databases
from k8s_ucp.names import ENVIRONMENT, TOPOLOGY


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
            if not _concerns(item, entry, app, environment):
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


def _concerns(syncer: Object, entry: Mapping[str, Any], app: str, environment: str) -> bool:
    """Whether an entry may copy to an app's namespace in an environment."""
    namespace = str(entry.get("targetNamespace"))
    if namespace != app and "{" not in namespace:
        return False
    cluster = entry.get("targetCluster")
    if cluster is None:
        return _may_select(part(entry, "targetSelector"), environment)
    topology = part(part(syncer, "metadata"), "labels").get(TOPOLOGY)
    name = f"{topology or ''}-{environment}"
    return str(cluster) == name if topology else str(cluster).endswith(name)


def _may_select(selector: Mapping[str, Any], environment: str) -> bool:
    """Whether a selector of clusters may select the environment's, whose other labels are unknown.

    As in `reconciler/mirrors/spec.py`.
    """
    if part(selector, "matchLabels").get(ENVIRONMENT, environment) != environment:
        return False
    for each in maps(selector, "matchExpressions"):
        if each.get("key") == ENVIRONMENT:
            listed, operator = environment in (each.get("values") or ()), each.get("operator")
            if operator == "DoesNotExist" or (operator, listed) in (("In", False), ("NotIn", True)):
                return False
    return True
