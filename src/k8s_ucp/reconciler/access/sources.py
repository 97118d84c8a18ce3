"""Kubeconfig Secrets that may register a cluster, by a known owner or by label. Pure.

A Secret counts only in the configured namespaces (the informers see no others), and only with a
controlling owner of a known kind or with the label that a person set on it; if configured, its name
is enough.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from k8s_ucp import names
from k8s_ucp.cluster_provider import ManagedCluster
from k8s_ucp.kube import Object, annotations_of, labels_of
from k8s_ucp.providers import PROVIDERS, cloud_providers
from k8s_ucp.reconciler.access.authenticators.base import ClusterInfo

# API groups whose managed resources write kubeconfigs as connection Secrets.
OWNER_GROUPS = (".upbound.io", ".crossplane.io")

NAMED = "-k8s-"
"""Part of the names of Secrets that are sources without a label, if configured."""


class Fate(Enum):
    """State of a cluster's owner."""

    ALIVE = "alive"
    DELETING = "deleting"
    """Being deleted."""
    GONE = "gone"
    """Deleted: the API server itself reported that it does not exist."""


@dataclass(frozen=True)
class OwnerRef:
    """The object that declares a cluster."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def local_cluster(self) -> bool:
        return self.kind == "LocalCluster" and self.api_version.startswith(f"{names.GROUP}/")

    def __str__(self) -> str:
        """The form that annotations have."""
        return "|".join((self.api_version, self.kind, self.namespace, self.name, self.uid))

    @classmethod
    def parse(cls, text: str | None) -> OwnerRef | None:
        parts = (text or "").split("|")
        return cls(*parts) if len(parts) == 5 and all(parts) else None


@dataclass(frozen=True)
class KubeconfigSource:
    """A kubeconfig from which a cluster may be registered."""

    key: str
    """`<namespace>/<Secret>`."""
    cluster: str
    owner: OwnerRef
    environment: str | None
    scoped: bool
    namespaces: tuple[str, ...]
    """Namespaces to which a scoped Argo CD is limited, sorted."""
    cluster_info: Mapping[str, str] = field(default_factory=dict)
    """Labels for the cluster Secret, without the environment."""
    kubeconfig: bytes = b""
    known: ClusterInfo = field(default_factory=ClusterInfo)
    """Facts for authenticators."""
    team_namespaces: tuple[str, ...] = ()
    """Those of `namespaces` that are teams'."""
    disowned: str = ""
    """Why the owner doesn't vouch for this Secret that refers to it; empty: it does."""


def known_owner(api_version: str, kind: str) -> bool:
    """Whether objects of this kind may vouch for a kubeconfig."""
    group = api_version.rpartition("/")[0]
    if group == names.GROUP:
        return kind == "LocalCluster"
    return group.endswith(OWNER_GROUPS)


def owner_of(secret: Object) -> OwnerRef | None:
    """The controlling owner of a known kind, or the Secret itself if it is labeled; else None."""
    metadata = secret["metadata"]
    namespace = metadata["namespace"]
    for each in metadata.get("ownerReferences") or []:
        if each.get("controller") and known_owner(each["apiVersion"], each["kind"]):
            return OwnerRef(each["apiVersion"], each["kind"], namespace, each["name"], each["uid"])
    if names.KUBECONFIG_LABEL in labels_of(secret):
        return OwnerRef("v1", "Secret", namespace, metadata["name"], metadata["uid"])
    return None


def keep_source(secret: Object, *, by_name: bool = False) -> Object | None:
    """For the informer: keeps sources only, and only the kubeconfig of their data.

    by_name: treat Secrets with `-k8s-` in their names as if a person had labeled them.
    """
    kubeconfig = _kubeconfig(secret)
    if kubeconfig is None:
        return None
    if owner_of(secret) is None:
        if not by_name or NAMED not in secret["metadata"]["name"]:
            return None
        secret = _labeled_by_name(secret)
    return {**secret, "data": {names.KUBECONFIG_KEY: kubeconfig}}


