"""Builds and reads the Argo CD cluster Secret of a registration. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import SECRET, Object, annotations_of, labels_of
from k8s_ucp.reconciler.access import tokens
from k8s_ucp.reconciler.access.authenticators.base import AuthInfo, kubeconfig
from k8s_ucp.reconciler.access.sources import KubeconfigSource, OwnerRef
from k8s_ucp.reconciler.access.tokens import Token
from k8s_ucp.timestamps import parse_stamp

# Labels that we set and remove.
_FACTS = (
    *(names.TOPOLOGY, names.PROVIDER, names.REGION, names.VERSION, names.PROTECTED),
    names.ACCESS,
)


@dataclass(frozen=True)
class Registration:
    """An existing cluster Secret, as far as decisions need it."""

    name: str
    uid: str
    version: str
    cluster: str
    ours: bool
    """It has our label; others were created by people and are never touched."""
    source: str | None
    owner: OwnerRef | None
    environment: str | None
    draining: str | None
    draining_since: str | None
    renew_at: float
    expires_at: float
    forgotten: bool
    """A person requested the deregistration, whatever the owner declares."""
    labels: Mapping[str, str]
    access: tuple[str, str | None, str, str]
    """(server, CA, namespaces, clusterResources), which must match the source."""

    @classmethod
    def of(cls, secret: Object) -> Registration:
        metadata = secret["metadata"]
        labels, notes = labels_of(secret), annotations_of(secret)
        data = _plain(secret)
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            version=metadata.get("resourceVersion", ""),
            cluster=data.get("name", ""),
            ours=labels.get(names.MANAGED_BY) == names.OURS and names.SOURCE in notes,
            source=notes.get(names.SOURCE),
            owner=OwnerRef.parse(notes.get(names.OWNER)),
            environment=labels.get(names.ENVIRONMENT),
            draining=labels.get(names.DRAINING),
            draining_since=notes.get(names.DRAINING_SINCE),
            renew_at=tokens.renewal_time(
                notes.get(names.TOKEN_ISSUED), notes.get(names.TOKEN_EXPIRES), data.get("name", "")
            ),
            expires_at=parse_stamp(notes.get(names.TOKEN_EXPIRES)) or 0.0,
            forgotten=names.FORGET in notes,
            labels={each: labels[each] for each in _FACTS if each in labels},
            access=(
                data.get("server", ""),
                _config(data).get("tlsClientConfig", {}).get("caData"),
                data.get("namespaces", ""),
                data.get("clusterResources", ""),
            ),
        )


def desired_access(
    source: KubeconfigSource, auth_info: AuthInfo
) -> tuple[str, str | None, str, str]:
    """The desired `Registration.access` of a source."""
    if source.scoped:
        return auth_info.server, auth_info.authority, ",".join(source.namespaces), "false"
    return auth_info.server, auth_info.authority, "", ""


def build(source: KubeconfigSource, auth_info: AuthInfo, token: Token) -> Object:
    """The complete cluster Secret of a source."""
    return SECRET.object(
        names.cluster_secret(source.cluster),
        names.ARGOCD_NAMESPACE,
        labels={names.SECRET_TYPE: "cluster", **_labels(source)},
        annotations={
            names.SOURCE: source.key,
            names.OWNER: str(source.owner),
            **token.annotations(names.TOKEN_ISSUED, names.TOKEN_EXPIRES),
        },
        type="Opaque",
        data=_data(source, auth_info, token),
    )


def access_change(
    source: KubeconfigSource, auth_info: AuthInfo, token: Token, existing: Registration
) -> Object:
    """A merge patch that gives our cluster Secret a new token and the source's current access."""
    data: dict[str, str | None] = {"namespaces": None, "clusterResources": None}
    data.update(_data(source, auth_info, token))
    change = label_change(source, existing)
    change["metadata"]["annotations"].update(
        token.annotations(names.TOKEN_ISSUED, names.TOKEN_EXPIRES)
    )
    return {**change, "data": data}


def label_change(source: KubeconfigSource, existing: Registration) -> Object:
    """A merge patch that updates our labels and keeps others."""
    labels: dict[str, str | None] = dict.fromkeys((*_FACTS, names.DRAINING))
    labels.update(_labels(source))
    return {
        "metadata": {
            "resourceVersion": existing.version,
            "labels": labels,
            "annotations": {names.OWNER: str(source.owner), names.DRAINING_SINCE: None},
        }
    }


def drain_change(existing: Registration, now: str) -> Object:
    """A merge patch that replaces the environment label by the draining label."""
    draining = existing.environment or existing.draining or "unknown"
    return {
        "metadata": {
            "resourceVersion": existing.version,
            "labels": {names.ENVIRONMENT: None, names.DRAINING: draining},
            "annotations": {names.DRAINING_SINCE: now},
        }
    }


def as_argocd(secret: Object) -> dict[str, Any] | None:
    """A kubeconfig with Argo CD's identity; None if the Secret contains none."""
    data = _plain(secret)
    config = _config(data)
    token = config.get("bearerToken")
    if not token or not data.get("server"):
        return None
    tls = config.get("tlsClientConfig", {})
    cluster = {"server": data["server"]}
    if tls.get("caData"):
        cluster["certificate-authority-data"] = tls["caData"]
    if tls.get("serverName"):
        cluster["tls-server-name"] = tls["serverName"]
    return kubeconfig(cluster, {"token": token})


def _labels(source: KubeconfigSource) -> dict[str, str]:
    labels = {names.MANAGED_BY: names.OURS, **source.cluster_info}
    if source.environment:
        labels[names.ENVIRONMENT] = source.environment
    return labels


def _data(source: KubeconfigSource, auth_info: AuthInfo, token: Token) -> dict[str, str]:
    tls = {"caData": auth_info.authority} if auth_info.authority else {}
    if auth_info.cluster.get("tls-server-name"):
        tls["serverName"] = str(auth_info.cluster["tls-server-name"])
    data = {
        "name": source.cluster,
        "server": auth_info.server,
        "config": json.dumps({"bearerToken": token.text, "tlsClientConfig": tls}),
    }
    if source.scoped:
        data["namespaces"] = ",".join(source.namespaces)
        data["clusterResources"] = "false"
    return {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}


def _plain(secret: Object) -> dict[str, str]:
    plain = {}
    for name, value in (secret.get("data") or {}).items():
        try:
            plain[name] = base64.b64decode(value).decode()
        except ValueError:
            continue
    return plain


def _config(data: Mapping[str, str]) -> dict[str, Any]:
    try:
        found = json.loads(data.get("config") or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("tlsClientConfig", {}), dict):
        return {}
    return found
