"""Finds apps by folder layout: overlays of environments, charts, plain manifests. Pure."""

from __future__ import annotations

from collections.abc import Collection

from k8s_ucp.gitops.imports.findings import DiscoveredApp, RefusedApp
from k8s_ucp.gitops.imports.layouts.chart_apps import find_charts
from k8s_ucp.gitops.imports.layouts.kustomize_apps import find_kustomizations
from k8s_ucp.gitops.imports.layouts.manifest_apps import find_manifests
from k8s_ucp.gitops.imports.trees import RepositoryTree


def find_layouts(
    tree: RepositoryTree,
    title: str,
    environments: Collection[str],
    folders: Collection[str],
    named: Collection[str] = (),
) -> tuple[list[DiscoveredApp], list[RefusedApp]]:
    """Find apps by layout.

    title: name for an app that is the whole repository. environments: names to recognize. folders:
    those of them that folders can have. named: those that the user named.
    """
    findings: list[DiscoveredApp] = []
    refusals: list[RefusedApp] = []
    found = [
        *find_kustomizations(tree, title, folders, named),
        *find_charts(tree, title, folders, environments),
        *find_manifests(tree, title, folders),
    ]
    for each in found:
        if isinstance(each, DiscoveredApp):
            findings.append(each)
        else:
            refusals.append(each)
    return findings, refusals
