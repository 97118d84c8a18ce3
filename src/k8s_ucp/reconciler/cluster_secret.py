"""The Argo CD cluster Secret: how a registration looks, and what one that exists tells. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.kube import Object
from k8s_ucp.reconciler import marks, tokens
from k8s_ucp.reconciler.authenticators import Login, kubeconfig
from k8s_ucp.reconciler.clock import parse_stamp
from k8s_ucp.reconciler.sources import OwnerRef, Source
from k8s_ucp.reconciler.tokens import Token

# Labels that are ours to set and to remove.
_FACTS = (marks.TOPOLOGY, marks.PROVIDER, marks.REGION, marks.VERSION, marks.PROTECTED)


@dataclass(frozen=True)
class Registration:
    """A cluster Secret that exists, as far as decisions need it."""

    name: str
    uid: str
    version: str
    cluster: str
    ours: bool
    """It carries our mark; any other is a person's and is never touched."""
    source: str | None
    owner: OwnerRef | None
    environment: str | None
    draining: str | None
    draining_since: str | None
    renew_at: float
    expires_at: float
    forgotten: bool
    """A person asked for it to be let go, whatever its owner says."""
    labels: Mapping[str, str]
    access: tuple[str, str | None, str, str]
    """server, CA, namespaces, clusterResources: what must match the source."""

    @classmethod
    def of(cls, secret: Object) -> Registration:
        metadata = secret["metadata"]
        labels: Mapping[str, str] = metadata.get("labels") or {}
        notes: Mapping[str, str] = metadata.get("annotations") or {}
        data = _plain(secret)
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            version=metadata.get("resourceVersion", ""),
            cluster=data.get("name", ""),
            ours=labels.get(marks.MANAGED_BY) == marks.OURS and marks.SOURCE in notes,
            source=notes.get(marks.SOURCE),
            owner=OwnerRef.parse(notes.get(marks.OWNER)),
            environment=labels.get(marks.ENVIRONMENT),
            draining=labels.get(marks.DRAINING),
            draining_since=notes.get(marks.DRAINING_SINCE),
            renew_at=tokens.renew_at(
                notes.get(marks.TOKEN_ISSUED), notes.get(marks.TOKEN_EXPIRES), data.get("name", "")
            ),
            expires_at=parse_stamp(notes.get(marks.TOKEN_EXPIRES)) or 0.0,
            forgotten=marks.FORGET in notes,
            labels={each: labels[each] for each in _FACTS if each in labels},
            access=(
                data.get("server", ""),
                _config(data).get("tlsClientConfig", {}).get("caData"),
                data.get("namespaces", ""),
                data.get("clusterResources", ""),
            ),
        )


def wanted_access(source: Source, login: Login) -> tuple[str, str | None, str, str]:
    """What `Registration.access` is for a source."""
    if source.scoped:
        return login.server, login.authority, ",".join(source.namespaces), "false"
    return login.server, login.authority, "", ""


def build(source: Source, login: Login, token: Token) -> Object:
    """The whole cluster Secret of a source."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": marks.cluster_secret(source.cluster),
            "namespace": marks.ARGOCD_NAMESPACE,
            "labels": {marks.SECRET_TYPE: "cluster", **_labels(source)},
            "annotations": {
                marks.SOURCE: source.key,
                marks.OWNER: str(source.owner),
                **token.annotations(marks.TOKEN_ISSUED, marks.TOKEN_EXPIRES),
            },
        },
        "type": "Opaque",
        "data": _data(source, login, token),
    }


def access_change(source: Source, login: Login, token: Token, existing: Registration) -> Object:
    """A merge patch that gives a cluster Secret of ours a new token and all that goes with it."""
    data: dict[str, str | None] = {"namespaces": None, "clusterResources": None}
    data.update(_data(source, login, token))
    change = label_change(source, existing)
    change["metadata"]["annotations"].update(
        token.annotations(marks.TOKEN_ISSUED, marks.TOKEN_EXPIRES)
    )
    return {**change, "data": data}


def label_change(source: Source, existing: Registration) -> Object:
    """A merge patch that brings the labels up to date; others' labels stay."""
    labels: dict[str, str | None] = dict.fromkeys((*_FACTS, marks.DRAINING))
    labels.update(_labels(source))
    return {
        "metadata": {
            "resourceVersion": existing.version,
            "labels": labels,
            "annotations": {marks.OWNER: str(source.owner), marks.DRAINING_SINCE: None},
        }
    }


def drain_change(existing: Registration, now: str) -> Object:
    """A merge patch: the environment label gives way to the draining one."""
    draining = existing.environment or existing.draining or "unknown"
    return {
        "metadata": {
            "resourceVersion": existing.version,
            "labels": {marks.ENVIRONMENT: None, marks.DRAINING: draining},
            "annotations": {marks.DRAINING_SINCE: now},
        }
    }


def as_argocd(secret: Object) -> dict[str, Any] | None:
    """A kubeconfig with the identity that Argo CD uses; None where the Secret holds none."""
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


def _labels(source: Source) -> dict[str, str]:
    labels = {marks.MANAGED_BY: marks.OURS, **source.facts}
    if source.environment:
        labels[marks.ENVIRONMENT] = source.environment
    return labels


def _data(source: Source, login: Login, token: Token) -> dict[str, str]:
    tls = {"caData": login.authority} if login.authority else {}
    if login.cluster.get("tls-server-name"):
        tls["serverName"] = str(login.cluster["tls-server-name"])
    data = {
        "name": source.cluster,
        "server": login.server,
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
