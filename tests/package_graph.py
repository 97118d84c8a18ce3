"""Packages of the code and the imports between them; `make pictures` draws the diagrams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import grimp

PACKAGE = "k8s_ucp"
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
BEGIN, END = "<!-- packages: written by `make pictures` -->", "<!-- packages end -->"
DRAWN = (PACKAGE, f"{PACKAGE}.gitops", f"{PACKAGE}.reconciler")

Edges = Mapping[str, frozenset[str]]


@cache
def graph() -> grimp.ImportGraph:
    """Every import of the code, including those inside functions and for types only."""
    return grimp.build_graph(PACKAGE, include_external_packages=True, cache_dir=None)


def modules() -> set[str]:
    return {each for each in graph().modules if each.split(".")[0] == PACKAGE}


def loose_modules() -> dict[str, list[str]]:
    """{package: its own modules, without subpackages}."""
    found: dict[str, list[str]] = {}
    for each in sorted(modules()):
        if not graph().find_children(each):
            found.setdefault(each.rpartition(".")[0], []).append(each)
    return found


def imports() -> dict[str, frozenset[str]]:
    """{module: the modules of this project that it imports}."""
    ours = modules()
    return {
        each: frozenset(graph().find_modules_directly_imported_by(each) & ours) for each in ours
    }


def between(package: str) -> dict[str, frozenset[str]]:
    """Imports between the direct children of a package, each with all of its descendants."""
    children = graph().find_children(package)
    inside = {
        module: child
        for child in children
        for module in (child, *graph().find_descendants(child))
        if module in modules()
    }
    edges: dict[str, set[str]] = {each: set() for each in children}
    for module, wanted in imports().items():
        for each in wanted:
            ends = inside.get(module), inside.get(each)
            if ends[0] and ends[1] and ends[0] != ends[1]:
                edges[ends[0]].add(ends[1])
    return {each: frozenset(found) for each, found in edges.items()}


def cycle(edges: Edges) -> list[str]:
    """An import cycle as a list of nodes, empty if there is none."""
    done: set[str] = set()

    def look(node: str, path: list[str]) -> list[str]:
        if node in path:
            return path[path.index(node) :]
        if node in done:
            return []
        for each in sorted(edges[node]):
            if found := look(each, [*path, node]):
                return found
        done.add(node)
        return []

    for node in sorted(edges):
        if found := look(node, []):
            return found
    return []


def picture() -> str:
    """The diagrams between BEGIN and END of the page."""
    parts = []
    for package in DRAWN:
        if package != PACKAGE:
            parts.append(f"Inside `{package.removeprefix(f'{PACKAGE}.')}/`:\n")
        parts.append(_mermaid(between(package)))
    return "\n".join(parts)


def _mermaid(edges: Edges) -> str:
    lines = ["```mermaid", "flowchart TD"]
    for each in sorted(edges):
        slash = "/" if graph().find_children(each) else ""
        lines.append(f'    {_short(each)}["{_short(each)}{slash}"]')
    for each, wanted in sorted(_reduced(edges).items()):
        lines += [f"    {_short(each)} --> {_short(other)}" for other in sorted(wanted)]
    return "\n".join([*lines, "```\n"])


def _reduced(edges: Edges) -> dict[str, set[str]]:
    """The transitive reduction: no arrow where a longer path exists."""
    return {
        node: {
            each
            for each in wanted
            if not any(each in _reach(edges, other) for other in wanted - {each})
        }
        for node, wanted in edges.items()
    }


def _reach(edges: Edges, node: str) -> set[str]:
    found: set[str] = set()
    new: Iterable[str] = edges[node]
    while new := set(new) - found:
        found |= new
        new = {other for each in new for other in edges[each]}
    return found


def _short(module: str) -> str:
    return module.rpartition(".")[2]


def page(text: str) -> str:
    """The page with diagrams of the current code."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{picture()}{END}{rest.split(END)[1]}"
