"""The backup in a real core repository: written only if its content changed."""

from __future__ import annotations

import shlex
import shutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.git.clones import make_clone
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.check_hook import ensure_check_hook
from k8s_ucp.preflight.credentials import check_backup_key
from k8s_ucp.reconciler.backup.backup_file import BackupFile
from k8s_ucp.reconciler.backup.backup_key import BackupKey, BadKey, key_for
from k8s_ucp.reconciler.backup_content import PATH, Backup
from k8s_ucp.workspace import Workspace
from tests.integration.gitops.conftest import Repositories
from tests.unit.gitops.topologies import demo

CANARY = "czNjcjN0LWNhbmFyeQ=="
STATE = Backup({"ucp-clusters/quotes-stage-connection": {"password": CANARY}})


@pytest.fixture
def key(tmp_path: Path) -> BackupKey:
    return key_for(tmp_path / "creds" / "backup.key", lambda: False)


def file(world: Repositories) -> BackupFile:
    return BackupFile(Repository(world.folder.core), "main")


def keep(backup: Backup) -> Callable[[Backup], Backup]:
    return lambda _: backup


def blobs(folder: Path) -> bytes:
    """All objects of a repository, uncompressed."""
    repository = Repository(folder)
    ids = repository.git("rev-list", "--objects", "--all", "--no-object-names").decode().split()
    return repository.git("cat-file", "--batch", stdin="".join(f"{id}\n" for id in ids).encode())


def test_empty_backup_creates_no_file_and_no_commit(world: Repositories, key: BackupKey) -> None:
    world.start()
    before = world.refs()
    assert file(world).save(key, keep(Backup())) is None
    assert world.refs() == before
    assert PATH not in world.files("core")


def test_new_content_is_written_once_and_read_back(world: Repositories, key: BackupKey) -> None:
    world.start()
    commit = file(world).save(key, keep(STATE))
    assert commit == Repository(world.folder.core_remote).resolve("main")
    assert file(world).read(commit, key) == STATE
    before = world.refs()
    # age encrypts to different bytes each time, so the content is compared.
    assert file(world).save(key, keep(STATE)) is None
    assert world.refs() == before
    assert not world.start().changed
    assert world.refs() == before


def test_the_backup_of_another_topology_is_not_overwritten(
    world: Repositories, key: BackupKey
) -> None:
    world.start()
    replace(file(world), topology="one").save(key, keep(STATE))
    before = world.refs()
    with pytest.raises(UcpError, match="is the backup of the topology one, not of two"):
        replace(file(world), topology="two").save(key, keep(Backup()))
    assert world.refs() == before


def test_change_is_a_new_commit_and_the_old_version_stays_in_history(
    world: Repositories, key: BackupKey
) -> None:
    world.start()
    first = file(world).save(key, keep(STATE))
    more = replace(STATE, external_names={"VPC.ec2.aws.m.upbound.io/ucp-clusters/eu": "vpc-1"})
    second = file(world).save(key, keep(more))
    assert file(world).read(second, key) == more
    assert file(world).read(first, key) == STATE


def test_git_contains_no_plaintext_and_no_key(world: Repositories, key: BackupKey) -> None:
    world.start()
    file(world).save(key, keep(STATE))
    for folder in (world.folder.core_remote, world.folder.core):
        found = blobs(folder)
        assert b"age-encryption.org" in found or b"BEGIN AGE" in found
        for secret in (CANARY, "s3cr3t-canary", 'quotes-stage-connection"', "AGE-SECRET-KEY"):
            assert secret.encode() not in found


def test_concurrent_push_is_kept(world: Repositories, key: BackupKey) -> None:
    world.start()
    pushed: list[str] = []

    def change(known: Backup) -> Backup:
        if len(pushed) < 3:
            pushed.append(world.push("core", {f"notes/{len(pushed)}.md": b"mine\n"}))
        return STATE

    commit = file(world).save(key, change)
    assert file(world).read(commit, key) == STATE
    assert {f"notes/{number}.md" for number in range(3)} <= world.files("core").keys()


def test_concurrent_writers_of_the_same_content_create_one_commit(
    world: Repositories, key: BackupKey
) -> None:
    world.start()
    url = world.folder.core_remote.as_uri()
    both = threading.Barrier(2, timeout=30)

    def save(name: str) -> str | None:
        clone = make_clone(world.person / name, url)
        clone.fetch()
        both.wait()
        return BackupFile(clone, "main").save(key, keep(STATE))

    with ThreadPoolExecutor(2) as pool:
        commits = list(pool.map(save, ("one", "two")))
    assert len([each for each in commits if each]) == 1
    assert len(Repository(world.folder.core_remote).history("main", PATH)) == 1


