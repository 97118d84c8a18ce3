"""Rules for the files of a repository: references and pinned versions. Pure.

A repository is {path: content}. objects.py checks the objects that kustomize builds from it.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.objects import is_moving, of_object, unpinned_image
from k8s_ucp.gitops.manifests.build_charts import APPLIED, SETTINGS
from k8s_ucp.gitops.manifests.build_many import Object, unlisted
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
from k8s_ucp.gitops.manifests.sources import FIELDS, entries, loaded
from k8s_ucp.gitops.manifests.yaml_text import documents, first_map, maps, part
from k8s_ucp.names import ENVIRONMENT, ENVIRONMENTS
from k8s_ucp.topology.rules.names import APP_FOLDER, shared_applications, taken_namespace

_OVERLAY = re.compile(r"apps/([^/]+)/overlays/([^/]+)$")
_IN_OVERLAY = re.compile(r"apps/[^/]+/overlays/[^/]+(?=/)")
_JSONNET = re.compile(r"(apps/([^/]+)/overlays/[^/]+)/(?:.*/)?[^/]+\.jsonnet$")
_SETTINGS = re.compile(r"(apps/([^/]+)/overlays/[^/]+)/(\.argocd-source(?:-[^/]+)?\.yaml)$")
_FORMS = (*KUSTOMIZATIONS, "Chart.yaml")
"""Files by which Argo CD recognizes the form of an app."""
_MANIFESTS = (".yaml", ".yml", ".json")
_SKIPPED = re.compile(r"(^|/)(\.|node_modules/)|^platform/[^/]+/engine/|^ucp\.yaml$")
"""Hidden folders, manifests of engines (which are pinned as a whole), ucp.yaml."""
_PIPELINE = re.compile(r"(\.github/workflows|ci)/[^/]+\.ya?ml")
_LOCAL_TARGET = re.compile(r"^[ \t]*+UCP_PROMOTE_REPO:\s*[\"']?(file:[^\s\"']+)", re.MULTILINE)
_SUBMODULE = re.compile(r"^[ \t]*+path[ \t]*+=(.*)$", re.MULTILINE)
_ACTION = re.compile(r"^[ \t]*+(?:-[ \t]++)?uses:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)


class Tree:
    """A repository's files at one commit."""

    def __init__(self, files: Mapping[str, bytes], outward: Collection[str] = ()) -> None:
        """outward: symbolic links that lead out of the repository."""
        self.files = files
        self.outward = outward

    @classmethod
    def of(cls, folder: Path) -> Tree:
        """The files of a folder, without `.git` and symbolic links that Argo CD doesn't follow."""
        root = Path(os.path.realpath(folder))
        found = {
            each.relative_to(folder): each
            for each in sorted(folder.rglob("*"))
            if ".git" not in each.relative_to(folder).parts
        }
        return cls(
            {
                path.as_posix(): each.read_bytes()
                for path, each in found.items()
                if each.is_file() and (not each.is_symlink() or _is_followed(each, root))
            },
            [
                path.as_posix()
                for path, each in found.items()
                if each.is_symlink() and _leads_out(path, str(each.readlink()))
            ],
        )

    @cached_property
    def documents(self) -> dict[str, list[Object]]:
        """{path of a YAML file: its documents}; files that can't be parsed go to `unreadable`."""
        found: dict[str, list[Object]] = {}
        failed: dict[str, Fault] = {}
        for path, content in self.files.items():
            if not self._is_manifest(path):
                continue
            if any(path.startswith(f"{each}templates/") for each in self.charts):
                continue
            try:
                found[path] = [e for e in documents(content, path) if isinstance(e, dict)]
            except UcpError as error:
                if self._is_data_of_chart(path):
                    continue
                message = error.message.removeprefix(f"{path} is ")
                failed[path] = Fault("yaml-invalid", message, path)
        data = _data_of_generators(found) if failed else frozenset()
        self.unreadable = [each for path, each in failed.items() if path not in data]
        return found

    def _is_manifest(self, path: str) -> bool:
        overlay = _IN_OVERLAY.match(path)
        if overlay and overlay[0] in self.directories:
            return path.endswith(_MANIFESTS) and not _SETTINGS.match(path)
        return path.endswith((".yaml", ".yml")) and not _SKIPPED.search(path)

    @cached_property
    def directories(self) -> frozenset[str]:
        """Overlays whose files Argo CD reads one by one, also JSON and hidden ones."""
        overlays = {match[0] for path in self.files if (match := _IN_OVERLAY.match(path))}
        return frozenset(
            each for each in overlays if not any(f"{each}/{name}" in self.files for name in _FORMS)
        )

    @cached_property
    def charts(self) -> list[str]:
        """Folders of Helm charts, each ending with a slash. Their templates aren't valid YAML."""
        return [
            each.removesuffix("Chart.yaml")
            for each in self.files
            if each == "Chart.yaml" or each.endswith("/Chart.yaml")
        ]

    def _is_data_of_chart(self, path: str) -> bool:
        """Templates may read the file as text (`.Files.Get`, `tpl`), whatever its extension."""
        chart = max((each for each in self.charts if path.startswith(each)), key=len, default=None)
        if chart is None:
            return False
        top, inside, _ = path[len(chart) :].partition("/")
        return bool(inside) and top != "crds"

    @cached_property
    def kustomizations(self) -> dict[str, Object]:
        """{folder: its kustomization}"""
        found = {}
        for path in self.files:
            folder, _, name = path.rpartition("/")
            if name in KUSTOMIZATIONS and not _SKIPPED.search(path):
                content = self.documents.get(path)
                if content is None and name == "Kustomization":
                    with contextlib.suppress(UcpError):
                        content = [first_map(self.files[path], path)]
                found[folder or "."] = content[0] if content else {}
        return found

    @cached_property
    def overlays(self) -> list[tuple[str, str, str]]:
        """(folder, app, environment) of every overlay of an app."""
        found = [(each, _OVERLAY.fullmatch(each)) for each in self.kustomizations]
        return [(folder, match[1], match[2]) for folder, match in found if match]

    @cached_property
    def deployed_overlays(self) -> list[tuple[str, str, str]]:
        """(folder, app, environment) of every overlay that gets an Application."""
        folders = {match[0] for path in self.files if (match := _IN_OVERLAY.match(path))}
        found = [(each, _OVERLAY.fullmatch(each)) for each in sorted(folders)]
        return [(folder, match[1], match[2]) for folder, match in found if match]

    @cached_property
    def chart_overlays(self) -> list[tuple[str, str, str]]:
        """(folder, app, environment) of the overlays that are Helm charts."""
        return [
            each
            for each in self.deployed_overlays
            if f"{each[0]}/Chart.yaml" in self.files and each not in self.overlays
        ]

    @cached_property
    def jsonnet(self) -> list[str]:
        """Apps whose objects come from jsonnet, which only Argo CD renders."""
        others = {folder for folder, _, _ in (*self.overlays, *self.chart_overlays)}
        found = (_JSONNET.match(path) for path in self.files)
        return sorted({each[2] for each in found if each and each[1] not in others})

    @cached_property
    def submodules(self) -> list[str]:
        """Folders of apps that are in another repository, which Argo CD fetches."""
        text = self.files.get(".gitmodules", b"").decode("utf-8", "replace")
        paths = (posixpath.normpath(each.strip('" \t\r')) for each in _SUBMODULE.findall(text))
        return sorted({each for each in paths if each.startswith("apps/")})

    @cached_property
    def settings(self) -> list[tuple[str, str, str]]:
        """(file, app, key) of Argo CD's settings that change an app's objects unseen."""
        found = [match for path in sorted(self.files) if (match := _SETTINGS.match(path))]
        return [
            (match[0], match[2], key)
            for match in found
            for key in self._unapplied(*match.group(1, 3))
        ]

    def _unapplied(self, folder: str, name: str) -> Iterator[str]:
        try:
            content = first_map(self.files[f"{folder}/{name}"], name)
        except UcpError:
            return  # Argo CD can't read it either.
        applied = "directory"
        if folder in self.kustomizations:
            applied = ""
        elif f"{folder}/Chart.yaml" in self.files:
            applied = "helm"
        for key, value in content.items():
            if name != SETTINGS or key != applied:
                yield str(key)
            elif key == "helm" and isinstance(value, dict):
                yield from (f"helm.{each}" for each in value if each not in APPLIED)

    @cached_property
    def roots(self) -> list[str]:
        """Folders with a kustomization that no other kustomization includes."""
        used = {
            posixpath.normpath(posixpath.join(folder, entry))
            for folder, content in self.kustomizations.items()
            for entry in entries(content)
        }
        return sorted(self.kustomizations.keys() - used)

    def apps_using(self, paths: Collection[str]) -> set[str]:
        """Apps whose overlays include one of these files, also through other folders."""
        # A folder is changed by its kustomization; the other files are named one by one.
        changed = {
            path.rpartition("/")[0] or "." for path in paths if path.endswith(KUSTOMIZATIONS)
        }
        changed |= set(paths)
        return {
            app for folder, app, _ in self.overlays if not changed.isdisjoint(self._used(folder))
        }

    def _used(self, folder: str) -> set[str]:
        """Files and folders that a kustomization loads, with itself."""
        waiting, used = [folder], set[str]()
        while waiting:
            path = waiting.pop()
            if path not in used:
                used.add(path)
                for entry in loaded(self.kustomizations.get(path, {})):
                    waiting.append(posixpath.normpath(posixpath.join(path, entry)))
        return used

    def exists(self, path: str) -> bool:
        start = path.rstrip("/") + "/"
        return path in (".", "") or any(
            each == path or each.startswith(start) for each in self.files
        )

    def plain(self) -> Iterator[tuple[str, Object]]:
        """(path, object) of files that no kustomization includes."""
        for path, content in self.documents.items():
            folders = [path[:index] for index, each in enumerate(path) if each == "/"]
            if any(path.startswith(each) for each in self.charts):
                continue
            if not any(each in self.kustomizations for each in folders):
                found = (each for each in content if "kind" in each)
                yield from ((path, item) for each in found for item in unlisted(each))


