"""Apps that the folders of a repository are: bases with overlays, charts, manifests."""

from __future__ import annotations

from k8s_ucp.gitops.manifests.yaml_text import dump_all
from tests.unit.gitops.imports.repository_files import (
    CHART,
    CONFIG,
    application,
    found,
    kustomized,
    overlay,
    refusal,
)


def test_bases_with_overlays_are_found_in_all_common_layouts() -> None:
    layouts = {
        "apps/web/base": ("apps/web/overlays/qa", "apps/web/overlays/prod"),
        "web/base": ("web/overlays/qa", "web/overlays/prod"),
        "base/web": ("overlays/qa/web", "overlays/prod/web"),
        "common/base/web": ("common/environments/qa/web", "common/environments/prod/web"),
        "web/base/": ("web/qa", "web/prod"),
        "apps/base/web": ("apps/qa/web", "apps/prod/web"),
    }
    for base, (qa, prod) in layouts.items():
        base = base.rstrip("/")
        [only] = found(kustomized(base, {"qa": qa, "prod": prod})).findings
        assert (only.name, only.form, only.path) == ("web", "kustomize", base)
        assert only.overlays == {"qa": qa, "prod": prod}
        assert only.environments == ("prod", "qa")


def test_a_repository_can_be_a_single_app() -> None:
    files = kustomized("base", {"us": "envs/us", "eu": "envs/eu"})
    [only] = found(files).findings
    assert (only.name, only.where) == ("shop", ".")
    assert only.overlays == {"us": "envs/us", "eu": "envs/eu"}


def test_kustomizations_that_only_list_apps_are_not_apps() -> None:
    files = {
        **kustomized("base/web", {"prod": "overlays/prod/web"}),
        **kustomized("base/api", {"prod": "overlays/prod/api"}),
        "overlays/prod/kustomization.yaml": overlay("web", "api"),
        "kustomization.yaml": overlay("overlays/prod"),
    }
    there = found(files)
    assert [each.name for each in there.findings] == ["api", "web"]
    assert not there.refusals


def test_kustomizations_included_by_others_are_not_apps() -> None:
    files = {
        **kustomized("web/base", {"prod": "web/overlays/prod"}),
        "web/overlays/prod/kustomization.yaml": overlay("../../base", "../../../parts/ingress"),
        "parts/ingress/kustomization.yaml": overlay("all.yaml"),
        "parts/ingress/all.yaml": CONFIG,
        "parts/small/kustomization.yaml": "kind: Component\n",
    }
    assert [each.name for each in found(files).findings] == ["web"]


def test_an_operator_is_added_without_the_bundle_that_is_made_from_it() -> None:
    files = {
        "config/manager/manager.yaml": CONFIG,
        "config/manager/kustomization.yaml": overlay("manager.yaml"),
        "config/default/kustomization.yaml": f"namePrefix: shop-\n{overlay('../manager')}",
        "config/manifests/kustomization.yaml": overlay(
            "bases/shop.clusterserviceversion.yaml", "../default"
        ),
        "config/manifests/bases/shop.clusterserviceversion.yaml": CONFIG,
    }
    there = found(files)
    assert [(each.name, each.path) for each in there.findings] == [("config", "config/default")]
    assert refusal(there, "config").where == "config/manifests"


def test_charts_are_found_with_the_values_files_of_environments() -> None:
    files = {
        "charts/web/Chart.yaml": CHART,
        "charts/web/values.yaml": "",
        "charts/web/values-staging.yaml": "",
        "charts/web/values-production.yaml": "",
        "charts/web/values-small.yaml": "",
        "charts/web/values.schema.yaml": "type: object\n",
        "charts/web/charts/db/Chart.yaml": CHART,
        "charts/api/Chart.yaml": CHART,
        "charts/api/values/prod.yaml": "",
        "charts/parts/Chart.yaml": CHART + "type: library\n",
    }
    there = found(files)
    api, web = there.findings
    assert (api.name, api.form, api.values) == ("api", "helm", {"prod": "values/prod.yaml"})
    assert web.values == {"staging": "values-staging.yaml", "production": "values-production.yaml"}
    assert len(web.notes) == 1
    assert "values-small.yaml is skipped" in web.notes[0]
    assert "library chart" in refusal(there, "parts").reason
    assert refusal(there, "parts").advice == "add the charts that depend on it"
    named = found(files, environments=["small"])
    assert "small" in named.findings[1].values


