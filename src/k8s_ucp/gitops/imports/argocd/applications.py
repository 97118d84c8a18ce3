"""Groups Argo CD Applications into apps: one Application for each environment. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from k8s_ucp.errors import some_of
from k8s_ucp.gitops.imports.argocd.application_drafts import (
    DiscoveryContext,
    Draft,
    command_of,
    drafts_of,
    how_to_add,
    kind_of,
    manifests_below,
)
from k8s_ucp.gitops.imports.argocd.application_values import chart_values, remote_values
from k8s_ucp.gitops.imports.argocd.kustomize_settings import with_settings
from k8s_ucp.gitops.imports.findings import (
    ArgoDocument,
    DiscoveredApp,
    NotImportable,
    RefusedApp,
    chart_versions,
    without_environment,
)
from k8s_ucp.gitops.imports.layouts.chart_apps import values_of
from k8s_ucp.gitops.imports.layouts.manifest_apps import plain_finding
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.reachable import resolve


def read_applications(
    applications: Iterable[tuple[ArgoDocument, str | None]], context: DiscoveryContext
) -> tuple[list[DiscoveredApp], list[RefusedApp]]:
    """Group Applications into apps. applications: each with its environment, if known."""
    findings: list[DiscoveredApp] = []
    refusals: list[RefusedApp] = []
    groups: dict[str, list[Draft]] = {}
    for document, environment in applications:
        try:
            drafts = drafts_of(document, environment, context)
        except NotImportable as error:
            refusals.append(error.refusal(document.name, document.where))
            continue
        for each in drafts:
            groups.setdefault(each.name, []).append(each)
    for name, drafts in sorted(groups.items()):
        try:
            findings.append(_finding(name, drafts, context))
        except NotImportable as error:
            refusals.append(error.refusal(name, drafts[0].document.where))
    return findings, refusals


def _finding(name: str, drafts: list[Draft], context: DiscoveryContext) -> DiscoveredApp:
    """One app of the Applications of its environments. Raises NotImportable."""
    drafts = _distinct(drafts)
    first = drafts[0]
    seen = [each.environment for each in drafts]
    if len(set(seen)) < len(seen):
        where = some_of(list(dict.fromkeys(each.document.where for each in drafts)))
        raise NotImportable(
            f"several Applications deploy the app {name} to one environment: {where}",
            f"add them under different names: {_numbered(name, drafts, context.tree)}",
        )
    namespace, notes = _namespace(name, drafts)
    notes = (*notes, *dict.fromkeys(note for each in drafts for note in each.notes))
    release = {str(each.helm["releaseName"]) for each in drafts if each.helm.get("releaseName")}
    if release - {name}:
        notes = (*notes, f"its release {', '.join(sorted(release))} is renamed to {name}")
    common = DiscoveredApp(
        name=name,
        form="kustomize",
        where=first.document.where,
        namespace=namespace,
        environments=tuple(sorted(each for each in seen if each)),
        notes=notes,
    )
    if first.remote is not None:
        return _of_remote(drafts, common, context)
    if any(each.remote for each in drafts):
        raise NotImportable(
            "some environments use this repository and others another one",
            how_to_add(first, context.tree),
        )
    return _of_this_repository(drafts, common, context)


def _of_this_repository(
    drafts: Sequence[Draft], common: DiscoveredApp, context: DiscoveryContext
) -> DiscoveredApp:
    """An app of the repository's own folders. Raises NotImportable."""
    first, tree = drafts[0], context.tree
    kinds = {kind_of(tree, each.path) for each in drafts}
    if len(kinds) > 1:
        raise NotImportable(
            f"its environments have different forms: {', '.join(sorted(kinds))}",
            how_to_add(first, tree),
        )
    if kinds == {"kustomize"}:
        overlays = {each.environment: each.path for each in drafts if each.environment}
        base = next((each.path for each in drafts if not each.environment), None)
        generated = _with_settings(drafts, tree)
        if generated:
            what = f"the Application's settings are written to {', '.join(sorted(generated))}"
            notes = (*common.notes, what)
            common = replace(common, generated=generated, notes=notes)
        return replace(common, path=base, overlays=overlays)
    if len({each.path for each in drafts}) > 1:
        raise NotImportable(
            "each environment has a different folder, but an app can have only one",
            how_to_add(first, tree),
        )
    if kinds == {"helm"}:
        read = {each.environment or "": chart_values(each, context) for each in drafts}
        values: dict[str, str | bytes] = {
            key: text for key, text in read.items() if text is not None
        }
        if not common.environments:
            own = values_of(tree, first.path, context.environments)[0]
            values = {**_with_own_files(first, own, context), **values}
        return replace(common, form="helm", path=first.path, values=values)
    found = plain_finding(tree, common.name, first.path, first.document.where)
    if found.form != "jsonnet" and not all(each.recurse for each in drafts):
        _check_depth(tree, first.path)
    return replace(common, form=found.form, path=found.path)


