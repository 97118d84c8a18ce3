"""CustomResourceDefinitions of the kinds in the table, as in a provider's package.

Generated from the table alone: unknown fields are preserved, so that a manifest for AWS's own
provider is accepted unchanged.
"""

from __future__ import annotations

from typing import Any

from k8s_ucp.aws.kind import GROUP, AwsKind
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.kube import CRD, Kind, Object

PROVIDER_CONFIG = Kind(f"{GROUP}/v1beta1", "ProviderConfig", "providerconfigs")
CLUSTER_PROVIDER_CONFIG = Kind(
    f"{GROUP}/v1beta1", "ClusterProviderConfig", "clusterproviderconfigs", namespaced=False
)
CONFIGS = {each.kind: each for each in (PROVIDER_CONFIG, CLUSTER_PROVIDER_CONFIG)}
"""Configurations of a provider's account: for one namespace, and for all."""

USAGE = Kind(f"{GROUP}/v1beta1", "ProviderConfigUsage", "providerconfigusages")
"""Use of one of them by one resource."""

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_COLUMNS = (
    ("SYNCED", ".status.conditions[?(@.type=='Synced')].status"),
    ("READY", ".status.conditions[?(@.type=='Ready')].status"),
    ("EXTERNAL-NAME", ".metadata.annotations.crossplane\\.io/external-name"),
)


def crds() -> list[Object]:
    """CRDs of all kinds of resources, of the provider configurations and of their usages."""
    return [*map(_managed, KINDS.values()), *map(_config, CONFIGS.values()), _usage()]


def _managed(aws: AwsKind) -> Object:
    columns = [{"name": name, "type": "string", "jsonPath": path} for name, path in _COLUMNS]
    age = {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    return _crd(aws.kind, _schema(), [*columns, age], ["crossplane", "managed", "aws"])


def _config(kind: Kind) -> Object:
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": _ANYTHING, "status": _ANYTHING},
    }
    users = {"name": "USERS", "type": "integer", "jsonPath": ".status.users"}
    return _crd(kind, schema, [users], ["crossplane", "providerconfig", "aws"])


def _usage() -> Object:
    text = {"type": "string"}
    schema = {
        "type": "object",
        "required": ["providerConfigRef", "resourceRef"],
        "properties": {
            "providerConfigRef": _fields({"kind": text, "name": text}),
            "resourceRef": _fields({"apiVersion": text, "kind": text, "name": text}),
        },
    }
    columns = [
        {"name": name, "type": "string", "jsonPath": path}
        for name, path in (
            ("CONFIG-NAME", ".providerConfigRef.name"),
            ("RESOURCE-KIND", ".resourceRef.kind"),
            ("RESOURCE-NAME", ".resourceRef.name"),
        )
    ]
    return _crd(USAGE, schema, columns, ["crossplane", "providerconfig", "aws"])


def _fields(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _crd(
    kind: Kind, schema: dict[str, Any], columns: list[dict[str, str]], categories: list[str]
) -> Object:
    version = {
        "name": kind.api_version.rpartition("/")[2],
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": schema},
    }
    spec = {
        "group": kind.group,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "names": {
            "kind": kind.kind,
            "listKind": f"{kind.kind}List",
            "plural": kind.plural,
            "singular": kind.kind.lower(),
            "categories": categories,
        },
        "versions": [version],
    }
    return CRD.object(f"{kind.plural}.{kind.group}", spec=spec)


def _schema() -> dict[str, Any]:
    spec = {
        "type": "object",
        "required": ["forProvider"],
        "properties": {
            "forProvider": _ANYTHING,
            "initProvider": _ANYTHING,
            "managementPolicies": {
                "type": "array",
                "default": ["*"],
                "items": {
                    "type": "string",
                    "enum": ["Observe", "Create", "Update", "Delete", "LateInitialize", "*"],
                },
            },
            "providerConfigRef": {
                "type": "object",
                "default": {"kind": "ClusterProviderConfig", "name": "default"},
                "required": ["kind", "name"],
                "properties": {"kind": {"type": "string"}, "name": {"type": "string"}},
            },
            "writeConnectionSecretToRef": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}},
            },
        },
    }
    return {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": spec, "status": _ANYTHING},
    }
