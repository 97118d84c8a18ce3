"""Objects beside Applications: no app has them, so an import lists them."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.imports.findings import RefusedApp
from tests.unit.gitops.imports.repository_files import (
    CHART,
    CONFIG,
    application,
    document,
    found,
    overlay,
    refusal,
)

WEB = application("web", {"path": "web"})
ROOT = {"root.yaml": application("root", {"path": "apps"})}
DEPLOYED = {"web/all.yaml": CONFIG}
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n"


def not_added(files: dict[str, str]) -> list[RefusedApp]:
    there = found({**DEPLOYED, **files})
    assert [each.name for each in there.findings] == ["web"]
    return [each for each in there.refusals if each.name != "root"]


@pytest.mark.parametrize("root", [{}, ROOT])
def test_objects_of_a_kustomization_beside_applications_are_listed(root: dict[str, str]) -> None:
    kustomization = overlay("web.yaml", "settings.yaml", "https://example.org/install.yaml")
    files = {"apps/web.yaml": WEB, "apps/settings.yaml": CONFIG}
    [only] = not_added({**files, "apps/kustomization.yaml": kustomization, **root})
    assert only.where == "apps"
    assert only.reason.endswith(": ConfigMap/settings, https://example.org/install.yaml")
    assert only.advice == (
        "remove the Applications from apps/kustomization.yaml, then: ucp app add apps apps"
    )


@pytest.mark.parametrize("root", [{}, ROOT])
def test_manifests_beside_applications_are_listed(root: dict[str, str]) -> None:
    [only] = not_added({"apps/web.yaml": WEB, "apps/settings.yaml": CONFIG, **root})
    assert only.reason.endswith(": ConfigMap/settings")
    assert only.advice == "ucp app add apps apps/settings.yaml"


def test_manifests_in_the_file_of_an_application_are_listed() -> None:
    [only] = not_added({"apps/web.yaml": f"{WEB}---\n{CONFIG}"})
    assert only.reason.endswith(": ConfigMap/settings")
    assert only.advice == "move that to a folder of its own, and add it by `ucp app add`"


def test_other_objects_that_a_chart_of_applications_renders_are_listed() -> None:
    files = {"apps/Chart.yaml": CHART, "apps/templates/all.yaml": WEB}
    there = found({**DEPLOYED, **files}, render=lambda *_: f"{WEB}---\n{CONFIG}")
    assert refusal(there, "apps").reason.endswith(": ConfigMap/settings")


def test_namespaces_and_folders_that_applications_deploy_are_not_listed() -> None:
    assert not not_added({"apps/web.yaml": WEB, "apps/namespace.yaml": NAMESPACE})
    files = {"web/kustomization.yaml": overlay("all.yaml"), "apps/web.yaml": WEB}
    kustomization = overlay("web.yaml", "namespace.yaml", "../web")
    files |= {"apps/namespace.yaml": NAMESPACE, "apps/kustomization.yaml": kustomization}
    assert not not_added(files)


@pytest.mark.parametrize(
    "manifest",
    [
        CONFIG.replace("}", ', annotations: {argocd.argoproj.io/sync-wave: "1"}}'),
        document("Rollout", "settings", {}),
        document("Application", "settings", {}).replace(
            "argoproj.io/v1alpha1", "app.k8s.io/v1beta1"
        ),
    ],
    ids=["annotation of Argo CD", "Rollout", "Application of another group"],
)
def test_manifests_that_only_look_like_those_of_argocd_are_an_app(manifest: str) -> None:
    assert [each.name for each in found({"web/all.yaml": manifest}).findings] == ["web"]
    kustomized = {"web/all.yaml": manifest, "web/kustomization.yaml": overlay("all.yaml")}
    assert [each.name for each in found(kustomized).findings] == ["web"]


def test_an_appproject_beside_manifests_is_to_be_left_out_by_name() -> None:
    files = {"api/project.yaml": document("AppProject", "team", {}), "api/settings.yaml": CONFIG}
    [only] = not_added(files)
    reason = "each app gets its own AppProject, and its manifests have one (api/project.yaml)"
    advice = "move api/project.yaml to another folder, then: ucp app add api api"
    assert (only.reason, only.advice) == (reason, advice)
    files["api/kustomization.yaml"] = overlay("project.yaml", "settings.yaml")
    [only] = not_added(files)
    file = "api/kustomization.yaml"
    advice = f"remove api/project.yaml from the resources of {file}, then: ucp app add api api"
    assert (only.reason, only.advice) == (reason, advice)
    [only] = not_added(files | {"api/web.yaml": WEB, file: overlay("web.yaml", "settings.yaml")})
    assert "its Applications are listed separately" in only.reason
