"""Commands that edit ucp.yaml change one item and keep every other byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.topology import default
from k8s_ucp.topology.edit import (
    with_item,
    with_items,
    with_overlays,
    with_state,
    with_words,
    without_environment,
    without_item,
)
from k8s_ucp.topology.text import topology_text

FILE = Path("ucp.yaml")
MIRROR = {
    "name": "login",
    "source": {"namespace": "ucp-clusters", "name": "login"},
    "targets": {"namespace": "web"},
}


def test_adding_and_removing_an_item_restores_the_file() -> None:
    text = topology_text(default())
    added, topology = with_item(text, "mirrors", MIRROR, FILE)
    assert topology.spec.mirrors[0].source.name == "login"
    assert set(text.splitlines()) <= set(added.splitlines())
    removed, topology = without_item(added, "mirrors", "login", FILE)
    assert removed == text
    assert not topology.spec.mirrors


def test_an_item_is_added_to_an_empty_list() -> None:
    text = topology_text(default()) + "  mirrors: []\n"
    added, topology = with_item(text, "mirrors", MIRROR, FILE)
    assert [each.name for each in topology.spec.mirrors] == ["login"]
    assert "mirrors:\n    - name: login" in added


def test_invalid_edits_are_refused() -> None:
    text, _ = with_item(topology_text(default()), "mirrors", MIRROR, FILE)
    with pytest.raises(UsageError, match="already exists"):
        with_item(text, "mirrors", MIRROR, FILE)
    with pytest.raises(UsageError, match="available: login") as refused:
        without_item(text, "mirrors", "logout", FILE)
    assert str(refused.value.next).startswith("ucp diff")
    with pytest.raises(UsageError, match="unknown mirror 'login'; there is no mirror yet"):
        without_item(topology_text(default()), "mirrors", "login", FILE)
    with pytest.raises(UsageError, match="unknown environment"):
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


def test_words_are_added_to_a_new_or_existing_list() -> None:
    key = ("core", "adopt")
    text, topology = with_words(CORE, key, ["argocd"], FILE)
    assert topology.spec.core.adopt == ("argocd",)
    assert text == CORE.replace('"a/b"}', '"a/b", adopt: [argocd]}')
    text, topology = with_words(text, key, ["crossplane"], FILE)
    assert topology.spec.core.adopt == ("argocd", "crossplane")
    assert text == CORE.replace('"a/b"}', '"a/b", adopt: [argocd, crossplane]}')
    with pytest.raises(UsageError, match="'crossplane' in adopt"):
        with_words(text, key, ["crossplane"], FILE)
    with pytest.raises(UsageError, match="'adopt' is valid for provider existing"):
        with_words(topology_text(default()), key, ["argocd"], FILE)


HAND = """\
# ours
apiVersion:   k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: "demo"}
spec:
      domain:   'example.org'     # ours
      environments:
      -   name: stage   # the first
          cluster: { provider: embedded }

      # after lunch
      -   name: prod
          promotesFrom: stage
      # the end of environments
      apps: [ {name: echo, image: a/b, tag: "1"},   # one
              {name: web, image: a/c, tag: "2"} ]

