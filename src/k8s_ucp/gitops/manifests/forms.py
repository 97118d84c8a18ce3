"""Detects the form of a folder: kustomization, Helm chart, manifests or jsonnet. Pure."""

from __future__ import annotations

import contextlib
import functools
import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from k8s_ucp.errors import UsageError, some_of
from k8s_ucp.gitops.manifests.other_tools import find_tools, is_of_tool, ytt_problem
from k8s_ucp.gitops.manifests.yaml_text import (
    ENCRYPTED,
    UNLOCK,
    documents,
    first_map,
    part,
    plain_text,
    repeated_key,
)

if TYPE_CHECKING:
    from k8s_ucp.topology.parts import AppForm

Files = Mapping[str, bytes]
"""{path relative to the folder: content}."""

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_OVERLAY = re.compile(r"overlays/([^/]+)/(?:kustomization\.ya?ml|Kustomization)")
_ENVIRONMENT = re.compile(r"(?:envs?|environments|stages)/([^/]+)")
PARTS = {"base", "bases", "components", "env", "environments", "envs", "overlays", "stages"}
"""Folders that belong to a kustomization in the folder above them."""
USUAL = {"chart", "charts", "deploy", "helm", "k8s", "kubernetes", "kubernetes-manifests"} | {
    *("deployment", "deployments", "helm-chart", "helm-charts", "k8s-manifests"),
    *("dist", "k8s-specifications", "kustomize", "manifests", "release"),
}
_ASIDE = {"ci", "doc", "docs", "e2e", "hack", "iac", "infra", "scripts", "test", "tests"} | {
    *("archive", "contrib", "example", "examples", "extra", "extras", "sample", "samples"),
    *("sample-manifests", "terraform", "tools"),
}
"""Usual names of folders with manifests, and of folders that usually contain no app."""
_SHOWN = 8
_LARGE = 200_000
_INVALID = " is not valid YAML: "
"""How a message on a file without a path begins."""
_TOOL = re.compile(
    r"skaffold/|v1alpha1$|(?:(?:scaffolder\.)?backstage|kind\.x-k8s|k3d|garden|eksctl|ctlptl"
    r"|(?:kubeadm|audit|kops|client\.authentication|[a-z.-]+\.config)\.k8s|k0sctl\.k0sproject"
    r"|kuttl|(?:chainsaw|cli)\.kyverno|tanka|(?:kapp|kbld|vendir)\.k14s|imgpkg\.carvel)\.(?:io|dev)/"
    r"|deploy\.cloud\.google\.com/"
)
"""API versions of files that look like objects but are configuration of tools."""

_KUBECONFIG = re.compile(rb"^kind:[ \t]*[\"']?Config\b", re.MULTILINE)


class SeveralFolders(UsageError):
    """Several folders contain manifests, so the user has to select one."""

    def __init__(self, folders: list[str], plain: Collection[str] = ()) -> None:
        """folders: with a kustomization or a chart. plain: with manifests."""
        self.folders = _named_by({*folders, *plain})
        super().__init__(
            f"the manifests are in folders below: {some_of(self.folders, _SHOWN)}",
            next=f"select one with --path, such as {self.folders[0]} (or use --as directory)",
        )
        found = filter(None, map(_ENVIRONMENT.fullmatch, folders))
        self.environments = {match[1]: match[0] for match in found}
        """{name: folder} of folders that look like overlays of environments."""


def _named_by(folders: Collection[str]) -> list[str]:
    """The folders to suggest: instead of bases and overlays, the folder that contains them.

    Sorted, the most likely ones first.
    """
    found = set()
    for each in folders:
        parts = each.split("/")
        end = next((at for at, name in enumerate(parts) if at and name in PARTS), len(parts))
        found.add("/".join(parts[:end]))
    return sorted(
        (each for each in found if not any(each.startswith(f"{other}/") for other in found)),
        key=_unlikely,
    )


def _unlikely(folder: str) -> tuple[bool, bool, int, str]:
    parts = folder.lower().split("/")
    return not _ASIDE.isdisjoint(parts), parts[0] not in USUAL, len(parts), folder


@dataclass(frozen=True)
class DetectedForm:
    """How a folder is rendered. words: description for messages."""

    form: AppForm
    words: str


