"""Expands ApplicationSets to Applications, as far as the repository alone allows.

Supports generators for list elements, for folders and files of the same repository, and their
combinations; the topology's environments stand for clusters. Generators that query a git host can't
be expanded. Pure.
"""

from __future__ import annotations

import contextlib
import fnmatch
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from shlex import quote
from typing import Any

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.imports.argocd.application_templates import (
    fill,
    normalized,
    refuse_unknown,
    texts_in,
    with_texts,
)
from k8s_ucp.gitops.imports.argocd.directories import is_slow
from k8s_ucp.gitops.imports.findings import ArgoDocument, NotImportable, in_text
from k8s_ucp.gitops.imports.helm_values import merge
from k8s_ucp.gitops.imports.trees import RepositoryTree, beside_its_file
from k8s_ucp.gitops.manifests.yaml_text import documents, maps, part
from k8s_ucp.names import SECRET_TYPE

_REASONS = {
    "clusterDecisionResource": "its generator queries a cluster",
    "scmProvider": "its generator queries a git host for repositories",
    "pullRequest": "its generator queries a git host for pull requests",
    "plugin": "its generator calls a plugin",
}
_ADVICE = (
    "add its apps with `ucp app add`, or import the Applications that Argo CD generated from it"
)
_OF_CLUSTER = "(cluster)"
"""The environment of a cluster; templates can't use this key."""
_HINTS = (_OF_CLUSTER, "env", "environment", "stage", "envName", "environmentName", "cluster")

_OWN_CLUSTER = "in-cluster"
"""Argo CD's name for the cluster that it runs on, which is not an environment."""

_MOST = 10_000
"""Applications of a matrix; its generators multiply, so a few lines can ask for billions."""

Parameters = Mapping[str, Any]
FillGo = Callable[[Sequence[str], Sequence[Parameters]], Sequence[Sequence[str]]]
"""(Go templates, sets of parameters) to the filled templates for each set; raises UcpError."""


@dataclass(frozen=True)
class ExpandedApplication:
    """One Application of an ApplicationSet. environment: from one of its parameters."""

    document: ArgoDocument
    environment: str | None


@dataclass(frozen=True)
class SetContext:
    """Context for generators."""

    tree: RepositoryTree
    same: Callable[[str], bool]
    """Whether a URL is that of this repository."""
    clusters: Sequence[str] = ()
    """The topology's environments, one cluster each."""
    known: Collection[str] = ()
    """Names that are recognized as environments, of the topology or others."""
    go: bool = False
    """Templates are Go templates (`goTemplate: true`)."""
    fill_go: FillGo | None = None
    """helm, if available."""


def expand(document: ArgoDocument, context: SetContext) -> list[ExpandedApplication]:
    """The Applications of an ApplicationSet. Raises NotImportable."""
    spec = part(document.content, "spec")
    go = bool(spec.get("goTemplate"))
    context = replace(context, go=go)
    patch = str(spec.get("templatePatch") or "")
    found = []
    template = spec.get("template")
    if not isinstance(template, dict):
        raise NotImportable("it has no template", "correct it")
    for generator in maps(spec, "generators"):
        generated = _generate(generator, context)
        both = {"template": _overridden(template, generator), "patch": patch}
        for parameters, filled in zip(generated, _filled(both, generated, context), strict=True):
            content = {
                "apiVersion": document.content.get("apiVersion"),
                "kind": "Application",
                **_patched(filled["template"], filled["patch"]),
            }
            hints = (parameters.get(each) for each in _HINTS)
            hint = next((each for each in hints if isinstance(each, str) and each), None)
            application = beside_its_file(replace(document, content=content))
            found.append(ExpandedApplication(application, hint))
    if not found:
        raise NotImportable("its generators yield nothing in this repository", _ADVICE)
    return found


def _overridden(template: Mapping[str, Any], generator: Mapping[str, Any]) -> Mapping[str, Any]:
    """The set's template with what the generator's own one sets, as Argo CD merges them.

    Empty values of the latter set nothing. Templates of the generators in a matrix aren't used.
    """
    owns = (part(part(generator, name), "template") for name in generator)
    return merge(template, _set_in(next(filter(None, owns), {})))


