"""The hash of a module's archive, which anyone may have changed on the way."""

from __future__ import annotations

import random
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from k8s_ucp.tools.go.module_archive import module_hash


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_changed_archive_has_no_hash_or_another_one(tmp_path: Path, method: int) -> None:
    archive, chance = tmp_path / "module.zip", random.Random(1)
    with zipfile.ZipFile(archive, "w", method) as files:
        for number in range(3):
            files.writestr(f"example.org/é@v1.0.0/{number}.go", f"package {number}\n" * 50)
    content = archive.read_bytes()
    assert module_hash(archive).startswith("h1:")
    for _ in range(300):
        changed = bytearray(content)
        for _ in range(3):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        archive.write_bytes(changed)
        found = module_hash(archive)
        assert not found or found.startswith("h1:")


def test_a_huge_file_in_an_archive_is_not_held_in_memory(tmp_path: Path) -> None:
    archive = tmp_path / "module.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        files.writestr("example.org/a@v1.0.0/zeros", bytes(40_000_000))
    tracemalloc.start()
    try:
        assert module_hash(archive).startswith("h1:")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
