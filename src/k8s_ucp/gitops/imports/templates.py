"""Recognizes manifests that another tool has to fill before they are objects. Pure.

Skeletons of Backstage, projects of Kluctl and folders of cookiecutter look like manifests, since
their placeholders are valid strings in YAML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from k8s_ucp.gitops.imports.findings import NotImportable

_METADATA = re.compile(rb"^metadata:[ \t]*(?:#.*)?\r?\n((?:[ \t].*(?:\n|\Z))+)", re.M)
_NAME = re.compile(rb"^[ \t]+name(?:space)?:[ \t]*(?P<value>.*)", re.MULTILINE)
"""Neither can match one text in two ways: with those, a search takes years in some manifests."""
_LONGEST = 60


def refuse_templates(files: Mapping[str, bytes], command: str) -> None:
    """Raise NotImportable if a manifest is a template. command: adds the result of filling it."""
    for path, content in sorted(files.items()):
        if (value := _placeholder(content)) is not None:
            shown = value.decode(errors="replace").strip()[:_LONGEST]
            raise NotImportable(
                f"{path} is a template: an object in it is called {shown}",
                f"fill it with the tool that it is made for, then: {command} (with the result)",
            )


def _placeholder(content: bytes) -> bytes | None:
    """An object's name or namespace in which no object of Kubernetes can have its braces.

    Elsewhere, such as in arguments of a workflow, braces may be meant for a program in the cluster.
    """
    for metadata in _METADATA.finditer(content) if b"{{" in content else ():
        for name in _NAME.finditer(metadata[1]):
            if b"}}" in name["value"].partition(b"{{")[2]:
                return name["value"]
    return None