def _leads_out(link: Path, target: str) -> bool:
    """Whether Argo CD rejects a link: at any step of its target, it is outside of the repository.

    Only names count, not what they lead to. link: relative to the repository.
    """
    depth = len(link.parent.parts)
    for step in target.split("/"):
        if step == "..":
            depth -= 1
        elif step not in ("", "."):
            depth += 1
        if depth < 0:
            return True
    return target.startswith("/")


def _is_followed(link: Path, root: Path) -> bool:
    """Argo CD reads the file that this link leads to."""
    target = Path(os.path.realpath(link))
    if not target.is_relative_to(root) or ".git" in target.relative_to(root).parts:
        return False
    if link.name in _FORMS:
        return True  # It recognizes the app's form by it.
    path = Path(os.path.realpath(link.parent), link.name).relative_to(root).as_posix()
    overlay = _IN_OVERLAY.match(path)
    if overlay is None or not path.endswith(_MANIFESTS):
        return False
    return not any(os.path.lexists(root / overlay[0] / name) for name in _FORMS)


def _data_of_generators(read: Mapping[str, list[Object]]) -> frozenset[str]:
    """Files that kustomizations load as text for ConfigMaps and Secrets, whatever their names."""
    found: set[str] = set()
    for path, content in read.items():
        folder, _, name = path.rpartition("/")
        for key in ("configMapGenerator", "secretGenerator"):
            for generator in maps(content[0], key) if name in KUSTOMIZATIONS and content else ():
                files = generator.get("files")
                for entry in files if isinstance(files, list) else ():
                    file = str(entry).partition("=")[2] or str(entry)
                    found.add(posixpath.normpath(posixpath.join(folder, file)))
    return frozenset(found)


