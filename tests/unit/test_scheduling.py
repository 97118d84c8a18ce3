from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.scheduling import CHAINS, LONG, NEVER_LATE, QUICK, one_worker, place

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(each.relative_to(ROOT).as_posix() for each in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("name", [*QUICK, *LONG])
def test_every_scheduled_name_has_test_files(name: str) -> None:
    assert [each for each in FILES if one_worker(each).startswith(name)]


def test_quick_test_files_run_first_and_the_longest_follow() -> None:
    files = random.Random(1).sample(FILES, len(FILES))
    files.sort(key=lambda each: place(f"{each}::test", kind=False))

    quick = [each for each in FILES if each.startswith(QUICK)]
    assert set(files[: len(quick)]) == set(quick)
    names = list(dict.fromkeys(map(one_worker, files[len(quick) :])))
    assert tuple(names[: len(LONG)]) == LONG
    for chain in CHAINS:
        assert tuple(each for each in files if each in chain) == chain


def test_most_of_the_longest_files_run_last_if_time_is_limited() -> None:
    files = random.Random(1).sample(FILES, len(FILES))
    files.sort(key=lambda each: place(f"{each}::test", kind=False, limited=True))

    names = list(dict.fromkeys(one_worker(each) for each in files if not each.startswith(QUICK)))
    assert tuple(names[:NEVER_LATE]) == LONG[:NEVER_LATE]
    late = LONG[NEVER_LATE:]
    assert tuple(names[-len(late) :]) == late


def test_tests_that_need_kind_run_last_on_one_worker() -> None:
    nodes = [f"tests/e2e/{file}.py::test_it[a-kind]" for file in ("test_lifecycle", "test_pods")]
    assert {one_worker(each) for each in nodes} == {"demo[kind]"}
    last = place("tests/integration/test_locks.py::test_it", kind=False)
    assert all(place(each, kind=True) > last for each in nodes)


def test_the_tests_that_restart_docker_run_first_and_last_of_those_with_kind() -> None:
    """So they restart it at about the same time: the shared topology's tests take longest."""
    shared = "tests/e2e/test_pods.py::test_it[kind]"
    alone = "tests/e2e/test_kind_environment.py::test_it"
    others = [
        "tests/contracts/test_cluster_provider.py::test_it[kind]",
        "tests/e2e/test_kind_mirror.py::test_it",
    ]
    order = sorted([alone, *others, shared], key=lambda each: place(each, kind=True))
    assert order == [shared, *others, alone]
