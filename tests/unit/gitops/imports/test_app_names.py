"""Names of found apps, from the names of folders and Applications."""

from __future__ import annotations

from k8s_ucp.gitops.imports.detection import detect
from tests.unit.gitops.imports.repository_files import (
    CHART,
    CONFIG,
    application,
    found,
    kustomized,
    overlay,
    place,
)


def test_an_environment_in_the_middle_of_a_name_is_no_part_of_the_app() -> None:
    files = {"web/kustomization.yaml": overlay("all.yaml"), "web/all.yaml": CONFIG}
    for each, folder in (("uat", "uat"), ("production", "prod")):
        declared = application(f"shop-{each}-web", {"path": "web"}, f"shop-{each}")
        files[f"argo/{folder}/web.yaml"] = declared
    files["argo/e2e-test-web.yaml"] = application("e2e-test-web", {"path": "web"}, "web")
    apps = {each.name: each for each in found(files).findings}
    assert apps.keys() == {"shop-web", "e2e-test-web"}
    assert apps["shop-web"].environments == ("production", "uat")
    assert apps["e2e-test-web"].environments == ()


def test_the_folder_of_one_environment_names_no_app_of_several() -> None:
    files = {"web/kustomization.yaml": overlay("all.yaml"), "web/all.yaml": CONFIG}
    for each in ("qa", "prod"):
        files[f"argo/more/{each}/web.yaml"] = application("web", {"path": "web"})
    files["other/web/all.yaml"] = CONFIG
    names = [each.name for each in found(files).findings]
    assert not [each for each in names if "prod" in each or "qa" in each]


def test_a_generic_application_name_is_replaced_by_the_folder_name() -> None:
    files = kustomized("shop/base", {"qa": "shop/overlays/qa", "prod": "shop/overlays/prod"})
    for each in ("qa", "prod"):
        files[f"{each}.yaml"] = application(f"{each}-app", {"path": f"shop/overlays/{each}"})
    [only] = found(files).findings
    assert (only.name, only.environments) == ("shop", ("prod", "qa"))


def test_apps_with_the_same_name_are_distinguished_by_their_parent_folder() -> None:
    files = {"team-a/web/all.yaml": CONFIG, "team-b/web/all.yaml": CONFIG}
    assert [each.name for each in found(files).findings] == ["team-a-web", "team-b-web"]


def test_app_names_include_as_many_parent_folders_as_needed() -> None:
    paths = ("a/tools/web/all.yaml", "b/tools/web/all.yaml", "c/base/web/base/all.yaml")
    files = dict.fromkeys(paths, CONFIG)
    names = {each.where: each.name for each in found(files).findings}
    assert names == {
        "a/tools/web": "a-tools-web",
        "b/tools/web": "b-tools-web",
        "c/base/web/base": "c-web",
    }


def test_folder_names_that_describe_their_content_are_not_used_as_app_names() -> None:
    files = {
        "src/cart/k8s/all.yaml": CONFIG,
        "src/front/deploy/k8s/all.yaml": CONFIG,
        "src/pay/chart/Chart.yaml": CHART,
        "kubernetes-manifests/all.yaml": CONFIG,
        "helm/Chart.yaml": CHART.replace("any", "teller"),
        "\u6f22\u5b57/all.yaml": CONFIG,
    }
    assert {each.where: each.name for each in found(files).findings} == {
        "src/cart/k8s": "cart",
        "src/front/deploy/k8s": "front",
        "src/pay/chart/Chart.yaml": "pay",
        "kubernetes-manifests": "kubernetes-manifests-shop",
        "helm/Chart.yaml": "teller",
        "\u6f22\u5b57": "shop",
    }


def test_common_folder_names_are_not_used_as_app_names() -> None:
    for folder in ("k8s-specifications", "deploy/helm-chart", "release", "dist"):
        assert [each.name for each in found({f"{folder}/a.yaml": CONFIG}).findings] == ["shop"]


def test_version_in_a_path_is_not_the_name_of_an_app() -> None:
    files = {"charts/loki/0.80.3/Chart.yaml": CHART, "tasks/dotnet/v5.0/config.yaml": CONFIG}
    assert [each.name for each in found(files).findings] == ["dotnet", "loki"]


def test_names_that_clash_get_all_folders_and_then_a_number() -> None:
    files = {
        **kustomized("multi/kustomize/base", {"prod": "multi/kustomize/overlays/prod"}),
        "multi/helm/Chart.yaml": CHART,
        "multi/manifests/all.yaml": CONFIG,
    }
    names = {each.where: each.name for each in found(files).findings}
    assert names == {
        "multi/helm/Chart.yaml": "multi-helm",
        "multi/kustomize": "multi-kustomize",
        "multi/manifests": "multi-manifests",
    }


def test_names_that_are_too_long_leave_out_the_folders_of_all() -> None:
    long = "registry-of-all-clusters/templates"
    files = {
        f"{cloud}-cloud/{long}/cert-issuers/all.yaml": CONFIG for cloud in ("civo", "azure")
    } | {f"{long}/{'x' * 50}{end}/all.yaml": CONFIG for end in "ab"}
    there = found(files)
    assert not there.refusals
    names = {each.where: each.name for each in there.findings}
    assert names[f"civo-cloud/{long}/cert-issuers"] == "civo-cloud-cert-issuers"
    assert names[f"azure-cloud/{long}/cert-issuers"] == "azure-cloud-cert-issuers"
    assert len({*names.values()}) == 4
    # What still is too long is cut off before the app's own name.
    deep = {f"{cloud}/{'y' * 40}{cloud}/web/all.yaml": CONFIG for cloud in ("one", "two")}
    [first, second] = found(deep).findings
    assert (first.name[:8], second.name[:8]) == ("one-yyyy", "two-yyyy")
    assert first.name.endswith("-web") and second.name.endswith("-web")
    files = {f"{each}/all.yaml": CONFIG for each in ("manifests", "release")}
    titled = detect(place(files), title=f"a-repository-with-a-name-of-{'m' * 12}").findings
    assert [each.name[:11] for each in titled] == ["manifests-a", "release-a-r"]
    assert all(len(each) <= 40 for each in names.values())


def test_a_number_in_a_name_is_told() -> None:
    [first, second] = found({"web/all.yaml": CONFIG, "Web!/all.yaml": CONFIG}).findings
    assert (first.name, first.notes) == ("web", ())
    assert (second.name, second.notes) == ("web-2", ("it is called web-2, since web is Web!",))
