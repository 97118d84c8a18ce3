"""Names of classes, types and modules: unique, and without words of the stop list."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from tests.sources import modules

GLOSSARY = Path(__file__).parents[2] / "docs/glossary.md"

STOP = {
    *("Util", "Utils", "Helper", "Helpers", "Common", "Misc", "Thing", "Things"),
    *("Announcements", "Backlog", "Belongings", "Departure", "Facts", "Keeper", "Known", "Login"),
    *("Logins", "Marks", "Past", "People", "Place", "Places", "Proof", "Seen", "Shares", "Spot"),
    *("Standing", "Tally", "Views", "Wanted", "Unwanted", "Wish"),
}
"""Words for which docs/glossary.md has standard terms."""

STOPPED = {"backup_keeper"}
"""Allowed: supervisor's programs in users' workspaces use this module path."""


def _modules() -> dict[str, ast.Module]:
    return {
        path.removesuffix(".py"): tree
        for path, tree in modules().items()
        if not path.endswith("__init__.py")
    }


def _classes(tree: ast.Module) -> list[str]:
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def _aliases(tree: ast.Module) -> list[str]:
    """Names of types, such as `Report = Callable[[str], None]`; constants are upper-case."""
    targets = [each for node in tree.body if isinstance(node, ast.Assign) for each in node.targets]
    names = [each.id for each in targets if isinstance(each, ast.Name)]
    return [each for each in names if each[0].isupper() and not each.isupper()]


def _words(name: str) -> set[str]:
    """The words of a name, capitalized: ClusterInfo and cluster_info have Cluster and Info."""
    return {each.capitalize() for each in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_no_public_class_name_occurs_twice() -> None:
    names = Counter(name for tree in _modules().values() for name in _classes(tree))
    assert not [name for name, times in names.items() if times > 1 and not name.startswith("_")]


def test_no_class_type_or_module_name_contains_a_word_of_the_stop_list() -> None:
    modules = _modules()
    names = {path.rpartition("/")[2] for path in modules}
    names |= {name for tree in modules.values() for name in (*_classes(tree), *_aliases(tree))}
    assert sorted(each for each in names if _words(each) & STOP) == sorted(STOPPED)


def test_the_glossary_is_sorted_and_has_one_line_per_term() -> None:
    rows = [line for line in GLOSSARY.read_text("utf-8").splitlines() if line.startswith("| ")]
    words = [row.split("|")[1].strip() for row in rows[1:]]
    assert words == sorted(set(words), key=str.lower)