# the end
"""
HANDS = {
    "as it is": HAND,
    "of another system": HAND.replace("\n", "\r\n"),
    "without a last line end": HAND.rstrip("\n"),
    "without words after the list": HAND.partition("      # the end of env")[0],
    "indented by two": HAND.replace("\n      ", "\n  "),
}
EU = {"name": "eu", "cluster": {"provider": "embedded"}, "promotesFrom": "prod"}


@pytest.mark.parametrize("case", HANDS)
def test_a_hand_formatted_file_keeps_every_other_line(case: str) -> None:
    text = HANDS[case]
    added, topology = with_item(text, "environments", EU, FILE)
    assert [each.name for each in topology.spec.environments] == ["stage", "prod", "eu"]
    before, after = text.split("\n"), added.split("\n")
    new = [each for each in after if each not in before]
    assert [each.strip() for each in new] == [
        "- name: eu", "cluster:", "provider: embedded", "promotesFrom: prod",
    ]  # fmt: skip
    assert [each for each in after if each not in new][: len(before)] == before
    end = "\r\n" if "\r" in text else "\n"
    assert added.count("\n") == added.count(end)
    removed, _ = without_item(added, "environments", "eu", FILE)
    assert removed.rstrip() == text.rstrip()


def test_the_hyphen_of_a_new_item_is_aligned_with_the_others() -> None:
    added, _ = with_item(HAND, "environments", EU, FILE)
    assert (
        "          promotesFrom: stage\n      - name: eu\n        cluster:\n"
        "          provider: embedded\n        promotesFrom: prod\n      # the end of env" in added
    )
    added, _ = with_item(HAND, "mirrors", MIRROR, FILE)
    assert '"2"} ]\n      mirrors:\n      - name: login\n        source:\n' in added


def test_items_are_added_to_and_removed_from_lists_in_flow_style() -> None:
    shop = {"name": "shop", "image": "a/d", "tag": "3"}
    added, topology = with_item(HAND, "apps", shop, FILE)
    assert [each.name for each in topology.spec.apps] == ["echo", "web", "shop"]
    assert added == HAND.replace('"2"} ]', "\"2\"}, {name: shop, image: a/d, tag: '3'} ]")
    assert without_item(added, "apps", "shop", FILE)[0] == HAND
    first, _ = without_item(HAND, "apps", "echo", FILE)
    assert first == HAND.replace('{name: echo, image: a/b, tag: "1"},   # one\n              ', "")
    flow = "{apiVersion: k8s-ucp.io/v1alpha1, kind: Topology, metadata: {name: a}, spec: {}}\n"
    added, topology = with_item(flow, "apps", shop, FILE)
    assert topology.spec.apps[0].name == "shop"
    assert added == flow.replace("spec: {}", "spec: {apps: [{name: shop, image: a/d, tag: '3'}]}")
    assert without_item(added, "apps", "shop", FILE)[0] == flow


@pytest.mark.parametrize("text", [HAND, topology_text(default())], ids=["hand", "default"])
def test_several_items_at_once_give_the_same_file_as_one_after_the_other(text: str) -> None:
    """Each edit reads and validates the whole file, so an import of many apps adds them at once."""
    shops = [{"name": f"shop-{each}", "image": "a/d", "tag": "3"} for each in "abc"]
    one_by_one = text
    for each in shops:
        one_by_one, _ = with_item(one_by_one, "apps", each, FILE)

    added, topology = with_items(text, "apps", shops, FILE)

    assert added == one_by_one
    assert [each.name for each in topology.spec.apps][-3:] == ["shop-a", "shop-b", "shop-c"]
    with pytest.raises(UsageError, match="'shop-a' already exists in apps"):
        with_items(text, "apps", [shops[0], shops[0]], FILE)


def test_a_file_that_cannot_be_edited_as_text_is_rewritten() -> None:
    anchored = HAND.replace("apps: [ {", "apps: &apps [ {").replace("# the end\n", "")
    shared = anchored + "      databases: []\n"
    text, topology = with_item(shared, "databases", {"name": "a", "provider": "local"}, FILE)
    assert topology.spec.databases[0].name == "a"
    assert "# after lunch" in text
    without = "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: demo}\n"
    text, topology = with_item(without, "environments", {"name": "a"}, FILE)
    assert topology.spec.environments[0].name == "a"
    assert text.startswith(without)


def test_removing_an_environment_removes_its_settings_in_apps() -> None:
    text = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  environments:
    - name: stage
    - {name: prod, promotesFrom: stage}  # the last
  apps:
    - name: web
      path: web
      overlays:
        stage: envs/staging
        prod: envs/production
      values: {prod: big.yaml}
    - {name: shop, path: shop, overlays: {prod: envs/p, stage: envs/s}}
    - name: api
      path: api
      overlays:  # one alone
        prod: p
"""
    left, topology = without_environment(text, "prod", FILE)
    assert [each.name for each in topology.spec.environments] == ["stage"]
    assert (
        left
        == """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  environments:
    - name: stage
  apps:
    - name: web
      path: web
      overlays:
        stage: envs/staging
    - {name: shop, path: shop, overlays: {stage: envs/s}}
    - name: api
      path: api
"""
    )
    with pytest.raises(UsageError, match="unknown environment 'qa'"):
        without_environment(text, "qa", FILE)


def test_adding_an_overlay_for_an_environment_changes_one_line_per_app() -> None:
    text = (
        STATES
        + """\
  apps:
    - name: web   # ours
      path: web
      overlays:
        stage: envs/staging
    - {name: shop, path: shop, overlays: {stage: envs/s}}
    - name: api
      path: api
"""
    )
    folders = {"web": "envs/live", "shop": "envs/p", "api": "live"}
    edited, topology = with_overlays(text, folders, "prod", FILE)
    assert {each.name: each.overlays["prod"] for each in topology.spec.apps} == folders
    assert "        stage: envs/staging\n        prod: envs/live\n" in edited
    assert "overlays: {stage: envs/s, prod: envs/p}}" in edited
    assert edited.endswith("      path: api\n      overlays: {prod: live}\n")
    with pytest.raises(UsageError, match="unknown app 'x'; available: web, shop, api"):
        with_overlays(text, {"x": "y"}, "prod", FILE)


STATES = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  environments:
    - {name: stage}   # ours
    # the next one
    - name: prod
      promotesFrom: stage
      cluster:
        provider: embedded
"""


@pytest.mark.parametrize("names", [["stage"], ["prod"], ["stage", "prod"]])
def test_stopping_and_restarting_environments_restores_the_file(names: list[str]) -> None:
    stopped, topology = with_state(STATES, names, "stopped", FILE)
    assert [each.name for each in topology.spec.environments if each.state == "stopped"] == names
    assert "# the next one" in stopped
    assert with_state(stopped, names, "stopped", FILE)[0] == stopped
    assert with_state(stopped, names, "running", FILE)[0] == STATES


def test_a_state_on_the_line_of_the_hyphen_is_replaced() -> None:
    text = STATES.replace("- name: prod", "- state: running\n      name: prod")
    topology = with_state(text, ["prod"], "stopped", FILE)[1]
    assert [each.state for each in topology.spec.environments] == ["running", "stopped"]


def test_setting_the_state_of_an_unknown_environment_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown environment 'qa'; available: stage, prod"):
        with_state(STATES, ["qa"], "stopped", FILE)
