"""The decision about an intent at one commit."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.promotion.decision import (
    Decision,
    Intent,
    decide,
    decide_all,
)
from k8s_ucp.gitops.promotion.order import Order
from k8s_ucp.gitops.promotion.targets.versions import parse_digest, parse_tag, parse_version
from tests.unit.gitops.promotion.tips import MemoryTip, kustomization, shop, tip

STAGE = "apps/echo/overlays/stage/kustomization.yaml"
MARKS = "apps/echo/overlays/stage/.promotion.yaml"
ENVIRONMENTS = "environments:\n- name: stage\n- {name: prod, promotesFrom: stage}\n"


def intent(tag: str = "", **more: Any) -> Intent:
    facts = {"app": "echo", "env": "stage", **({"pin": Pin(tag)} if tag else {}), **more}
    return Intent(**facts)


def after(there: MemoryTip, decision: Decision) -> MemoryTip:
    return MemoryTip({**there.content, **decision.writes})


def test_only_the_tag_is_written_without_an_order() -> None:
    decision = decide(shop(stage="1"), intent("2"))

    assert decision.status == "promoted"
    assert decision.writes == {STAGE: kustomization(echo="2").encode()}


def test_an_order_is_recorded_in_the_same_commit() -> None:
    decision = decide(shop(stage="1"), intent("2", order=Order(sequence=5)))

    assert set(decision.writes) == {STAGE, MARKS}
    assert b"sequence: 5" in decision.writes[MARKS]


def test_the_same_tag_is_unchanged() -> None:
    decision = decide(shop(stage="1"), intent("1"))

    assert (decision.status, decision.writes) == ("unchanged", {})


def test_the_same_tag_with_a_higher_sequence_raises_the_mark() -> None:
    """Otherwise a delayed promotion with a sequence in between could land later and win."""
    there = shop(stage="1")
    there = after(there, decide(there, intent("2", order=Order(sequence=5))))
    again = decide(there, intent("2", order=Order(sequence=7)))
    there = after(there, again)

    assert again.status == "unchanged"
    assert set(again.writes) == {MARKS}
    assert decide(there, intent("3", order=Order(sequence=6))).status == "superseded"


def test_a_rerun_of_the_same_sequence_writes_nothing() -> None:
    there = shop(stage="1")
    wanted = intent("2", order=Order(sequence=5))
    there = after(there, decide(there, wanted))

    assert decide(there, wanted) == decide(there, wanted)
    assert decide(there, wanted).writes == {}


def test_expect_is_compare_and_set() -> None:
    assert decide(shop(stage="1"), intent("2", expect="1")).status == "promoted"
    lost = decide(shop(stage="3"), intent("2", expect="1"))
    assert (lost.status, lost.writes) == ("conflict", {})
    assert lost.next == "ucp history echo --env stage"
    assert "has 3" in lost.reason


def test_an_intent_that_is_already_met_is_not_a_conflict() -> None:
    unchanged = decide(shop(stage="2"), intent("2", expect="1"))
    assert (unchanged.status, unchanged.reason) == ("unchanged", "echo in stage already has 2")


def test_promoting_from_an_environment_copies_its_tag() -> None:
    decision = decide(shop(stage="2", prod="1"), intent(env="prod", source="stage"))

    assert [(each.old, each.new) for each in decision.note.changes] == [(Pin("1"), Pin("2"))]


def test_a_tag_is_pinned_to_its_digest() -> None:
    sha = "sha256:" + "0" * 64
    for parse in (parse_tag, parse_version):
        assert parse(f"1.4.0@{sha}") == Pin("1.4.0", sha)
        with pytest.raises(UsageError, match="digest"):
            parse("1.4.0@sha256:0")
        with pytest.raises(UsageError) as refused:
            parse(f"example.org:5000/web:1.4.0@{sha}")
        assert refused.value.next == f"leave out the image's name: 1.4.0@{sha}"
    pinned = intent(pin=Pin("2", sha))
    there = after(shop(stage="1"), decide(shop(stage="1"), pinned))

    assert sha in there.text(STAGE)
    assert decide(there, pinned).status == "unchanged"


def test_promoting_from_an_environment_copies_tag_and_digest_of_shared_images() -> None:
    sha = "sha256:" + "0" * 64
    there = tip(
        {
            STAGE: f"images:\n- {{name: a, newTag: x, digest: '{sha}'}}\n- {{name: b}}\n",
            "apps/echo/overlays/prod/kustomization.yaml": kustomization(a="1", b="1", c="1"),
        }
    )

    decision = decide(there, intent(env="prod", source="stage"))

    assert [(each.image, each.new) for each in decision.note.changes] == [("a", Pin("x", sha))]


class TestGate:
    def there(
        self, stage: str = "2", prod: str = "1", environments: str | None = ENVIRONMENTS
    ) -> Any:
        files = {path: text.decode() for path, text in shop(stage=stage, prod=prod).content.items()}
        return tip({**files, **({"environments.yaml": environments} if environments else {})})

    def test_prod_accepts_only_what_stage_has(self) -> None:
        assert decide(self.there(), intent("2", env="prod")).status == "promoted"
        shut = decide(self.there(), intent("3", env="prod"))
        assert (shut.status, shut.writes) == ("gated", {})
        assert "stage" in shut.reason
        assert shut.next == "ucp promote echo --env stage --tag 3"

    @pytest.mark.parametrize(
        ("asked", "flags"),
        [
            ({"pin": Pin(digest="sha256:" + "0" * 64)}, ["--digest", "sha256:" + "0" * 64]),
            ({"images": {"echo": Pin("3")}}, ["--image", "echo=3"]),
            ({"source": "eu"}, ["--from", "eu"]),
            ({"pin": Pin("3.0.0"), "order": Order(semver=True)}, ["--tag", "3.0.0", "--semver"]),
            ({"pin": Pin("3"), "order": Order(7)}, ["--tag", "3", "--sequence", "7"]),
            ({"pin": Pin("3"), "order": Order(7, "CI")}, ["--tag", "3"]),
        ],
    )
    def test_the_promotion_that_opens_a_gate_can_be_pasted(
        self, asked: dict[str, Any], flags: list[str]
    ) -> None:
        files = {**self.there().content, **shop(eu="3").content}
        shut = decide(MemoryTip(files), intent(env="prod", **asked))
        assert shut.status == "gated"
        assert shlex.split(shut.next) == ["ucp", "promote", "echo", "--env", "stage", *flags]

    def test_stage_has_no_gate(self) -> None:
        assert decide(self.there(), intent("9")).status == "promoted"

    def test_without_environments_yaml_there_is_no_default_gate(self) -> None:
        there = self.there(environments=None)
        assert decide(there, intent("9", env="prod")).status == "promoted"

    def test_an_app_without_the_earlier_environment_is_not_gated(self) -> None:
        there = self.there()
        only = {path: text for path, text in there.content.items() if path != STAGE}
        assert decide(MemoryTip(only), intent("9", env="prod")).status == "promoted"
        asked = intent("9", env="prod", require_env="stage")
        with pytest.raises(UcpError, match="no overlay for the environment stage"):
            decide(MemoryTip(only), asked)

    def test_a_gate_can_be_requested(self) -> None:
        there = self.there(environments=None)
        assert decide(there, intent("9", env="prod", require_env="stage")).status == "gated"

    def test_an_unchanged_tag_is_not_gated(self) -> None:
        assert decide(self.there(), intent("1", env="prod")).status == "unchanged"

    def test_the_gate_requires_the_same_pin_and_not_only_the_same_tag(self) -> None:
        sha = "sha256:" + "0" * 64
        there = MemoryTip(
            {
                **self.there().content,
                STAGE: f"images:\n- {{name: echo, digest: '{sha}'}}\n".encode(),
            }
        )
        assert decide(there, intent("2", env="prod")).status == "gated"
        assert decide(there, intent(env="prod", pin=Pin(digest=sha))).status == "promoted"

    def test_an_environment_cannot_gate_itself(self) -> None:
        with pytest.raises(UsageError):
            decide(self.there(), intent("9", env="prod", require_env="prod"))

    def test_a_batch_does_not_open_its_own_gate(self) -> None:
        """The gate checks what stage has in git, not what the same commit would write to it."""
        decisions = decide_all(self.there(), [intent("3"), intent("3", env="prod")])
        assert [each.status for each in decisions] == ["gated", "gated"]
        assert not any(each.writes for each in decisions)

    def test_images_required_to_be_healthy_are_named_as_in_pods(self) -> None:
        there = self.there()
        renamed = there.content[STAGE].replace(b"newTag", b"newName: ghcr.io/echo\n  newTag")
        there = MemoryTip({**there.content, STAGE: renamed})
        required = decide(there, intent("2", env="prod")).required
        assert required == (("stage", {"ghcr.io/echo": Pin("2")}),)


class TestSeveralImages:
    there = tip({STAGE: kustomization(web="1", worker="1")})

    def test_a_bare_tag_is_ambiguous(self) -> None:
        with pytest.raises(UsageError, match="2 images") as found:
            decide(self.there, intent("2"))
        assert found.value.next is not None
        assert "web, worker" in found.value.message
        assert found.value.next == "ucp promote echo --env stage --image web=2"

    def test_a_bare_tag_selects_the_image_named_like_the_app(self) -> None:
        for name in ("echo", "registry.example.org:5000/team/echo"):
            there = tip(
                {STAGE: f"images:\n- {{name: db, newTag: a}}\n- {{name: '{name}', newTag: b}}\n"}
            )
            [written] = decide(there, intent("2")).writes.values()
            assert b"newTag: a" in written
            assert b"newTag: 2" in written or b"newTag: '2'" in written or b'newTag: "2"' in written
        both = tip({STAGE: "images:\n- {name: a/echo, newTag: a}\n- {name: b/echo, newTag: b}\n"})
        with pytest.raises(UsageError, match="2 images"):
            decide(both, intent("2"))

    def test_several_images_are_promoted_by_name(self) -> None:
        both = intent(images={"web": Pin("2"), "worker": Pin("3")})
        decision = decide(self.there, both)
        assert decision.writes == {STAGE: kustomization(web="2", worker="3").encode()}

    def test_each_image_has_its_own_mark(self) -> None:
        web = intent(images={"web": Pin("2")}, order=Order(sequence=9))
        there = after(self.there, decide(self.there, web))
        worker = intent(images={"worker": Pin("2")}, order=Order(sequence=4))
        assert decide(there, worker).status == "promoted"

    def test_a_newer_image_does_not_block_the_others(self) -> None:
        web = intent(images={"web": Pin("2")}, order=Order(sequence=9))
        there = after(self.there, decide(self.there, web))
        both = intent(images={"web": Pin("x"), "worker": Pin("x")}, order=Order(sequence=4))
        decision = decide(there, both)
        assert decision.status == "promoted"
        assert decision.writes[STAGE] == kustomization(web="2", worker="x").encode()

    def test_an_image_is_also_selected_by_its_new_name(self) -> None:
        there = tip({STAGE: "images:\n- {name: web, newName: ghcr.io/web, newTag: a}\n"})
        assert decide(there, intent(images={"ghcr.io/web": Pin("2")})).status == "promoted"

    @pytest.mark.parametrize(
        ("there", "typed"),
        [
            ("docker.io/redis", "redis"),
            ("redis", "docker.io/library/redis"),
            ("docker.io/library/redis", "docker.io/redis"),
            ("index.docker.io/me/web", "me/web"),
        ],
    )
    def test_docker_hub_images_are_selected_by_any_spelling(self, there: str, typed: str) -> None:
        decision = decide(
            tip({STAGE: f"images:\n- {{name: {there}, newTag: a}}\n"}),
            intent(images={typed: Pin("b")}),
        )
        assert decision.writes == {STAGE: f"images:\n- {{name: {there}, newTag: b}}\n".encode()}

    def test_an_image_of_another_registry_is_a_different_image(self) -> None:
        there = tip({STAGE: "images:\n- {name: ghcr.io/library/redis, newTag: a}\n"})
        with pytest.raises(UcpError, match="no image redis"):
            decide(there, intent(images={"redis": Pin("2")}))

    def test_an_image_without_a_version_gets_its_first_one(self) -> None:
        there = tip({STAGE: "images:\n- name: web\n- name: db\n  newTag: a\n"})
        decision = decide(there, intent(images={"web": Pin("v2")}))
        assert decision.status == "promoted"
        text = "images:\n- name: web\n  newTag: v2\n- name: db\n  newTag: a\n"
        assert decision.writes == {STAGE: text.encode()}

    def test_an_unknown_image_of_a_chart_is_not_mistaken_for_the_chart(self) -> None:
        folder = "apps/echo/overlays/stage"
        there = tip({f"{folder}/Chart.yaml": "name: echo\nversion: 1.0.0\n"})
        with pytest.raises(UcpError, match="no image team/echo") as found:
            decide(there, intent(images={"team/echo": Pin("2")}))
        assert found.value.next == (
            "name it in apps/echo/.promotion.yaml: targets: [{image: team/echo, path: image.tag}]"
        )

    def test_an_unknown_image_suggests_the_nearest_one(self) -> None:
        with pytest.raises(UcpError, match="no image wbe") as found:
            decide(self.there, intent(images={"wbe": Pin("2")}))
        assert (found.value.next, found.value.exit_code) == ("did you mean web?", 2)

    def test_an_unknown_image_suggests_one_with_the_word_in_its_last_component(self) -> None:
        names = ("postgres", "team/app_vote", "team/frontend")
        there = tip({STAGE: "images:\n" + "".join(f"- name: {each}\n" for each in names)})
        for typed, meant in (("vote", "team/app_vote"), ("frontend", "team/frontend")):
            with pytest.raises(UcpError) as found:
                decide(there, intent(images={typed: Pin("2")}))
            assert found.value.next == f"did you mean {meant}?"

    def test_the_example_for_a_bare_tag_is_an_image_of_the_most_common_repository(self) -> None:
        names = ("busybox", "kbudde/exporter", "team/carts", "team/users", "redis")
        there = tip({STAGE: "images:\n" + "".join(f"- name: {each}\n" for each in names)})
        with pytest.raises(UsageError, match="has 5 images") as found:
            decide(there, intent("2"))
        assert found.value.next == "ucp promote echo --env stage --image team/carts=2"


class TestBatch:
    there = tip(
        {
            "apps/a/overlays/stage/kustomization.yaml": kustomization(a="1"),
            "apps/b/overlays/stage/kustomization.yaml": kustomization(x="1", y="1"),
        }
    )

    def test_all_items_are_promoted_together(self) -> None:
        decisions = decide_all(
            self.there,
            [
                intent("2", app="a"),
                intent(app="b", images={"x": Pin("2")}, order=Order(sequence=1)),
                intent(app="b", images={"y": Pin("3")}, order=Order(sequence=1)),
            ],
        )
        written = {path: text for each in decisions for path, text in each.writes.items()}
        assert [each.status for each in decisions] == ["promoted"] * 3
        assert (
            written["apps/b/overlays/stage/kustomization.yaml"]
            == kustomization(x="2", y="3").encode()
        )
        assert written["apps/b/overlays/stage/.promotion.yaml"].count(b"sequence: 1") == 2

    def test_one_refused_item_stops_the_batch(self) -> None:
        decisions = decide_all(
            self.there, [intent("2", app="a"), intent(app="b", images={"x": Pin("2")}, expect="9")]
        )
        assert [each.status for each in decisions] == ["conflict", "conflict"]
        assert not any(each.writes for each in decisions)
        assert "b in stage stops the batch" in decisions[0].reason


class TestBadInput:
    @pytest.mark.parametrize(
        ("app", "env", "message", "advice"),
        [
            ("ehco", "stage", "ehco does not exist in .*; available: echo", "did you mean echo?"),
            ("echo", "stagee", "no overlay for the environment stagee", "did you mean stage?"),
            ("zzz", "stage", "zzz does not exist in .*; available: echo", "ucp app list"),
        ],
    )
    def test_unknown_names_suggest_the_nearest_one(
        self, app: str, env: str, message: str, advice: str
    ) -> None:
        with pytest.raises(UcpError, match=message) as found:
            decide(shop(stage="1"), intent("2", app=app, env=env))
        assert (found.value.next, found.value.exit_code) == (advice, 2)

    @pytest.mark.parametrize(
        "name",
        ["..", ".", "a/b", "../x", "/etc", "", "-x", "a\nb", "a b", "x" * 80, "é", "a\x00", ".git"],
    )
    def test_names_that_are_paths_are_refused(self, name: str) -> None:
        places = [{"app": name}, {"env": name}]
        if name:
            places.append({"source": name})
        for facts in places:
            with pytest.raises(UsageError):
                decide(shop(stage="1"), intent(**{"pin": Pin("2"), **facts}))

    @pytest.mark.parametrize(
        "tag",
        ["", ".x", "-x", "a b", "a\n", "a:b", "a/b", "x" * 129, "$(id)", "`id`", "'x", '"', "a#b",
         "a\nnewTag: b", "../x", "é", "a;b", "{a", "*x", "&x", "a@b"],
    )  # fmt: skip
    def test_invalid_tags_are_refused(self, tag: str) -> None:
        for parse in (parse_tag, parse_version):
            with pytest.raises(UsageError):
                parse(tag)

    @pytest.mark.parametrize(
        "digest",
        ["", "sha256:", "sha256:" + "0" * 63, "sha256:" + "G" * 64, "md5:" + "0" * 32, "x"],
    )
    def test_invalid_digests_are_refused(self, digest: str) -> None:
        with pytest.raises(UsageError):
            parse_digest(digest)

    def test_two_kustomizations_are_refused(self) -> None:
        there = tip({STAGE: kustomization(echo="1"), STAGE.replace(".yaml", ".yml"): "images: []"})
        with pytest.raises(NotEditable, match="only one"):
            decide(there, intent("2"))

    def test_a_folder_without_images_is_refused(self) -> None:
        there = tip({"apps/echo/overlays/stage/deployment.yaml": "kind: Deployment"})
        with pytest.raises(NotEditable, match="no image whose version can be promoted"):
            decide(there, intent("2"))

    def test_arguments_of_jsonnet_are_suggested_as_targets(self) -> None:
        folder = "apps/echo/overlays/stage"
        settings = "directory: {recurse: true, jsonnet: {tlas: [{name: tag, value: '1'}]}}"
        for text, asked in ((settings, False), ("directory: {recurse: true}", True), ("", True)):
            there = tip(
                {
                    f"{folder}/main.jsonnet": "function(tag) tag",
                    f"{folder}/.argocd-source.yaml": text,
                }
            )
            with pytest.raises(NotEditable) as failed:
                decide(there, intent("2"))
            advice = str(failed.value.next)
            assert "path: directory.jsonnet.tlas.0.value}]" in advice
            assert ("jsonnet: {tlas: [{name: tag, value: VERSION}]}" in advice) is asked

    def test_text_that_is_not_utf8_is_refused(self) -> None:
        with pytest.raises(NotEditable, match="UTF-8"):
            decide(MemoryTip({STAGE: b"images:\n- name: \xff\n"}), intent("2"))

    def test_promoting_from_the_same_environment_or_without_a_shared_image_is_refused(self) -> None:
        with pytest.raises(UsageError, match="also the target environment"):
            decide(shop(stage="1"), intent(source="stage"))
        there = tip(
            {STAGE: kustomization(a="1"), STAGE.replace("stage", "prod"): kustomization(b="1")}
        )
        with pytest.raises(NotEditable, match="no image"):
            decide(there, intent(source="prod"))
