"""Conditions of sources without a status of their own: managed resources and labeled Secrets.

They are kept in one ConfigMap, one key per source, which `ucp status` and `ucp doctor` read.
"""

from __future__ import annotations

import json
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, Kube, NotFound


def read_notes(kube: Kube) -> dict[str, dict[str, Any]]:
    """{source: {owner, environment, status}} as the reconciler wrote them. Raises KubeError."""
    return {key: json.loads(text) for key, text in read_notes_text(kube).items()}


def read_notes_text(kube: Kube) -> dict[str, str]:
    """Like `read_notes`, each as JSON text; invalid JSON is left out."""
    found = kube.find(CONFIG_MAP, names.REGISTRATIONS, names.CLUSTERS_NAMESPACE)
    notes = {}
    for name, text in ((found or {}).get("data") or {}).items():
        try:
            parsed = json.loads(text)
        except ValueError:
            continue
        if isinstance(parsed, dict):
            notes[name.replace(".", "/", 1)] = text
    return notes


def write_note(kube: Kube, source: str, text: str | None) -> None:
    """Write the note of a source, or delete it (None). Raises KubeError."""
    change = {"data": {_as_key(source): text}}
    try:
        kube.patch(CONFIG_MAP, names.REGISTRATIONS, names.CLUSTERS_NAMESPACE, change)
    except NotFound:
        if text is not None:
            notes = CONFIG_MAP.object(
                names.REGISTRATIONS,
                names.CLUSTERS_NAMESPACE,
                labels={names.MANAGED_BY: names.OURS},
                data=change["data"],
            )
            kube.create(notes)


def _as_key(source: str) -> str:
    """`<namespace>.<Secret>`: namespaces contain no dot, and keys no slash."""
    return source.replace("/", ".", 1)
