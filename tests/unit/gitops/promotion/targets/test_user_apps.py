"""Promotion targets of apps with their own charts, manifests or kustomizations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.manifests.image_edit import Pin, reads_as_text
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, read_documents
from k8s_ucp.gitops.promotion.decision import Decision, Intent, decide
from k8s_ucp.gitops.promotion.message import message
from k8s_ucp.gitops.promotion.order import Order
from k8s_ucp.gitops.promotion.overlay import read_overlay
from k8s_ucp.gitops.promotion.rollback import PinsAtCommit, Rollback, decide_rollback, previous
from k8s_ucp.gitops.promotion.targets.versions import parse_version
from tests.unit.gitops.promotion.tips import MemoryTip, tip

SHA = "sha256:" + "ab" * 32
CHART = "name: web\nversion: 1.0.0\n"
DEFAULTS = "image:\n  repository: example.org/web\n  tag: ''\n  digest: ''\nreplicas: 1\n"
SETTINGS = "helm:\n  releaseName: web\n  valueFiles:\n    - values-{0}.yaml\n"
OWN = "# stage\nreplicas: 2  # enough\nimage:\n  tag: 1.0.0  # by CI\n"


def chart(own: str = OWN, defaults: str = DEFAULTS, **more: str) -> MemoryTip:
    """web as a chart on stage and prod, with these values of stage."""
    files = {}
    for env, values in (("stage", own), ("prod", OWN)):
        folder = f"apps/web/overlays/{env}"
        files |= {
            f"{folder}/Chart.yaml": CHART,
            f"{folder}/values.yaml": defaults,
            f"{folder}/templates/web.yaml": "image: {{ .Values.image.tag }}\n",
            f"{folder}/.argocd-source.yaml": SETTINGS.format(env),
            f"{folder}/values-{env}.yaml": values,
        }
    return tip({**files, **{path.replace("__", "/"): text for path, text in more.items()}})


def plain(files: Mapping[str, str], config: str = "") -> MemoryTip:
    """web as plain manifests on stage."""
    more = {"apps/web/.promotion.yaml": config} if config else {}
    return tip({f"apps/web/overlays/stage/{name}": text for name, text in files.items()} | more)


def named(there: MemoryTip, config: str) -> MemoryTip:
    return MemoryTip({**there.content, "apps/web/.promotion.yaml": config.encode()})


def promote(there: MemoryTip, version: str = "2.0.0", **more: Any) -> Decision:
    wanted = {} if more.keys() & {"images", "source"} else {"pin": parse_version(version)}
    return decide(there, Intent("web", more.pop("env", "stage"), **wanted, **more))


def images_of(there: MemoryTip) -> list[str]:
    found = read_overlay(there, "web", "stage").targets
    return [each.name for each in found if each.kind == "image"]


def written(decision: Decision) -> dict[str, str]:
    """Written texts by file name in the environment's folder."""
    assert decision.status == "promoted", decision.reason
    return {path.split("/", 4)[4]: text.decode() for path, text in decision.writes.items()}


