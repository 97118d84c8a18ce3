"""Which Secrets and ConfigMaps Syncers bring into an app's namespace. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from k8s_ucp.gitops.check.objects import Mirrored, Object
from k8s_ucp.gitops.render.values import database_secrets

_KINDS = {"secret": "Secret", "configmap": "ConfigMap"}


def mirrored_in(core: Iterable[Object], app: str, environment: str) -> Mirrored | None:
    """What comes into the namespace of an app on an environment.

    None where a Syncer selects by labels: then nobody knows before it runs.
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
            if not known and str(source).endswith(database_secrets.SUFFIX):
                known = frozenset(database_secrets.KEYS)
            keys[kind, str(name)] = known
    return Mirrored(keys)


def _concerns(entry: Mapping[str, str], app: str, environment: str) -> bool:
    cluster = entry.get("targetCluster")
    if cluster is not None and not str(cluster).endswith(f"-{environment}"):
        return False
    namespace = str(entry.get("targetNamespace"))
    return namespace == app or "{" in namespace
