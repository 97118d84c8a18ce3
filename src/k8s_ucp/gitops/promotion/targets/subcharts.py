"""Values of the charts in a chart's `charts/` folder, packed or unpacked. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.manifests.chart_source import unpack
from k8s_ucp.gitops.manifests.forms import Files
from k8s_ucp.gitops.manifests.yaml_text import first_map, maps

_DEEPEST = 3
"""Maximum nesting of charts."""


def subchart_values(files: Files, depth: int = _DEEPEST) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """(path in the parent chart's values, values file) of every chart below.

    A dependency may have several aliases, each with its own values. Invalid charts are left out.
    """
    needed = [*_dependencies(files, "Chart.yaml"), *_dependencies(files, "requirements.yaml")]
    for chart in _charts(files):
        name = _name(chart)
        aliases = [alias for each, alias in needed if each == name] or ([name] if name else [])
        for alias in aliases:
            yield (alias,), chart.get("values.yaml", b"")
            for path, content in subchart_values(chart, depth - 1) if depth > 1 else ():
                yield (alias, *path), content


def _charts(files: Files) -> Iterator[Files]:
    folders: dict[str, dict[str, bytes]] = {}
    for path, content in files.items():
        top, _, rest = path.partition("/")
        name, _, inner = rest.partition("/")
        if top != "charts":
            continue
        if inner:
            folders.setdefault(name, {})[inner] = content
        elif name.endswith(".tgz"):
            try:
                folders[name] = unpack(content, name)
            except UcpError:
                continue
    yield from folders.values()


def _name(chart: Files) -> str:
    try:
        return str(first_map(chart.get("Chart.yaml", b""), "Chart.yaml").get("name") or "")
    except UcpError:
        return ""


def _dependencies(files: Files, name: str) -> list[tuple[str, str]]:
    """(name, alias)."""
    try:
        listed = maps(first_map(files.get(name, b""), name), "dependencies")
    except UcpError:
        return []
    return [(str(each.get("name")), str(each.get("alias") or each.get("name"))) for each in listed]