def test_a_chart_that_is_a_kustomization_is_refused_with_both_commands() -> None:
    """Argo CD builds the kustomization of such a folder, without the templates of the chart."""
    files = {"web/Chart.yaml": CHART, "web/kustomization.yaml": "resources: [all.yaml]\n"}
    there = found({**files, "api/Chart.yaml": CHART})
    assert [each.name for each in there.findings] == ["api"]
    assert "a chart and a kustomization" in refusal(there, "web").reason
    assert refusal(there, "web").advice.endswith(", with --as helm for the chart")


def test_a_chart_for_each_environment_is_refused() -> None:
    files = {f"environments/{each}/web/Chart.yaml": CHART for each in ("qa", "prod")}
    there = found(files)
    assert not there.findings
    assert "a different chart" in refusal(there, "web").reason


def test_folders_of_manifests_and_jsonnet_are_found() -> None:
    files = {
        "web/all.yaml": CONFIG,
        "job/job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: j-}\n",
        "dash/main.jsonnet": "{}",
        "README.md": "kind: apiVersion",
        "ci/pipeline.yaml": "steps: []\n",
    }
    forms = {each.name: each.form for each in found(files).findings}
    assert forms == {"web": "kustomize", "job": "directory", "dash": "jsonnet"}


def test_manifests_in_folders_beside_other_apps_are_apps() -> None:
    there = found(
        {
            "deploy/all.yaml": CONFIG,
            "deploy/chart/Chart.yaml": CHART,
            "deploy/manifests/a.yaml": CONFIG,
            "deploy/manifests/more/b.yaml": CONFIG,
            "deploy/scaling/a.yaml": CONFIG,
        }
    )
    assert {each.path: each.form for each in there.findings} == {
        "deploy/chart": "helm",
        "deploy/manifests": "kustomize",
        "deploy/scaling": "kustomize",
    }
    assert [each.where for each in there.refusals] == ["deploy"]


def test_plain_manifests_get_a_kustomization_per_environment() -> None:
    files = {f"environments/{each}/web/all.yaml": CONFIG for each in ("qa", "prod")}
    [only] = found(files).findings
    assert only.overlays == {each: f"environments/{each}/web" for each in ("qa", "prod")}
    assert b"all.yaml" in only.generated["environments/qa/web/kustomization.yaml"]


def test_many_values_files_of_no_environment_are_one_note() -> None:
    files = {f"web/values/values.{each}.yaml": "" for each in ("mysql", "s3", "tls", "qa", "x-y")}
    [web] = found({"web/Chart.yaml": CHART, **files}).findings
    assert web.values == {"qa": "values/values.qa.yaml"}
    [note] = web.notes
    assert note.startswith("4 values files are skipped")
    assert "mysql, s3, tls and 1 more (--map mysql=ENV" in note


def test_an_overlay_named_like_its_app_is_not_an_environment() -> None:
    files = {
        **kustomized("apps/bgd/base", {"": "apps/bgd/overlays/bgd"}),
        "argo/bgd.yaml": application("bgd-app", {"path": "apps/bgd/overlays/bgd"}, "bgd"),
    }
    [bgd] = found(files).findings
    assert (bgd.name, bgd.environments, bgd.path) == ("bgd-app", (), "apps/bgd/overlays/bgd")


def test_folders_that_only_a_component_includes_are_not_apps() -> None:
    head = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
    files = {
        "web/all.yaml": CONFIG,
        "web/kustomization.yaml": dump_all(
            [{"resources": ["all.yaml"], "components": ["../components/backup"]}]
        ),
        "components/backup/kustomization.yaml": dump_all([{**head, "resources": ["claim"]}]),
        "components/backup/claim/kustomization.yaml": overlay("all.yaml"),
        "components/backup/claim/all.yaml": CONFIG,
    }
    assert [each.name for each in found(files).findings] == ["web"]