class TestCharts:
    def test_the_tag_is_written_to_the_values_of_the_environment(self) -> None:
        decision = promote(chart())
        assert written(decision) == {"values-stage.yaml": OWN.replace("1.0.0", "2.0.0")}
        assert decision.locations == ("image.tag in values-stage.yaml",)
        (change,) = decision.note.changes
        assert change == type(change)("example.org/web", Pin("1.0.0"), Pin("2.0.0"))

    def test_the_same_tag_is_unchanged(self) -> None:
        assert promote(chart(), "1.0.0").status == "unchanged"

    def test_a_tag_found_only_in_the_charts_defaults_is_set_for_the_environment(self) -> None:
        there = chart("# Values of web on stage, over those of its chart.\n{}\n")
        assert written(promote(there))["values-stage.yaml"] == (
            "# Values of web on stage, over those of its chart.\nimage:\n  tag: 2.0.0\n"
        )

    def test_an_item_of_the_charts_list_is_set_with_the_whole_list(self) -> None:
        """Helm replaces lists as a whole; the next promotion finds it there."""
        defaults = (
            "# chart\ncontainers:\n# first\n- name: web\n  image:\n"
            "    repository: example.org/web\n    tag: '1'  # by CI\n- name: side\n"
            "  image: side:3\n\nreplicas: 1\n"
        )
        there = chart("# stage\n{}\n", defaults)
        assert images_of(there) == ["example.org/web", "side"]
        first = written(promote(there, images={"example.org/web": Pin("2.0.0")}))
        own = (
            "# stage\ncontainers:\n  - name: web\n    image:\n      repository: example.org/web\n"
            "      tag: '2.0.0'  # by CI\n  - name: side\n    image: side:3\n"
        )
        assert first == {"values-stage.yaml": own}
        second = written(promote(chart(own, defaults), images={"side": Pin("4")}))
        assert second == {"values-stage.yaml": own.replace("side:3", "side:4")}

    def test_a_list_of_the_environment_replaces_the_charts(self) -> None:
        """What the chart has beyond it is not deployed."""
        defaults = "jobs:\n- image: {repository: a, tag: 1, digest: x}\n- image: b:1\n"
        there = chart("jobs:\n- image: {repository: c, tag: 7}\n", defaults)
        assert images_of(there) == ["c"]
        assert written(promote(there)) == {
            "values-stage.yaml": "jobs:\n- image: {repository: c, tag: 2.0.0}\n"
        }

    @pytest.mark.parametrize(
        ("own", "defaults", "new"),
        [
            (
                "replicas: 2\n",
                "a: {jobs: [{image: 'web:1', x: 1}]}\n",
                "replicas: 2\na:\n  jobs: [{image: 'web:2.0.0', x: 1}]\n",
            ),
            (
                "a:\r\n  b: 1\r\n",
                "a:\n    jobs:\n        -   image: web:1\n            run: |\n"
                "              x\n\n              y\n",
                "a:\r\n  b: 1\r\n  jobs:\r\n    -   image: web:2.0.0\r\n        run: |\r\n"
                "          x\r\n\r\n          y\r\n",
            ),
        ],
    )
    def test_a_list_is_copied_as_it_is(self, own: str, defaults: str, new: str) -> None:
        assert written(promote(chart(own, defaults)))["values-stage.yaml"] == new

    @pytest.mark.parametrize(
        ("own", "defaults"),
        [
            ("replicas: 2\n", "jobs:\n- &a {image: 'web:1'}\n"),
            ("a: {b: 1}\n", "a:\n  jobs:\n  - image: web:1\n"),
        ],
    )
    def test_a_list_that_is_not_copied_comes_with_what_to_do(self, own: str, defaults: str) -> None:
        with pytest.raises(NotEditable) as caught:
            promote(chart(own, defaults))
        assert "copy the list" in str(caught.value.next)

    def test_a_digest_overrides_the_tag_until_a_tag_is_promoted(self) -> None:
        first = written(promote(chart(), SHA))["values-stage.yaml"]
        assert first == OWN + f"  digest: {SHA}\n"
        assert promote(chart(first), SHA).status == "unchanged"
        second = written(promote(chart(first), "2.0.0"))["values-stage.yaml"]
        assert second == OWN.replace("1.0.0", "2.0.0") + '  digest: ""\n'

    def test_a_digest_can_be_a_sha_without_its_algorithm(self) -> None:
        defaults = DEFAULTS.replace("digest", "sha")
        first = written(promote(chart(defaults=defaults), SHA))["values-stage.yaml"]
        assert first == OWN + f"  sha: {SHA.removeprefix('sha256:')}\n"
        there = chart(first, defaults)
        assert promote(there, SHA).status == "unchanged"
        second = written(promote(there, "2.0.0"))["values-stage.yaml"]
        assert second == OWN.replace("1.0.0", "2.0.0") + '  sha: ""\n'
        commit = OWN + "  sha: 0123abc\n"
        third = written(promote(chart(commit, defaults), "2.0.0"))["values-stage.yaml"]
        assert third == commit.replace("1.0.0", "2.0.0")

    def test_a_digest_is_refused_if_the_chart_has_no_value_for_it(self) -> None:
        with pytest.raises(NotEditable, match=r"no digest beside image\.tag"):
            promote(chart(defaults="image: {repository: web, tag: x}\n"), SHA)

    def test_a_tag_is_refused_if_the_chart_knows_a_digest_alone(self) -> None:
        defaults = f"image: {{repository: web, release: v1, digest: '{SHA}'}}\n"
        there = chart("{}\n", defaults)
        with pytest.raises(NotEditable, match=r"sets image\.digest and no tag") as error:
            promote(there)
        assert "--tag TAG@sha256:" in error.value.next
        new = SHA.replace("ab", "cd")
        text = written(promote(there, f"2.0.0@{new}"))["values-stage.yaml"]
        assert "digest: " in text
        assert new in text
        assert "tag" not in text

    @pytest.mark.parametrize(
        ("own", "new"),
        [
            ("web: {image: 'a.org:5000/web:1'}\n", "web: {image: 'a.org:5000/web:2.0.0'}\n"),
            (f"image: web@{SHA}\n", "image: web:2.0.0\n"),
            ("webImageTag: 1\n", "webImageTag: 2.0.0\n"),
            ("image: {repo: a/b, version: v1}\n", "image: {repo: a/b, version: 2.0.0}\n"),
            ("web: {image: {name: b, version: 1}}\n", "web: {image: {name: b, version: 2.0.0}}\n"),
            ("web: {repo: a.org/b, tag: v1}\n", "web: {repo: a.org/b, tag: 2.0.0}\n"),
            ("imageName: a/b\nimageTag: v1\n", "imageName: a/b\nimageTag: 2.0.0\n"),
            ("image: a/b\nimageVersion: v1\n", "image: a/b\nimageVersion: 2.0.0\n"),
            ("jobs:\n- image: {name: web, tag: 1}\n", "jobs:\n- image: {name: web, tag: 2.0.0}\n"),
            ("db: {imageName: 'a/db:1'}\n", "db: {imageName: 'a/db:2.0.0'}\n"),
            ("image: {repository: 'a/b:1'}\n", "image: {repository: 'a/b:2.0.0'}\n"),
            ("images: {web: a.org/web:1}\n", "images: {web: a.org/web:2.0.0}\n"),
            ("images: {tags: {web_api: a/b:1}}\n", "images: {tags: {web_api: a/b:2.0.0}}\n"),
        ],
    )
    def test_images_in_other_notations_are_promoted(self, own: str, new: str) -> None:
        assert written(promote(chart(own, "{}\n"))) == {"values-stage.yaml": new}

    @pytest.mark.parametrize(
        ("own", "name"),
        [
            ("image: {repo: a/b, version: v1}\n", "a/b"),
            ("imageName: a/b\nimageTag: v1\n", "a/b"),
            ("web_image_repo: a/b\nweb_image_tag: v1\n", "a/b"),
            ("image: {registry: r.org, name: a/b, version: v1}\n", "r.org/a/b"),
            (
                "global: {imageRegistry: m.org}\n"
                "image: {registry: r.org, repository: a/b, tag: v1}\n",
                "m.org/a/b",
            ),
            ("global: {imageRegistry: m.org}\nimage: {repository: a/b, tag: v1}\n", "a/b"),
        ],
    )
    def test_the_image_name_is_read_beside_its_version(self, own: str, name: str) -> None:
        assert images_of(chart(own, "{}\n")) == [name]

    @pytest.mark.parametrize(
        "own",
        [
            "sync: {repo: 'https://git.example.org/a/b', tag: v1}\n",
            "sync: {repo: git.example.org/a/b.git, tag: v1}\n",
            "engine: {name: postgres, version: 16}\n",
            "image: {version: v1}\n",
            "imageVersion: v1\n",
            "images: {registry: 'localhost:5000', pullPolicy: Always}\n",
            "hosts: {web: 'a.org/web:1'}\n",
        ],
    )
    def test_versions_without_an_image_name_are_not_images(self, own: str) -> None:
        assert images_of(chart(own, "{}\n")) == []

    def test_parameters_set_in_argo_cd_take_precedence(self) -> None:
        settings = (
            SETTINGS.format("stage") + "  parameters:\n    - name: image.tag\n      value: x\n"
        )
        there = chart(apps__web__overlays__stage__=settings)
        path = "apps/web/overlays/stage/.argocd-source.yaml"
        there = MemoryTip({**there.content, path: settings.encode()})
        new = settings.replace("value: x", "value: 2.0.0")
        assert written(promote(there)) == {".argocd-source.yaml": new}

    def test_several_images_must_be_named(self) -> None:
        there = chart(
            "a: {image: {repository: x, tag: 1}}\nb: {image: {name: y, tag: 1}}\n", "{}\n"
        )
        with pytest.raises(UsageError, match="2 images") as error:
            promote(there)
        assert "ucp promote web --env stage --image x=2.0.0; or name" in str(error.value)
        assert "apps/web/.promotion.yaml: targets: [{image: x, path: a.image.tag}]" in str(
            error.value
        )
        new = written(promote(there, images={"y": Pin("2")}))["values-stage.yaml"]
        assert new.endswith("b: {image: {name: y, tag: 2}}\n".replace(": 2}", ': "2"}'))

    def test_an_image_in_two_places_must_be_named(self) -> None:
        own = "a: {image: {repository: x, tag: 1}}\nb: {image: {repository: x, tag: 1}}\n"
        with pytest.raises(UsageError, match="x in 2 places") as error:
            promote(chart(own, "{}\n"), images={"x": Pin("2")})
        assert "targets: [{image: x, path: a.image.tag}]" in error.value.next
        config = "targets:\n  - {image: x, path: [a.image.tag, b.image.tag]}\n"
        there = named(chart(own, "{}\n"), config)
        decision = promote(there)
        assert written(decision)["values-stage.yaml"] == own.replace("tag: 1", "tag: 2.0.0")
        by_path = promote(chart(own, "{}\n"), images={"b.image.tag": Pin("3.x")})
        assert written(by_path)["values-stage.yaml"] == own[: len(own) // 2] + (
            "b: {image: {repository: x, tag: 3.x}}\n"
        )

    def test_a_configured_path_is_written(self) -> None:
        there = named(chart(), r"targets: [{image: web, path: a\.b.version}]")
        new = written(promote(there))["values-stage.yaml"]
        assert new == OWN + '"a.b":\n  version: 2.0.0\n'

    def test_a_key_that_was_set_nowhere_is_pointed_out(self) -> None:
        there = named(chart(), "targets: [{image: web, path: image.tga}]")
        decision = promote(there)
        assert decision.locations == ("image.tga in values-stage.yaml (new: it was set nowhere)",)
        after = MemoryTip({**there.content, **decision.writes})
        assert promote(after, "2.0.1").locations == ("image.tga in values-stage.yaml",)
        (location,) = promote(chart("{}\n")).locations
        assert location == "image.tag in values-stage.yaml"  # empty in the chart

    def test_an_image_under_another_key_is_proposed(self) -> None:
        defaults = "run: {it: a.org/web:1}\nurl: 'http://a.org/x:1'\nports: ['a/b:1']\n"
        there = chart("{}\n", defaults)
        line = "targets: [{image: a.org/web, path: run.it}]"
        for wanted in ({}, {"images": {"a.org/web": Pin("2")}}):
            with pytest.raises((NotEditable, UsageError), match="no image") as error:
                promote(there, **wanted)
            assert error.value.next.endswith(f"apps/web/.promotion.yaml: {line}")
        new = written(promote(named(there, line)))
        assert new == {"values-stage.yaml": "run:\n  it: a.org/web:2.0.0\n"}

    def test_a_digest_in_place_of_a_tag_is_not_the_name_of_an_image(self) -> None:
        own = f"image: {{repository: a/b, tag: '{SHA}'}}\n"
        assert images_of(chart(own, "{}\n")) == ["a/b"]

    def test_a_configured_path_of_an_image_keeps_its_name(self) -> None:
        own = "images: {web: a.org/web:1, cron: a.org/cron:1}\n"
        there = named(chart(own, "{}\n"), "targets: [{image: cron, path: images.cron}]")
        assert written(promote(there)) == {"values-stage.yaml": own.replace("cron:1", "cron:2.0.0")}

    def test_a_tag_is_promoted_from_one_environment_to_the_next(self) -> None:
        there = chart(OWN.replace("1.0.0", "2.0.0"))
        decision = promote(there, env="prod", source="stage")
        assert written(decision) == {"values-prod.yaml": OWN.replace("1.0.0", "2.0.0")}
        mirrored = chart(OWN.replace("1.0.0", "2.0.0") + "  repository: mirror/web\n")
        assert written(promote(mirrored, env="prod", source="stage"))

    def test_the_gate_and_the_required_health_name_the_image(self) -> None:
        environments = "environments: [{name: stage}, {name: prod, promotesFrom: stage}]\n"
        there = MemoryTip({**chart().content, "environments.yaml": environments.encode()})
        assert promote(there, env="prod").status == "gated"
        after = MemoryTip({**there.content, **promote(there).writes})
        decision = promote(after, env="prod")
        assert decision.required == (("stage", {"example.org/web": Pin("2.0.0")}),)

    def test_values_in_a_block_of_text_are_refused(self) -> None:
        settings = "helm:\n  values: |\n    image: {tag: 3}\n"
        path = "apps/web/overlays/stage/.argocd-source.yaml"
        there = MemoryTip({**chart().content, path: settings.encode()})
        with pytest.raises(NotEditable, match="valuesObject"):
            promote(there)


