"""Helm values of Applications: values files of any repository, and inline values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.imports.argocd.application_drafts import (
    DiscoveryContext,
    Draft,
    ValuesSource,
    command_of,
)
from k8s_ucp.gitops.imports.findings import NotImportable
from k8s_ucp.gitops.imports.helm_values import check_settings, merged
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.reachable import resolve
from k8s_ucp.gitops.manifests.yaml_text import maps

_INLINE = ("values", "valuesObject", "parameters")
_PATTERN = frozenset("*?[")
"""What makes the name of a values file a pattern."""


@dataclass(frozen=True)
class _ValuesFile:
    """A values file. path: in the tree; None if it is in another repository."""

    name: str
    path: str | None
    content: bytes


def chart_values(draft: Draft, context: DiscoveryContext) -> str | bytes | None:
    """A values file in the chart, or several merged. Raises NotImportable."""
    check_settings(draft.helm)
    # The chart's own values apply in any case. A parameter such as `hosts[0]` changes a list of
    # theirs only if the Application names the file.
    in_lists = any("[" in str(each.get("name")) for each in maps(draft.helm, "parameters"))
    names = [each for each in _value_files(draft.helm) if each != "values.yaml" or in_lists]
    found = _existing(draft, names, context)
    inline = any(draft.helm.get(key) for key in _INLINE)
    if not found and not inline:
        return None
    start, path = f"{draft.path}/" if draft.path else "", found[0].path if found else None
    if len(found) == 1 and not inline and path is not None and path.startswith(start):
        return path.removeprefix(start)
    return merged([(each.name, each.content) for each in found], draft.helm)


def values_for_applications(
    tree: RepositoryTree, chart: str, helm: Mapping[str, Any]
) -> str | bytes | None:
    """Merge the values that an Application passes to a chart of Applications; None without any.

    Files in other repositories are left out. Raises NotImportable.
    """
    names = [each for each in _value_files(helm) if each != "values.yaml" and each[:1] != "$"]
    paths = [resolve(chart, each) for each in names]
    files = [each for each in paths if each and tree.has(each)]
    if not files and not any(helm.get(key) for key in _INLINE):
        return None
    return merged([(each, tree.read(each)) for each in files], helm)


def remote_values(draft: Draft, context: DiscoveryContext) -> str | bytes | None:
    """Values for a chart in another repository, whose files can't be read. Raises NotImportable."""
    if not draft.helm:
        return None
    check_settings(draft.helm)
    names = [each for each in _value_files(draft.helm) if each != "values.yaml"]
    inside = [each for each in names if not each.startswith("$")]
    here = _existing(draft, [each for each in names if each not in inside], context)
    inline = any(draft.helm.get(key) for key in _INLINE)
    if inside and (len(inside) > 1 or here or inline):
        raise NotImportable(
            f"its values files {', '.join(inside)} are in another repository, and are merged "
            "with others",
            f"merge them into one file, then {command_of(draft, context.tree)} --values FILE",
        )
    if here or inline:
        return merged([(each.name, each.content) for each in here], draft.helm)
    return inside[0] if inside else None


def _existing(draft: Draft, names: Iterable[str], context: DiscoveryContext) -> list[_ValuesFile]:
    """The values files that exist. Raises NotImportable."""
    found = []
    for name in names:
        if file := _file(draft, name, context):
            found.append(file)
        elif not _PATTERN.isdisjoint(name):
            raise NotImportable(
                f"its values files are those that a pattern selects: {name}",
                "list them in the Application",
            )
        elif not draft.helm.get("ignoreMissingValueFiles"):
            raise NotImportable(f"its values file {name} does not exist", "correct the Application")
    return found


def _value_files(helm: Mapping[str, Any]) -> list[str]:
    found = helm.get("valueFiles")
    return [str(each) for each in found] if isinstance(found, list) else []


def _file(draft: Draft, name: str, context: DiscoveryContext) -> _ValuesFile | None:
    """A values file; None if it doesn't exist. Raises NotImportable."""
    tree = context.tree
    path = resolve("", name.strip("/")) if name.startswith("/") else resolve(draft.path, name)
    if name.startswith("$"):
        ref, _, rest = name[1:].partition("/")
        source = draft.refs.get(ref) or ValuesSource("", None, "a source that does not exist")
        path = resolve(source.folder, rest)
        if source.elsewhere:
            content = _fetched(draft, name, source, path or "", context)
            return None if content is None else _ValuesFile(name, None, content)
    elif "://" in name:
        raise NotImportable(
            f"its values file {name} is in another repository",
            f"copy it to a file, then {command_of(draft, tree)} --values FILE",
        )
    return _ValuesFile(path, path, tree.read(path)) if path and tree.has(path) else None


def _fetched(
    draft: Draft, name: str, source: ValuesSource, path: str, context: DiscoveryContext
) -> bytes | None:
    """A values file in another repository or at another revision. Raises NotImportable."""
    why = ""
    if source.url and context.fetch:
        try:
            return context.fetch(source.url, source.revision).read(path)
        except UcpError as error:
            why = f", which can't be read: {' '.join(error.message.split())}"
    raise NotImportable(
        f"its values file {name} is in {source.elsewhere}{why}",
        f"copy it to a file, then {command_of(draft, context.tree)} --values FILE",
    )
