"""Cores outside of this machine: missing requirements are reported before the first change."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.clusters.existing.adoption import AdoptionRecord, write_record
from k8s_ucp.workspace import Workspace, write_private_file
from tests.e2e.world import Workbench
from tests.gke_clusters import EMAIL, SECRET, Google, google, key
from tests.integration.cli.conftest import files

IMAGE = f"registry.example.org/reconciler@sha256:{'1' * 64}"
GIT = "git: {provider: url, core: https://git.example.org/c, apps: https://git.example.org/a}"
FILE = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: demo}}
spec:
  core: {core}
  {git}
  reconciler: {{{image}}}
"""


def describe(
    world: Workbench, core: str, *, git: str = GIT, image: str = f"image: '{IMAGE}'"
) -> None:
    (world.workspace / "ucp.yaml").write_text(FILE.format(core=core, git=git, image=image))


def refused(world: Workbench, core: str, *expected: str, code: int = 1) -> str:
    """Run `ucp start`, which must fail with one message and a next step and change nothing."""
    before = files(world)
    ended = world.ucp_here("start", "--core", core, "--yes", expect=code)
    for words in expected:
        assert words in ended.stderr
    assert ended.stderr.count("next: ") == 1, ended.stderr
    assert ended.stderr.startswith("ucp: ")
    assert ended.stdout == ""
    assert files(world) == before
    return ended.stderr


@pytest.fixture(autouse=True)
def git_host(world: Workbench, tmp_path: Path) -> None:
    """Map the addresses of `GIT` to two empty repositories on this machine."""
    for name in ("c", "a"):
        subprocess.run(["git", "init", "-q", "--bare", tmp_path / "host" / name], check=True)
    there = f'[url "{tmp_path}/host/"]\n\tinsteadOf = https://git.example.org/\n'
    (world.home / ".gitconfig").write_text(there)


@pytest.fixture
def cloud(world: Workbench, tmp_path: Path) -> Iterator[Google]:
    """Google Cloud, with a topology that has its core there, and a key in the workspace."""
    with google(tmp_path / "google") as found:
        world.environment["PATH"] = f"{found.programs}{os.pathsep}{os.environ['PATH']}"
        describe(world, "{provider: gke}")
        write_key(world)
        yield found


def write_key(world: Workbench, **changes: str | None) -> None:
    folder = world.workspace / "creds"
    folder.mkdir(exist_ok=True)
    (folder / "gcp.json").write_text(key(token_uri="https://oauth2.example.org/token", **changes))
    (folder / "gcp.json").chmod(0o600)


GOOGLE: dict[str, tuple[dict[str, Any], str, str]] = {
    "project": (
        {"project": {"projectId": "other", "lifecycleState": "ACTIVE"}},
        "the project shop-1 does not exist",
        "next: gcloud projects list",
    ),
    "credential": (
        {"key_ids": []},
        f"Google Cloud rejected the gcp credential ({EMAIL})",
        "next: gcloud iam service-accounts keys create creds/gcp.json",
    ),
    "quota": (
        {"quotas": {"CPUS": [8, 4]}},
        "CPUS 6 needed, 4 of 8 free",
        "next: request more quota at https://console.cloud.google.com/iam-admin/quotas?project=shop-1",
    ),
    "API": (
        {"apis": ["compute.googleapis.com"]},
        "the API container.googleapis.com is not enabled in project shop-1",
        "next: gcloud services enable container.googleapis.com --project shop-1",
    ),
}


@pytest.mark.parametrize("case", GOOGLE)
def test_unmet_requirement_of_google_cloud_is_reported(
    world: Workbench, cloud: Google, case: str
) -> None:
    change, message, following = GOOGLE[case]
    cloud.change(**change)
    said = refused(world, "gke", message, following)
    assert SECRET not in said
    calls = [each["argv"] for each in cloud.seen()["calls"]]
    assert calls
    assert not [each for each in calls if {"create", "resize", "delete"} & set(each)]


def programs_without_gcloud(folder: Path) -> Path:
    """A folder with git, the only program that is needed before gcloud."""
    (folder / "few").mkdir()
    (folder / "few" / "git").symlink_to(str(shutil.which("git")))
    return folder / "few"


def test_missing_key_or_gcloud_for_a_gke_core_is_reported(
    world: Workbench, cloud: Google, tmp_path: Path
) -> None:
    write_key(world, project_id=None)
    refused(world, "gke", "creds/gcp.json: it has no project_id", "gcloud iam service-accounts")
    (world.workspace / "creds" / "gcp.json").unlink()
    refused(world, "gke", "creds/gcp.json: the file does not exist", "next: write it to this file")
    write_key(world)
    world.environment["PATH"] = str(programs_without_gcloud(tmp_path))
    refused(world, "gke", "gcloud is not installed", "cloud.google.com/sdk/docs/install")
    assert cloud.seen()["calls"] == []


