"""Which file of the cache is taken for a seed, and which is as good as none."""

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
"""As API servers store them to this day."""
SEED = Seed("digest", {NAME: json.dumps(STORED)})


def kept(cache: Path, seed: Seed = SEED, key: str = "key") -> Path:
    seeds.keep(cache, key, seed)
    return cache / "seeds" / f"{key}.json"


def test_what_was_kept_is_found_and_the_users_alone(tmp_path: Path) -> None:
    file = kept(tmp_path)
    assert seeds.find(tmp_path, "key") == SEED
    assert file.stat().st_mode & 0o777 == 0o600
    assert seeds.find(tmp_path, "other") is None


def test_the_seed_of_other_pins_is_not_taken_under_a_new_name(tmp_path: Path) -> None:
    kept(tmp_path).rename(tmp_path / "seeds" / "new.json")
    assert seeds.find(tmp_path, "new") is None


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_a_file_that_is_cut_off_is_none(tmp_path: Path, cut: int) -> None:
    file = kept(tmp_path)
    file.write_bytes(file.read_bytes()[:cut])
    assert seeds.find(tmp_path, "key") is None


@pytest.mark.parametrize("text", ["", "{}", "[]\n{}", "null\nnull", '{"digest": 1}\n[]', "\x00\n"])
def test_a_file_of_something_else_is_none(tmp_path: Path, text: str) -> None:
    kept(tmp_path).write_text(text)
    assert seeds.find(tmp_path, "key") is None


def test_changed_kinds_are_none(tmp_path: Path) -> None:
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
def test_what_is_no_kind_of_that_name_is_none(tmp_path: Path, content: str) -> None:
    kept(tmp_path, Seed("digest", {NAME: content}))
    assert seeds.find(tmp_path, "key") is None


def test_what_others_may_write_is_none(tmp_path: Path) -> None:
    kept(tmp_path).chmod(0o620)
    assert seeds.find(tmp_path, "key") is None


def test_the_oldest_files_go(tmp_path: Path) -> None:
    for number in range(seeds.MOST + 2):
        os.utime(kept(tmp_path, key=str(number)), (number, number))
    assert seeds.find(tmp_path, "1") is None
    assert seeds.find(tmp_path, "2") == SEED


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    kept(tmp_path, key="first")
    with locked_now(tmp_path / "seeds" / ".lock"):
        kept(tmp_path)
    assert seeds.find(tmp_path, "key") is None


def test_seeds_of_other_pins_are_removed_and_named(tmp_path: Path) -> None:
    kept(tmp_path, key="used")
    unused, left = kept(tmp_path, key="unused"), tmp_path / "seeds" / ".used.json.123.tmp"
    left.touch()
    assert seeds.prune(tmp_path, {"used", "never made"}) == ["seeds/unused.json"]
    assert seeds.find(tmp_path, "used") == SEED
    assert not unused.exists()
    assert not left.exists()
    assert seeds.prune(tmp_path, {"used"}) == []


def test_a_cache_without_seeds_has_none_to_remove(tmp_path: Path) -> None:
    assert seeds.prune(tmp_path, ()) == []
    assert not list(tmp_path.iterdir())
