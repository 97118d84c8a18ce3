"""Locked requirements: users install the versions that the tests run with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LOCKS = (
    "requirements/ucp.txt",
    "requirements/cloud.txt",
    "requirements/promote.txt",
    "src/k8s_ucp/components/pods/image/requirements.txt",
)


def pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)(?:\[.*?\])?==(\S+)", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS)
def test_users_install_the_versions_that_the_tests_run_with(lock: str) -> None:
    locked, tested = pins(ROOT / lock), pins(ROOT / "requirements/dev.txt")
    assert len(locked) > 10
    assert {name: version for name, version in locked.items() if tested.get(name) != version} == {}