def _labeled_by_name(secret: Object) -> Object:
    """Add the labels that the name implies; existing labels win."""
    metadata = secret["metadata"]
    environment = metadata["name"].rpartition(NAMED)[2].removesuffix("-kubeconfig")
    implied = {names.KUBECONFIG_LABEL: "", names.ENVIRONMENT: environment}
    labels = {**implied, **labels_of(secret)}
    return {**secret, "metadata": {**metadata, "labels": labels}}


def describe(secret: Object, owner: Object, cluster: Object | None = None) -> KubeconfigSource:
    """What a Secret and its owner declare. owner: the Secret itself if a person labeled it.

    cluster: the cluster object, if the owner only refers to it.
    """
    ref = owner_of(secret)
    assert ref is not None, "only sources with an owner are stored"
    labels = labels_of(owner)
    spec: Mapping[str, Any] = owner.get("spec") or {}
    status: Mapping[str, Any] = owner.get("status") or {}
    own, scoped = labels_of(secret), labels.get(names.ACCESS) == "scoped"
    cluster_info = {
        names.TOPOLOGY: labels.get(names.TOPOLOGY),
        names.PROVIDER: labels.get(names.PROVIDER) or _text(spec.get("provider")),
        names.REGION: labels.get(names.REGION),
        names.VERSION: _text(status.get("version")) or own.get(names.VERSION),
        names.PROTECTED: "true" if labels.get(names.PROTECTED) == "true" else None,
        names.ACCESS: "scoped" if scoped else None,
    }
    namespaces = _listed(owner, names.NAMESPACES)
    return KubeconfigSource(
        key=f"{secret['metadata']['namespace']}/{secret['metadata']['name']}",
        cluster=_cluster_name(ref),
        owner=ref,
        environment=labels.get(names.ENVIRONMENT),
        scoped=scoped,
        namespaces=tuple(sorted(namespaces)),
        cluster_info={name: value for name, value in cluster_info.items() if value},
        kubeconfig=kubeconfig_in(secret),
        known=_known(ref, owner, cluster or owner, cluster_info),
        team_namespaces=tuple(sorted(namespaces & _listed(owner, names.TEAM_NAMESPACES))),
        disowned=_disowned(secret, ref, owner),
    )


def _listed(item: Object, annotation: str) -> set[str]:
    """The words of an annotation with commas."""
    return {each.strip() for each in annotations_of(item).get(annotation, "").split(",")} - {""}


def pointed_to(owner: Object) -> tuple[str, str, str] | None:
    """(kind, namespace, name) of the cluster that an owner refers to; None: it is a cluster.

    AWS' ClusterAuth writes the kubeconfig of a Cluster, and knows only its name.
    """
    kind = owner.get("kind", "")
    managed = _managed(cluster_provider(owner["apiVersion"], kind))
    if managed is None or managed.kubeconfig_kind != kind:
        return None
    wanted = (owner.get("spec") or {}).get("forProvider") or {}
    reference = wanted.get("clusterNameRef") or {}
    name = _text(reference.get("name")) or _text(wanted.get("clusterName")) or ""
    namespace = _text(reference.get("namespace")) or owner["metadata"].get("namespace") or ""
    return "Cluster", namespace, name


def cluster_provider(api_version: str, kind: str) -> str:
    """The provider whose clusters such a managed resource represents; empty if it is no cluster.

    Our clouds' credentials are used for these only.
    """
    group = _without_ending(api_version.rpartition("/")[0])
    for name in cloud_providers():
        managed = _managed(name)
        if managed and kind in managed.kinds and group == _without_ending(managed.group):
            return name
    return ""


def _managed(provider: str) -> ManagedCluster | None:
    return PROVIDERS[provider].managed if provider else None


def _without_ending(group: str) -> str:
    """An API group without the ending of Crossplane's registries, so that they compare equal."""
    endings = (".m.upbound.io", ".m.crossplane.io", *OWNER_GROUPS)
    ending = next((each for each in endings if group.endswith(each)), group)
    return group.removesuffix(ending)


