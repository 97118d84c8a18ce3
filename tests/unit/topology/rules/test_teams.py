"""Teams that would share names or repositories with others are refused."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.errors import UsageError
from k8s_ucp.topology import parse


def told(name: str = "demo", **spec: Any) -> str:
    """The error message about a topology; "" if it is valid."""
    stream = io.StringIO()
    head = {"apiVersion": "k8s-ucp.io/v1alpha1", "kind": "Topology", "metadata": {"name": name}}
    YAML().dump({**head, "spec": spec}, stream)
    try:
        parse(stream.getvalue(), Path("ucp.yaml"))
    except UsageError as error:
        return error.message
    return ""


SHOP = {"name": "shop"}
URL = {"provider": "url", "core": "https://g.example.org/a", "apps": "https://g.example.org/b"}
APP = {"name": "web", "image": "web", "tag": "1"}


def test_teams_without_collisions_are_accepted() -> None:
    assert told(teams=[SHOP, {"name": "orders", "quota": {"claims": 3}}]) == ""
    assert told(teams=[{"name": "shop", "repo": "https://g.example.org/c"}], git=URL) == ""


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"teams": [SHOP, SHOP]}, "duplicate name 'shop' in teams"),
        (
            {"teams": [SHOP, {"name": "shop-eu"}]},
            "teams shop and shop-eu could have the same names",
        ),
        ({"teams": [{"name": "demo"}]}, "the name of a cluster of demo"),
        (
            {"teams": [SHOP], "apps": [{**APP, "namespace": "team-shop"}]},
            "the namespace team-shop of the team shop is used by the app web",
        ),
        (
            {"teams": [SHOP], "apps": [{**APP, "namespaces": ["team-shop"]}]},
            "the namespace team-shop of the team shop is used by the app web",
        ),
        (
            {"teams": [SHOP], "reconciler": {"sourceNamespaces": ["team-shop"]}},
            "can't be a source namespace",
        ),
        (
            {"teams": [SHOP], "databases": [{"name": "shop", "provider": "local"}]},
            "the name of the database shop",
        ),
        ({"teams": [SHOP], "git": URL}, "the team shop requires the key 'repo'"),
        (
            {"teams": [{"name": "shop", "repo": "https://g.example.org/b"}], "git": URL},
            "is also used by apps",
        ),
        (
            {"teams": [{"name": "shop", "repo": "https://g.example.org/[a-z]"}]},
            "can't contain [ or ]",
        ),
        (
            {"teams": [{"name": "shop", "repo": "https://me:pass@g.example.org/c"}]},
            "contains a user or password",
        ),
    ],
)
def test_teams_with_collisions_are_refused(spec: dict[str, Any], words: str) -> None:
    assert words in told(**spec)
