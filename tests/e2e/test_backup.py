"""A core's data are lost, git and the backup key are not: passwords come back as they were."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from k8s_ucp.backup import PATH, Backup
from k8s_ucp.backup_key import load_key
from k8s_ucp.git.repository import Repository
from k8s_ucp.kube import SECRET
from k8s_ucp.reconciler.backup.backup_file import BackupFile
from tests.e2e.conftest import make_world
from tests.e2e.world import World, until

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

# All that matters here is on the core: no app cluster has to be made.
TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  environments: [{name: stage, state: stopped}]
  databases: [{name: orders, provider: local}]
"""
BY_HAND = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "byhand",
        "namespace": "ucp-clusters",
        "labels": {"k8s-ucp.io/generate": "password"},
    },
}
ORDERS = "orders-stage-connection"


@pytest.fixture(scope="module")
def shop(toolbox: Toolbox) -> Iterator[World]:
    for world in make_world("shop"):
        (world.workspace / "ucp.yaml").write_text(TOPOLOGY)
        yield world


def password(world: World, name: str) -> str:
    kube = world.kube("core")
    try:
        data = (kube.find(SECRET, name, "ucp-clusters") or {}).get("data") or {}
        return base64.b64decode(data.get("password", "")).decode()
    finally:
        kube.close()


def key_file(world: World) -> Path:
    return world.workspace / "creds" / "backup.key"


def kept(world: World) -> dict[str, str]:
    """The passwords in the repository's backup, by Secret."""
    key = load_key(key_file(world))
    assert key
    remote = Repository(world.gitops / "core.git")
    backup: Backup = BackupFile(remote, "main").read(remote.resolve("main"), key)
    return {
        name.removeprefix("ucp-clusters/"): base64.b64decode(each["password"]).decode()
        for name, each in backup.passwords.items()
    }


def test_a_start_backs_up_the_passwords_that_it_made_and_a_rerun_writes_nothing(
    shop: World,
) -> None:
    said = shop.ucp("start", "--yes").stderr
    assert f"a copy of {key_file(shop)}" in said
    assert key_file(shop).stat().st_mode & 0o777 == 0o600
    made = password(shop, ORDERS)
    assert len(made) == 40
    assert kept(shop) == {ORDERS: made}
    refs = shop.git(shop.gitops / "core.git", "show-ref")
    shop.ucp("start", "--yes")
    assert shop.git(shop.gitops / "core.git", "show-ref") == refs
    assert password(shop, ORDERS) == made


def test_passwords_survive_the_loss_of_the_core(shop: World) -> None:
    shop.kube("core").apply(BY_HAND, manager="argocd-controller")
    until("a password made after the start", lambda: password(shop, "byhand"))
    made = {name: password(shop, name) for name in (ORDERS, "byhand")}
    shown = [" ".join(process.cmdline()) for process in shop.processes()]
    shop.ucp("stop", "--yes")
    assert kept(shop) == made
    shown += [path.read_text(errors="replace") for path in (shop.state / "logs").rglob("*.log*")]
    for text in (*made.values(), "AGE-SECRET-KEY"):
        assert not [each for each in shown if text in each]
    shutil.rmtree(shop.workspace / ".ucp")

    # Without its key the backup would be of no use: nothing is begun.
    away = key_file(shop).rename(shop.home / "my.key")
    refused = shop.ucp("start", "--yes", expect=1).stderr
    assert f"its key {key_file(shop)} is missing" in refused
    assert not (shop.workspace / ".ucp").exists()
    assert not key_file(shop).exists()

    away.rename(key_file(shop))
    shop.ucp("start", "--yes")
    assert {name: password(shop, name) for name in made} == made
    assert len(shop.git(shop.gitops / "core.git", "log", "--format=%h", "main", "--", PATH)) > 0
    assert kept(shop) == made
