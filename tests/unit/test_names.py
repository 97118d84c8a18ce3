"""Names say what a Kubernetes engineer expects: one class a name, no word of the stop list."""

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
    *("Logins", "Marks", "Past", "People", "Place", "Proof", "Seen", "Shares", "Spot"),
    *("Standing", "Tally", "Views", "Wanted", "Unwanted", "Wish"),
}
"""Words that the field has other words for; docs/glossary.md has those."""

STOPPED = {"backup_keeper"}
"""A module path that supervisor's programs in users' workspaces name."""


def _modules() -> dict[str, ast.Module]:
    return {
        path.removesuffix(".py"): tree
        for path, tree in modules().items()
        if not path.endswith("__init__.py")
    }


def _classes(tree: ast.Module) -> list[str]:
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def _words(name: str) -> set[str]:
    """The words of a name, capitalized: ClusterInfo and cluster_info have Cluster and Info."""
    return {each.capitalize() for each in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_no_public_class_name_occurs_twice() -> None:
    names = Counter(name for tree in _modules().values() for name in _classes(tree))
    assert not [name for name, times in names.items() if times > 1 and not name.startswith("_")]


def test_no_class_or_module_is_named_by_a_stopped_word() -> None:
    modules = _modules()
    names = {path.rpartition("/")[2] for path in modules}
    names |= {name for tree in modules.values() for name in _classes(tree)}
    assert sorted(each for each in names if _words(each) & STOP) == sorted(STOPPED)


def test_the_glossary_has_one_line_a_word_in_order() -> None:
    rows = [line for line in GLOSSARY.read_text("utf-8").splitlines() if line.startswith("| ")]
    words = [row.split("|")[1].strip() for row in rows[1:]]
    assert words == sorted(set(words), key=str.lower)
