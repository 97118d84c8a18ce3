"""What may register a cluster: kubeconfig Secrets that a known owner, or a person, vouches for.

Everything here is pure. A Secret counts only in the named namespaces (the watches see no others)
and with a controlling owner of a known kind, or with the label that a person set on it; on request
its name is enough.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from k8s_ucp.kube import Object
from k8s_ucp.reconciler import marks
from k8s_ucp.reconciler.authenticators import Facts

# Groups whose managed resources write kubeconfigs as connection Secrets.
OWNER_GROUPS = (".upbound.io", ".crossplane.io")

# Parts of the API groups of managed resources, and the provider of the cluster that each makes.
_CLOUDS = {
    ".gcp.": "gke",
    ".aws.": "eks",
    ".azure.": "aks",
    ".digitalocean.": "digitalocean",
}


NAMED = "-k8s-"
"""In the names of Secrets that are sources without anybody's label, where that was asked for."""


class Fate(Enum):
    """What has become of the thing that declares a cluster."""

    ALIVE = "alive"
    LEAVING = "leaving"
    """Being deleted."""
    GONE = "gone"
    """Deleted: the API server itself said that there is no such object."""


@dataclass(frozen=True)
class OwnerRef:
    """Who declares a cluster."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def local_cluster(self) -> bool:
        return self.kind == "LocalCluster" and self.api_version.startswith(f"{marks.GROUP}/")

    def __str__(self) -> str:
        """As an annotation holds it."""
        return "|".join((self.api_version, self.kind, self.namespace, self.name, self.uid))

    @classmethod
    def parse(cls, text: str | None) -> OwnerRef | None:
        parts = (text or "").split("|")
        return cls(*parts) if len(parts) == 5 and all(parts) else None


@dataclass(frozen=True)
class Source:
    """A kubeconfig that may become a registration."""

    key: str
    """`<namespace>/<Secret>`."""
    cluster: str
    owner: OwnerRef
    environment: str | None
    scoped: bool
    namespaces: tuple[str, ...]
    """Where a scoped Argo CD may act, sorted."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Labels for the cluster Secret, without the environment."""
    kubeconfig: bytes = b""
    known: Facts = field(default_factory=Facts)
    """What authenticators may want to know."""


def known_owner(api_version: str, kind: str) -> bool:
    """Objects of this kind may vouch for a kubeconfig."""
    group = api_version.rpartition("/")[0]
    if group == marks.GROUP:
        return kind == "LocalCluster"
    return group.endswith(OWNER_GROUPS)


def owner_of(secret: Object) -> OwnerRef | None:
    """Who vouches for a Secret: its controlling owner of a known kind, or the labelled itself."""
    metadata = secret["metadata"]
    namespace = metadata["namespace"]
    for each in metadata.get("ownerReferences") or []:
        if each.get("controller") and known_owner(each["apiVersion"], each["kind"]):
            return OwnerRef(each["apiVersion"], each["kind"], namespace, each["name"], each["uid"])
    if marks.KUBECONFIG_LABEL in (metadata.get("labels") or {}):
        return OwnerRef("v1", "Secret", namespace, metadata["name"], metadata["uid"])
    return None


def keep_source(secret: Object, *, by_name: bool = False) -> Object | None:
    """For the watch: sources only, with nothing but the kubeconfig of their data.

    by_name: Secrets with `-k8s-` in their names count as if a person had labelled them.
    """
    kubeconfig = _kubeconfig(secret)
    if kubeconfig is None:
        return None
    if owner_of(secret) is None:
        if not by_name or NAMED not in secret["metadata"]["name"]:
            return None
        secret = _labelled_by_name(secret)
    return {**secret, "data": {marks.KUBECONFIG_KEY: kubeconfig}}


def _labelled_by_name(secret: Object) -> Object:
    """What its name stands for, as labels; those that it has come first."""
    metadata = secret["metadata"]
    environment = metadata["name"].rpartition(NAMED)[2].removesuffix("-kubeconfig")
    told = {marks.KUBECONFIG_LABEL: "", marks.ENVIRONMENT: environment}
    labels = {**told, **(metadata.get("labels") or {})}
    return {**secret, "metadata": {**metadata, "labels": labels}}


def describe(secret: Object, owner: Object) -> Source:
    """What a Secret and the object that vouches for it (itself, where a person did) declare."""
    ref = owner_of(secret)
    assert ref is not None, "watches keep sources only"
    metadata = owner["metadata"]
    labels: Mapping[str, str] = metadata.get("labels") or {}
    spec: Mapping[str, Any] = owner.get("spec") or {}
    status: Mapping[str, Any] = owner.get("status") or {}
    own: Mapping[str, str] = secret["metadata"].get("labels") or {}
    facts = {
        marks.TOPOLOGY: labels.get(marks.TOPOLOGY),
        marks.PROVIDER: labels.get(marks.PROVIDER) or _text(spec.get("provider")),
        marks.REGION: labels.get(marks.REGION),
        marks.VERSION: _text(status.get("version")) or own.get(marks.VERSION),
        marks.PROTECTED: "true" if labels.get(marks.PROTECTED) == "true" else None,
    }
    named = (metadata.get("annotations") or {}).get(marks.NAMESPACES, "")
    return Source(
        key=f"{secret['metadata']['namespace']}/{secret['metadata']['name']}",
        cluster=_cluster_name(ref),
        owner=ref,
        environment=labels.get(marks.ENVIRONMENT),
        scoped=labels.get(marks.ACCESS) == "scoped",
        namespaces=tuple(sorted({each.strip() for each in named.split(",")} - {""})),
        facts={name: value for name, value in facts.items() if value},
        kubeconfig=_decoded(secret),
        known=_known(ref, owner, facts),
    )


def _known(ref: OwnerRef, owner: Object, facts: Mapping[str, str | None]) -> Facts:
    spec = (owner.get("spec") or {}).get("forProvider") or {}
    at = (owner.get("status") or {}).get("atProvider") or {}
    notes: Mapping[str, str] = owner["metadata"].get("annotations") or {}
    cloud = next((way for part, way in _CLOUDS.items() if part in ref.api_version), "")
    return Facts(
        provider=cloud or facts[marks.PROVIDER] or "",
        region=facts[marks.REGION]
        or _text(spec.get("region"))
        or _text(spec.get("location"))
        or "",
        name=notes.get("crossplane.io/external-name") or ref.name,
        id=_text(at.get("id")) or notes.get("crossplane.io/external-name") or "",
        trusted=(ref.api_version, ref.kind) != ("v1", "Secret"),
    )


def _cluster_name(owner: OwnerRef) -> str:
    return owner.name.removesuffix("-kubeconfig") if owner.kind == "Secret" else owner.name


def _decoded(secret: Object) -> bytes:
    try:
        return base64.b64decode(_kubeconfig(secret) or "")
    except binascii.Error:
        return b""


def _kubeconfig(secret: Object) -> str | None:
    """The kubeconfig as the Secret holds it, under whichever of the known keys."""
    data = secret.get("data") or {}
    return data.get(marks.KUBECONFIG_KEY, data.get(marks.RAW_KUBECONFIG_KEY))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