def _misshapen(path: str, item: Object, *names: str) -> Iterator[Fault]:
    for name in names:
        if item.get(name) is not None and not isinstance(item[name], list | tuple):
            yield Fault("list-invalid", f"{name} is not a list", path, value=name)


def find_file_faults(tree: Tree) -> Iterator[Fault]:
    """Faults visible in a repository's files alone, in either repository."""
    documents = tree.documents
    yield from tree.unreadable
    for path in tree.outward:
        yield Fault(
            "symlink-out-of-bounds",
            "the symbolic link points outside of the repository, so Argo CD renders no app of it",
            path,
        )
    for folder, content in sorted(tree.kustomizations.items()):
        yield from _misshapen(folder, content, *FIELDS, "helmCharts")
        for entry in entries(content):
            if message := _unpinned_base(entry):
                yield Fault("base-unpinned", message, folder, value=entry)
        for chart in maps(content, "helmCharts"):
            if why := _unpinned_chart(chart, "version", "name"):
                yield Fault("chart-unpinned", why, folder, value=str(chart.get("name")))
    for path, text in tree.files.items():
        if re.fullmatch(r"\.github/workflows/[^/]+\.ya?ml", path):
            for action in _ACTION.findall(text.decode("utf-8", "replace")):
                if not re.search(r"@([0-9a-f]{40}|sha256:[0-9a-f]{64})$|^\./", action):
                    why = f"the action {action} is not pinned to a commit hash"
                    yield Fault("action-unpinned", why, path, value=action)
        if _PIPELINE.fullmatch(path):
            yield from _local_targets(path, text)
    for path, items in documents.items():
        for each in items:
            yield from (of_object(each, fault) for fault in _unpinned_packages(path, each))