def test_cores_that_flags_can_not_describe_are_refused(world: Workbench) -> None:
    for core, key_ in (("existing", "'context'"), ("gke", "'project'")):
        ended = world.ucp_here("start", "--core", core, "--yes", expect=2)
        assert f"requires the key {key_}" in ended.stderr
        assert (
            f"git: local is not reachable from {'an' if core[0] == 'e' else 'a'} {core} core"
            in (ended.stderr)
        )
        assert "next: write " in ended.stderr
        assert files(world) == []


def test_components_that_can_not_be_adopted_are_refused(world: Workbench) -> None:
    ended = world.ucp_here("start", "--adopt", "traefik", "--yes", expect=2)
    assert "--adopt: 'traefik' is not an adoptable component" in ended.stderr
    assert "next: ucp start --adopt argocd,crossplane" in ended.stderr
    ended = world.ucp_here("start", "--core", "kind", "--adopt", "argocd", "--yes", expect=2)
    assert "spec.core: 'adopt' is valid for provider existing" in ended.stderr
    assert files(world) == []
    describe(world, "{provider: gke, adopt: [argocd]}")
    refused(world, "gke", "spec.core: 'adopt' is valid for provider existing", "ucp.yaml", code=2)


def test_missing_requirements_of_an_existing_core_are_reported_before_the_first_change(
    world: Workbench,
) -> None:
    config = world.home / ".kube" / "config"
    config.parent.mkdir()
    user = {"user": {"token": "t"}, "name": "u"}
    cluster = {"cluster": {"server": "https://127.0.0.1:9"}, "name": "c"}
    context = {"context": {"cluster": "c", "user": "u"}, "name": "far"}
    whole = {"clusters": [cluster], "users": [user], "contexts": [context]}
    config.write_text(json.dumps(whole))
    describe(world, "{provider: existing, context: near}")
    there = "has no context 'near'; available: far"
    refused(world, "existing", there, "kubectl config get-contexts", code=2)
    describe(world, "{provider: existing, context: far}")
    refused(world, "existing", "failed to reach the API server of the context far", "get nodes")
    before = (world.workspace / "ucp.yaml").read_text()
    world.ucp_here("start", "--adopt", "argocd", "--yes", expect=1)
    assert (world.workspace / "ucp.yaml").read_text() == before, "it is written after all checks"
    local = "git: {provider: url, core: http://localhost:3000/c, apps: file:///srv/a.git}"
    describe(world, "{provider: existing, context: far}", git=local, image="")
    before = files(world)
    ended = world.ucp_here("start", "--yes", expect=1)
    assert "spec.git.core is http://localhost:3000/c, which pods" in ended.stderr
    assert "spec.reconciler.image is required" in ended.stderr
    assert "make image ARGS='--tag REGISTRY/k8s-ucp-reconciler:1' && docker push" in ended.stderr
    assert files(world) == before


@pytest.mark.parametrize("command", ["stop", "destroy"])
def test_existing_core_that_is_gone_for_good_is_abandoned_by_its_name(
    world: Workbench, command: str
) -> None:
    describe(world, "{provider: existing, context: theirs}")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{closed.getsockname()[1]}"
        config = kubeconfig("theirs", server)
        (world.home / ".kube").mkdir()
        (world.home / ".kube" / "config").write_text(json.dumps(config))
        state = Workspace.at(world.workspace).state("demo")
        state.make()
        note = state.root / "existing" / "demo-core.json"
        access = state.kubeconfig("demo-core")
        for each in (note, access):
            each.parent.mkdir(mode=0o700, exist_ok=True)
        write_record(note, AdoptionRecord("theirs", "uid-1", "v1.35.0"))
        write_private_file(access, json.dumps(config))
        ended = world.ucp(command, "--yes", expect=1)
        assert f"ucp {command} --abandon demo-core" in ended.stderr
        assert note.exists()
        shown = world.ucp(command, "--abandon", "demo-core", "--plan").stdout
        assert "ucp's objects on demo-core" in shown
        assert note.exists()
        world.ucp(command, "--yes", "--abandon", "demo-core")
    assert not note.exists()
    assert not access.exists()
    assert (world.home / ".kube" / "config").exists()
    world.ucp("stop", "--yes")


def kubeconfig(context: str, server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": context, "cluster": {"server": server}}],
        "users": [{"name": context, "user": {"token": "t"}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
    }
