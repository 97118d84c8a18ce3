"""Rules about `checks`: what may be ignored. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from k8s_ucp.check_rules import RULES
from k8s_ucp.topology.problems import Loc, Problem, shown

if TYPE_CHECKING:
    from k8s_ucp.topology.parts import Checks


def find_bad_checks(checks: Checks) -> Iterator[Problem]:
    """Findings that can't be ignored, and entries that would ignore a rule everywhere."""
    for place, entry in enumerate(checks.ignore):
        at: Loc = ("spec", "checks", "ignore", place)
        rule = RULES[entry.rule]
        if rule.ignorable == "never":
            yield Problem(
                (*at, "rule"), f"{shown(at)}: {rule.id} can't be ignored: {rule.fix} ({rule.page})"
            )
        if not entry.app and not entry.file:
            yield Problem(at, f"{shown(at)} requires the key 'app' or 'file'")