def test_renamed_branch_is_not_created_again(world: Repositories, key: BackupKey) -> None:
    world.start()
    Repository(world.folder.core_remote).git("branch", "-m", "main", "trunk")
    before = world.refs()
    with pytest.raises(UcpError, match="core repository has no branch main; its branches: trunk"):
        file(world).save(key, keep(STATE))
    assert world.refs() == before


def test_another_key_writes_nothing(world: Repositories, key: BackupKey, tmp_path: Path) -> None:
    world.start()
    file(world).save(key, keep(STATE))
    before = world.refs()
    other = key_for(tmp_path / "other.key", lambda: False)
    with pytest.raises(BadKey):
        file(world).save(other, keep(Backup()))
    assert world.refs() == before


def test_push_of_only_the_backup_is_not_checked(
    world: Repositories, key: BackupKey, tmp_path: Path
) -> None:
    world.start()
    called = tmp_path / "called"
    kustomize = tmp_path / "kustomize"
    kustomize.write_text(f"#!/bin/sh\n: >{shlex.quote(str(called))}\nexit 1\n")
    kustomize.chmod(0o755)
    python = Path(sys.executable)
    ensure_check_hook(world.folder.core_remote, "core", python=python, kustomize=kustomize)
    assert file(world).save(key, keep(STATE))
    assert not called.exists()
    world.push("core", {"notes.md": b"mine\n"})
    assert called.exists()


def context(world: Repositories, **git: str) -> StartContext:
    """The topology's workspace; git: of another machine, which has only the addresses."""
    if not git:
        return StartContext(workspace=Workspace.at(world.folder.root.parents[1]), topology=demo())
    return StartContext(workspace=Workspace.at(world.person), topology=demo(git=git))


def backed_up(world: Repositories) -> bytes:
    """A repository with a backup; the content of the key file, which the workspace has."""
    world.start()
    here = context(world).workspace.backup_key
    file(world).save(key_for(here, lambda: False), keep(STATE))
    return here.read_bytes()


def test_backup_without_its_key_is_reported_before_the_first_change(world: Repositories) -> None:
    check_backup_key(context(world))
    text = backed_up(world)
    check_backup_key(context(world))
    path = context(world).workspace.backup_key
    path.unlink()
    for again in range(2):
        if again:
            # The remote is checked, not the clone.
            shutil.rmtree(world.folder.core)
        with pytest.raises(BadKey, match="is missing") as caught:
            check_backup_key(context(world))
        assert "restore your copy of the key" in str(caught.value)
        assert not path.exists()
    key_for(path, lambda: False)
    with pytest.raises(BadKey, match="can't decrypt the backup"):
        check_backup_key(context(world))
    path.write_bytes(text)
    check_backup_key(context(world))


def test_an_emptied_backup_is_not_taken_for_none(world: Repositories) -> None:
    """Otherwise new passwords would be generated, and a new key if it is missing."""
    backed_up(world)
    key = context(world).workspace.backup_key
    world.push("core", {PATH: b""})
    with pytest.raises(UcpError, match=f"{PATH}, is damaged"):
        check_backup_key(context(world))
    key.unlink()
    with pytest.raises(BadKey, match="is missing"):
        check_backup_key(context(world))


def test_new_machine_checks_a_remote_repository_for_a_backup(world: Repositories) -> None:
    text = backed_up(world)
    urls = {
        "core": world.folder.core_remote.as_uri(),
        "apps": world.folder.apps_remote.as_uri(),
    }
    elsewhere = context(world, provider="url", **urls)
    with pytest.raises(BadKey, match="is missing"):
        check_backup_key(elsewhere)
    # The check leaves nothing behind.
    assert not elsewhere.gitops.root.exists()
    elsewhere.workspace.credentials.mkdir(parents=True)
    elsewhere.workspace.backup_key.write_bytes(text)
    check_backup_key(elsewhere)


def test_repository_without_a_backup_needs_no_key(world: Repositories) -> None:
    world.start()
    check_backup_key(context(world))
    assert not context(world).workspace.backup_key.exists()
    broken = context(world).workspace.backup_key
    broken.parent.mkdir()
    broken.write_text("no key")
    with pytest.raises(BadKey, match="is not a valid backup key"):
        check_backup_key(context(world))
