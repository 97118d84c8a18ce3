"""Repositories to import from, as the texts of their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from k8s_ucp.gitops.imports.argocd.declared import Render
from k8s_ucp.gitops.imports.detection import ImportTools, detect
from k8s_ucp.gitops.imports.findings import Discovery, RefusedApp
from k8s_ucp.gitops.manifests.reachable import FolderTree
from k8s_ucp.gitops.manifests.yaml_text import dump_all

URL = "https://git.example.org/team/platform.git"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
CHART = "apiVersion: v2\nname: any\nversion: 1.0.0\n"


def place(files: Mapping[str, str]) -> FolderTree:
    def names(below: str) -> list[str]:
        start = f"{below}/" if below else ""
        return sorted(each.removeprefix(start) for each in files if each.startswith(start))

    def read(path: str) -> bytes | None:
        return files[path].encode() if path in files else None

    return FolderTree(names, read)


def found(files: Mapping[str, str], render: Render | None = None, **more: Any) -> Discovery:
    """more: arguments of `detect`, and other tools than `render`."""
    tools = {each.name: more.pop(each.name) for each in fields(ImportTools) if each.name in more}
    given = ImportTools(render=render, **tools)
    return detect(place(files), title="shop", urls=[URL], tools=given, **more)


def overlay(*resources: str) -> str:
    return dump_all([{"resources": list(resources)}])


def application(name: str, source: Mapping[str, Any], namespace: str = "web") -> str:
    spec = {"source": {"repoURL": URL, **source}, "destination": {"namespace": namespace}}
    return document("Application", name, spec)


def application_set(name: str, generator: Any, template: Any, **more: Any) -> str:
    return document(
        "ApplicationSet", name, {"generators": [generator], "template": template, **more}
    )


def document(kind: str, name: str, spec: Any) -> str:
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": name}}
    return dump_all([{**head, "spec": spec}])


def refusal(there: Discovery, name: str) -> RefusedApp:
    [only] = [each for each in there.refusals if each.name == name]
    return only


def kustomized(base: str, overlays: Mapping[str, str]) -> dict[str, str]:
    """A base and its overlays, in any folders. Overlays refer to the base by way of the root."""
    files = {f"{base}/kustomization.yaml": overlay("all.yaml"), f"{base}/all.yaml": CONFIG}
    for folder in overlays.values():
        up = "/".join([".."] * len(folder.split("/")))
        files[f"{folder}/kustomization.yaml"] = overlay(f"{up}/{base}")
    return files


def flux(kind: str, name: str, spec: Mapping[str, Any]) -> str:
    group = "source" if kind.endswith("Repository") else "helm"
    head = {"apiVersion": f"{group}.toolkit.fluxcd.io/v1", "kind": kind}
    return dump_all([{**head, "metadata": {"name": name}, "spec": spec}])
