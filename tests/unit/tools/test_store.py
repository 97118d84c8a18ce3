"""Entries of the cache: which of them can be pruned."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from k8s_ucp.process import is_mentioned, spawn, terminate
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.store import StoreEntry, ToolStore


@pytest.fixture
def store(tmp_path: Path) -> ToolStore:
    found = ToolStore(tmp_path / "user cache")
    found.make()
    return found


def installed(store: ToolStore, name: str, tool: str = "sleeper") -> Path:
    """Folder of a new entry with the program `sleep`."""
    partial = store.new_partial(name, lambda _: None)
    (partial / "bin").mkdir()
    program = shutil.which("sleep")
    assert program
    copy = Path(shutil.copy(program, partial / "bin" / "sleep"))
    digest = hashlib.sha256(copy.read_bytes()).hexdigest()
    store.publish(StoreEntry(name, tool, "1", name, "go", 1.0, {"sleep": digest}, False), partial)
    return store.folder(name)


def test_entries_of_other_versions_are_pruned_unless_in_use(
    store: ToolStore, tmp_path: Path
) -> None:
    needed, unused = installed(store, "sleeper-2"), installed(store, "sleeper-1")
    runs, named = installed(store, "sleeper-0"), installed(store, "helper-0")
    running = [
        spawn([runs / "bin/sleep", "60"], env={}, cwd=tmp_path, log=tmp_path / "log"),
        # As Argo CD's repo-server finds kustomize, which it runs only now and then.
        spawn(
            [str(shutil.which("sleep")), "60"],
            env={"PATH": f"{named / 'bin'}:{os.defpath}"},
            cwd=tmp_path,
            log=tmp_path / "log",
        ),
    ]
    try:
        found = store.prune(lambda entry: entry.digest == "sleeper-2", is_mentioned)
    finally:
        for each in running:
            terminate(each, grace=5)
    assert found == (["sleeper-1"], ["helper-0", "sleeper-0"])
    assert [each.exists() for each in (needed, unused, runs, named)] == [True, False, True, True]
    assert not list(tmp_path.rglob("*.partial"))


def test_an_entry_being_installed_is_not_pruned(store: ToolStore) -> None:
    folder = installed(store, "sleeper-1")
    with store.lock("sleeper-1", 1, lambda _: None):
        assert store.prune(lambda _: False, is_mentioned) == ([], ["sleeper-1"])
    assert folder.exists()


def test_an_installer_prunes_entries_that_its_catalogue_does_not_have(store: ToolStore) -> None:
    installed(store, "helm-0.0.1-abc", tool="helm")
    installer = Installer(store.cache, lambda _: None)
    assert installer.prune() == (["helm-0.0.1-abc"], [])
    assert installer.prune() == ([], [])
