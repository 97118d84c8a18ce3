"""Apps that an import found, as requests of `ucp app add`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.cli.editing.adding.flags import AppFlags
from k8s_ucp.cli.editing.imports.selection import Candidate
from k8s_ucp.gitops.imports.environment_mapping import ImportRequest, mapped, request_of
from k8s_ucp.gitops.imports.findings import NotImportable
from k8s_ucp.gitops.manifests.chart_source import write_files
from k8s_ucp.names import DNS_LABEL
from k8s_ucp.topology.rules.names import closed_to_apps

if TYPE_CHECKING:
    from k8s_ucp.cli.editing.imports.source import ImportSource
    from k8s_ucp.gitops.imports.findings import DiscoveredApp


@dataclass(frozen=True)
class ImportAnswers:
    """What flags and answers say of the apps of an import."""

    environments: Sequence[str]
    """Those of ucp.yaml."""
    mapping: Mapping[str, str | None]
    """{environment of the repository: ours, or None to leave it out}"""
    keys: Mapping[str, Mapping[str, list[str]]]
    """{key of an app in ucp.yaml: {app: values}}"""
    auth: str | None


def candidate(
    finding: DiscoveredApp, opened: ImportSource, answers: ImportAnswers, folder: Path
) -> Candidate:
    """An app as a request of `ucp app add`. folder: for files that are to be copied.

    Raises NotImportable, UcpError.
    """
    request = request_of(
        finding,
        opened.folder_tree,
        mapped(answers.mapping, answers.environments, finding.environments),
        answers.environments,
        pinned=opened.folder is None,
    )
    keys = item_keys(finding, answers.keys)
    return Candidate(finding, request, _flags(finding, request, opened, folder, keys, answers.auth))


def item_keys(
    finding: DiscoveredApp, given: Mapping[str, Mapping[str, list[str]]]
) -> dict[str, Any]:
    """Keys of the item that don't depend on the place of the files. Raises NotImportable."""
    found = {key: words[finding.name] for key, words in given.items() if finding.name in words}
    wanted = found.pop("namespace", None)
    namespace = wanted[-1] if wanted else finding.namespace or ""
    if not wanted and namespace and not DNS_LABEL.fullmatch(namespace):
        # A variable, such as ${NAMESPACE}, that only something else fills.
        raise NotImportable(
            f"its namespace {namespace} is not a valid name",
            f"run the command again with --namespace {finding.name}=NAME",
        )
    if namespace == finding.name or closed_to_apps(namespace):
        namespace = ""
    return {**found, "namespace": namespace}


def _flags(
    finding: DiscoveredApp,
    request: ImportRequest,
    opened: ImportSource,
    folder: Path,
    keys: Mapping[str, Any],
    auth: str | None,
) -> AppFlags:
    """The flags of `ucp app add`. Raises UcpError."""
    inside = {here: name for here, name in request.values.items() if isinstance(name, str)}
    values = []
    for here, content in request.values.items():
        if isinstance(content, bytes):
            write_files(folder / "values" / finding.name, {f"values-{here}.yaml": content})
            values.append(f"{here}={folder / 'values' / finding.name / f'values-{here}.yaml'}")
    common = AppFlags(
        name=finding.name,
        values=tuple(values),
        overlays=tuple(f"{here}={each}" for here, each in request.overlays.items()),
        more={**keys, "values": inside},
    )
    if remote := finding.remote:
        if remote.chart:
            version = request.version if finding.versions else remote.revision
            return replace(common, chart=remote.chart, repo=remote.url, version=version)
        if finding.overlays:
            common = replace(common, more={**common.more, "as": finding.form})
        return replace(common, repo=remote.url, path=request.path or None, revision=remote.revision)
    if opened.folder is None:
        return replace(
            common,
            repo=opened.url,
            path=request.path or None,
            revision=opened.commit,
            auth=auth,
            more={**common.more, "as": finding.form},
        )
    if request.files is not None:
        source = folder / "apps" / finding.name
        write_files(source, request.files)
        return replace(common, path=str(source))
    as_ = finding.form if finding.form == "helm" else None
    return replace(
        common,
        path=str(opened.folder / request.path),
        more={**common.more, "as": as_},
        repository=opened.folder,
    )
