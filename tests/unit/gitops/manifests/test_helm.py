"""The part of helm's output that is shown."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.manifests.helm import own_words


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("", "no message"),
        ("level=WARN old\nError: first\nError: second\n\nUse --debug flag to see it\n", "second"),
        ("something else\nfails\n", "fails"),
        (
            "Error: values don't meet the schema of the following chart(s):\nweb:\n"
            "- at '/port': got string, want integer\n",
            "values don't meet the schema of the following chart(s): web: "
            "- at '/port': got string, want integer",
        ),
    ],
)
def test_an_error_is_shown_with_its_details(said: str, shown: str) -> None:
    assert own_words(said) == shown


def test_the_middle_of_a_very_long_message_is_left_out() -> None:
    """Helm repeats the position of a template that includes itself a thousand times."""
    middle = 'executing "r" at <include "r" .>: error calling include: ' * 1000
    shown = own_words(f"Error: template: web: {middle}nested reference name: r")
    assert len(shown) < 2100
    assert shown.startswith("template: web: executing")
    assert shown.endswith("nested reference name: r")
