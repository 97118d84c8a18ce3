"""Files of tools that are not read, and the advice about them."""

from __future__ import annotations

from tests.unit.gitops.imports.repository_files import CONFIG, found, refusal


def test_tanka_environments_are_refused_with_the_reason() -> None:
    spec = '{"apiVersion": "tanka.dev/v1alpha1", "kind": "Environment"}'
    files = {"main.jsonnet": "{}", "spec.json": spec}
    there = found(
        {f"environments/{env}/{name}": text for env in ("a", "b") for name, text in files.items()}
    )
    assert not there.findings
    assert [each.reason for each in there.refusals] == ["Tanka renders its environments"]


def test_files_of_unsupported_tools_are_reported() -> None:
    files = {
        "web/fleet.yaml": "helm: {chart: web, repo: 'https://charts.example.org'}\n",
        "shop/fleet.yaml": "defaultNamespace: shop\n",
        "shop/web.yaml": CONFIG,
        "db/helmfile.yaml": "releases: []\n",
        "compose.yaml": "services: {}\n",
    }
    there = found(files)
    [shop] = there.findings
    assert "shop/fleet.yaml of Rancher Fleet is not supported" in shop.notes[0]
    assert [each.where for each in there.refusals] == ["db/helmfile.yaml", "web/fleet.yaml"]
    advice = "ucp app add web --chart web --repo https://charts.example.org"
    assert refusal(there, "web").advice == advice
    # Beside other findings a compose file isn't reported, since it is for developers.
    several = {f"compose{each}.yaml": "services: {}\n" for each in ("", ".full", ".tests")}
    assert refusal(found(several), "shop").where == "compose.full.yaml"

    modules = {f"mod/{each}/cue.mod/module.cue": "" for each in ("a", "b")}
    there = found({**modules, "mod/b/timoni.cue": ""})
    assert [(each.name, each.where) for each in there.refusals] == [
        ("a", "mod/a/cue.mod/module.cue"),
        ("b", "mod/b/timoni.cue"),
    ]


def test_commands_for_other_tools_have_names_and_versions_that_can_be_used() -> None:
    text = (
        "repositories: [{name: a, url: 'https://charts.example.org'}]\n"
        "releases: [{name: web, chart: a/web, version: '{{ .Values.version }}'}]\n"
    )
    there = found({"ingress-nginx/helmfile.yaml": "releases: []\n", "web/helmfile.yaml": text})
    assert "ucp app add ingress-nginx-app FILE" in refusal(there, "ingress-nginx").advice
    command = "ucp app add web --chart web --repo https://charts.example.org (each"
    assert refusal(there, "web").advice.startswith(command)


def test_an_object_in_a_file_named_fleet_is_not_rancher_s() -> None:
    there = found({"web/fleet.yaml": CONFIG})
    assert [(each.name, each.notes) for each in there.findings] == [("web", ())]
    assert not there.refusals


def test_many_compose_files_have_the_same_words_so_that_one_line_can_list_them() -> None:
    there = found({f"stacks/{each}/compose.yaml": "services: {}\n" for each in "abcd"})
    assert [each.name for each in there.refusals] == ["a", "b", "c", "d"]
    [(reason, advice)] = {(each.reason, each.advice) for each in there.refusals}
    assert reason == "files of Docker Compose are not read"
    assert "ucp app add NAME IMAGE:TAG" in advice


def test_a_kargo_pipeline_is_not_an_app() -> None:
    stage = "apiVersion: kargo.akuity.io/v1alpha1\nkind: Stage\nmetadata: {name: test}\n"
    check = "apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: test}\n"
    files = {"kargo/stages.yaml": stage, "kargo/check.yaml": check, "app/config.yaml": CONFIG}
    there = found(files)
    assert [each.name for each in there.findings] == ["app"]
    assert "promotesFrom" in refusal(there, "kargo").advice


def test_a_template_of_ytt_is_not_an_app_with_empty_fields() -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
    files = {
        "step-1/all.yml": f"{service}spec:\n  type: #@ data.values.type\n",
        "step-2/all.yml": f"#@ load(x)\n#@ def a():\nb: 1\n#@ end\n---\n{service}",
        "step-3/build.yml": "apiVersion: kbld.k14s.io/v1alpha1\nkind: Sources\nsources: []\n",
        "step-3/values.yml": "#@data/values\n---\nport: 80\n",
        "app/all.yaml": f"{service}# what #@ stands for\n",
    }
    there = found(files)
    assert [each.name for each in there.findings] == ["app"]
    assert [each.where for each in there.refusals] == ["step-1", "step-2", "step-3"]
    for each in there.refusals:
        assert "is a template of ytt" in each.reason
        assert each.advice.startswith("ytt -f FOLDER > FILE.yaml; then: ucp app add NAME ")
