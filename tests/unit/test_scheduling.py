from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.scheduling import CHAINS, LONG, QUICK, one_worker, place

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(each.relative_to(ROOT).as_posix() for each in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("name", [*QUICK, *LONG])
def test_what_is_named_is_there(name: str) -> None:
    assert [each for each in FILES if one_worker(each).startswith(name)]


def test_quick_ones_begin_and_the_longest_follow() -> None:
    files = random.Random(1).sample(FILES, len(FILES))
    files.sort(key=lambda each: place(f"{each}::test", kind=False))

    quick = [each for each in FILES if each.startswith(QUICK)]
    assert set(files[: len(quick)]) == set(quick)
    names = list(dict.fromkeys(map(one_worker, files[len(quick) :])))
    assert tuple(names[: len(LONG)]) == LONG
    for chain in CHAINS:
        assert tuple(each for each in files if each in chain) == chain


def test_what_needs_kind_comes_last_on_one_worker() -> None:
    nodes = [f"tests/e2e/{file}.py::test_it[a-kind]" for file in ("test_path", "test_pods")]
    assert {one_worker(each) for each in nodes} == {"demo[kind]"}
    last = place("tests/integration/test_locks.py::test_it", kind=False)
    assert all(place(each, kind=True) > last for each in nodes)