def _set_in(content: Mapping[str, Any]) -> dict[str, Any]:
    """Without empty values at any depth of mappings."""
    found = {
        key: _set_in(value) if isinstance(value, dict) else value for key, value in content.items()
    }
    return {key: value for key, value in found.items() if value}


def _filled(value: Any, generated: Sequence[Parameters], context: SetContext) -> list[Any]:
    """A template filled with each of the parameters. Raises NotImportable."""
    try:
        return [fill(value, each, go=context.go) for each in generated]
    except NotImportable:
        if not context.go or context.fill_go is None:
            raise
    texts = list(dict.fromkeys(texts_in(value)))
    for each in generated:
        refuse_unknown(texts, each)
    try:
        found = context.fill_go(texts, generated)
    except UcpError as error:
        raise NotImportable(f"its template can't be filled: {error.message}", _ADVICE) from error
    return [with_texts(value, dict(zip(texts, each, strict=True))) for each in found]


def _patched(application: Mapping[str, Any], patch: str) -> Mapping[str, Any]:
    """Apply templatePatch: mappings are merged, all else is replaced. Raises NotImportable."""
    try:
        found = documents(patch.encode(), "templatePatch")
    except UsageError as error:
        raise NotImportable(error.message, "correct its templatePatch") from error
    return merge(application, found[0]) if found and isinstance(found[0], dict) else application


def _generate(generator: Mapping[str, Any], context: SetContext) -> list[Parameters]:
    for asked, reason in _REASONS.items():
        if asked in generator:
            raise NotImportable(reason, _ADVICE)
    kinds: Mapping[str, Callable[[Mapping[str, Any], SetContext], list[Parameters]]] = {
        "list": _elements,
        "git": _of_git,
        "matrix": _product,
        "merge": _merged,
        "clusters": _of_clusters,
    }
    name = next((each for each in kinds if each in generator), None)
    if name is None:
        raise NotImportable(
            f"its generator {', '.join(map(str, generator)) or '{}'} is not supported", _ADVICE
        )
    own = part(generator, name)
    selector = part(generator, "selector")
    return [each for each in kinds[name](own, context) if _selects(selector, each)]