def _local_targets(path: str, text: bytes) -> Iterator[Fault]:
    for url in sorted(set(_LOCAL_TARGET.findall(text.decode("utf-8", "replace")))):
        message = f"the pipeline promotes to {url}, which only a runner on that machine can reach"
        yield Fault("pipeline-local-repository", message, path, value=url)


def _unpinned_base(entry: str) -> str | None:
    if "://" not in entry and not re.match(r"[\w.-]+@[\w.-]+:", entry) and "?ref=" not in entry:
        return None
    found = re.search(r"[?&](?:ref|version)=([^&]+)", entry)
    if found is None:
        return f"{entry} is not pinned: add ?ref= with a tag or commit"
    return f"{entry} is not pinned: {found[1]} is a branch" if is_moving(found[1]) else None


def _unpinned_chart(source: Object, key: str, name: str) -> str | None:
    version = str(source.get(key) or "")
    if re.fullmatch(r"v?\d+\.\d+\.\d+([-+][\w.+-]+)?", version):
        return None
    return f"the chart {source.get(name)} has no exact version: {version or 'none'}"


def _unpinned_packages(path: str, item: Object) -> Iterator[Fault]:
    kind, spec = item.get("kind"), item.get("spec")
    if not isinstance(spec, dict):
        return
    if str(item.get("apiVersion", "")).startswith("pkg.crossplane.io/"):
        package = spec.get("package")
        if isinstance(package, str) and (found := unpinned_image(package)):
            message = found.message.replace("the image", "the package")
            yield Fault("package-unpinned", message, path, value=package)
    for source in sources_of(item) if kind == "Application" else ():
        if source.get("chart") and (problem := _unpinned_chart(source, "targetRevision", "chart")):
            yield Fault("chart-unpinned", problem, path, value=str(source["chart"]))


def sources_of(application: Object) -> list[Object]:
    """The sources of an Application, whether it has one or several."""
    spec = part(application, "spec")
    return [each for each in (part(spec, "source"), *maps(spec, "sources")) if each]


def find_environment_faults(tree: Tree) -> Iterator[Fault]:
    """Faults of the app repository: its list of environments, and overlays that don't match it."""
    path = "environments.yaml"
    found = [
        each for content in tree.documents.get(path, []) for each in maps(content, "environments")
    ]
    for content in tree.documents.get(path, []):
        yield from _misshapen(path, content, "environments")
    names = [str(each.get("name")) for each in found]
    for name in sorted({each for each in names if names.count(each) > 1}):
        yield Fault("environment-duplicate", f"duplicate environment {name}", path, value=name)
    for each in found:
        source = each.get("promotesFrom")
        if source is not None and str(source) not in names:
            message = f"{each.get('name')} promotes from {source}, which is not an environment"
            yield Fault("environment-unknown-source", message, path, value=str(source))
    for folder, app, environment in tree.deployed_overlays:
        if names and environment not in names:
            message = f"environments.yaml has no environment {environment}"
            yield Fault("environment-unknown", message, folder)
        if not APP_FOLDER.fullmatch(app):
            message = (
                f"'{app}' can't be the name of an app: at most 63 lowercase letters, digits, '-' "
                "and '.' (RFC 1123)"
            )
            yield Fault("application-name-invalid", message, folder)
        if taken := taken_namespace(app):
            yield Fault("namespace-reserved", taken, folder)
        if folder in tree.directories and f"apps/{app}/base" in tree.kustomizations:
            message = f"it has no kustomization.yaml, so it does not include apps/{app}/base out"
            yield Fault("overlay-without-kustomization", message, folder)
    folders = {(app, environment): folder for folder, app, environment in tree.deployed_overlays}
    for (app, environment), other in shared_applications(sorted(folders)):
        message = (
            f"the Application name '{app}-{environment}' is also used for "
            f"{folders[app, environment]}, and Argo CD would generate neither: "
            "rename an app or an environment"
        )
        yield Fault("application-name-taken", message, folders[other])


