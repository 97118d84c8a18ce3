"""One object that an overlay renders: its names, and the pods of a workload. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.manifests.yaml_text import part

Object = Mapping[str, Any]
OUTSIDE = "k8s-ucp.io/from-outside"
"""Annotation of a workload that lists what it needs and something else creates."""
IGNORE = "k8s-ucp.io/ignore"
"""Annotation that lists findings of the object to ignore: `<rule>: <reason>`, one per line."""
POD_TEMPLATES = (("spec", "template"), ("spec", "jobTemplate", "spec", "template"), ())
"""Where workloads have the template of their pods."""


def of_object(item: Object, fault: Fault) -> Fault:
    """The fault, with the object's name added."""
    return replace(fault, object=named(item))


def named(item: Object) -> str:
    """`Kind/name`."""
    return f"{item.get('kind')}/{name_of(item)}"


def misshapen(item: Object) -> str | None:
    """Why any API server would reject the object's outer form, or None; other rules rely on it."""
    metadata = item.get("metadata", {})
    if not isinstance(metadata, dict):
        return "metadata must be a mapping"
    for name in ("apiVersion", "kind"):
        if not isinstance(item.get(name, ""), str):
            return f"{name} must be a string"
    for name in ("labels", "annotations"):
        if not isinstance(metadata.get(name) or {}, dict):
            return f"metadata.{name} must be a mapping"
    return None


def annotation(item: Object, name: str) -> str:
    """The value of an annotation; empty if there is none."""
    return str(part(part(item, "metadata"), "annotations").get(name, ""))


def name_of(item: Object) -> str:
    """The object's name, or a pattern for the one that the API server generates: `upgrade-*`.

    An object without a name is shown as that.
    """
    metadata = part(item, "metadata")
    prefix = metadata.get("generateName")
    return str(metadata.get("name") or (f"{prefix}*" if prefix else "(no name)"))


def pods_of(item: Object) -> Iterator[Mapping[str, Any]]:
    """The pod spec of a workload of any kind."""
    for path in POD_TEMPLATES:
        part: Any = item
        for key in path:
            part = part.get(key) if isinstance(part, dict) else None
        spec = part.get("spec") if isinstance(part, dict) else None
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield spec


def containers_of(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Containers and init containers of a pod."""
    found = [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
    return [each for each in found if isinstance(each, dict)]
