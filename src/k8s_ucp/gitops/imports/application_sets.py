"""ApplicationSets as the Applications that they stand for, as far as the repository alone tells.

Elements of a list, folders and files of the same repository, and the product of two of them.
What asks a cluster or a hosting service can't be known here. Pure.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.application_templates import fill, normalized
from k8s_ucp.gitops.imports.findings import ArgoDocument, NotImportable
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.yaml_text import documents, maps, part

_REASONS = {
    "clusters": "its generator lists the clusters of an Argo CD",
    "clusterDecisionResource": "its generator asks a cluster",
    "scmProvider": "its generator asks a hosting service for repositories",
    "pullRequest": "its generator asks a hosting service for pull requests",
    "plugin": "its generator asks a plugin",
    "merge": "it merges generators",
}
_ADVICE = "add its apps by `ucp app add`, or import the manifests that Argo CD made of it"
_HINTS = ("env", "environment", "stage", "envName", "environmentName", "cluster")

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class ExpandedApplication:
    """One Application of a set. environment: as a parameter of it says."""

    document: ArgoDocument
    environment: str | None


def expand(
    document: ArgoDocument, tree: RepositoryTree, same: Callable[[str], bool]
) -> list[ExpandedApplication]:
    """same: whether an address is this repository. Raises NotImportable."""
    spec = part(document.content, "spec")
    if spec.get("templatePatch"):
        raise NotImportable("it has a templatePatch", _ADVICE)
    go = bool(spec.get("goTemplate"))
    found = []
    template = spec.get("template")
    if not isinstance(template, dict):
        raise NotImportable("it has no template", "correct it")
    for generator in maps(spec, "generators"):
        for parameters in _generate(generator, tree, same, go):
            content = {
                "apiVersion": document.content.get("apiVersion"),
                "kind": "Application",
                **fill(template, parameters, go=go),
            }
            hints = (parameters.get(each) for each in _HINTS)
            hint = next((each for each in hints if isinstance(each, str) and each), None)
            found.append(ExpandedApplication(replace(document, content=content), hint))
    if not found:
        raise NotImportable("its generators yield nothing in this repository", _ADVICE)
    return found


def _generate(
    generator: Mapping[str, Any], tree: RepositoryTree, same: Callable[[str], bool], go: bool
) -> list[Parameters]:
    if generator.get("selector"):
        raise NotImportable("its generator has a selector", _ADVICE)
    for name, reason in _REASONS.items():
        if name in generator:
            raise NotImportable(reason, _ADVICE)
    for name in ("list", "git", "matrix"):
        if part(part(generator, name), "template"):
            raise NotImportable("its generator has a template of its own", _ADVICE)
    if "list" in generator:
        return _elements(part(generator, "list"), go)
    if "git" in generator:
        return _of_git(part(generator, "git"), tree, same, go)
    if "matrix" in generator:
        return _product(maps(part(generator, "matrix"), "generators"), tree, same, go)
    raise NotImportable(f"its generator {', '.join(generator) or '{}'} is not known", _ADVICE)


def _elements(generator: Mapping[str, Any], go: bool) -> list[Parameters]:
    if generator.get("elementsYaml"):
        raise NotImportable("its list is made by a template (elementsYaml)", _ADVICE)
    return [dict(each) if go else flat(each) for each in maps(generator, "elements")]


def _product(
    generators: list[Mapping[str, Any]], tree: RepositoryTree, same: Callable[[str], bool], go: bool
) -> list[Parameters]:
    if len(generators) != 2:
        raise NotImportable("its matrix needs two generators", "correct it")
    found: list[Parameters] = []
    for first in _generate(generators[0], tree, same, go):
        second = fill(generators[1], first, go=go)
        found += [{**first, **each} for each in _generate(second, tree, same, go)]
    return found


def looked_at(value: Any, tree: RepositoryTree) -> Iterator[str]:
    """Addresses of which git generators look at folders or files that this tree has."""
    if isinstance(value, dict):
        git = part(value, "git")
        rules = [*maps(git, "directories"), *maps(git, "files")]
        patterns = [_pattern(str(each.get("path"))) for each in rules if not each.get("exclude")]
        if any(each.fullmatch(path) for each in patterns for path in (*tree.folders, *tree.names)):
            yield str(git.get("repoURL", ""))
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from looked_at(each, tree)


def _of_git(
    generator: Mapping[str, Any], tree: RepositoryTree, same: Callable[[str], bool], go: bool
) -> list[Parameters]:
    url = str(generator.get("repoURL", ""))
    if not same(url):
        raise NotImportable(f"its generator looks at another repository, {url}", f"import {url}")
    if generator.get("pathParamPrefix"):
        raise NotImportable("its generator has a pathParamPrefix", _ADVICE)
    values = part(generator, "values")
    found: list[Parameters] = []
    for path, more in [*_folders(generator, tree), *_files(generator, tree, go)]:
        parameters = {**more, **_of_path(path, go)}
        own = {key: fill(text, parameters, go=go) for key, text in values.items()}
        named = {"values": own} if go else {f"values.{key}": text for key, text in own.items()}
        found.append({**parameters, **(named if own else {})})
    return found


def _folders(generator: Mapping[str, Any], tree: RepositoryTree) -> list[tuple[str, Parameters]]:
    """(folder, no parameters)"""
    rules = maps(generator, "directories")
    return [(each, {}) for each in _chosen(rules, sorted(tree.folders)) if each]


def _files(
    generator: Mapping[str, Any], tree: RepositoryTree, go: bool
) -> list[tuple[str, Parameters]]:
    """(folder of the file, what the file says)"""
    found: list[tuple[str, Parameters]] = []
    for name in _chosen(maps(generator, "files"), tree.names):
        try:
            read = documents(tree.read(name), name)
        except UsageError as error:
            raise NotImportable(error.message, f"correct {name}") from error
        for content in read[0] if read and isinstance(read[0], list) else read:
            if isinstance(content, dict):
                found.append((name.rpartition("/")[0], dict(content) if go else flat(content)))
    return found


def _chosen(rules: Sequence[Mapping[str, Any]], paths: Iterable[str]) -> Iterator[str]:
    """Those that a rule names and none excludes."""
    wanted = [_pattern(str(each.get("path"))) for each in rules if not each.get("exclude")]
    excluded = [_pattern(str(each.get("path"))) for each in rules if each.get("exclude")]
    for path in paths:
        if any(each.fullmatch(path) for each in wanted) and not any(
            each.fullmatch(path) for each in excluded
        ):
            yield path


def _of_path(path: str, go: bool) -> dict[str, Any]:
    segments = [each for each in path.split("/") if each]
    name = segments[-1] if segments else ""
    if go:
        of_path = {"path": path, "basename": name, "basenameNormalized": normalized(name)}
        return {"path": {**of_path, "segments": segments}}
    found: dict[str, Any] = {
        "path": path,
        "path.basename": name,
        "path.basenameNormalized": normalized(name),
    }
    return {**found, **{f"path[{place}]": each for place, each in enumerate(segments)}}


def flat(content: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    """Maps in maps as dotted keys."""
    found: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, dict):
            found |= flat(value, f"{start}{key}.")
        else:
            found[f"{start}{key}"] = value
    return found


def _pattern(path: str) -> re.Pattern[str]:
    """`*` stays within a folder, `**` doesn't."""
    text = ""
    for piece in re.split(r"(\*\*/?|\*|\?|\[[^\]]*\])", path.strip("/").removeprefix("./")):
        if piece.startswith("**"):
            text += ".*"
        elif piece == "*":
            text += "[^/]*"
        elif piece == "?":
            text += "[^/]"
        elif piece.startswith("["):
            text += fnmatch.translate(piece)[4:-3]
        else:
            text += re.escape(piece)
    return re.compile(text)
