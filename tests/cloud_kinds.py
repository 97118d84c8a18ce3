"""CustomResourceDefinitions of the clouds' kinds, for an API server that rejects unknown fields.

AWS's schemas come from provider-aws-local. Where it leaves them open, and for the kinds of other
clouds, the fields are those in the table of tests/provider_fields.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from k8s_ucp.aws import crds as aws
from k8s_ucp.kube import CRD, Object
from tests import provider_fields

_ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}


def crds() -> list[Object]:
    """One CRD for each kind in either table."""
    found = {(each["spec"]["group"], each["spec"]["names"]["kind"]): each for each in aws.crds()}
    for key, fields in json.loads(provider_fields.TABLE.read_text("utf-8"))["kinds"].items():
        api_version, kind = key.split(" ")
        group, version = api_version.split("/")
        if group.startswith("gateway."):
            continue
        ours = found.setdefault((group, kind), _crd(group, version, kind))
        schema = ours["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        spec = _schema(fields)
        kept = schema["properties"]["spec"].get("properties", {})
        schema["properties"]["spec"] = {
            **spec,
            "properties": {
                **spec["properties"],
                **{name: each for name, each in kept.items() if name not in _OF_A_KIND},
            },
        }
    return list(found.values())


_OF_A_KIND = ("forProvider", "initProvider")


def _crd(group: str, version: str, kind: str) -> Object:
    plural = f"{kind.lower()}{'es' if kind.endswith('s') else 's'}"
    return CRD.object(
        f"{plural}.{group}",
        spec={
            "group": group,
            "scope": "Cluster" if kind.startswith("Cluster") and "Config" in kind else "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "properties": {"spec": _ANYTHING}}
                    },
                }
            ],
        },
    )


def _schema(known: Any) -> dict[str, Any]:
    """Schema of a field, from its entry in the table."""
    entry: Mapping[str, Any] = known if isinstance(known, dict) else {"type": known}
    kind = entry["type"]
    if kind.startswith("[]"):
        return {"type": "array", "items": _schema({**entry, "type": kind[2:]})}
    if kind == "integer":
        return {"type": "number"}
    if kind not in ("object", "map"):
        return {"type": kind}
    if "fields" not in entry:
        return {"type": "object", **_ANYTHING}
    return {
        "type": "object",
        "properties": {name: _schema(each) for name, each in entry["fields"].items()},
        **({"required": entry["required"]} if "required" in entry else {}),
    }
