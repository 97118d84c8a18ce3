"""Recognizes manifests that another tool has to fill before they are objects. Pure.

Skeletons of Backstage, projects of Kluctl and folders of cookiecutter look like manifests, since
their placeholders are valid strings in YAML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from k8s_ucp.gitops.imports.findings import NotImportable

_PLACEHOLDER = re.compile(
    rb"^metadata:[ \t]*(?:#.*)?\r?\n(?:[ \t]+.*\n)*?[ \t]+name(?:space)?:[ \t]*"
    rb"(?P<value>.*\{\{.*\}\}.*)",
    re.MULTILINE,
)
"""A placeholder in an object's name or namespace, where no object of Kubernetes can have braces.

Elsewhere, such as in arguments of a workflow, braces may be meant for a program in the cluster.
"""
_LONGEST = 60


def refuse_templates(files: Mapping[str, bytes], command: str) -> None:
    """Raise NotImportable if a manifest is a template. command: adds the result of filling it."""
    for path, content in sorted(files.items()):
        if b"{{" in content and (match := _PLACEHOLDER.search(content)):
            value = match["value"].decode(errors="replace").strip()[:_LONGEST]
            raise NotImportable(
                f"{path} is a template: an object in it is called {value}",
                f"fill it with the tool that it is made for, then: {command} (with the result)",
            )