def find_form(
    files: Files, wanted: AppForm | None = None, named: Collection[str] = ()
) -> DetectedForm:
    """The form of a folder. Raises UsageError.

    wanted: the form that the user requests. named: environments whose overlays the user names, and
    the folders of these if they are known.
    """
    form = wanted or ("kustomize" if named else _detected(files))
    if form == "helm":
        chart = chart_file(files)
        return DetectedForm(form, f"Helm chart {chart.name}, version {chart.version}")
    if form == "jsonnet":
        return DetectedForm(form, "jsonnet, rendered by Argo CD")
    if form == "kustomize" and (is_kustomization(files) or overlays(files) or named):
        used = named.values() if isinstance(named, Mapping) else ()
        others = (each for each in overlays_beside(files) if f"overlays/{each}" not in used)
        names_of_overlays = ", ".join(sorted({*others, *named}))
        return DetectedForm(
            form,
            "kustomization"
            + (f" with overlays for {names_of_overlays}" if names_of_overlays else ""),
        )
    if problem := ytt_problem(files):
        raise problem
    tools = find_tools(files)
    try:
        manifests = manifest_files(files)
    except UsageError as error:
        # The file may be a template of a tool, or what the tool itself reads.
        if tools and tools[0].deploys:
            path = error.message.partition(_INVALID)[0]
            invalid = "" if is_of_tool(path) else f"{error.message}, and "
            raise UsageError(f"{invalid}{tools[0].words}", next=tools[0].advice()) from error
        raise
    if not manifests:
        if tools:
            raise UsageError(f"no manifests, and {tools[0].words}", next=tools[0].advice())
        if login := next((each for each in sorted(files) if _is_kubeconfig(files[each])), None):
            raise UsageError(
                f"no manifests, and {login} is a kubeconfig",
                next="for an environment on its cluster: KUBECONFIG=FILE ucp env add NAME "
                "--cluster existing",
            )
        if package := next((each for each in sorted(files) if each.endswith(".tgz")), None):
            raise UsageError(
                f"no manifests, and {package} is not unpacked",
                next=f"if it is a Helm chart: tar -xzf {shlex.quote(package)}; then: ucp app add "
                "NAME FOLDER, with the folder that this makes",
            )
        raise UsageError(
            f"no manifests: {_candidates(files)}",
            next="choose a folder with manifests, a kustomization, a Helm chart or jsonnet "
            "(in ucp.yaml: `path` of the app), or bring its image: ucp app add NAME IMAGE:TAG",
        )
    if wanted != "directory" and (wanted or (why := unkustomizable(files)) is None):
        return DetectedForm("kustomize", f"plain manifests in {_count(manifests)}")
    words = f"plain manifests in {_count(manifests)}, as an Argo CD directory"
    return DetectedForm("directory", words if wanted else f"{words}: {why}")


def is_kustomization(files: Files, folder: str = "") -> bool:
    """The folder has a kustomization, under any of its three file names."""
    return any(posixpath.join(folder, name) in files for name in KUSTOMIZATIONS)


def overlays(files: Files) -> set[str]:
    """Environments for which the folder has `overlays/<environment>`."""
    return {match[1] for path in files if (match := _OVERLAY.fullmatch(path))}


def overlays_beside(files: Files) -> set[str]:
    """Overlays that the folder's own kustomization doesn't include. Raises UsageError.

    If the folder's kustomization is itself an overlay with its base beside it, that overlay is not
    one to choose from.
    """
    own = next((files[name] for name in KUSTOMIZATIONS if name in files), b"")
    listed = first_map(own, KUSTOMIZATIONS[0]).get("resources")
    listed = listed if isinstance(listed, list) else []
    taken = {posixpath.normpath(str(each)) for each in listed}
    return {each for each in overlays(files) if f"overlays/{each}" not in taken}


def manifest_files(files: Files) -> list[str]:
    """Files that contain only Kubernetes objects, including those in subfolders.

    If that yields duplicate objects, the subfolders are variants, and only files directly in the
    folder count. Raises UsageError.
    """
    found = [path for path in sorted(files) if _holds_objects(files, path)]
    top = [path for path in found if "/" not in path]
    return top if top and _twice(files, found) else found


