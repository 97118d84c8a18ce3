"""The files of a repository at one commit, and what they are to Argo CD."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.manifests.build_charts import APPLIED, SETTINGS
from k8s_ucp.gitops.manifests.build_many import Object, unlisted
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
from k8s_ucp.gitops.manifests.sources import entries, loaded
from k8s_ucp.gitops.manifests.yaml_text import documents, first_map, maps

_OVERLAY = re.compile(r"apps/([^/]+)/overlays/([^/]+)$")
_IN_OVERLAY = re.compile(r"apps/[^/]+/overlays/[^/]+(?=/)")
_JSONNET = re.compile(r"(apps/([^/]+)/overlays/[^/]+)/(?:.*/)?[^/]+\.jsonnet$")
_SETTINGS = re.compile(r"(apps/([^/]+)/overlays/[^/]+)/(\.argocd-source(?:-[^/]+)?\.yaml)$")
_FORMS = (*KUSTOMIZATIONS, "Chart.yaml")
"""Files by which Argo CD recognizes the form of an app."""
_MANIFESTS = (".yaml", ".yml", ".json")
_SKIPPED = re.compile(r"(^|/)(\.|node_modules/)|^platform/[^/]+/engine/|^ucp\.yaml$")
"""Hidden folders, manifests of engines (which are pinned as a whole), ucp.yaml."""
_SUBMODULE = re.compile(r"^[ \t]*+path[ \t]*+=(.*)$", re.MULTILINE)


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