def test_values_of_a_chart_in_folders_of_environments_are_named() -> None:
    chart = {"charts/web/Chart.yaml": CHART}
    values = ("environments/prod/web.yaml", "values/qa/web/values.yaml", "values/web-prod.yaml")
    files = {**chart, **dict.fromkeys(values, "a: b\n")}
    others = {"environments/prod/api.yaml": "a: b\n", "qa/web/all.yaml": CONFIG, "web/x.yaml": ""}
    there = found({**files, **others, "more/Chart.yaml": CHART})
    [web] = [each for each in there.findings if each.path == "charts/web"]
    assert web.notes == (
        f"{', '.join(values)} may be its values, which are not imported: "
        "ucp app add web charts/web --values ENV=FILE",
    )
    alone = found({**chart, "environments/prod/values.yaml": "a: b\n"})
    assert "environments/prod/values.yaml may be its values" in alone.findings[0].notes[0]


def test_copies_of_modules_packages_and_libraries_are_not_apps() -> None:
    files = {
        "mixin/jsonnetfile.json": "{}",
        "mixin/vendor/example.org/a/examples/main.jsonnet": "{}",
        "mixin/vendor/example.org/a/crds/all.yaml": CONFIG,
        "web/vendor/modules.txt": "# example.org/a v1.0.0\n",
        "web/vendor/example.org/a/testdata/all.yaml": CONFIG,
        "ui/node_modules/b/deploy/all.yaml": CONFIG,
        "vendor/chart/all.yaml": CONFIG,
    }
    assert [each.where for each in found(files).findings] == ["vendor/chart"]


def test_jsonnet_that_is_the_configuration_of_a_program_is_no_app() -> None:
    there = found(
        {
            "config/worker.jsonnet": "local c = import 'c.libsonnet';\n{port: 80, all: c.all}\n",
            "config/c.libsonnet": "{all: {allow: {}}}\n",
            "objects/main.jsonnet": "local c = import 'all.libsonnet';\n{port: 80} + c\n",
            "objects/all.libsonnet": "{apiVersion: 'v1', kind: 'ConfigMap'}\n",
            "library/main.jsonnet": "local k = import 'k.libsonnet';\n{port: k.port}\n",
        }
    )
    assert [each.name for each in there.findings] == ["library", "objects"]


def test_jsonnet_at_the_top_of_a_repository_with_other_apps_is_refused() -> None:
    there = found({"main.jsonnet": "{}", "chart/Chart.yaml": CHART})
    assert [each.form for each in there.findings] == ["helm"]
    assert refusal(there, "shop").advice.endswith("then: ucp app add shop FOLDER")
    [alone] = found({"main.jsonnet": "{}", "lib/a.libsonnet": "{}"}).findings
    assert (alone.form, alone.where) == ("jsonnet", ".")


def test_folders_with_tests_of_a_program_are_no_environment() -> None:
    files = {"test/more/web/all.yaml": CONFIG, "integration/db/Chart.yaml": CHART, "a.go": ""}
    there = found(files)
    assert [(each.name, each.environments) for each in there.findings] == [("db", ())]
    assert [each.where for each in there.refusals] == ["test/more"]
    # Beside another environment, below `overlays`, or if the user names it, it is one.
    for more in ({"prod/web/all.yaml": CONFIG}, {"db/overlays/test/all.yaml": CONFIG}):
        assert "test" in {
            name for each in found(files | more).findings for name in each.environments
        }
    [_, web] = found({**files, "integration/db/Chart.yaml": CHART}, environments=["test"]).findings
    assert web.environments == ("test",)


def test_a_chart_of_a_single_environment_is_refused_with_that_reason() -> None:
    there = found({"prod/web/Chart.yaml": CHART})
    assert refusal(there, "web").reason == "its chart is in the folder of an environment (prod)"