def left_out(files: Files) -> list[str]:
    """What of a folder of plain manifests isn't deployed, in sentences. Raises UsageError."""
    taken = manifest_files(files)
    variants = {
        path.partition("/")[0]
        for path in sorted({*files} - {*taken})
        if "/" in path and _holds_objects(files, path)
    }
    others = [
        path
        for path in sorted({*files} - {*taken})
        if path.endswith((".yaml", ".yml"))
        and path.rpartition("/")[2] not in KUSTOMIZATIONS
        and path.partition("/")[0] not in variants
    ]
    said = []
    if variants:
        what = f"{some_of(sorted(variants), _SHOWN)}: their manifests repeat objects"
        said.append(f"left out the folders {what}; choose one of them as SOURCE to deploy it")
    if others:
        said.append(f"left out {some_of(others, _SHOWN)}: not, or not only, Kubernetes objects")
    return said


def readable(files: Files) -> dict[str, bytes]:
    """The files without those that have the name of a manifest but can't be parsed.

    A kustomization may load them as data: templates, or settings with tags of their own.
    """
    found = {}
    for path, content in files.items():
        with contextlib.suppress(UsageError):
            _holds_objects(files, path)
            found[path] = content
    return found


def _holds_objects(files: Files, path: str) -> bool:
    name = path.rpartition("/")[2]
    if not name.endswith((".yaml", ".yml", ".json")) or name in KUSTOMIZATIONS or name[0] == ".":
        return False
    if name.endswith(".json") and '"kind"' not in plain_text(files[path], path):
        return False
    if not _outline(files[path], path).only_objects:
        return False
    try:
        path.encode()
    except UnicodeEncodeError as error:
        shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        raise UsageError(
            f"the name of the file {shown} is not UTF-8, and YAML can't list it", next="rename it"
        ) from error
    return True


@dataclass(frozen=True)
class _Object:
    """The identity of an object."""

    group: str
    kind: str | None
    namespace: str | None
    name: str | None
    generated: bool = field(compare=False)
    """Has generateName instead of a name."""


@dataclass(frozen=True)
class _Outline:
    """The facts about a file that are needed repeatedly, without its content."""

    only_objects: bool
    objects: tuple[_Object, ...] = ()
    problem: str = ""
    """Why the file is invalid YAML, or ""."""


def _outline(data: bytes, path: str) -> _Outline:
    """Raises UsageError."""
    found = _outline_of(data)
    if found.problem:
        advice = f"correct {path}, or add another folder or file: ucp app add NAME FOLDER|FILE"
        advice = UNLOCK if found.problem == ENCRYPTED else advice
        raise UsageError(f"{path} is not valid YAML: {found.problem}", next=advice)
    return found


@functools.lru_cache(maxsize=2048)
def _outline_of(data: bytes) -> _Outline:
    """Cached, because files of CRDs are large, and a file is read as a part of several folders."""
    try:
        content = [each for each in documents(data, "") if each is not None]
    except UsageError as error:
        return _Outline(False, problem=error.message.removeprefix(_INVALID))
    if not content or not all(
        isinstance(each, dict) and "kind" in each and not _is_configuration(each)
        for each in content
    ):
        return _Outline(False)
    return _Outline(True, tuple(map(_object, objects(content))))


def _is_configuration(content: Mapping[str, Any]) -> bool:
    """What looks like an object, but configures a tool, such as a kubeconfig."""
    version = str(content.get("apiVersion"))
    return bool(_TOOL.match(version)) or (version, content["kind"]) == ("v1", "Config")


def _is_kubeconfig(content: bytes) -> bool:
    return b"clusters:" in content and bool(_KUBECONFIG.search(content))


@functools.lru_cache(maxsize=2048)
def _repeated(data: bytes) -> str | None:
    """A duplicate key in a valid file; not searched for in large files, which are generated."""
    return repeated_key(data, "") if len(data) < _LARGE else None


def _object(item: Mapping[str, Any]) -> _Object:
    metadata = part(item, "metadata")
    group = str(item.get("apiVersion")).rpartition("/")[0]
    names = (item.get("kind"), metadata.get("namespace"), metadata.get("name"))
    kind, namespace, name = (None if each is None else str(each) for each in names)
    return _Object(group, kind, namespace, name, bool(metadata.get("generateName")))


