"""`ucp app add NAME`, with the name of a built-in app."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from k8s_ucp.cli.editing.adding.items import parsed_item
from k8s_ucp.cli.editing.apps import _of_built_in_app
from k8s_ucp.errors import UsageError
from k8s_ucp.topology import APPS

NOT_GIVEN: dict[str, Any] = {"image": None, "replicas": None, "hosts": [], "database": None}


@pytest.mark.parametrize("name", APPS)
def test_every_built_in_app_can_be_added_without_flags(name: str) -> None:
    item = {key: value for key, value in _of_built_in_app(name, NOT_GIVEN).items() if value}
    assert parsed_item({"name": name, **item}) == APPS[name]


def test_flags_replace_keys_of_a_built_in_app() -> None:
    item = _of_built_in_app("quote", {**NOT_GIVEN, "hosts": ["says"], "database": "mine"})
    assert (item["hosts"], item["database"], item["path"]) == (["says"], "mine", "ucp:quote")
    with pytest.raises(UsageError, match="unknown app 'none'"):
        _of_built_in_app("none", NOT_GIVEN)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("nginx:1.27", "nginx"),
        ("ghcr.io/a/My_App:v1", "my-app"),
        ("git@git.example:a/b.git", "b"),
        ("https://git.example/a/b.git?ref=v1", "b"),
        ("./deploy/", "deploy"),
    ],
)
def test_a_source_without_a_name_is_answered_with_both(source: str, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        _of_built_in_app(source, NOT_GIVEN)
    assert caught.value.next == f"ucp app add {name} {shlex.quote(source)}"
