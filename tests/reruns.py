"""What a test that failed is run once more with."""

from __future__ import annotations

from typing import Any

import pytest

_KEPT = ("session", "function")
"""Scopes of fixtures that stay: they hold nothing that tests change, or are new in each run."""


def end_shared_fixtures(item: pytest.Item) -> None:
    """End a test's module and package fixtures before it is run once more, so that they start anew.

    What the failed run left in a shared cluster could make the second run fail, too.
    """
    found: Any = item
    definitions = found._fixtureinfo.name2fixturedefs
    for each in (definitions[name][-1] for name in found.fixturenames if name in definitions):
        if each.scope not in _KEPT:
            each.finish(found._request)


def is_rerun(item: pytest.Item) -> bool:
    """Whether a test failed once in this run already."""
    return getattr(item, "execution_count", 1) > 1
