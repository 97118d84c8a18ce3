"""Files of apps beside ucp.yaml: those that others wrote have no other file of a workspace read."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.render.app_manifests import SourceFetcher, outside, read_app
from k8s_ucp.topology import App

SECRET = b"s3cret"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with secrets, and an app that was copied to manifests/web."""
    for name in ("creds/gcp.json", "gitops/demo/x", ".ucp/demo/kubeconfig", ".git/config", ".env"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(SECRET)
    app = tmp_path / "manifests/web"
    app.mkdir(parents=True)
    (app / "x.yaml").write_text(CONFIG)
    return tmp_path


def _read(workspace: Path, **more: object) -> dict[str, bytes]:
    return read_app(App.model_validate({"name": "web", "path": "manifests/web", **more}), workspace)


@pytest.mark.parametrize(
    "name", ["creds/gcp.json", "gitops/demo/x", ".ucp/demo/kubeconfig", ".git/config", ".env"]
)
def test_a_kustomization_has_no_secret_of_the_workspace_read(workspace: Path, name: str) -> None:
    place = workspace / "manifests/web/kustomization.yaml"
    for text in (
        f"commonAnnotations: {{note: ../../{name}}}",
        f"configMapGenerator: [{{name: x, files: [key=../../{name}]}}]",
    ):
        place.write_text(f"resources: [x.yaml]\n{text}\n")
        found = _read(workspace)
        assert {each.rpartition("/")[2] for each in found} == {"kustomization.yaml", "x.yaml"}


def test_a_kustomization_uses_files_beside_it_and_own_hidden_ones(workspace: Path) -> None:
    (workspace / "shared").mkdir()
    (workspace / "shared/y.yaml").write_text(CONFIG)
    (workspace / "manifests/web/.env").write_text("A=1\n")
    (workspace / "manifests/web/kustomization.yaml").write_text(
        "resources: [x.yaml, ../../shared/y.yaml]\nconfigMapGenerator: [{name: x, envs: [.env]}]\n"
    )
    found = _read(workspace)
    assert found["manifests/web/.env"] == b"A=1\n"
    assert found["shared/y.yaml"] == CONFIG.encode()


def test_a_link_leads_to_no_secret_of_the_workspace(workspace: Path) -> None:
    (workspace / "manifests/web/y.yaml").symlink_to("../../creds/gcp.json")
    assert set(_read(workspace)) == {"x.yaml"}


def test_no_values_file_is_a_secret_of_the_workspace(workspace: Path) -> None:
    (workspace / "manifests/web/Chart.yaml").write_text(CHART)
    with pytest.raises(UsageError, match="exists neither in the chart nor next to"):
        _read(workspace, values={"prod": "creds/gcp.json"})
    (workspace / "prod.yaml").write_text("a: 1\n")
    assert _read(workspace, values={"prod": "prod.yaml"})["values-prod.yaml"] == b"a: 1\n"


def test_a_copy_of_a_folder_has_no_settings_of_git(workspace: Path) -> None:
    app = workspace / "manifests/web"
    (app / "kustomization.yaml").write_text(
        "resources: [x.yaml]\ncommonAnnotations: {note: ../../.git/config}\n"
    )
    assert outside(app, workspace) == {}


def test_a_copy_of_a_kustomization_that_uses_unread_folders_is_refused(workspace: Path) -> None:
    app, shared = workspace / "manifests/web", workspace / "manifests/shared"
    shared.mkdir()
    (app / "kustomization.yaml").write_text("resources: [x.yaml, ../shared]\n")
    (app / "other").mkdir()
    (app / "other/kustomization.yaml").write_text("resources: [../../../crds]\n")
    (shared / "kustomization.yaml").write_text("commonAnnotations: {note: ../../note}\n")
    assert list(outside(app, app.parent)) == ["shared/kustomization.yaml"]
    (shared / "kustomization.yaml").write_text("resources: [../../crds]\n")
    with pytest.raises(UsageError) as failed:
        outside(app, app.parent)
    assert "shared lists ../../crds, which is outside" in failed.value.message
    assert outside(app, workspace)


def test_a_component_is_no_app(workspace: Path) -> None:
    (workspace / "manifests/web/kustomization.yaml").write_text(
        "kind: Component\nresources: [x.yaml, ../../x.yaml]\n"
    )
    with pytest.raises(UsageError, match="manifests/web is a Component of kustomize"):
        _read(workspace)


@pytest.mark.parametrize("file", ["Chart.yaml", "requirements.yaml"])
def test_a_copy_of_a_chart_has_the_charts_beside_it(workspace: Path, file: str) -> None:
    """Charts of Helm 2 list their dependencies in requirements.yaml, which Helm still reads."""
    for folder, text in (("web", CHART), ("parts", CHART)):
        (workspace / "charts" / folder).mkdir(parents=True)
        (workspace / "charts" / folder / "Chart.yaml").write_text(text)
    with (workspace / "charts/web" / file).open("a") as listed:
        listed.write("dependencies: [{name: parts, version: 1.0.0, repository: file://../parts}]\n")
    assert list(outside(workspace / "charts/web", workspace)) == ["charts/parts/Chart.yaml"]


def test_an_invalid_app_that_is_not_in_the_topology_yet_is_corrected_in_its_own_files(
    workspace: Path,
) -> None:
    (workspace / "manifests/web/Chart.yaml").write_text("name: web\n")
    with pytest.raises(UsageError) as failed:
        read_app(
            App.model_validate({"name": "web", "path": "manifests/web"}),
            workspace,
            SourceFetcher(workspace, lambda: workspace, lambda _: None),
        )
    assert failed.value.next == "correct Chart.yaml"


@pytest.mark.parametrize("other", ["kustomization.yaml", "Chart.yaml"])
def test_a_named_overlay_that_does_not_exist_is_refused(workspace: Path, other: str) -> None:
    app = workspace / "manifests/web"
    (app / other).write_text("resources: [x.yaml]\n" if other != "Chart.yaml" else CHART)
    (app / "overlays/live").mkdir(parents=True)
    (app / "overlays/live/kustomization.yaml").write_text("resources: [../..]\n")
    with pytest.raises(UsageError, match="no kustomization in overlays/prd, its overlay") as error:
        _read(workspace, overlays={"prod": "overlays/prd"})
    assert "--overlay prod=DIR" in str(error.value.next)
    assert str(error.value.next).endswith("it has overlays/live")