def _selects(selector: Mapping[str, Any], parameters: Parameters) -> bool:
    """Evaluate a label selector against parameters that are strings. Raises NotImportable."""
    texts = {key: str(value) for key, value in flat(parameters).items()}
    for key, value in part(selector, "matchLabels").items():
        if texts.get(key) != str(value):
            return False
    for rule in maps(selector, "matchExpressions"):
        value, operator = texts.get(str(rule.get("key"))), str(rule.get("operator"))
        wanted = _texts(rule, "values")
        outcomes = {
            "In": value is not None and value in wanted,
            "NotIn": value is None or value not in wanted,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if operator not in outcomes:
            raise NotImportable(
                f"its selector uses the operator {operator}, which is not supported", "correct it"
            )
        if not outcomes[operator]:
            return False
    return True


def _elements(generator: Mapping[str, Any], context: SetContext) -> list[Parameters]:
    elements = maps(generator, "elements")
    if text := generator.get("elementsYaml"):
        try:
            read = documents(str(text).encode(), "elementsYaml")
        except UsageError as error:
            raise NotImportable(error.message, "correct its elementsYaml") from error
        elements += maps({"elements": read[0] if read else []}, "elements")
    return [dict(each) if context.go else flat(each) for each in elements]


def _of_clusters(generator: Mapping[str, Any], context: SetContext) -> list[Parameters]:
    """Clusters named like the environments. Labels are supported if they name environments."""
    selector = part(generator, "selector")
    if context.tree.cluster_secrets:
        return _of_secrets(generator, context)
    names = list(context.clusters)
    labels = {
        key: str(each) for key, each in part(selector, "matchLabels").items() if key != SECRET_TYPE
    }
    chosen = [*labels.values()]
    left_out: list[str] = []
    for rule in maps(selector, "matchExpressions"):
        listed = _texts(rule, "values")
        if rule.get("key") == SECRET_TYPE:
            continue
        if rule.get("operator") == "NotIn":
            left_out += [each for each in listed if each != _OWN_CLUSTER]
        else:
            chosen += listed if rule.get("operator") == "In" else [f"{rule.get('key')}"]
    if other := next((each for each in (*chosen, *left_out) if each not in context.known), None):
        label = next((f"{key}={other}" for key, each in labels.items() if each == other), other)
        raise NotImportable(
            f"its generator chooses clusters by labels ({label}) that name no environment",
            f"--map {quote(other)}=ENV, if one environment is what it chooses; else {_ADVICE}",
        )
    names = [each for each in chosen or names if each not in left_out]
    found: list[Parameters] = []
    for name in names:
        own = {"name": name, "nameNormalized": normalized(name), "server": f"https://{name}"}
        more = {"metadata": {"labels": {"environment": name}}, _OF_CLUSTER: name}
        found.append(
            _with_values({**own, **(more if context.go else flat(more))}, generator, context)
        )
    return found


def _of_secrets(generator: Mapping[str, Any], context: SetContext) -> list[Parameters]:
    """Clusters from Secrets of the repository, selected by all their labels."""
    found: list[Parameters] = []
    for secret in context.tree.cluster_secrets:
        metadata = part(secret.content, "metadata")
        labels, data = part(metadata, "labels"), part(secret.content, "stringData")
        name = str(data.get("name") or metadata.get("name"))
        if not _selects(part(generator, "selector"), labels):
            continue
        texts = (name, *(str(each) for each in labels.values()))
        environment = next((one for each in texts if (one := in_text(each, context.known))), None)
        if environment is None:
            raise NotImportable(
                f"its cluster {name} ({secret.where}) names no environment",
                f"--map {quote(name)}=ENV, or --skip-env {quote(name)}",
            )
        own = {"name": name, "nameNormalized": normalized(name), "server": data.get("server")}
        more = {key: dict(part(metadata, key)) for key in ("labels", "annotations")}
        parameters_of_secret = {**own, "metadata": more, _OF_CLUSTER: environment}
        parameters = parameters_of_secret if context.go else flat(parameters_of_secret)
        found.append(_with_values(parameters, generator, context))
    return found


def _with_values(
    parameters: Parameters, generator: Mapping[str, Any], context: SetContext
) -> Parameters:
    values = part(generator, "values")
    own = {key: fill(text, parameters, go=context.go) for key, text in values.items()}
    named = {"values": own} if context.go else {f"values.{key}": each for key, each in own.items()}
    return {**parameters, **(named if own else {})}


def _product(generator: Mapping[str, Any], context: SetContext) -> list[Parameters]:
    generators = maps(generator, "generators")
    if len(generators) != 2:
        raise NotImportable("its matrix needs two generators", "correct it")
    found: list[Parameters] = []
    for first in _generate(generators[0], context):
        second = fill(generators[1], first, go=context.go)
        found += [merge(first, each) for each in _generate(second, context)]
        if len(found) > _MOST:
            raise NotImportable(f"its matrix yields more than {_MOST} Applications", _ADVICE)
    return found


def _merged(generator: Mapping[str, Any], context: SetContext) -> list[Parameters]:
    """The first generator's parameters, merged with those of the others that have the same keys."""
    keys = _texts(generator, "mergeKeys")
    first, *others = [_generate(each, context) for each in maps(generator, "generators")] or [[]]

    def key(parameters: Parameters) -> tuple[str, ...]:
        flattened = flat(parameters)
        return tuple(str(flattened.get(each)) for each in keys)

    found = {key(each): each for each in first}
    for each in (one for other in others for one in other):
        if key(each) in found:
            found[key(each)] = merge(found[key(each)], each)
    return list(found.values())


def _texts(content: Mapping[str, Any], key: str) -> list[str]:
    """The list at a key as texts; empty if it is none."""
    found = content.get(key)
    return [str(each) for each in found] if isinstance(found, list) else []


def looked_at(value: Any, tree: RepositoryTree) -> Iterator[str]:
    """Repository URLs of git generators whose paths match folders or files of this tree."""
    if isinstance(value, dict):
        git = part(value, "git")
        rules = [*maps(git, "directories"), *maps(git, "files")]
        globs = [str(each.get("path")) for each in rules if not _excludes(each)]
        if _match_any(globs, (*tree.folders, *tree.names)):
            yield str(git.get("repoURL", ""))
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from looked_at(each, tree)


def excluded_folders(value: Any, context: SetContext) -> Iterator[str]:
    """Folders of this repository that git generators would choose, were they not excluded."""
    if isinstance(value, dict):
        git = part(value, "git")
        rules = maps(git, "directories")
        if context.same(str(git.get("repoURL", ""))) and any(map(_excludes, rules)):
            wanted = [each for each in rules if not _excludes(each)]
            with contextlib.suppress(NotImportable):
                folders = context.tree.folders
                yield from {*_chosen(wanted, folders)}.difference(_chosen(rules, folders))
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from excluded_folders(each, context)


def _excludes(rule: Mapping[str, Any]) -> bool:
    return bool(rule.get("exclude"))


def _of_git(generator: Mapping[str, Any], context: SetContext) -> list[Parameters]:
    url, tree, go = str(generator.get("repoURL", "")), context.tree, context.go
    if not context.same(url):
        raise NotImportable(f"its generator reads another repository, {url}", f"import {url}")
    prefix = str(generator.get("pathParamPrefix") or "")
    found: list[Parameters] = []
    for of_path, more in [*_folders(generator, tree, go), *_files(generator, tree, go)]:
        if prefix:
            dotted = {f"{prefix}.{key}": each for key, each in of_path.items()}
            of_path = {prefix: of_path} if go else dotted
        found.append(_with_values({**more, **of_path}, generator, context))
    return found


def _folders(
    generator: Mapping[str, Any], tree: RepositoryTree, go: bool
) -> list[tuple[Parameters, Parameters]]:
    """(parameters of a folder, no others). Argo CD passes over hidden folders."""
    shown = [each for each in sorted(tree.folders) if each and not f"/{each}".count("/.")]
    rules = maps(generator, "directories")
    return [(_of_path(each, go), {}) for each in _chosen(rules, shown)]


def _files(
    generator: Mapping[str, Any], tree: RepositoryTree, go: bool
) -> list[tuple[Parameters, Parameters]]:
    """(parameters of a file's path, its content)."""
    found: list[tuple[Parameters, Parameters]] = []
    for name in _chosen(maps(generator, "files"), tree.names):
        try:
            read = documents(tree.read(name), name)
        except UsageError as error:
            raise NotImportable(error.message, f"correct {name}") from error
        folder, _, file = name.rpartition("/")
        for content in read[0] if read and isinstance(read[0], list) else read:
            if isinstance(content, dict):
                found.append((_of_path(folder, go, file), dict(content) if go else flat(content)))
    return found


def _chosen(rules: Sequence[Mapping[str, Any]], paths: Iterable[str]) -> Iterator[str]:
    """Paths that match a rule and no exclusion."""
    wanted = [str(each.get("path")) for each in rules if not _excludes(each)]
    excluded = [str(each.get("path")) for each in rules if _excludes(each)]
    for path in paths:
        if any(_matches(each, path) for each in wanted) and not any(
            _matches(each, path) for each in excluded
        ):
            yield path


def _match_any(globs: Collection[str], paths: Collection[str]) -> bool:
    try:
        return any(_matches(each, path) for each in globs for path in paths)
    except NotImportable:
        return False


def _matches(glob: str, path: str) -> bool:
    """Raises NotImportable for a pattern that Python could not compare in time."""
    # A single star ends at a slash, so those of other segments don't multiply the steps.
    singles = max(each.replace("**", "").count("*") for each in glob.split("/"))
    if is_slow([path], glob.count("**") + singles):
        raise NotImportable(f"the path {glob[:80]} of its generator has too many *", _ADVICE)
    return _pattern(glob).fullmatch(path) is not None


def _of_path(path: str, go: bool, file: str = "") -> dict[str, Any]:
    """Parameters of a folder, or of a file in it."""
    segments = [each for each in path.split("/") if each]
    name = segments[-1] if segments else ""
    own = {"path": path, "basename": name, "basenameNormalized": normalized(name)}
    if file:
        own |= {"filename": file, "filenameNormalized": normalized(file)}
    if go:
        return {"path": {**own, "segments": segments}}
    dotted = {f"path.{key}": each for key, each in own.items() if key != "path"}
    numbered = {f"path[{index}]": each for index, each in enumerate(segments)}
    return {"path": path, **dotted, **numbered}


def flat(content: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    """Nested mappings flattened to dotted keys."""
    found: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, dict):
            found |= flat(value, f"{start}{key}.")
        else:
            found[f"{start}{key}"] = value
    return found


@cache
def _pattern(path: str) -> re.Pattern[str]:
    """`*` doesn't match a slash, `**` does."""
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
