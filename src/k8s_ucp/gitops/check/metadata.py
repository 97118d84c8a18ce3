"""Names, labels and sizes that every API server rejects. Pure.

Only of kinds whose names follow the usual rules. Sources: ValidateObjectMeta in Kubernetes'
apimachinery, ValidateConfigMap and ValidateSecret in pkg/apis/core/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from k8s_ucp.gitops.check.findings import Fault, invalid_field
from k8s_ucp.gitops.manifests.yaml_text import part
from k8s_ucp.names import DNS_LABEL, MOST_DATA

_VERSIONS = {"v1", "apps/v1", "autoscaling/v2", "batch/v1", "networking.k8s.io/v1", "policy/v1"}
_LABELS_ONLY = frozenset(["Namespace", "Service"])
"""Kinds whose names can't contain dots."""
_SUBDOMAIN = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_MOST_ANNOTATED = 262_144
_ALLOWED = "lower-case letters, digits and `-`, between letters or digits"


def find_invalid_metadata(item: Mapping[str, Any], *, deployed: bool = False) -> Iterator[Fault]:
    """What is invalid in an object's name, namespace, labels, annotations and amount of data.

    deployed: Argo CD applies it. Elsewhere, an unknown kind may be a tool's configuration.
    """
    if str(item.get("kind")).endswith("List"):
        return
    is_known = item.get("apiVersion") in _VERSIONS
    metadata = part(item, "metadata")
    name = metadata.get("name")
    if not name and not metadata.get("generateName") and (is_known or deployed):
        yield invalid_field("metadata.name", "metadata.name is missing")
    namespace = metadata.get("namespace")
    if deployed and isinstance(namespace, str) and namespace and not DNS_LABEL.fullmatch(namespace):
        message = f"metadata.namespace {namespace!r:.80} is invalid: {_ALLOWED}"
        yield invalid_field("metadata.namespace", message)
    if not is_known:
        return
    if isinstance(name, str) and name:
        yield from _invalid_name(name, dots=item.get("kind") not in _LABELS_ONLY)
    yield from _invalid_labels(part(metadata, "labels"), "metadata.labels")
    if _size(part(metadata, "annotations").items()) > _MOST_ANNOTATED:
        message = f"metadata.annotations have more than {_MOST_ANNOTATED} bytes"
        yield invalid_field("metadata.annotations", message)
    if item.get("kind") in ("ConfigMap", "Secret") and _decoded(item) > MOST_DATA:
        yield invalid_field("data", f"data has more than {MOST_DATA} bytes")


def find_invalid_containers(containers: Iterable[Mapping[str, Any]]) -> Iterator[Fault]:
    """Containers with an invalid name."""
    for each in containers:
        name = each.get("name")
        if isinstance(name, str) and not DNS_LABEL.fullmatch(name):
            yield invalid_field(
                "containers", f"the container name {name!r:.80} is invalid: {_ALLOWED}"
            )


def _invalid_name(name: str, *, dots: bool) -> Iterator[Fault]:
    if not (_SUBDOMAIN if dots else DNS_LABEL).fullmatch(name):
        yield invalid_field("metadata.name", f"metadata.name is invalid: {_ALLOWED}")


def _invalid_labels(labels: Mapping[str, Any], path: str) -> Iterator[Fault]:
    for key, value in labels.items():
        for text in (str(key).rpartition("/")[2] or " ", value):
            if isinstance(text, str) and not _LABEL.fullmatch(text):
                message = f"{path}: {text!r:.80} is invalid: at most 63 letters, digits, -, _ and ."
                yield invalid_field(path, message)


def _decoded(item: Mapping[str, Any]) -> int:
    """The amount of data of a ConfigMap or Secret, without base64, which is a third longer."""
    encoded = ("binaryData", "data" if item.get("kind") == "Secret" else "")
    sizes = {
        key: sum(len(str(each).encode()) for each in part(item, key).values())
        for key in ("data", "binaryData", "stringData")
    }
    return sum(size * 3 // 4 if key in encoded else size for key, size in sizes.items())


def _size(pairs: Iterable[tuple[Any, Any]]) -> int:
    return sum(len(str(key).encode()) + len(str(value).encode()) for key, value in pairs)