def _disowned(secret: Object, ref: OwnerRef, owner: Object) -> str:
    """Why the owner doesn't name this Secret; the Secret's ownerReference alone is only a claim."""
    if _is_person_s(ref):
        return ""
    name, namespace = secret["metadata"]["name"], secret["metadata"]["namespace"]
    if ref.local_cluster:
        wanted, where = names.kubeconfig_secret(ref.name), names.CLUSTERS_NAMESPACE
    else:
        reference = (owner.get("spec") or {}).get("writeConnectionSecretToRef") or {}
        wanted = _text(reference.get("name")) or ""
        where = _text(reference.get("namespace")) or owner["metadata"].get("namespace") or ""
    if (wanted, where) == (name, namespace):
        return ""
    actual = f"writes its kubeconfig to Secret {where}/{wanted}" if wanted else "writes none"
    return (
        f"its owner {ref.kind} {ref.name} {actual}; to use the Secret, add the label "
        f"{names.KUBECONFIG_LABEL} and remove the owner reference"
    )


def _known(
    ref: OwnerRef, owner: Object, cluster: Object, cluster_info: Mapping[str, str | None]
) -> ClusterInfo:
    spec = (owner.get("spec") or {}).get("forProvider") or {}
    at = (cluster.get("status") or {}).get("atProvider") or {}
    notes: Mapping[str, str] = annotations_of(cluster)
    provider = cluster_provider(ref.api_version, ref.kind)
    servers, authority = _servers_of_status(at), _authority_of_status(at)
    distrust = ""
    if not ref.local_cluster and not _is_person_s(ref):
        distrust = _distrust(ref, provider, servers, authority)
    own: Mapping[str, str] = annotations_of(owner)
    return ClusterInfo(
        provider=provider or cluster_info[names.PROVIDER] or "",
        region=cluster_info[names.REGION]
        or _text(spec.get("region"))
        or _text(spec.get("location"))
        or "",
        name=notes.get(names.EXTERNAL_NAME) or cluster["metadata"]["name"],
        id=_text(at.get("id")) or notes.get(names.EXTERNAL_NAME) or "",
        trusted=not distrust and not _is_person_s(ref),
        distrust=distrust,
        servers=servers,
        authority=authority,
        digest=_text(own.get(names.KUBECONFIG_DIGEST)) or "" if ref.local_cluster else "",
        as_a_whole=ref.local_cluster,
    )


def _distrust(ref: OwnerRef, provider: str, servers: tuple[str, ...], authority: str) -> str:
    managed = _managed(provider)
    if managed is None:
        return f"a {ref.kind} of {ref.api_version} is not a cloud cluster"
    if not servers:
        return f"the status of {ref.kind} {ref.name} does not have the cluster's endpoint yet"
    if not authority and managed.status_has_authority:
        return f"the status of {ref.kind} {ref.name} does not have the cluster's CA yet"
    return ""


def _servers_of_status(at: Mapping[str, Any]) -> tuple[str, ...]:
    """Google, AWS and DigitalOcean report an endpoint, Azure a public and a private name."""
    found = (_text(at.get(name)) for name in ("endpoint", "fqdn", "privateFqdn"))
    return tuple(each for each in found if each)


def _authority_of_status(at: Mapping[str, Any]) -> str:
    for name, key in (("masterAuth", "clusterCaCertificate"), ("certificateAuthority", "data")):
        found = at.get(name)
        # Older versions of the providers have a list with one item.
        part = found[0] if isinstance(found, list) and found else found
        if isinstance(part, dict) and _text(part.get(key)):
            return str(part[key])
    return ""


def _is_person_s(ref: OwnerRef) -> bool:
    return (ref.api_version, ref.kind) == ("v1", "Secret")


def _cluster_name(owner: OwnerRef) -> str:
    return owner.name.removesuffix("-kubeconfig") if owner.kind == "Secret" else owner.name


def kubeconfig_in(secret: Object) -> bytes:
    """The kubeconfig of a Secret, under the key of its provider; empty if there is none."""
    try:
        return base64.b64decode(_kubeconfig(secret) or "")
    except binascii.Error:
        return b""


def _kubeconfig(secret: Object) -> str | None:
    """The kubeconfig of a Secret, base64, under either of the known keys."""
    data = secret.get("data") or {}
    return data.get(names.KUBECONFIG_KEY, data.get(names.RAW_KUBECONFIG_KEY))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
