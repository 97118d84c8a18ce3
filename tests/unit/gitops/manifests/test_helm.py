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
