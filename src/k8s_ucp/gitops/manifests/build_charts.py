"""Renders the Helm charts of the app repository as Argo CD does, without a cluster."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.manifests.build_many import WORKERS, Built, Object, objects, unlisted
from k8s_ucp.gitops.manifests.chart_source import unpack
from k8s_ucp.gitops.manifests.helm import HelmFailed, api_versions, template, values_from
from k8s_ucp.gitops.manifests.yaml_text import first_map, maps, part

RENDER_SECONDS = 60.0
SETTINGS = ".argocd-source.yaml"
APPLIED = frozenset(
    {"releaseName", "valueFiles", "values", "valuesObject", "parameters", "ignoreMissingValueFiles"}
)
"""Keys of Argo CD's Helm settings that are used here, too."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$schema")
_IDS = ("$id", "id")
_DRAFT = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/20\d\d-\d\d)/")
"""Schemas of schemas that helm doesn't fetch."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)")
_SCHEMA = "values.schema.json"
_MOST_FILES = 20_000
_DEEPEST = 5
"""Maximum number of packed charts in each other."""
_COMMA = re.compile(r"(?<!\\),")
NO_HELM = "it is a Helm chart, and helm isn't here to render it: ucp tools install helm"


def build_charts(
    helm: Path | None,
    root: Path,
    folders: Sequence[str],
    namespaces: Mapping[str, str],
    more: Mapping[str, Any] | None = None,
) -> Built:
    """Render the charts in folders below root. helm: the program; None if it isn't installed.

    namespaces: {folder: namespace of its app}. more: values that override all others. Hooks that
    Argo CD doesn't run are left out.
    """
    if helm is None:
        return Built(failures=dict.fromkeys(folders, NO_HELM))
    built = Built()

    def render(folder: str) -> None:
        try:
            namespace = namespaces.get(folder, "default")
            text = _render(helm, root / folder, folder, namespace, more or {})
            found = (each for one in objects(text) for each in unlisted(one))
            built.objects[folder] = [each for each in found if not _is_test(each)]
        except UcpError as error:
            built.failures[folder] = error.message.replace(f"{root}/", "")

    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        list(pool.map(render, folders))
    return built


def _render(helm: Path, chart: Path, folder: str, namespace: str, more: Mapping[str, Any]) -> str:
    for each in chart.rglob("*"):
        # Helm follows symbolic links, and the linked content could appear in an error message. A
        # link to itself has no target, but no error here either.
        if each.is_symlink() and not Path(os.path.realpath(each)).is_relative_to(chart.resolve()):
            link = each.relative_to(chart)
            raise UcpError(
                f"{folder} is not rendered: {link} is a symlink that points outside of it"
            )
    settings = _settings(chart)
    name = settings.get("releaseName") or "-".join(folder.split("/")[1::2])
    files = settings.get("valueFiles")
    options = ["--namespace", namespace, "--include-crds", *api_versions(), *schema_options(chart)]
    for each in files if isinstance(files, list) else ():
        if "\0" in str(each):
            raise UcpError(f"the name of the values file {each!r} has a null character")
        file = (chart / str(each)).resolve()
        if not file.is_relative_to(chart.parents[2].resolve()):
            raise UcpError(f"the values file {each} is outside of the app's folder")
        options += values_from(file)
    try:
        with tempfile.TemporaryDirectory(prefix="ucp-chart-") as home:
            for number, text in enumerate(_texts(settings, more)):
                over = Path(home, f"{number}.yaml")
                over.write_text(text, encoding="utf-8")
                options += values_from(over)
            # helm lets parameters override all values.
            options += [] if more else _parameters(settings)
            timeout = RENDER_SECONDS
            return template(helm, str(name), chart, options, home=Path(home), timeout=timeout)
    except HelmFailed as error:
        raise UcpError(f"helm can't render it: {error.message}") from error


def schema_options(chart: Path) -> list[str]:
    """Options with which helm contacts no host that a values schema names: it is ignored then.

    Raises UcpError as `refuse_outside_schemas`.
    """
    return ["--skip-schema-validation"] if refuse_outside_schemas(chart) else []


def refuse_outside_schemas(chart: Path) -> bool:
    """Raise UcpError if helm would read a file of this machine as part of a values schema.

    Its message would have words of that file. Returns whether helm would fetch a part of a schema.
    """
    try:
        paths = {each.relative_to(chart).as_posix(): each for each in _files_of(chart)}
        read = {name: each for name, each in paths.items() if _is_read(name)}
        files = {name: each.read_bytes() for name, each in read.items()}
    except OSError as error:
        raise UcpError(f"the chart can't be read: {error}") from error
    return _refuse_outside(files, "", _DEEPEST)


def _files_of(chart: Path) -> Iterator[Path]:
    """The files of a chart as helm finds them: also below links to folders."""
    waiting: list[tuple[Path, tuple[str, ...]]] = [(chart, ())]
    seen = 0
    while waiting:
        folder, above = waiting.pop()
        real = os.path.realpath(folder)
        if real in above:  # A link to a folder that it is in.
            continue
        for path in folder.iterdir():
            seen += 1
            if seen > _MOST_FILES:
                raise UcpError(f"the chart has more than {_MOST_FILES} files")
            if path.is_dir():
                waiting.append((path, (*above, real)))
            elif path.is_file():
                yield path


def _refuse_outside(files: Mapping[str, bytes], above: str, deepest: int) -> bool:
    fetches = False
    for path, content in files.items():
        where = f"{above}{path}"
        if not _is_packed(path):
            schema = _read_schema(content, where)
            if outside := _outside_reference(schema):
                raise UcpError(
                    f"{where} refers to {outside}, which helm would read from this machine"
                )
            fetches |= _fetches(schema)
            continue
        if deepest == 0:
            raise UcpError(f"{where} is packed in too many other charts")
        inside = unpack(content, where)
        read = {name: each for name, each in inside.items() if _is_read(name)}
        fetches |= _refuse_outside(read, f"{where}/", deepest - 1)
    return fetches


def _is_read(path: str) -> bool:
    return path.rpartition("/")[2] == _SCHEMA or _is_packed(path)


def _is_packed(path: str) -> bool:
    return path.endswith(".tgz") and "charts" in path.split("/")[:-1]


def _read_schema(schema: bytes, where: str) -> Any:
    try:
        return json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise UcpError(f"{where} is not a valid JSON schema: {error}") from error


def _outside_reference(schema: Any) -> str | None:
    """What a values schema refers to on this machine, if anything.

    For helm, the schema is in the root folder of the machine, unless it has an address itself.
    """
    for each in _maps_in(schema):
        outside = [one for one in map(each.get, (*_REFERENCES, *_IDS)) if _scheme(one) == "file"]
        if not _is_elsewhere(schema):
            outside += filter(_is_relative, map(each.get, _REFERENCES))
        if outside:
            return str(outside[0])
    return None


def _fetches(schema: Any) -> bool:
    """Whether helm would fetch what a values schema refers to.

    It knows the drafts themselves. That a reference to a part of the schema itself counts, if it
    is written as an address, costs no more than its validation.
    """
    found = [one for each in _maps_in(schema) for one in map(each.get, _REFERENCES)]
    if _is_elsewhere(schema) and any(map(_is_relative, found)):
        return True
    return any(_scheme(each) in ("http", "https") and not _DRAFT.match(str(each)) for each in found)


def _is_elsewhere(schema: Any) -> bool:
    """Whether a schema has an address itself."""
    root = schema if isinstance(schema, dict) else {}
    key = "id" if "draft-04" in str(root.get("$schema")) else "$id"
    # Old drafts ignore what is beside a reference.
    return "$ref" not in root and _scheme(root.get(key)) in ("http", "https", "urn")


def _is_relative(reference: object) -> bool:
    """Whether a reference leads to another schema beside this one."""
    return _scheme(reference) == "" and not str(reference).startswith("#")


def _maps_in(schema: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += each.values()
            yield each


def _scheme(reference: object) -> str | None:
    """The scheme of a URL, empty of a relative one."""
    if not isinstance(reference, str):
        return None
    found = _SCHEME.match(reference)
    return found[0].lower() if found else ""


def _settings(chart: Path) -> Mapping[str, Any]:
    """Argo CD's Helm settings in the chart's folder (.argocd-source.yaml)."""
    file = chart / SETTINGS
    if not file.is_file():
        return {}
    try:
        return part(first_map(file.read_bytes(), SETTINGS), "helm")
    except UsageError as error:
        raise UcpError(error.message) from error


def _texts(settings: Mapping[str, Any], more: Mapping[str, Any]) -> Iterator[str]:
    """Values that aren't in files of the repository, in the order of their precedence."""
    if isinstance(values := settings.get("valuesObject"), dict) and values:
        yield json.dumps(values, default=str)
    elif isinstance(text := settings.get("values"), str):
        yield text
    if more:
        yield json.dumps(more)


def _parameters(settings: Mapping[str, Any]) -> list[str]:
    """The options for `parameters` of Argo CD's settings, which escapes commas like this."""
    options = []
    for each in maps(settings, "parameters"):
        option = "--set-string" if each.get("forceString") is True else "--set"
        value = _COMMA.sub(r"\,", str(each.get("value", "")))
        options += [option, f"{each.get('name')}={value}"]
    return options


def _is_test(item: Object) -> bool:
    """The object is a hook of `helm test`, which Argo CD doesn't run."""
    annotations = part(part(item, "metadata"), "annotations")
    return str(annotations.get("helm.sh/hook", "")).startswith("test")
