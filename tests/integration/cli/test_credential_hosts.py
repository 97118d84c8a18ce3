"""Which credentials of the user a ucp.yaml of others can send to which hosts."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from k8s_ucp.cli.app_sources import fetch_chart
from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.credential_hosts import require_allowed
from k8s_ucp.cli.git_credentials import credential_of
from k8s_ucp.cli.main import run
from k8s_ucp.credentials import BadCredential, CredentialRef
from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.promotion.targets.chart import ChartMissing
from k8s_ucp.topology import load
from k8s_ucp.workspace import Workspace

URL = "https://forge.example/core.git"
SOURCES = (
    CredentialRef(variable="GH_TOKEN"),
    CredentialRef(reference="op://private/github/token"),
)


@pytest.fixture(autouse=True)
def person(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody at a terminal, whose variables are not those of a CI job."""
    for name in ("CI", "GITHUB_RUN_NUMBER", "CI_PIPELINE_IID", "BUILD_NUMBER", "UCP_GIT_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def refused(place: CredentialRef, workspace: Path, *urls: str) -> BadCredential:
    with pytest.raises(BadCredential, match="not allowed so far") as caught:
        require_allowed("forge", place, workspace, urls)
    return caught.value


@pytest.mark.parametrize("place", SOURCES, ids=str)
def test_a_source_is_sent_to_a_host_after_the_user_allowed_it(
    tmp_path: Path, place: CredentialRef
) -> None:
    error = refused(place, tmp_path, URL)
    assert error.next is not None
    subprocess.run(shlex.split(error.next.partition(" (")[0]), check=True)
    require_allowed("forge", place, tmp_path, [URL, "https://forge.example/apps.git"])
    for other in ("https://forge.example.org/a", "http://forge.example/a", "oci://forge.example/a"):
        refused(place, tmp_path, URL, other)
    refused(CredentialRef(variable="GH_TOKEN_2"), tmp_path, URL)


def test_settings_of_a_repository_allow_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    key = "ucp.https://forge.example.credential"
    subprocess.run(["git", "-C", str(tmp_path), "config", key, "GH_TOKEN"], check=True)
    monkeypatch.chdir(tmp_path)
    refused(SOURCES[0], tmp_path, URL)


def test_files_of_the_workspace_are_for_its_own_hosts(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of-the-user")
    workspace = tmp_path / "workspace"
    (workspace / "creds").mkdir(parents=True)
    (workspace / "creds/own.token").write_text("of-the-workspace")
    (workspace / "creds/link.token").symlink_to("../../secret")
    require_allowed("own", CredentialRef(file=workspace / "creds/own.token"), workspace, [URL])
    error = refused(CredentialRef(file=workspace / "creds/link.token"), workspace, URL)
    assert str(secret) in error.message


@pytest.mark.parametrize("url", ["git@forge.example:a/b.git", "http://127.0.0.1:3000/a.git"])
def test_ssh_and_this_machine_need_no_permission(tmp_path: Path, url: str) -> None:
    require_allowed("forge", SOURCES[0], tmp_path, [url])


@pytest.mark.parametrize("variable", ["CI", "BUILD_NUMBER"])
def test_a_ci_job_uses_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    require_allowed("forge", SOURCES[0], tmp_path, [URL])


def test_a_job_sends_no_variable_for_the_chart_of_a_folders_ucp_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--repo`: the folder is that of a merge request, not the topology's workspace."""
    chart = "{repo: 'https://forge.example/charts', name: web, version: 1.0.0, auth: theirs}"
    (tmp_path / "ucp.yaml").write_text(
        "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: demo}\nspec:\n"
        f"  apps: [{{name: web, chart: {chart}}}]\n  environments: [{{name: stage}}]\n"
        "  credentials: {theirs: {env: UCP_GIT_TOKEN}}\n"
    )
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("UCP_GIT_TOKEN", "of-the-job")
    missing = ChartMissing("web", "web", "2.0.0", repo="")
    with pytest.raises(BadCredential, match=r"UCP_GIT_TOKEN to https://forge\.example,"):
        fetch_chart(Invocation(folder=tmp_path), missing, own=False)


def test_a_password_in_a_promotion_file_is_not_passed_to_helm(tmp_path: Path) -> None:
    missing = ChartMissing("web", "web", "2.0.0", repo="https://robot:s3cret@charts.example.org")
    with pytest.raises(UsageError, match="contains a user or password") as caught:
        fetch_chart(Invocation(folder=tmp_path), missing, own=True)
    assert "s3cret" not in str(caught.value)


def test_a_topology_names_variable_and_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GH_TOKEN", "verysecret")
    git = f"{{provider: url, core: '{URL}', apps: 'https://other.example/apps.git', auth: forge}}"
    (tmp_path / "ucp.yaml").write_text(
        "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: demo}\nspec:\n"
        f"  git: {git}\n  credentials: {{forge: {{env: GH_TOKEN}}}}\n"
        "  environments: [{name: stage}]\n"
    )
    topology, workspace = load(tmp_path / "ucp.yaml"), Workspace(tmp_path)
    for host in ("forge.example", "other.example"):
        with pytest.raises(BadCredential, match=f"GH_TOKEN to https://{host},") as caught:
            credential_of(topology, workspace)
        assert "verysecret" not in caught.value.message
        key = f"ucp.https://{host}.credential"
        subprocess.run(["git", "config", "--global", "--add", key, "GH_TOKEN"], check=True)
    found = credential_of(topology, workspace)
    assert found is not None
    assert found.password == "verysecret"


def test_a_pull_request_does_not_send_a_file_that_a_link_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("UCP_FORGE_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN", "UCP_FORGE_URL"):
        monkeypatch.delenv(name, raising=False)
    secret = tmp_path / "secret"
    secret.write_text("of-the-user")
    secret.chmod(0o600)
    workspace = tmp_path / "workspace"
    (workspace / "creds").mkdir(parents=True)
    (workspace / "creds/forge-token").symlink_to("../../secret")
    repo = "https://gitea.example/a/apps.git"
    words = ["promote", "web", "--env", "stage", "--tag", "1.2", "--pr", "--repo", repo]
    assert run(["--workspace", str(workspace), *words]) == 1
    assert f"{secret} to https://gitea.example," in capsys.readouterr().err
