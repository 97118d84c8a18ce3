"""Editing ucp.yaml by command: one item, and not a byte more."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.topology import default
from k8s_ucp.topology.edit import with_item, with_words, without_item
from k8s_ucp.topology.text import topology_text

FILE = Path("ucp.yaml")
MIRROR = {
    "name": "login",
    "source": {"namespace": "ucp-clusters", "name": "login"},
    "targets": {"namespace": "web"},
}


def test_an_item_comes_and_goes_without_a_trace() -> None:
    text = topology_text(default())
    added, topology = with_item(text, "mirrors", MIRROR, FILE)
    assert topology.spec.mirrors[0].source.name == "login"
    assert set(text.splitlines()) <= set(added.splitlines())
    removed, topology = without_item(added, "mirrors", "login", FILE)
    assert removed == text
    assert not topology.spec.mirrors


def test_into_an_empty_list() -> None:
    text = topology_text(default()) + "  mirrors: []\n"
    added, topology = with_item(text, "mirrors", MIRROR, FILE)
    assert [each.name for each in topology.spec.mirrors] == ["login"]
    assert "mirrors:\n    - name: login" in added


def test_what_cannot_be_done_is_said() -> None:
    text, _ = with_item(topology_text(default()), "mirrors", MIRROR, FILE)
    with pytest.raises(UsageError, match="there already"):
        with_item(text, "mirrors", MIRROR, FILE)
    with pytest.raises(UsageError, match="there are: login"):
        without_item(text, "mirrors", "logout", FILE)
    with pytest.raises(UsageError, match="is no environment"):
        wrong = {**MIRROR, "name": "b", "targets": {"namespace": "web", "environments": ["moon"]}}
        with_item(text, "mirrors", wrong, FILE)


CORE = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  core: {provider: existing, context: "a/b"}
  git: {provider: url, core: https://a/b, apps: https://a/c}   # ours
"""


def test_words_go_into_a_list_that_is_there_or_not() -> None:
    key = ("core", "adopt")
    text, topology = with_words(CORE, key, ["argocd"], FILE)
    assert topology.spec.core.adopt == ("argocd",)
    assert text == CORE.replace('"a/b"}', '"a/b", adopt: [argocd]}')
    text, topology = with_words(text, key, ["crossplane"], FILE)
    assert topology.spec.core.adopt == ("argocd", "crossplane")
    assert text == CORE.replace('"a/b"}', '"a/b", adopt: [argocd, crossplane]}')
    with pytest.raises(UsageError, match="'crossplane' is there twice in adopt"):
        with_words(text, key, ["crossplane"], FILE)
    with pytest.raises(UsageError, match="'adopt' is for provider existing"):
        with_words(topology_text(default()), key, ["argocd"], FILE)
