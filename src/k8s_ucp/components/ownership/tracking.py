"""Argo CD's tracking annotation for objects that `ucp start` applies before Argo CD runs.

Without it, Argo CD's first refresh would find every object out of sync and apply all of them a
second time: megabytes of CRDs, while everything else is starting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from k8s_ucp.components.manifests import Manifest
from k8s_ucp.gitops.manifests.yaml_text import documents
from k8s_ucp.gitops.refresh import same_repository
from k8s_ucp.kube import Object, annotations_of
from k8s_ucp.names import TRACKING_ID

IN_CLUSTER = ("in-cluster", "https://kubernetes.default.svc")
"""Names and addresses by which Applications refer to the core cluster."""

_METADATA = re.compile(r"^metadata:[ \t]*\n(?P<block>(?P<pad> +)\S.*\n(?:(?: .*)?\n)*)", re.M)


@dataclass(frozen=True)
class TrackingApp:
    """An Application that applies the objects of a folder without changes."""

    name: str
    folder: str
    deep: bool
    """Includes subfolders."""
    namespace: str
    """Used in tracking ids of objects that have no namespace."""

    def keeps(self, manifest: Manifest) -> bool:
        rest = manifest.source.removeprefix(f"{self.folder}/")
        return rest != manifest.source and (self.deep or "/" not in rest)

    def mark(self, manifest: Manifest) -> str:
        group = manifest.api_version.rpartition("/")[0]
        namespace = manifest.namespace or self.namespace
        return f"{self.name}:{group}/{manifest.kind}:{namespace}/{manifest.name}"


def keepers(files: Mapping[str, bytes], bootstrap: str, url: str) -> list[TrackingApp]:
    """The Applications in a folder of the core repository that track plain folders of it.

    files: of the repository, those of `bootstrap` and of all folders that matter. url: as Argo CD
    reads it. Objects that an Application excludes or changes must not get its tracking id, because
    it would prune them.
    """
    found = []
    for item in _applications(files, bootstrap):
        source = item["spec"].get("source") or {}
        options = source.get("directory") or {}
        folder = str(source.get("path") or "").strip("/")
        if (
            folder
            and source.keys() <= {"repoURL", "targetRevision", "path", "directory"}
            and options.keys() <= {"recurse"}
            and same_repository(str(source.get("repoURL")), url)
            and f"{folder}/kustomization.yaml" not in files
        ):
            namespace = str(item["spec"]["destination"].get("namespace") or "")
            deep = bool(options.get("recurse"))
            found.append(TrackingApp(item["metadata"]["name"], folder, deep, namespace))
    return found


def tracked(manifests: Iterable[Manifest], by: Sequence[TrackingApp]) -> list[Manifest]:
    """The manifests, with tracking ids on those that an Application tracks."""
    marked = []
    for each in manifests:
        keeper = next((keeper for keeper in by if keeper.keeps(each)), None)
        marked.append(_marked(each, keeper.mark(each)) if keeper else each)
    return marked


def tracker(item: Object) -> str:
    """The Application that tracks an object; empty if there is none."""
    annotations = annotations_of(item)
    return str(annotations.get(TRACKING_ID, "")).partition(":")[0]


def is_on_core(application: Object) -> bool:
    """Whether an Application deploys to the core cluster itself."""
    destination = application["spec"].get("destination") or {}
    return destination.get("name") in IN_CLUSTER or destination.get("server") in IN_CLUSTER


def _applications(files: Mapping[str, bytes], folder: str) -> Iterator[dict[str, Any]]:
    for path, text in files.items():
        if path.startswith(f"{folder}/") and path.endswith(".yaml"):
            for item in documents(text, path):
                if isinstance(item, dict) and item.get("kind") == "Application":
                    yield item


def _marked(manifest: Manifest, mark: str) -> Manifest:
    """Add the annotation; unchanged if the text is not formatted like generated files."""
    text = manifest.text
    found = _METADATA.search(text)
    if found is None or TRACKING_ID in found["block"]:
        return manifest
    pad, line = found["pad"], f'{TRACKING_ID}: "{mark}"\n'
    written = re.compile(rf"^{pad}annotations:(?P<rest>.*)\n(?P<inner> *)(?P<first>.?)", re.M)
    has = written.search(found["block"])
    if has is None:
        at, line = found.start("block"), f"{pad}annotations:\n{pad}  {line}"
    elif has["rest"].strip() or has["first"] in ("", "#") or len(has["inner"]) <= len(pad):
        return manifest
    else:
        at, line = found.start("block") + has.start("inner"), has["inner"] + line
    return replace(manifest, text=text[:at] + line + text[at:])
