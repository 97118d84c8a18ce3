"""Settings in files beside the manifests, which override those of an Application's source. Pure.

Argo CD Image Updater writes such files, one for each Application.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.findings import NotImportable
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.build_charts import SETTINGS
from k8s_ucp.gitops.manifests.reachable import join
from k8s_ucp.gitops.manifests.yaml_text import first_map, part

_OF_TOOLS = frozenset(["helm", "kustomize", "directory", "plugin"])
"""What such a file can set of a source; Argo CD ignores the rest."""


def with_files(
    source: Mapping[str, Any], path: str, application: str, tree: RepositoryTree
) -> Mapping[str, Any]:
    """A source of this repository, as the files in its folder change it. Raises NotImportable."""
    for name in (SETTINGS, f".argocd-source-{application}.yaml"):
        file = join(path, name)
        try:
            settings = first_map(tree.read(file), file)
        except UsageError as error:
            raise NotImportable(error.message, f"correct {file}") from error
        source = _patched(source, {key: settings[key] for key in _OF_TOOLS & settings.keys()})
    return source


def _patched(content: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch: null removes a key, lists are replaced."""
    found = {key: value for key, value in content.items() if patch.get(key, "") is not None}
    for key, value in patch.items():
        if isinstance(value, dict):
            found[key] = _patched(part(content, key), value)
        elif value is not None:
            found[key] = value
    return found
