"""The reference of the rules in docs/checks.md; `make update-golden` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from k8s_ucp.check_rules import RULES, IgnorableIn, Rule

PAGE = Path(__file__).parents[1] / "docs" / "checks.md"
BEGIN = "<!-- rules: written by `make update-golden` from src/k8s_ucp/check_rules.py -->\n\n"

_IGNORED_IN: Mapping[IgnorableIn, str] = {
    "anywhere": "ucp.yaml, file",
    "topology": "ucp.yaml",
    "never": "nowhere",
}


def page(text: str) -> str:
    """The text of the page with the current rules."""
    before, begin, _ = text.partition(BEGIN)
    assert begin, f"{PAGE.name} has no line {BEGIN}"
    return before + begin + reference()


def reference() -> str:
    """A table of all rules, and a section for each."""
    rows = [
        f"| [{e.id}](#{e.id}) | {e.severity} | {e.title} | {_IGNORED_IN[e.ignorable]} |"
        for e in RULES.values()
    ]
    head = ["| rule | severity | finds | can be ignored in |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, "", *map(_section, RULES.values())])


def _section(rule: Rule) -> str:
    return (
        f"### {rule.id}\n\n{rule.title} ({rule.severity}). {rule.what} {rule.why}\n\n"
        f"Fix: {rule.fix}\n"
    )