POD = """\
# {name}
kind: {kind}
spec:
  template:
    spec:
      containers:
        - name: {name}
          image: {image}  # by CI
"""


def pod(name: str, image: str, kind: str = "Deployment") -> str:
    return POD.format(name=name, image=image, kind=kind)


class TestManifests:
    def test_every_container_with_the_image_is_changed(self) -> None:
        files = {
            "web.yaml": pod("web", "a/web:1") + "---\nkind: Service\n---\n" + pod("x", "a/web:1"),
            "job.json": '{"kind": "Job", "spec": {"initContainers": [{"image": "a/web:1"}]}}',
            "crd.yaml": "kind: CRD\nspec: {containers: {type: array, image: a/web:1}}\n",
        }
        decision = promote(plain(files))
        assert written(decision) == {
            "web.yaml": files["web.yaml"].replace("web:1", "web:2.0.0"),
            "job.json": files["job.json"].replace("web:1", "web:2.0.0"),
        }
        assert "spec.template.spec.containers.0.image in web.yaml" in decision.locations[0]

    def test_a_file_with_hundreds_of_containers_is_parsed_once_for_all(self) -> None:
        text = "kind: List\nitems:\n" + "- {containers: [{image: a/web:1}]}\n" * 300
        parsed = read_documents.cache_info().misses
        decision = promote(plain({"list.yaml": text}))
        assert written(decision)["list.yaml"] == text.replace("web:1", "web:2.0.0")
        assert read_documents.cache_info().misses - parsed < 10
        assert decision.locations[0].endswith(
            "items.9.containers.0.image in list.yaml and 290 more"
        )

    def test_containers_of_workflows_and_tasks_are_changed(self) -> None:
        text = (
            "kind: CronWorkflow\nspec: {workflowSpec: {templates: [\n"
            "  {name: main, container: {image: a/web:1}},\n"
            "  {name: other, script: {image: a/web:1, source: ls}, sidecars: [{image: a/web:1}]},\n"
            "  {name: all, steps: [[{name: x, template: main}]]}]}}\n"
            "---\nkind: Task\nspec: {stepTemplate: {image: a/web:1}, steps: [{image: a/web:1}]}\n"
        )
        new = written(promote(plain({"flow.yaml": text})))["flow.yaml"]
        assert new == text.replace("web:1", "web:2.0.0")

    def test_a_digest_replaces_the_tag_in_a_manifest(self) -> None:
        there = plain({"web.yaml": pod("web", "a/web:1")})
        assert written(promote(there, SHA))["web.yaml"] == pod("web", f"a/web@{SHA}")

    def test_different_versions_of_one_image_must_be_named(self) -> None:
        files = {"web.yaml": pod("web", "a/web:1") + "---\n" + pod("old", "a/web:0")}
        with pytest.raises(UsageError, match="2 places") as error:
            promote(plain(files), images={"a/web": Pin("2")})
        line = "{image: a/web, file: web.yaml, container: old}"
        assert line in error.value.next
        there = plain(files, f"targets: [{line}]")
        assert written(promote(there))["web.yaml"] == files["web.yaml"].replace(
            "web:0", "web:2.0.0"
        )

    def test_one_of_several_images_is_promoted_by_name(self) -> None:
        files = {"web.yaml": pod("web", "a/web:1") + "---\n" + pod("db", "b/db:1")}
        new = written(promote(plain(files), images={"b/db": Pin("2.x")}))["web.yaml"]
        assert new == files["web.yaml"].replace("db:1", "db:2.x")

    def test_a_value_in_any_file_is_promoted_by_its_path(self) -> None:
        settings = "directory:\n  jsonnet:\n    tlas:\n      - {name: tag, value: one}\n"
        there = plain(
            {"main.jsonnet": "{}", ".argocd-source.yaml": settings},
            "targets:\n- image: web\n  file: .argocd-source.yaml\n"
            "  path: directory.jsonnet.tlas.0.value\n",
        )
        new = settings.replace("one", "2.0.0")
        assert written(promote(there)) == {".argocd-source.yaml": new}

    def test_a_path_is_found_in_the_document_that_has_it(self) -> None:
        text = (
            "kind: HelmRepository\nspec: {url: https://charts.example.org}\n---\n"
            "kind: HelmRelease\nspec: {values: {image: {repository: a/web, tag: 1.0.0}}}\n"
        )
        config = "targets: [{image: web, file: release.yaml, path: spec.values.image.tag}]\n"
        new = written(promote(plain({"release.yaml": text}, config)))
        assert new == {"release.yaml": text.replace("1.0.0", "2.0.0")}
        for both in (text + "---\n" + text, "kind: A\n---\nkind: B\n"):
            with pytest.raises(NotEditable, match=r"tag in [02] of [24] YAML documents"):
                promote(plain({"release.yaml": both}, config))

    def test_containers_without_a_name_are_named_by_their_file(self) -> None:
        text = "kind: Service\nspec: {template: {spec: {containers: [{image: a/web:%s}]}}}\n"
        files = {"a.yaml": text % "1", "b.yaml": text % "2"}
        assert images_of(plain(files)) == ["a/web (in a.yaml)", "a/web (in b.yaml)"]
        with pytest.raises(UsageError) as error:
            promote(plain(files))
        line = "{image: a/web, file: b.yaml}"
        assert line in error.value.next
        new = written(promote(plain(files, f"targets: [{line}]")))
        assert new == {"b.yaml": text % "2.0.0"}

    def test_a_folder_without_images_is_refused(self) -> None:
        with pytest.raises(NotEditable, match="no image") as error:
            promote(plain({"main.jsonnet": "{}"}))
        assert "apps/web/.promotion.yaml: targets:" in error.value.next
        with pytest.raises(NotEditable, match="no image") as error:
            promote(plain({"db.yaml": "kind: Database\nspec: {image: a/db}\n"}))
        assert "targets: [{image: NAME, file: FILE, path: spec.image}]" in error.value.next


