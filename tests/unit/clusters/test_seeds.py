"""Which files of the cache are used as seeds, and which are ignored."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from k8s_ucp.cluster_provider import Seed
from k8s_ucp.clusters import seeds
from k8s_ucp.kube import CRD
from k8s_ucp.locks import locked_now

NAME = "widgets.example.org"
STORED = {**CRD.object(NAME), "apiVersion": "apiextensions.k8s.io/v1beta1", "spec": {}}
"""API servers still store CRDs in this version."""
SEED = Seed("digest", {NAME: json.dumps(STORED)})


def kept(cache: Path, seed: Seed = SEED, key: str = "key") -> Path:
    seeds.keep(cache, key, seed)
    return cache / "seeds" / f"{key}.json"


def test_a_cached_seed_is_found_and_only_the_user_can_read_it(tmp_path: Path) -> None:
    file = kept(tmp_path)
    assert seeds.find(tmp_path, "key") == SEED
    assert file.stat().st_mode & 0o777 == 0o600
    assert seeds.find(tmp_path, "other") is None


def test_a_renamed_seed_of_other_versions_is_ignored(tmp_path: Path) -> None:
    kept(tmp_path).rename(tmp_path / "seeds" / "new.json")
    assert seeds.find(tmp_path, "new") is None


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_a_truncated_seed_is_ignored(tmp_path: Path, cut: int) -> None:
    file = kept(tmp_path)
    file.write_bytes(file.read_bytes()[:cut])
    assert seeds.find(tmp_path, "key") is None


@pytest.mark.parametrize("text", ["", "{}", "[]\n{}", "null\nnull", '{"digest": 1}\n[]', "\x00\n"])
def test_a_file_that_is_not_a_seed_is_ignored(tmp_path: Path, text: str) -> None:
    kept(tmp_path).write_text(text)
    assert seeds.find(tmp_path, "key") is None


def test_a_seed_with_changed_kinds_is_ignored(tmp_path: Path) -> None:
    file = kept(tmp_path)
    file.write_text(file.read_text().replace("example.org", "example.net"))
    assert seeds.find(tmp_path, "key") is None


@pytest.mark.parametrize(
    "content",
    [
        "no JSON",
        "[]",
        json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME}}),
        json.dumps(CRD.object("others.example.org")),
    ],
)
def test_a_seed_entry_that_is_not_the_named_kind_is_ignored(tmp_path: Path, content: str) -> None:
    kept(tmp_path, Seed("digest", {NAME: content}))
    assert seeds.find(tmp_path, "key") is None


def test_a_seed_that_other_users_can_write_is_ignored(tmp_path: Path) -> None:
    kept(tmp_path).chmod(0o620)
    assert seeds.find(tmp_path, "key") is None


def test_the_oldest_seeds_are_deleted(tmp_path: Path) -> None:
    for number in range(seeds.MOST + 2):
        os.utime(kept(tmp_path, key=str(number)), (number, number))
    assert seeds.find(tmp_path, "1") is None
    assert seeds.find(tmp_path, "2") == SEED


def test_no_seed_is_written_while_another_process_holds_the_lock(tmp_path: Path) -> None:
    kept(tmp_path, key="first")
    with locked_now(tmp_path / "seeds" / ".lock"):
        kept(tmp_path)
    assert seeds.find(tmp_path, "key") is None


def test_seeds_of_other_versions_are_pruned_and_listed(tmp_path: Path) -> None:
    kept(tmp_path, key="used")
    unused, left = kept(tmp_path, key="unused"), tmp_path / "seeds" / ".used.json.123.tmp"
    left.touch()
    assert seeds.prune(tmp_path, {"used", "never made"}) == ["seeds/unused.json"]
    assert seeds.find(tmp_path, "used") == SEED
    assert not unused.exists()
    assert not left.exists()
    assert seeds.prune(tmp_path, {"used"}) == []


def test_pruning_a_cache_without_seeds_does_nothing(tmp_path: Path) -> None:
    assert seeds.prune(tmp_path, ()) == []
    assert not list(tmp_path.iterdir())