def unkustomizable(files: Files) -> str | None:
    """Why kustomize doesn't support these plain manifests; None if it does."""
    paths = manifest_files(files)
    for path in paths:
        for item in _outline(files[path], path).objects:
            if not item.name:
                word = "generateName" if item.generated else "an object without a name"
                return f"kustomize does not support {word} ({path})"
        if repeated := _repeated(files[path]):
            return f"kustomize does not support a key that is there twice ({path}: {repeated})"
    return _twice(files, paths)


def _twice(files: Files, paths: Collection[str]) -> str | None:
    """The first object that occurs more than once, as a message, or None."""
    seen: set[_Object] = set()
    for path in paths:
        for item in _outline(files[path], path).objects:
            if item.name and item in seen:
                return f"duplicate object {item.kind} {item.name} ({path})"
            seen.add(item)
    return None


def objects(content: Collection[Any]) -> Iterator[dict[str, Any]]:
    """The objects in documents, including the items of Lists."""
    for each in content:
        if not isinstance(each, dict):
            continue
        items = each.get("items")
        if str(each.get("kind", "")).endswith("List") and isinstance(items, list):
            yield from objects(items)
        else:
            yield each


@dataclass(frozen=True)
class ChartFile:
    """The content of Chart.yaml."""

    name: str
    version: str
    dependencies: tuple[Mapping[str, Any], ...] = ()

    @property
    def neighbors(self) -> dict[str, str]:
        """Dependencies on charts in other folders: {`file://` URL: path relative to the chart}.

        Helm doesn't decode these paths, unlike git: `%20` stays `%20`.
        """
        addresses = (str(each.get("repository", "")) for each in self.dependencies)
        return {
            each: each.removeprefix("file://") for each in addresses if each.startswith("file://")
        }


def chart_file(files: Files) -> ChartFile:
    """Parse Chart.yaml. Raises UsageError if it is missing or invalid, or for a library chart."""
    if "Chart.yaml" not in files:
        raise UsageError("not a Helm chart: Chart.yaml does not exist")
    content = first_map(files["Chart.yaml"], "Chart.yaml")
    name, version = content.get("name"), content.get("version")
    if not isinstance(name, str) or version is None:
        raise UsageError(
            "Chart.yaml is not valid: `name` and `version` are required", next="correct Chart.yaml"
        )
    if content.get("type") == "library":
        raise UsageError(
            f"the chart {name} is a library chart, which renders no objects",
            next="add the charts that depend on it",
        )
    listed = content.get("dependencies")
    if listed is None and "requirements.yaml" in files:
        listed = first_map(files["requirements.yaml"], "requirements.yaml").get("dependencies")
    needed = listed if isinstance(listed, list) else []
    return ChartFile(name, str(version), tuple(each for each in needed if isinstance(each, dict)))


def _detected(files: Files) -> AppForm | None:
    if is_kustomization(files):
        return "kustomize"
    if "Chart.yaml" in files:
        return "helm"
    if overlays(files):
        return "kustomize"
    if any("/" not in path and path.endswith(".jsonnet") for path in files):
        return "jsonnet"
    if below := _apps_below(files):
        raise SeveralFolders(below, _plain_below(files))
    return None


def _apps_below(files: Files) -> list[str]:
    """Folders with a chart or a kustomization, except subcharts."""
    names = (*KUSTOMIZATIONS, "Chart.yaml")
    found = {path.rpartition("/")[0] for path in files if path.rpartition("/")[2] in names}
    return sorted(each for each in found if each and "/charts/" not in f"{each}/")


def _plain_below(files: Files) -> set[str]:
    """Folders with files that look like manifests, except templates of charts."""
    return {
        path.rpartition("/")[0]
        for path, content in files.items()
        if path.endswith((".yaml", ".yml"))
        and "/" in path
        and b"apiVersion:" in content
        and b"kind:" in content
        and b"{{" not in content
    }


def _candidates(files: Files) -> str:
    return ", ".join(sorted(files)[:_SHOWN]) or "the folder is empty"


def _count(paths: Collection[str]) -> str:
    return f"{len(paths)} file{'s' * (len(paths) != 1)}"
