"""Commands that render users' manifests use the programs that a start has installed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from k8s_ucp.cli.app_sources import pinned_helm
from k8s_ucp.cli.check import helm, kustomize
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.recipe import release_of
from k8s_ucp.tools.store import StoreEntry, ToolStore, file_hash
from k8s_ucp.topology import default

SAID: list[str] = []
CALL: Any = SimpleNamespace(console=SimpleNamespace(say=SAID.append))


@pytest.fixture
def downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A cache that contains releases of kustomize and helm, and nothing else."""
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    store = ToolStore(tmp_path / "cache")
    store.make()
    return {name: _published(store, name, tmp_path / name) for name in ("kustomize", "helm")}


def _published(store: ToolStore, name: str, folder: Path) -> Path:
    recipe = release_of(CATALOGUE[name])
    assert recipe is not None
    program = folder / "bin" / name
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    entry = StoreEntry(
        name=recipe.entry_name(None),
        tool=name,
        version=recipe.version,
        digest=recipe.digest,
        compiler="",
        seconds=0,
        sha256={name: file_hash(program)},
        keeps_module=False,
        source="release",
    )
    store.publish(entry, folder)
    return store.program(entry.name, name)


def test_downloaded_programs_are_used_like_built_ones(downloaded: dict[str, Path]) -> None:
    assert kustomize() == downloaded["kustomize"]
    assert helm() == downloaded["helm"]
    for topology in (default(), None):
        assert pinned_helm(CALL, topology) == downloaded["helm"]
    assert not SAID
