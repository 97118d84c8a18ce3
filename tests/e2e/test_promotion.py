"""Promotion on a running topology: stage, the gate, prod, and a rollback."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.kube import NAMESPACE, SERVICE_ACCOUNT, Kube
from tests.e2e.interruption_points import MOMENTS, cut_at_one_of, dice_of
from tests.e2e.world import Workbench, until

ECHO = "ealen/echo-server"


def promote(world: Workbench, *words: str, expect: int = 0) -> dict[str, Any]:
    done = world.ucp("promote", "echo", *words, "-o", "json", expect=expect)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def runs(world: Workbench, environment: str, tag: str) -> bool:
    found = world.application(f"echo-{environment}")
    return (
        found is not None
        and (found["sync"], found["health"]) == ("Synced", "Healthy")
        and found["images"] == [f"{ECHO}:{tag}"]
    )


def present(world: Workbench, environment: str) -> str:
    """The tag in the environment's overlay now."""
    told = world.ucp("history", "echo", "--env", environment, "-o", "json").stdout
    return str(json.loads(told)[0]["to"])


def test_promotion_to_stage_and_through_the_gate_to_prod_and_rollback(started: Workbench) -> None:
    before = present(started, "prod")
    early = promote(started, "--env", "prod", "--tag", "7.0.1", expect=1)
    assert early["status"] == "gated"

    assert promote(started, "--env", "stage", "--tag", "7.0.1")["status"] == "promoted"
    until("stage follows", lambda: runs(started, "stage", "7.0.1"))

    words = ("--env", "prod", "--from", "stage", "--require-healthy", "--soak", "2s")
    assert promote(started, *words)["status"] == "promoted"
    until("prod follows", lambda: runs(started, "prod", "7.0.1"))
    assert runs(started, "stage", "7.0.1")

    started.ucp("rollback", "echo", "--env", "prod")
    until("prod is back", lambda: runs(started, "prod", before))
    held = promote(started, "--env", "prod", "--from", "stage", expect=1)
    assert held["status"] == "held"
    assert runs(started, "stage", "7.0.1")

    started.ucp("rollback", "echo", "--env", "prod", "--release-hold")
    assert promote(started, "--env", "prod", "--from", "stage")["status"] == "promoted"
    until("prod follows again", lambda: runs(started, "prod", "7.0.1"))


@pytest.mark.slow
def test_gate_stays_closed_until_stage_runs_the_tag(started: Workbench) -> None:
    """Checked right after the push, it waits for Argo CD rather than for git alone."""
    promote(started, "--env", "stage", "--tag", "7.0.2")

    words = ("--env", "prod", "--tag", "7.0.2", "--require-healthy", "--soak", "1s")
    assert promote(started, *words)["status"] == "promoted"

    assert runs(started, "stage", "7.0.2")


@pytest.mark.slow
def test_gate_needs_only_the_permission_to_read_applications(
    started: Workbench, tmp_path: Path
) -> None:
    """As in a pipeline elsewhere: no workspace, and its own identity in KUBECONFIG."""
    config = tmp_path / "kubeconfig"
    config.write_text(restricted_kubeconfig(started))
    promote(started, "--env", "stage", "--tag", "7.0.3")
    until("stage follows", lambda: runs(started, "stage", "7.0.3"))
    pipeline = Workbench(tmp_path, started.home, environment={"KUBECONFIG": str(config)})

    repo = (started.gitops / "apps.git").as_uri()
    words = ("--env", "prod", "--tag", "7.0.3", "--require-healthy", "--repo", repo)
    assert promote(pipeline, *words)["status"] == "promoted"


@pytest.mark.parametrize("demo", ["embedded"], indirect=True)  # No image on kind has that tag.
def test_killed_and_repeated_promotion_is_one_commit(started: Workbench) -> None:
    """It has no plan: it is killed at an effect that the seed chooses."""
    words = ("--env", "stage", "--tag", "7.0.4")
    cut_at_one_of(started, MOMENTS, dice_of("promote"), "promote", "echo", *words)
    assert promote(started, *words)["status"] in ("promoted", "unchanged")
    apps = started.gitops / "apps.git"
    subjects = started.git(apps, "log", "--format=%s", "main").splitlines()
    assert sum("7.0.4" in each for each in subjects) == 1
    assert present(started, "stage") == "7.0.4"
    until("stage follows", lambda: runs(started, "stage", "7.0.4"))


def restricted_kubeconfig(world: Workbench) -> str:
    """A kubeconfig of an identity that may only get and list Applications."""
    core = world.kube("core")
    name = "promotion-gate"
    core.get(NAMESPACE, "argocd")
    about = {"name": name, "namespace": "argocd"}
    rbac = "rbac.authorization.k8s.io"
    core.apply({"apiVersion": "v1", "kind": SERVICE_ACCOUNT.kind, "metadata": about})
    rule = {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["get", "list"]}
    core.apply({"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": about, "rules": [rule]})
    core.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": about,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", **about}],
        }
    )
    token, _ = core.request_token("argocd", name, seconds=3600)
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "core", "cluster": cluster_of(world, core)}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "core", "context": {"cluster": "core", "user": name}}],
            "current-context": "core",
        }
    )


def cluster_of(world: Workbench, core: Kube) -> dict[str, str]:
    """Address and CA certificate, as in the workspace's own kubeconfig."""
    text = (world.state / "kubeconfigs" / f"{world.topology}-core.yaml").read_text()
    cluster = YAML(typ="safe", pure=True).load(text)["clusters"][0]["cluster"]
    assert cluster["server"] == core.server
    authority = cluster["certificate-authority-data"]
    assert base64.b64decode(authority).startswith(b"-----BEGIN")
    return {"server": cluster["server"], "certificate-authority-data": authority}
