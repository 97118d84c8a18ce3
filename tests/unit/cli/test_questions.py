"""Parsing of answers typed at prompts."""

from __future__ import annotations

import pytest

from k8s_ucp.cli.questions import split_names


@pytest.mark.parametrize(
    ("text", "names"),
    [("stage, prod", ["stage", "prod"]), (" a  b,,c ", ["a", "b", "c"]), ("", []), (" , ", [])],
)
def test_names_are_split_at_commas_and_spaces(text: str, names: list[str]) -> None:
    assert split_names(text) == names