@pytest.mark.parametrize(
    ("image", "value", "after"),
    [
        ("example.org/web", "example.org/web:1.0.0", "example.org/web:2.0.0"),
        ("web", "example.org/web:1.0.0", "example.org/web:2.0.0"),
        ("example.org/web", "example.org/web", "example.org/web:2.0.0"),
        ("web", "web:1.0.0", "web:2.0.0"),
        ("web", f"web@{SHA}", "web:2.0.0"),
        ("web", "1.0.0", "2.0.0"),
        ("web", "web", "2.0.0"),
        ("web", "release/1.0", "2.0.0"),
        ("web", SHA, "2.0.0"),
        ("web", f"1.0.0@{SHA}", "2.0.0"),
    ],
)
def test_a_named_value_that_is_an_image_keeps_its_name(image: str, value: str, after: str) -> None:
    """Whatever its key is: a tag alone in its place would be another image."""
    config = f"targets: [{{image: {image}, file: it.yaml, path: spec.runner}}]\n"
    there = plain({"it.yaml": f"kind: Runner\nspec:\n  runner: {value}\n"}, config)
    written = promote(there).writes["apps/web/overlays/stage/it.yaml"]
    assert written in (
        f"kind: Runner\nspec:\n  runner: {after}\n".encode(),
        f'kind: Runner\nspec:\n  runner: "{after}"\n'.encode(),
    )
    values = chart("runner: {}\n", f"runner: {{name: {value!r}}}\nreplicas: 1\n")
    there = named(values, f"targets: [{{image: {image}, path: runner.name}}]\n")
    assert after.encode() in promote(there).writes["apps/web/overlays/stage/values-stage.yaml"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("targets: {}\n", "no list `targets`"),
        ("targets: [{image: web, tag: 1}]\n", "unknown key tag"),
        ("targets: [{path: a}]\n", "either image or chart"),
        ("targets: [{image: web, file: ../x.yaml}]\n", "outside"),
        ("targets: [{image: nothing}]\n", "contains nothing that"),
        ("targets: [{image: a, path: x.tag}, {image: a, path: y.tag}]\n", "several targets"),
    ],
)
def test_an_invalid_config_is_refused(config: str, words: str) -> None:
    with pytest.raises(UcpError, match=words):
        promote(named(chart(), config))


