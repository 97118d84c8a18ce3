"""Which version of each app the overlays of an app repository say. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.forms import chart_file
from k8s_ucp.gitops.manifests.image_edit import read_images
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable

_FILE = re.compile(r"apps/([^/]+)/overlays/([^/]+)/(.+)")


def versions_in(files: Mapping[str, bytes]) -> dict[str, dict[str, list[str]]]:
    """{app: {environment: its images or its chart, each with its version}}; files: by path.

    Manifests and jsonnet in an overlay have none that it names: they are there, without a version.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for path, content in files.items():
        if not (match := _FILE.fullmatch(path)):
            continue
        app, environment, name = match.groups()
        versions = found.setdefault(app, {}).setdefault(environment, [])
        if name == "Chart.yaml":
            # A chart's name may be shared by apps; what differs is its version.
            versions[:] = _chart_of(content)
        elif name in ("kustomization.yaml", "kustomization.yml"):
            versions[:] = _images_of(content, path)
    return found


def _images_of(content: bytes, path: str) -> list[str]:
    try:
        images = read_images(content.decode("utf-8"), path)
    except (NotEditable, ValueError):
        return []
    return [f"{each.new_name or each.name}:{each.pin}" for each in images]


def _chart_of(content: bytes) -> list[str]:
    """`<chart>:<version>` as Chart.yaml says; nothing where it says neither."""
    try:
        chart = chart_file({"Chart.yaml": content})
    except UsageError:
        return []
    return [f"{chart.name}:{chart.version}"]
