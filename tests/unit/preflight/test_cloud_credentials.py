"""Credentials of the clouds in use are checked before anything is changed; others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.context import StartContext
from k8s_ucp.credentials import BadCredential
from k8s_ucp.kube import Object
from k8s_ucp.plans import CHECKS
from k8s_ucp.preflight.credentials import check_cloud_credentials
from k8s_ucp.steps.startup.apply_manifests import apply_credentials
from k8s_ucp.topology import Topology
from k8s_ucp.workspace import Workspace
from tests.unit.gitops.topologies import demo, on_clouds

INI = "[default]\naws_access_key_id = AK\naws_secret_access_key = S3CR3T\n"


def context(tmp_path: Path, topology: Topology) -> StartContext:
    return StartContext(workspace=Workspace.at(tmp_path), topology=topology)


def test_cloud_credentials_are_one_of_the_preflight_checks() -> None:
    assert check_cloud_credentials in CHECKS


def test_a_missing_credential_is_reported_with_cloud_path_and_format(tmp_path: Path) -> None:
    with pytest.raises(BadCredential) as caught:
        check_cloud_credentials(context(tmp_path, on_clouds(["eu"], [])))
    message = caught.value.message
    assert f"credential of aws in {tmp_path}/creds/aws.ini" in message
    assert "aws_access_key_id" in message


def test_credentials_of_unused_clouds_are_ignored(tmp_path: Path) -> None:
    check_cloud_credentials(context(tmp_path, demo()))
    folder = tmp_path / "creds"
    folder.mkdir(mode=0o700)
    (folder / "gcp.json").write_text("broken")
    (folder / "aws.ini").write_text(INI)
    (folder / "aws.ini").chmod(0o600)
    check_cloud_credentials(context(tmp_path, on_clouds(["eu"], [])))


def test_the_credential_of_a_databases_cloud_is_checked(tmp_path: Path) -> None:
    topology = on_clouds(["stage"], ["orders"], credentials={"gcp": {"env": "G", "project": "p"}})
    with pytest.raises(BadCredential, match="credential of gcp in the variable G"):
        check_cloud_credentials(context(tmp_path, topology))


def test_a_credential_is_applied_as_the_secret_that_providers_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS", INI)
    topology = on_clouds(["eu"], [], credentials={"aws": {"env": "AWS"}})
    applied: list[Object] = []
    said: list[str] = []

    class Core:
        def apply(self, item: Object) -> None:
            applied.append(item)

    run = context(tmp_path, topology)
    run.__dict__["kube"] = Core()
    apply_credentials.run(run, said.append)
    (secret,) = applied
    assert (secret["metadata"]["namespace"], secret["metadata"]["name"]) == (
        "crossplane-system",
        "aws-creds",
    )
    assert secret["stringData"] == {"creds": INI}
    assert said == ["aws"]
    assert not list(tmp_path.rglob("*"))
