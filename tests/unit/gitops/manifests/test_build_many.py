"""Which overlays of an app needn't be built again for another environment."""

from __future__ import annotations

from k8s_ucp.gitops.manifests.build_many import first_equal


def test_equal_overlays_of_an_app_are_built_once() -> None:
    files = {
        "apps/web/base/kustomization.yaml": b"resources: [web.yaml]\n",
        "apps/web/overlays/dev/kustomization.yaml": b"resources: [../../base]\n",
        "apps/web/overlays/stage/kustomization.yaml": b"resources: [../../base, more.yaml]\n",
        "apps/web/overlays/stage/more.yaml": b"kind: ConfigMap\n",
        "apps/web/overlays/prod/kustomization.yaml": b"resources: [../../base]\n",
        "apps/shop/overlays/prod/kustomization.yaml": b"resources: [../../base]\n",
        "apps/web/overlays/unknown/kustomization.yaml": b"resources: [../../base]\n",
    }
    assert first_equal(files, ["dev", "stage", "prod"]) == {
        ("web", "dev"): "dev",
        ("web", "stage"): "stage",
        ("web", "prod"): "dev",
        ("shop", "prod"): "prod",
    }


def test_a_chart_is_rendered_for_each_environment_since_its_release_is_named_for_it() -> None:
    files = {f"apps/web/overlays/{each}/Chart.yaml": b"name: web\n" for each in ("dev", "prod")}
    assert first_equal(files, ["dev", "prod"]) == {}
