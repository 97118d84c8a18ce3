"""Apps that objects of Flux deploy, and the reasons of refusals."""

from __future__ import annotations

from collections.abc import Mapping

from k8s_ucp.gitops.imports.findings import Discovery, RemoteSource
from k8s_ucp.gitops.manifests.yaml_text import dump_all
from tests.unit.gitops.imports.repository_files import (
    CHART,
    CONFIG,
    URL,
    application,
    document,
    flux,
    found,
    overlay,
    refusal,
)


def test_flux_releases_in_kustomizations_and_appprojects_are_refused() -> None:
    flux = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web}\n"
    project = document("AppProject", "team", {})
    app = application("api", {"chart": "api", "repoURL": "https://c.example.org"})
    there = found(
        {
            "web/kustomization.yaml": overlay("a.yaml"),
            "web/a.yaml": flux,
            "p.yaml": project + "---\n" + app,
        }
    )
    assert [each.name for each in there.findings] == ["api"]
    assert "Flux" in refusal(there, "web").reason
    assert "its own AppProject" in refusal(there, "team").reason


def test_flux_helmreleases_become_apps() -> None:
    charts = {"kind": "HelmRepository", "name": "charts"}
    nginx = {"chart": {"spec": {"chart": "nginx", "version": "2.x", "sourceRef": charts}}}
    here = {"chart": "./charts/shop", "sourceRef": {"kind": "GitRepository", "name": "all"}}
    there = found(
        {
            "charts.yaml": flux("HelmRepository", "charts", {"url": "https://c.example.org/"}),
            "all.yaml": flux("GitRepository", "all", {"url": URL}),
            "api/oci.yaml": flux("OCIRepository", "a", {"url": "oci://c/api", "ref": {"tag": "1"}}),
            "job/oci.yaml": flux("OCIRepository", "a", {"url": "oci://c/job", "ref": {"tag": "2"}}),
            "api/release.yaml": flux(
                "HelmRelease",
                "api",
                {
                    "chartRef": {"kind": "OCIRepository", "name": "a"},
                    "targetNamespace": "shop",
                    "values": {"host": "api.${DOMAIN}"},
                },
            ),
            "api/config.yaml": CONFIG,
            "flux.yaml": dump_all(
                [
                    {
                        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
                        "kind": "Kustomization",
                        "metadata": {"name": "qa"},
                        "spec": {"path": "./qa", "targetNamespace": "shop"},
                    }
                ]
            ),
            "qa/web.yaml": flux("HelmRelease", "web", {**nginx, "values": {"replicas": 1}}),
            "prod/web.yaml": flux("HelmRelease", "web", {**nginx, "values": {"replicas": 2}}),
            "shop.yaml": flux("HelmRelease", "shop", {"chart": {"spec": here}}),
            "charts/shop/Chart.yaml": CHART,
        }
    )
    api, shop, web = there.findings
    assert api.remote == RemoteSource("oci://c", "1", "api")
    assert (api.namespace, api.values) == ("shop", {"": b"host: api.${DOMAIN}\n"})
    assert api.notes == (
        "Flux would fill ${DOMAIN} in its values: write what they stand for",
        "the objects in its folder are not imported: ConfigMap; add each file, such as "
        "ucp app add api-more api/config.yaml --namespace shop",
    )
    assert (shop.form, shop.path, shop.remote) == ("helm", "charts/shop", None)
    assert web.remote == RemoteSource("https://c.example.org", "2.x", "nginx")
    assert web.values == {"qa": b"replicas: 1\n", "prod": b"replicas: 2\n"}
    assert shop.namespace is None
    assert not there.refusals


def test_a_file_that_also_has_objects_of_flux_is_not_advised_to_be_added() -> None:
    chart = {
        "chart": {"spec": {"chart": "x", "sourceRef": {"kind": "HelmRepository", "name": "c"}}}
    }
    release = flux("HelmRelease", "api", chart)
    source = flux("HelmRepository", "c", {"url": "https://c.example.org"})
    files = {"source.yaml": source, "infra/api.yaml": f"{release}\n---\n{CONFIG}"}
    [api] = found(files).findings
    text = "the objects in its folder are not imported: ConfigMap; move those of infra/api.yaml to "
    text += "files without objects of Flux, then add each file, such as ucp app add api-more "
    assert api.notes == (f"{text}FILE --namespace api",)
    [api] = found({**files, "infra/b.yaml": CONFIG}).findings
    assert api.notes == (f"{text}infra/b.yaml --namespace api",)


def test_objects_in_a_folder_of_several_releases_are_listed_once_without_encrypted_ones() -> None:
    chart = {
        "chart": {"spec": {"chart": "x", "sourceRef": {"kind": "HelmRepository", "name": "c"}}}
    }
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: token}\nsops: {mac: x}\n"
    api, shop = found(
        {
            "source.yaml": flux("HelmRepository", "c", {"url": "https://c.example.org"}),
            "infra/api.yaml": flux(
                "HelmRelease", "api", {**chart, "targetNamespace": "kube-system"}
            ),
            "infra/shop.yaml": flux("HelmRelease", "shop", chart),
            "infra/a.yaml": secret,
            "infra/b.yaml": CONFIG,
        }
    ).findings
    assert api.notes == (
        "SOPS encrypts Secret token: create it on the clusters",
        "the objects in its folder are not imported: ConfigMap; add each file, such as "
        "ucp app add api-more infra/b.yaml --namespace api",
    )
    assert not shop.notes


