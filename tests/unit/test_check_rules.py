"""The registry of rules of `ucp check`."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from k8s_ucp.check_rules import RULES, Rule, RuleId
from tests.checks_page import reference


def test_every_rule_id_has_a_rule() -> None:
    assert tuple(RULES) == get_args(RuleId)


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_rules_document_what_why_and_fix(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.id)
    assert not rule.title.endswith(".")
    assert all(each.endswith(".") for each in (rule.what, rule.why, rule.fix))
    assert f"\n### {rule.id}\n" in reference()


def test_warnings_can_be_ignored_anywhere() -> None:
    assert {each.ignorable for each in RULES.values() if each.severity == "warning"} == {"anywhere"}