def test_targets_in_a_kustomization_are_selected_by_name_or_path() -> None:
    text = "images:\n- {name: a, newTag: '1'}\n- {name: b, newTag: '1'}\nlabels: {v: one}\n"
    there = plain({"kustomization.yaml": text}, "targets: [{image: b}]")
    new = text.replace("b, newTag: '1'", "b, newTag: '2.0.0'")
    assert written(promote(there)) == {"kustomization.yaml": new}
    there = plain({"kustomization.yaml": text}, "targets: [{image: x, path: labels.v}]")
    assert written(promote(there)) == {"kustomization.yaml": text.replace("one", "2.0.0")}


FORMS = {
    "value": lambda tag: chart(OWN.replace("1.0.0", tag)),
    "reference": lambda tag: chart(f"web:\n  image: a/web:{tag} # x\n", "{}\n"),
    "manifest": lambda tag: plain({"web.yaml": pod("web", f"a/web:{tag}")}),
    "kustomization": lambda tag: plain(
        {"kustomization.yaml": f"images:\n- name: a/web\n  newTag: {tag} # x\n"}
    ),
}
tags = st.from_regex(r"[a-z][a-z0-9._-]{0,8}", fullmatch=True).filter(reads_as_text)


@given(st.sampled_from(sorted(FORMS)), tags, tags, st.integers(0, 9) | st.none())
def test_a_promotion_and_its_rollback_restore_the_same_bytes(
    form: str, old: str, new: str, sequence: int | None
) -> None:
    there = FORMS[form](old)
    before = read_overlay(there, "web", "stage")
    decision = promote(there, new, order=Order(sequence=sequence))
    assert decision.status == ("unchanged" if old == new else "promoted")
    after = MemoryTip({**there.content, **decision.writes})
    if old == new:
        assert set(decision.writes) <= {"apps/web/overlays/stage/.promotion.yaml"}
        return
    overlay = read_overlay(after, "web", "stage")
    pins = previous(
        overlay, [PinsAtCommit("b" * 40, overlay.pins), PinsAtCommit("a" * 40, before.pins)]
    )
    back = decide_rollback(after, Rollback("web", "stage", pins, overlay.pins))
    found = {**after.content, **back.writes}
    found.pop("apps/web/overlays/stage/.promotion.yaml")
    assert found == there.content
    held = MemoryTip({**after.content, **back.writes})
    assert promote(held, new, order=Order(sequence=sequence)).status == "held"