def test_a_flux_release_from_a_commit_of_another_repository_keeps_that_commit() -> None:
    away = {"chart": "./charts/shop", "sourceRef": {"kind": "GitRepository", "name": "all"}}
    release = flux("HelmRelease", "shop", {"chart": {"spec": away}})

    def of(ref: Mapping[str, str]) -> Discovery:
        source = {"url": "https://git.example.org/a", "ref": ref}
        return found({"a.yaml": flux("GitRepository", "all", source), "shop.yaml": release})

    (shop,) = of({"branch": "main", "commit": "0" * 40}).findings
    assert shop.remote == RemoteSource("https://git.example.org/a", "0" * 40)
    assert "ref.semver" in refusal(of({"branch": "main", "semver": "1.x"}), "shop").reason


def test_unsupported_flux_releases_are_refused_with_the_command_that_adds_them() -> None:
    charts = {"kind": "HelmRepository", "name": "charts"}
    there = found(
        {
            "charts.yaml": flux("HelmRepository", "charts", {"url": "https://c.example.org/"}),
            "api.yaml": flux(
                "OCIRepository", "api", {"url": "oci://c/api", "ref": {"tag": "1.2.3"}}
            ),
            "web.yaml": flux(
                "HelmRelease",
                "web",
                {
                    "chart": {"spec": {"chart": "nginx", "version": "2.x", "sourceRef": charts}},
                    "values": {"replicas": 2},
                },
            ),
            "prod/web.yaml": flux(
                "HelmRelease", "web", {"chart": {"spec": {"version": "2.1"}}, "values": {}}
            ),
            "release.yaml": flux(
                "HelmRelease",
                "api",
                {
                    "chartRef": {"kind": "OCIRepository", "name": "api"},
                    "valuesFrom": [{"kind": "Secret", "name": "api"}],
                },
            ),
            "patched/kustomization.yaml": dump_all(
                [{"resources": ["release.yaml"], "patches": [{"path": "a.yaml"}]}]
            ),
            "patched/release.yaml": flux(
                "HelmRelease", "patched", {"chartRef": {"kind": "OCIRepository", "name": "api"}}
            ),
            "lost.yaml": flux("HelmRelease", "lost", {"chartRef": {"kind": "OCIRepository"}}),
        }
    )
    assert {each.name: each.advice for each in there.refusals} == {
        "api": "ucp app add api --chart oci://c/api --version 1.2.3",
        "patched": "ucp app add patched --chart oci://c/api --version 1.2.3, which lacks what the "
        "kustomizations change",
        "lost": "ucp app add lost URL|DIR, with the chart that it names",
        "web": "ucp app add web --chart nginx --repo https://c.example.org "
        "--values FILE (with the `values` of the HelmRelease), which lacks what the kustomizations "
        "change",
    }


def test_the_command_that_adds_a_flux_release_is_quoted_for_a_shell() -> None:
    chart = {"chart": "$(id)", "sourceRef": {"kind": "HelmRepository", "name": "charts"}}
    (only,) = found(
        {
            "source.yaml": flux("HelmRepository", "charts", {"url": "https://c.example.org"}),
            "release.yaml": flux(
                "HelmRelease", "web", {"chart": {"spec": chart}, "postRenderers": [{}]}
            ),
        }
    ).refusals
    assert only.advice == (
        "ucp app add web --chart '$(id)' --repo https://c.example.org, "
        "which lacks what its postRenderers change"
    )


def test_flux_folders_without_found_apps_are_refused_with_the_command_that_adds_them() -> None:
    def kustomization(name: str, path: str) -> str:
        head = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"}
        return dump_all([{**head, "metadata": {"name": name}, "spec": {"path": path}}])

    there = found(
        {
            "web/read.me": "",
            "found/all.yaml": CONFIG,
            "flux/found.yaml": kustomization("found", "./found"),
            "apps/api/release.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\n"
            "metadata: {name: api}\n",
            "flux/web.yaml": kustomization("shop", "./web"),
            "flux/apps.yaml": kustomization("apps", "./apps"),
        }
    )
    assert {each.name: each.advice for each in there.refusals if each.where[:4] == "flux"} == {
        "shop": "ucp app add shop web"
    }


def test_only_manifests_count_as_objects_of_flux() -> None:
    files = {"web/all.yaml": CONFIG, "web/docs/index.html": "See fluxcd.io/docs\n"}
    there = found(files)
    assert [each.name for each in there.findings] == ["web"]
    assert not there.refusals


def test_a_chart_of_the_repository_that_flux_itself_names_needs_no_declared_source() -> None:
    source = {"kind": "GitRepository", "name": "flux-system"}
    for chart in ("charts/web", "charts/other"):
        there = found(
            {
                "charts/web/Chart.yaml": CHART,
                "web.yaml": flux(
                    "HelmRelease",
                    "shop",
                    {"chart": {"spec": {"chart": f"./{chart}", "sourceRef": source}}},
                ),
            }
        )
        found_paths = {each.name: each.path for each in there.findings}
        if chart == "charts/web":
            assert found_paths == {"shop": "charts/web"} and not there.refusals
        else:
            assert "not declared in this repository" in refusal(there, "shop").reason


def test_image_automation_of_flux_is_listed_with_what_replaces_it() -> None:
    files = {
        f"update/{name}.yaml": dump_all(
            [
                {
                    "apiVersion": "image.toolkit.fluxcd.io/v1",
                    "kind": kind,
                    "metadata": {"name": name},
                }
                for kind in ("ImageRepository", "ImagePolicy")
            ]
        )
        for name in ("api", "web")
    }
    [only] = found({**files, "update/kustomization.yaml": overlay("api.yaml", "web.yaml")}).refusals
    assert only.where == "update/api.yaml:6 and 1 more"
    assert only.advice.startswith("ucp promote APP --env ENV --tag TAG")
