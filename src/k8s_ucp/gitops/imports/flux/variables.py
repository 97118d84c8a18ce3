"""Substitutes variables in what kustomize builds, as a Kustomization of Flux does. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from k8s_ucp.gitops.imports.findings import in_path
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.yaml_text import dump_all, maps, part

_VARIABLE = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)(?::[-=]([^{}]*))?\}")
"""Name, and default value."""
_DEEPEST = 3
_NOT_FILLED = re.compile(r"kustomize\.toolkit\.fluxcd\.io/substitute: [\"']?disabled")


def fill_variables(
    text: str, post_build: Mapping[str, Any], tree: RepositoryTree, environment: str | None
) -> str:
    """Substitute variables; those that may be defined on a cluster alone are kept."""
    if not post_build:
        return text
    known: dict[str, str] = {}
    by_clusters = False
    for each in maps(post_build, "substituteFrom"):
        data = _data(each, tree, environment)
        by_clusters |= data is None
        known |= data or {}
    known |= {key: str(value) for key, value in part(post_build, "substitute").items()}

    def fill(found: re.Match[str]) -> str:
        usual = None if by_clusters else found[2]
        return str(known.get(found[1]) or (found[0] if usual is None else usual))

    pieces = re.split(r"^---\n", text, flags=re.MULTILINE)
    for at, each_piece in enumerate(pieces):
        piece = each_piece
        if not _NOT_FILLED.search(piece):
            # The value of a variable may contain variables.
            for _ in range(_DEEPEST):
                piece = _VARIABLE.sub(fill, piece)
            pieces[at] = piece.replace("$${", "${")
    return "---\n".join(pieces)


def is_filled(content: Mapping[str, Any]) -> bool:
    """Flux substitutes variables in this object; in others, `${…}` belongs to a script."""
    return not _NOT_FILLED.search(dump_all([content]))


def _data(
    reference: Mapping[str, Any], tree: RepositoryTree, environment: str | None
) -> dict[str, str] | None:
    """The variables of a ConfigMap in the repository; None for others, and for Secrets.

    Of several with the name, the one in the environment's folder counts.
    """
    if reference.get("kind") != "ConfigMap":
        return None
    found = tree.config_maps(str(reference.get("name")))
    if len(found) > 1 and environment:
        found = [each for each in found if in_path(each.path, [environment]) == environment]
    if len(found) != 1 or "sops" in found[0].content:
        return None
    return {key: str(value) for key, value in part(found[0].content, "data").items()}
