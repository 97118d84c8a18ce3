"""Flags that are proposed where an environment is not mapped."""

from __future__ import annotations

from k8s_ucp.cli.editing.imports.choices import proposed_flags


def test_names_of_environments_in_proposed_flags_are_quoted_for_a_shell() -> None:
    assert proposed_flags(["$(id)"], ["prod"], {}, {}) == ["--map '$(id)'=ENV"]