def _with_own_files(
    draft: Draft, files: Mapping[str, str], context: DiscoveryContext
) -> dict[str, str | bytes]:
    """{environment: its values file in the chart, with what the Application sets on top of it}.

    Raises NotImportable.
    """
    given = draft.helm.get("valueFiles")
    before = given if isinstance(given, list) else []
    return {
        each: chart_values(
            replace(draft, helm={**draft.helm, "valueFiles": [*before, file]}), context
        )
        or file
        for each, file in files.items()
    }


def _distinct(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts without duplicates that deploy the same to the same environment."""
    found: list[Draft] = []
    for each in drafts:
        if not any(_deploys(each) == _deploys(other) for other in found):
            found.append(each)
    return found


def _deploys(draft: Draft) -> tuple[object, ...]:
    return (
        *(draft.environment, draft.namespace, draft.remote, draft.path),
        *(draft.helm, draft.kustomize, draft.recurse),
    )


def _numbered(name: str, drafts: Sequence[Draft], tree: RepositoryTree) -> str:
    """Commands that add the first few of them under different names."""
    names = (name, *(f"{name}-{number}" for number in range(2, 4)))
    commands = [
        command_of(replace(each, name=app), tree) for app, each in zip(names, drafts, strict=False)
    ]
    return "; ".join(dict.fromkeys(commands))


def _with_settings(drafts: Sequence[Draft], tree: RepositoryTree) -> dict[str, bytes]:
    """{path: content} of kustomizations, with the settings of their Applications written into them.

    Raises NotImportable if that would affect another environment.
    """
    found: dict[str, bytes] = {}
    for each in drafts:
        if not each.kustomize:
            continue
        file = tree.kustomization_file(each.path)
        others = [other for other in drafts if other.kustomize != each.kustomize]
        if any(other.path == each.path or file in tree.closure([other.path]) for other in others):
            raise NotImportable(
                f"it sets kustomize.{', kustomize.'.join(sorted(each.kustomize))} for one "
                f"environment, but {file} is shared with others",
                "write an overlay for each environment, then import again",
            )

        def has(component: str, folder: str = each.path) -> bool:
            return resolve(folder, component) in tree.kustomizations

        found[file] = with_settings(tree.read(file), file, each.kustomize, has)
    return found


def _check_depth(tree: RepositoryTree, folder: str) -> None:
    """Raise NotImportable if subfolders have manifests, which Argo CD ignores without recurse."""
    start = f"{folder}/" if folder else ""
    if lower := [each for each in manifests_below(tree, folder) if "/" in each]:
        raise NotImportable(
            f"the Application has no directory.recurse: true, but {start}{lower[0]} is in a "
            "subfolder",
            "set it to deploy all, or move what is not deployed; then import again",
        )


def _of_remote(
    drafts: list[Draft], common: DiscoveredApp, context: DiscoveryContext
) -> DiscoveredApp:
    first, tree = drafts[0], context.tree
    versions: Mapping[str, str | None] | None = {}
    if len({each.remote for each in drafts}) > 1:
        versions = chart_versions((each.environment, each.remote) for each in drafts)
    if versions is None:
        urls = {each.remote.url for each in drafts if each.remote}
        where = "are in different repositories" if len(urls) > 1 else "run different versions"
        raise NotImportable(
            f"its environments {where}, but an app is added with one",
            f"add one with `{command_of(first, tree)}`, then change the others by commits",
        )
    assert first.remote
    if first.remote.chart is None and len({each.path for each in drafts}) > 1:
        folder = posixpath.commonpath([f"/{each.path}" for each in drafts]).strip("/")
        if any(each.environment is None or each.helm for each in drafts):
            raise NotImportable("its environments have different folders", how_to_add(first, tree))
        overlays = {str(each.environment): each.path for each in drafts}
        return replace(common, path=folder, overlays=overlays, remote=first.remote)
    values = {each.environment or "": remote_values(each, context) for each in drafts}
    return replace(
        common,
        form="helm" if first.remote.chart or any(values.values()) else "kustomize",
        path=first.path,
        values={key: text for key, text in values.items() if text is not None},
        remote=first.remote,
        versions=versions,
    )


def _namespace(name: str, drafts: list[Draft]) -> tuple[str | None, tuple[str, ...]]:
    """An app has a single namespace: the common part of its environments' ones, else its name."""
    found = {each.namespace for each in drafts if each.namespace}
    short = {
        without_environment(each.namespace, each.environment) for each in drafts if each.namespace
    }
    if found == short and len(found) <= 1:
        return next(iter(found), None), ()
    one = next(iter(short)) if len(short) == 1 else name
    return one, (f"its namespaces ({', '.join(sorted(found))}) become {one}",)
