"""Syncers and the Secrets that they copy."""

from __future__ import annotations

import base64
from typing import Any

from k8s_ucp.kube import Object
from k8s_ucp.reconciler.mirrors.spec import Syncer, parse


def secret(data: dict[str, str], **parts: Any) -> Object:
    metadata = {"name": "db", "namespace": "src", "resourceVersion": "1", "uid": "u"}
    metadata.update(parts.pop("metadata", {}))
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"kind": "Secret", "type": "Opaque", "metadata": metadata, "data": encoded, **parts}


def syncer(*entries: Object, name: str = "one", created: str = "1", **metadata: Any) -> Syncer:
    item = {
        "metadata": {
            "name": name,
            "namespace": "src",
            "generation": 1,
            "creationTimestamp": created,
            **metadata,
        },
        "spec": {"data": list(entries)},
    }
    return parse(item, frozenset({"src"}))


def entry(**fields: Any) -> Object:
    base = {"sourceName": "db", "targetCluster": "demo-stage", "targetNamespace": "quote"}
    return {name: value for name, value in {**base, **fields}.items() if value is not None}