def find_core_faults(tree: Tree, apps: Tree | None) -> Iterator[Fault]:
    """Faults of the core repository: its Applications' projects and paths."""
    found = [(path, each) for path, content in tree.documents.items() for each in content]
    projects = {_name(each) for _, each in found if each.get("kind") == "AppProject"}
    applications = [(path, each) for path, each in found if each.get("kind") == "Application"]
    addresses = {
        _name(each): source.get("repoURL")
        for _, each in applications
        for source in sources_of(each)
    }
    trees: dict[Any, Tree] = {addresses.get("root"): tree}
    if apps is not None:
        # The apps' AppProject admits only the app repository.
        admitted = [
            part(each, "spec").get("sourceRepos") or ()
            for _, each in found
            if each.get("kind") == "AppProject" and _name(each) == "applications"
        ]
        trees |= {url: apps for urls in admitted for url in urls}
    for path, application in applications:
        for fault in _application_faults(application, path, projects, trees):
            yield of_object(application, fault)


def _application_faults(
    application: Object, path: str, projects: Collection[str], trees: Mapping[Any, Tree]
) -> Iterator[Fault]:
    """Its project and its paths. trees: {URL of a repository: its files}."""
    name = _name(application)
    project = part(application, "spec").get("project")
    if projects and project not in projects:
        message = f"the Application {name} references the project {project}, which does not exist"
        yield Fault("application-missing-project", message, path, field="spec.project")
    for source in sources_of(application):
        tree = trees.get(source.get("repoURL"))
        folder = str(source.get("path") or ".")
        if tree is not None and not tree.exists(posixpath.normpath(folder)):
            message = f"the Application {name} references the path {folder}, which does not exist"
            yield Fault("application-missing-path", message, path, value=folder)


def find_unlisted_clusters(tree: Tree) -> Iterator[Fault]:
    """Faults of the core repository: clusters of environments that its lists lack."""
    folder = "clusters"
    kustomization = tree.kustomizations.get(folder, {})
    lists = [
        each
        for each in maps(kustomization, "configMapGenerator")
        if each.get("name") == ENVIRONMENTS
    ]
    if not lists or any(not isinstance(each.get("literals"), list) for each in lists):
        return  # Somebody keeps the list in another form, such as `envs`.
    listed = {str(entry).partition("=")[0] for each in lists for entry in each["literals"]}
    for entry in entries(kustomization):
        overlay = posixpath.normpath(posixpath.join(folder, entry))
        for environment in sorted(_environments_in(tree, overlay) - listed):
            message = (
                f"{entry} has the cluster of {environment}, which is not in the list "
                f"{ENVIRONMENTS}: add the literal {environment}="
            )
            yield Fault("environment-unknown", message, folder, value=entry)
    for overlay in tree.roots:
        if overlay.startswith(f"{folder}/"):
            entry = overlay.removeprefix(f"{folder}/")
            # The overlay of a stopped environment is only in the list of environments.
            for environment in sorted(_environments_in(tree, overlay) - listed):
                message = (
                    f"the cluster of {environment} is never created: to create it, add {entry} to "
                    f"`resources` in {folder}/kustomization.yaml, and the literal {environment}= "
                    f"to its list {ENVIRONMENTS}"
                )
                yield Fault("environment-unlisted", message, overlay)


def _environments_in(tree: Tree, overlay: str) -> set[str]:
    """The environments whose clusters an overlay declares."""
    labels = maps(tree.kustomizations.get(overlay, {}), "labels")
    found = (part(each, "pairs").get(ENVIRONMENT) for each in labels)
    return {str(each) for each in found if each is not None}


def find_topology_faults(tree: Tree, parse: Callable[[str], Any]) -> Iterator[Fault]:
    """Faults of ucp.yaml. parse: raises UcpError."""
    text = tree.files.get("ucp.yaml")
    if text is None:
        return
    try:
        parse(text.decode("utf-8"))
    except UnicodeDecodeError:
        yield Fault("topology-invalid", "not valid UTF-8", "ucp.yaml")
    except UcpError as error:
        for line in error.message.splitlines():
            yield Fault("topology-invalid", line.removeprefix("ucp.yaml:"), "ucp.yaml")


def _name(item: Object) -> str:
    return str(part(item, "metadata").get("name"))