def test_a_rollback_of_the_first_promotion_restores_the_charts_default() -> None:
    """`helm create` generates an empty tag, for which the template uses the appVersion."""
    before = chart(own="replicas: 2\n")
    start = read_overlay(before, "web", "stage").pins
    there = MemoryTip({**before.content, **promote(before).writes})
    overlay = read_overlay(there, "web", "stage")

    pins = previous(overlay, [PinsAtCommit("2", overlay.pins), PinsAtCommit("1", start)])
    decision = decide_rollback(there, Rollback("web", "stage", pins, overlay.pins))

    assert pins == {"example.org/web": Pin()}
    assert written(decision)["values-stage.yaml"] == 'replicas: 2\nimage:\n  tag: ""\n'
    assert message([decision.note]).startswith(
        "roll back web in stage: 2.0.0 -> the default version\n"
    )
    held = MemoryTip({**there.content, **decision.writes})
    assert promote(held).status == "held"
    assert promote(held, "3.0.0").status == "held"


class TestKustomizationsWithoutImages:
    BASE = (
        "spec:\n  containers:\n  - {name: web, image: 'example.org/web:1.10'}\n"
        f"  - {{name: side, image: 'side@{SHA}'}}\n  - {{name: old, image: 'old:1'}}\n"
    )

    def refused(self, overlay: str, **more: str) -> str:
        files = {
            "apps/web/overlays/stage/kustomization.yaml": overlay,
            "base/kustomization.yaml": "resources: [web.yaml]\n"
            "images: [{name: old, newName: new, newTag: '2'}]\n",
            "base/web.yaml": f"apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\n{self.BASE}",
        }
        with pytest.raises(NotEditable, match="has no images") as refused:
            promote(tip({**files, **more}))
        return str(refused.value.next)

    def test_the_lines_to_add_are_printed_with_the_images_of_the_base(self) -> None:
        said = self.refused("resources: [../../../../base]\n")
        first, *lines = said.split("\n    ")
        assert first.startswith("add these lines to apps/web/overlays/stage/kustomization.yaml")
        assert lines == [
            *("images:", "  - name: example.org/web", '    newTag: "1.10"'),
            *("  - name: new", '    newTag: "2"', "  - name: side", f"    digest: {SHA}"),
        ]
        written = "resources: [../../../../base]\n" + "".join(f"{each}\n" for each in lines)
        there = tip({"apps/web/overlays/stage/kustomization.yaml": written})
        assert promote(there, images={"new": Pin("3")}).status == "promoted"

    def test_without_manifests_to_read_the_advice_is_general(self) -> None:
        advice = "add `images:` with the image's name to apps/web/overlays/stage/kustomization.yaml"
        assert self.refused("resources: ['https://example.org/base']\n") == advice
        assert self.refused("resources: [../../../../base]\n", **{"base/web.yaml": "{"}) == advice
