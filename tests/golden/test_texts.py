"""Golden texts for users, each kind in one file: help pages, failures, step titles, findings.

Reviewed like the trees: `make update-golden` writes the current texts. Help pages omit the global
options, which every command accepts. Computed parts are in braces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from k8s_ucp.cli import main
from tests import checks_page
from tests.sources import modules

HERE = Path(__file__).parent / "texts"
WIDTH = 100


def help_pages() -> str:
    pages = []
    root: Any = typer.main.get_command(main.app)
    for name, command in {
        "": root,
        **{each: main._load(each, []) for each in main.COMMANDS},
    }.items():
        pages += _pages(command, f"ucp {name}".strip(), None)
    return "\n".join(pages)


def _pages(command: Any, path: str, parent: Any) -> Iterator[str]:
    settings = {**main.app.info.context_settings, "max_content_width": WIDTH}
    with command.make_context(
        path, [], resilient_parsing=True, terminal_width=WIDTH, **settings
    ) as context:
        yield f"# {path}\n{command.get_help(context)}\n"
    if path != "ucp":
        for name, each in getattr(command, "commands", {}).items():
            yield from _pages(each, f"{path} {name}", context)


@cache
def failures() -> str:
    """Every message that is raised, and every request for consent, with its next step."""
    kinds = _failure_names() | {"require_consent"}
    found = {
        text
        for tree in modules().values()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _name(call.func) in kinds
        if (text := _said(call))
    }
    return "\n".join(sorted(found)) + "\n"


def _failure_names() -> set[str]:
    names = {"UcpError"}
    classes = [
        each
        for tree in modules().values()
        for each in ast.walk(tree)
        if isinstance(each, ast.ClassDef)
    ]
    while (
        more := {each.name for each in classes if names & {_name(base) for base in each.bases}}
        - names
    ):
        names |= more
    return names


def _said(call: ast.Call) -> str:
    """Message and next step of a failure; empty if the message is passed on from another one."""
    text = _text(call.args[0]) if call.args else ""
    following = [_text(each.value) for each in call.keywords if each.arg == "next"]
    if not text:
        return ""
    return "\n    next: ".join([text, *filter(None, following)])


def titles() -> str:
    """Titles of the steps of all plans."""
    found = {
        text
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and _name(node.func) in ("step", "shown_step", "PodComponentEntry")
        if (text := next(filter(None, map(_text, node.args)), ""))
    }
    return "\n".join(sorted(found)) + "\n"


FINDING_PACKAGES = ("gitops/check", "inspect", "preflight", "reconciler", "topology")
"""Packages whose sentences are findings, advice, messages of conditions or log lines."""


def findings() -> str:
    """Findings of `ucp check` and preflight, doctor's advice, messages of conditions."""
    raised = failures()
    found = {
        text
        for path, tree in modules().items()
        if path.startswith(tuple(f"{each}/" for each in FINDING_PACKAGES))
        for text in _sentences(tree)
    }
    return "\n".join(sorted(each for each in found if each not in raised)) + "\n"


def _sentences(tree: ast.AST) -> Iterator[str]:
    """Strings of three or more words, without docstrings."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        text = _text(node) if isinstance(node, ast.expr) else ""
        if text:
            if re.search(r"(^|[ {'])[a-z']+ ([a-z{'].* |.*[a-z{'].* [a-z{'])", text):
                yield text
        else:
            yield from _sentences(node)


def _text(node: ast.expr) -> str:
    """A string as written in the code, with computed parts in braces; empty for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (
            f"{{{ast.unparse(each.value)}}}"
            if isinstance(each, ast.FormattedValue)
            else str(getattr(each, "value", ""))
            for each in node.values
        )
        return "".join(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.Call) and _name(node.func) == "command_line":
        return f"{{{ast.unparse(node)}}}"
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body)} | {_text(node.orelse)}"
    return ""


def _name(node: ast.expr) -> str:
    return getattr(node, "id", None) or getattr(node, "attr", "")


@pytest.mark.parametrize(
    ("file", "read"),
    [
        ("help.txt", help_pages),
        ("failures.txt", failures),
        ("titles.txt", titles),
        ("findings.txt", findings),
    ],
    ids=["help", "failures", "titles", "findings"],
)
def test_texts_for_users_match_the_golden_files(
    file: str, read: Callable[[], str], update_golden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    now = read()
    if update_golden:
        (HERE / file).write_text(now, "utf-8")
    assert (HERE / file).read_text("utf-8") == now, f"{file}: make update-golden"


def test_the_page_of_checks_matches_the_rules(update_golden: bool) -> None:
    text = checks_page.PAGE.read_text("utf-8")
    if update_golden:
        text = checks_page.page(text)
        checks_page.PAGE.write_text(text, "utf-8")
    assert checks_page.page(text) == text, "make update-golden"
