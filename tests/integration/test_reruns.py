"""A test that failed is run once more with fixtures that its first run didn't change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFTEST = """
from tests.conftest import pytest_runtest_setup
"""

TESTS = """
import pytest

ended = []

@pytest.fixture(scope="package")
def cluster():
    found = set()
    yield found
    ended.append(found)

@pytest.fixture(scope="module")
def client(cluster):
    return cluster

def test_before(client):
    client.add("namespace")

@pytest.mark.flaky(reruns=1)
def test_that_misses_its_deadline_once(client):
    assert "object" not in client
    client.add("object")
    assert ended

def test_after(client):
    assert client == {"object"}
    assert ended == [{"namespace", "object"}]
"""


def test_a_rerun_starts_with_new_shared_fixtures(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_shared.py").write_text(TESTS)
    root = Path(__file__).parents[2]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--rootdir={tmp_path}",
    ]
    done = subprocess.run(
        [*command, str(tmp_path)], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert "3 passed, 1 rerun" in done.stdout, done.stdout + done.stderr
