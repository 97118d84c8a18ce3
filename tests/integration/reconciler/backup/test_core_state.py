"""State that only the core has, on a real API server: backed up, and restored after a loss."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.git.clones import make_clone, make_remote
from k8s_ucp.git.repository import RefUpdate, Repository
from k8s_ucp.kube import CONFIG_MAP, CRD, SECRET, Kind, Object
from k8s_ucp.reconciler.backup.backup_file import BackupFile
from k8s_ucp.reconciler.backup.backup_key import key_for, load_key
from k8s_ucp.reconciler.backup.core_state import CoreState
from k8s_ucp.reconciler.backup.writer import BackupWriter
from k8s_ucp.reconciler.backup_content import EXTERNAL_NAMES, PASSWORDS, SOURCES, Backup, updated
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.settings import BACKUP, BackupSettings, Settings
from tests.integration.git.damage import empty_objects
from tests.integration.reconciler.world import CLUSTERS, Clusters, empty, eventually

pytestmark = pytest.mark.engines

GROUP = "ec2.aws.m.upbound.io"
VPC = Kind(f"{GROUP}/v1beta1", "VPC", "vpcs")
NETWORK = f"VPC.{GROUP}/{CLUSTERS}/demo-eu"
CREATED = {names.CREATION_SUCCEEDED: "2026-01-01T00:00:00Z"}
DATABASE = f"{CLUSTERS}/quotes-stage-connection"
SOURCE = "crossplane-system/byhand-kubeconfig"


def state(world: Clusters) -> CoreState:
    return CoreState(world.core, (CLUSTERS,), (CLUSTERS, "crossplane-system"))


def declared(key: str = DATABASE) -> Object:
    """The Secret in the repository, which requests a password."""
    namespace, name = key.split("/")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {names.GENERATE: "password"},
        },
        "stringData": {"port": "5432"},
    }


def source(environment: str = "stage") -> Object:
    """A source that a person created; `kubectl apply` records all of it in an annotation."""
    namespace, name = SOURCE.split("/")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {names.KUBECONFIG_LABEL: "", names.ENVIRONMENT: environment},
            "annotations": {
                names.NAMESPACES: "echo",
                "kubectl.kubernetes.io/last-applied-configuration": "all of it",
            },
        },
        "data": {"kubeconfig": "e30=", "other": "eA=="},
    }


def password(world: Clusters, key: str = DATABASE) -> str:
    namespace, name = key.split("/")
    found = world.core.find(SECRET, name, namespace) or {}
    return str((found.get("data") or {}).get("password", ""))


@pytest.fixture
def managed(world: Clusters) -> Iterator[None]:
    """Apply the CRD of a managed resource, as a provider would."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    item = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"vpcs.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": "VPC",
                "plural": "vpcs",
                "singular": "vpc",
                "listKind": "VPCList",
                "categories": ["crossplane", "managed", "aws"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
    world.core.apply(item, manager="test")
    eventually(lambda: world.core.list_all(VPC) == [], "VPCs served")
    yield
    world.core.delete(CRD, f"vpcs.{GROUP}")


def network(**annotations: str) -> Object:
    return {
        "apiVersion": VPC.api_version,
        "kind": "VPC",
        "metadata": {"name": "demo-eu", "namespace": CLUSTERS, "annotations": annotations},
        "spec": {"forProvider": {"region": "eu-west-3"}},
    }


def made(world: Clusters) -> Backup:
    """Create one object of each section on the core; returns its state for the backup."""
    state(world).note_restored("restore-backup", PASSWORDS, SOURCES)
    world.start()
    world.core.apply(declared(), manager="argocd-controller")
    world.core.apply(source(), manager="kubectl")
    world.core.apply(network(**CREATED, **{"crossplane.io/external-name": "vpc-1"}), manager="test")
    eventually(lambda: password(world), "a password")
    world.stop()
    state(world).note_deletion()
    return state(world).collect()


def test_passwords_sources_and_external_names_are_restored_to_a_new_core(
    world: Clusters, managed: None
) -> None:
    kept = made(world)
    assert kept.passwords == {DATABASE: {"password": password(world)}}
    assert kept.sources == {
        SOURCE: {
            "type": "Opaque",
            "labels": {names.KUBECONFIG_LABEL: "", names.ENVIRONMENT: "stage"},
            "annotations": {names.NAMESPACES: "echo"},
            "data": {"kubeconfig": "e30="},
        }
    }
    assert kept.external_names == {NETWORK: "vpc-1"}
    of_others = network(**CREATED, **{"crossplane.io/external-name": "vpc-9"})
    of_others["metadata"]["namespace"] = "default"
    world.core.apply(of_others, manager="test")
    assert len(state(world).collect().external_names) == 2
    beside_theirs = dataclasses.replace(state(world), others_too=True)
    assert beside_theirs.collect().external_names == kept.external_names
    world.core.delete(VPC, "demo-eu", "default")

    empty(world.core, world.apps)
    world.core.delete(VPC, "demo-eu", CLUSTERS)
    new = state(world)
    assert new.restored() == frozenset()
    assert sorted(new.restore_secrets(kept)) == sorted([DATABASE, SOURCE])
    assert new.restore_external_names(kept.external_names) == {NETWORK}
    new.note_restored("restore-backup", PASSWORDS, SOURCES)

    # Argo CD applies all of it again, and the reconciler reconciles it.
    world.core.apply(declared(), manager="argocd-controller")
    world.core.apply(network(), manager="argocd-controller")
    other = f"{CLUSTERS}/orders-stage-connection"
    world.core.apply(declared(other), manager="argocd-controller")
    world.start()
    eventually(lambda: password(world, other), "a password of its own for what is new")
    world.stop()
    assert password(world) == kept.passwords[DATABASE]["password"]
    secret = world.core.get(SECRET, "quotes-stage-connection", CLUSTERS)
    assert base64.b64decode(secret["data"]["port"]) == b"5432"
    assert new.restore_external_names(kept.external_names) == frozenset()
    new.note_restored("restore-external-names", EXTERNAL_NAMES)
    assert new.restored() == {PASSWORDS, SOURCES, EXTERNAL_NAMES}
    seen = new.collect()
    assert seen.sources == kept.sources
    # Its provider hasn't observed the VPC yet, so the backup keeps the external name.
    assert updated(kept, seen, new.is_deleted).external_names == kept.external_names
    assert seen.passwords.keys() == {DATABASE, other}


def test_existing_state_is_never_overwritten_by_a_restore(world: Clusters, managed: None) -> None:
    kept = made(world)
    world.core.apply(source("prod"), manager="kubectl")
    before = world.versions()
    old = Backup({DATABASE: {"password": "b2xk"}}, kept.sources, {NETWORK: "vpc-of-before"})
    assert state(world).restore_secrets(old) == []
    assert state(world).restore_external_names(old.external_names) == frozenset()
    assert world.versions() == before
    assert state(world).collect().external_names == {NETWORK: "vpc-1"}


def test_a_password_is_restored_to_a_secret_that_still_requests_one(world: Clusters) -> None:
    world.core.apply(declared(), manager="argocd-controller")
    assert state(world).lacking() == [DATABASE]
    assert state(world).restore_secrets(Backup({DATABASE: {"password": "b2xk"}})) == [DATABASE]
    assert state(world).lacking() == []
    assert password(world) == "b2xk"
    world.core.apply(declared(), manager="argocd-controller")
    assert password(world) == "b2xk"


def test_deleted_state_is_removed_from_the_backup_only_after_a_restore(
    world: Clusters, managed: None
) -> None:
    kept = made(world)
    for key in (DATABASE, SOURCE):
        namespace, name = key.split("/")
        world.core.delete(SECRET, name, namespace)
    world.core.delete(VPC, "demo-eu", CLUSTERS)
    core = state(world)
    # Not yet, since this core may have lost its data.
    assert updated(kept, core.collect(), core.is_deleted) == kept
    core.note_restored("restore-backup", PASSWORDS, SOURCES)
    after = updated(kept, core.collect(), core.is_deleted)
    assert (after.passwords, after.sources) == ({}, {})
    assert after.external_names == kept.external_names
    core.note_restored("restore-external-names", EXTERNAL_NAMES)
    assert not updated(kept, core.collect(), core.is_deleted)
    # State in other namespaces, and of kinds that aren't served, is unknown.
    elsewhere = Backup(
        {"monitoring/grafana-admin": {"password": "eA=="}},
        {},
        {f"Nothing.{GROUP}/x/y": "nothing-1"},
    )
    assert updated(elsewhere, core.collect(), core.is_deleted) == elsewhere


def test_a_kubeconfig_with_an_owner_is_not_backed_up(world: Clusters) -> None:
    """The kubeconfigs of LocalClusters and of Crossplane are written again by their controllers."""
    item: dict[str, Any] = source()
    del item["metadata"]["labels"]
    world.core.apply(item, manager="kubectl")
    world.declare("stage")
    world.start()
    world.await_registered()
    world.stop()
    assert not state(world).collect()


def test_a_missing_namespace_is_created_for_a_restore(world: Clusters) -> None:
    core = CoreState(world.core, ("monitoring",), ())
    key = "monitoring/grafana-admin"
    assert core.restore_secrets(Backup({key: {"password": "eA=="}})) == [key]
    assert password(world, key) == "eA=="
    assert world.core.find(CONFIG_MAP, "nothing", "monitoring") is None
    world.core.delete(SECRET, "grafana-admin", "monitoring")


@dataclass
class Git:
    """A core repository, the user's clone of it, and a backup key."""

    folder: Path

    @property
    def remote(self) -> Path:
        return self.folder / "core.git"

    @property
    def key(self) -> Path:
        return self.folder / "creds" / "backup.key"

    def make(self) -> None:
        make_remote(self.remote)
        clone = make_clone(self.folder / "core", self.remote.as_uri())
        commit = clone.write_commit("Render", {"ucp.yaml": b"{}\n"}, parent=None)
        clone.push([RefUpdate("refs/heads/main", commit)])
        key_for(self.key, lambda: False)

    def kept(self) -> Backup:
        key = load_key(self.key)
        assert key
        remote = Repository(self.remote)
        return BackupFile(remote, "main").read(remote.resolve("main"), key)

    def commits(self) -> int:
        return len(Repository(self.remote).history("main"))


@pytest.fixture
def git(tmp_path: Path, home: Path) -> Git:
    made = Git(tmp_path / "a place")
    made.make()
    return made


def backup_settings(git: Git) -> BackupSettings:
    return BackupSettings(
        git.folder / "backup", git.key, git.folder / "core", git.remote.as_uri(), "main"
    )


def writer(
    world: Clusters,
    git: Git,
    logs: io.StringIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> BackupWriter:
    kubeconfig = world.folder / "admin.yaml"
    kubeconfig.write_text(json.dumps(world.core_config))
    settings = Settings(
        kubeconfig=kubeconfig,
        machine="here",
        topology="demo",
        source_namespaces=(CLUSTERS, "crossplane-system"),
        backup=backup_settings(git),
    )
    return BackupWriter(settings, Log(logs or io.StringIO()), clock)


def said(logs: io.StringIO) -> list[str]:
    """The log messages, without times."""
    lines = [json.loads(line) for line in logs.getvalue().splitlines()]
    return [f"{each['message']} {each.get('error') or each.get('commit')}" for each in lines]


def test_only_new_state_is_committed_to_the_backup(world: Clusters, git: Git) -> None:
    logs = io.StringIO()
    keeps = writer(world, git, logs)
    world.core.apply(source(), manager="kubectl")
    keeps.write()
    # A start is running, which restores the backup first.
    assert (git.commits(), said(logs)) == (1, [])
    state(world).note_restored("restore-backup", PASSWORDS, SOURCES)
    keeps.write()
    assert git.kept().sources.keys() == {SOURCE}
    assert len(said(logs)) == 1
    assert said(logs)[0].startswith("backed up ")
    keeps.write()
    writer(world, git, logs).write()
    assert (git.commits(), len(said(logs))) == (2, 1)
    # The user's clone isn't changed.
    user = Repository(git.folder / "core")
    assert len(user.history("origin/main")) == 1
    world.core.delete(SECRET, SOURCE.partition("/")[2], SOURCE.partition("/")[0])
    world.core.apply(declared(), manager="argocd-controller")
    world.start(
        controllers=frozenset({PASSWORDS, BACKUP}), backup=backup_settings(git), backup_seconds=0.3
    )
    eventually(lambda: git.kept().passwords, "a password in the backup")
    world.stop()
    assert git.kept() == Backup({DATABASE: {"password": password(world)}})


def test_a_kubeconfig_without_its_label_is_removed_from_the_backup(
    world: Clusters, git: Git
) -> None:
    keeps = writer(world, git)
    state(world).note_restored("restore-backup", PASSWORDS, SOURCES)
    world.core.apply(source(), manager="kubectl")
    keeps.write()
    assert git.kept().sources.keys() == {SOURCE}
    namespace, name = SOURCE.split("/")
    change = {"metadata": {"labels": {names.KUBECONFIG_LABEL: None}}}
    world.core.patch(SECRET, name, namespace, change)
    keeps.write()
    assert world.core.find(SECRET, name, namespace)
    assert not git.kept()


def test_renewed_tokens_cause_one_commit_per_hour(world: Clusters, git: Git) -> None:
    now = 0.0
    keeps = writer(world, git, clock=lambda: now)
    state(world).note_restored("restore-backup", PASSWORDS, SOURCES)
    for step in range(4):
        now = step * 600.0
        world.core.apply(source() | {"data": {"kubeconfig": token(step)}}, manager="kubectl")
        keeps.write()
    assert git.commits() == 2
    assert git.kept().sources[SOURCE]["data"] == {"kubeconfig": token(0)}
    # New state is committed immediately, together with the delayed changes.
    world.core.apply(source("prod") | {"data": {"kubeconfig": token(4)}}, manager="kubectl")
    keeps.write()
    assert git.commits() == 3
    assert git.kept().sources[SOURCE]["data"] == {"kubeconfig": token(4)}
    world.core.apply(source("prod") | {"data": {"kubeconfig": token(5)}}, manager="kubectl")
    keeps.write()
    assert git.commits() == 3
    now += 3600.0
    keeps.write()
    assert git.commits() == 4
    assert git.kept().sources[SOURCE]["data"] == {"kubeconfig": token(5)}


def token(number: int) -> str:
    return base64.b64encode(f"token: {number}".encode()).decode()


def test_a_failed_push_is_reported_once_and_retried_later(world: Clusters, git: Git) -> None:
    logs = io.StringIO()
    keeps = writer(world, git, logs)
    state(world).note_restored("restore-backup", PASSWORDS, SOURCES)
    world.core.apply(source(), manager="kubectl")
    away = git.remote.with_name("away.git")
    git.remote.rename(away)
    keeps.write()
    keeps.write()
    assert len(said(logs)) == 1
    assert said(logs)[0].startswith("not backed up ")
    note = git.folder / "backup" / "failed"
    assert note.stat().st_mode & 0o777 == 0o600
    assert "core.git" in note.read_text()
    away.rename(git.remote)
    keeps.write()
    assert git.kept().sources.keys() == {SOURCE}
    assert not note.exists()
    empty_objects(git.folder / "backup/core/.git")
    world.core.apply(source("prod"), manager="kubectl")
    keeps.write()
    assert "was damaged, and has been deleted" in said(logs)[-1]
    keeps.write()
    assert git.kept().sources[SOURCE]["labels"][names.ENVIRONMENT] == "prod"
    git.key.rename(git.key.with_name("away.key"))
    world.core.apply(declared(), manager="argocd-controller")
    keeps.write()
    assert said(logs)[-1] == f"not backed up the backup key {git.key} is missing"
    assert not git.key.exists()