def test_an_invalid_yaml_file_excludes_only_the_app_of_its_folder() -> None:
    broken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\n"
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Name }}}\n"
    files = {
        "web/dev/a.yaml": CONFIG,
        "web/dev/b.yaml": broken,
        "web/prod/a.yaml": CONFIG,
        "api/a.yaml": CONFIG,
        "api/b.yaml": template,
        "cart/a.yaml": CONFIG,
    }
    there = found(files)
    assert [each.name for each in there.findings] == ["cart"]
    assert "not valid YAML" in refusal(there, "web").reason
    assert "not valid YAML" in refusal(there, "api").reason


def test_manifests_beside_other_apps_are_refused_with_the_command_that_adds_them() -> None:
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Name }}}\n"
    files = {"apps/all.yaml": CONFIG, "apps/web/Chart.yaml": CHART}
    there = found({**files, "apps/web/templates/all.yaml": template})
    assert [each.name for each in there.findings] == ["web"]
    only = refusal(there, "apps")
    assert "contains other apps (web)" in only.reason
    assert only.advice.startswith("ucp app add apps apps/all.yaml")


def test_a_base_can_be_in_any_folder() -> None:
    files = kustomized("base/web", {"prod": "clusters/prod/web", "dev": "clusters/dev/web"})
    [only] = found(files).findings
    assert only.path == "base/web"


def test_the_command_for_manifests_beside_other_apps_names_a_manifest_file() -> None:
    there = found(
        {
            "k8s/Makefile": "all:\n",
            "k8s/README.md": "read me\n",
            "k8s/all.yaml": CONFIG,
            "k8s/web/kustomization.yaml": overlay("web.yaml"),
            "k8s/web/web.yaml": CONFIG.replace("settings", "web"),
        }
    )
    assert refusal(there, "shop").advice == "ucp app add shop k8s/all.yaml, and so on for each file"


def test_a_single_overlay_named_default_is_used_for_every_environment() -> None:
    """Many catalogues have this layout; the parent folder is not a kustomization."""
    [web] = found(kustomized("web/base", {"": "web/overlays/default"})).findings
    assert (web.path, web.overlays, web.environments) == ("web/overlays/default", {}, ())
    declared = {"argo/web.yaml": application("web", {"path": "web/overlays/default"})}
    [web] = found({**kustomized("web/base", {"": "web/overlays/default"}), **declared}).findings
    assert (web.path, web.overlays, web.environments) == ("web/overlays/default", {}, ())
    two = kustomized("web/base", {"": "web/overlays/default", "prod": "web/overlays/prod"})
    [web] = found(two).findings
    assert (web.path, list(web.overlays)) == ("web/overlays/default", ["prod"])


def test_a_test_that_uses_a_base_does_not_hide_the_app() -> None:
    files = {
        "kustomize/kustomization.yaml": overlay("base"),
        "kustomize/base/kustomization.yaml": overlay("all.yaml"),
        "kustomize/base/all.yaml": CONFIG,
        "kustomize/components/small/kustomization.yaml": "kind: Component\n",
        "kustomize/tests/small/kustomization.yaml": overlay("../../base"),
    }
    [only] = found(files).findings
    assert (only.path, only.name) == ("kustomize", "shop")


def test_objects_with_annotations_of_flux_are_apps() -> None:
    pruned = "  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}\n"
    annotated = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n{pruned}"
    files = {
        **kustomized("web/base", {"prod": "web/overlays/prod"}),
        "web/base/all.yaml": annotated,
        "job/all.yaml": annotated,
    }
    there = found(files)
    assert [each.name for each in there.findings] == ["job", "web"]
    assert not there.refusals
    of_flux = "apiVersion: notification.toolkit.fluxcd.io/v1\nkind: Alert\nmetadata: {name: a}\n"
    there = found({**files, "web/base/all.yaml": of_flux, "job/all.yaml": of_flux})
    assert there.findings == ()
