"""Port allocation: never a port twice, and never one from the kernel's ephemeral range."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.clusters.ports import HIGHEST, LOWEST, NODE_PORTS, Ports, candidates, choose
from k8s_ucp.errors import UcpError

LINUX = range(32768, 61000)


@given(start=st.integers(min_value=0))
def test_candidates_exclude_ephemeral_ports_and_node_ports(start: int) -> None:
    ports = list(candidates(LINUX, start=start))
    assert len(ports) == len(set(ports))
    assert not set(ports) & set(LINUX)
    assert not set(ports) & set(NODE_PORTS)
    assert LOWEST <= min(ports) <= max(ports) < HIGHEST


def test_all_ports_are_candidates_if_the_ephemeral_range_covers_them_all() -> None:
    assert list(candidates(range(1024, 65536), start=0))


@given(
    taken=st.sets(st.integers(0, 40)),
    busy=st.sets(st.integers(0, 40)),
    count=st.integers(0, 45),
)
def test_chosen_ports_are_free_and_different(taken: set[int], busy: set[int], count: int) -> None:
    free = [port for port in range(40) if port not in taken | busy]
    if count > len(free):
        with pytest.raises(UcpError, match="not enough free ports"):
            choose(range(40), count, taken, lambda port: port not in busy)
    else:
        assert choose(range(40), count, taken, lambda port: port not in busy) == free[:count]


def test_known_ports_need_no_writable_registry(tmp_path: Path) -> None:
    """`ucp status` works under a user whose home, and so its cache, can't be written to."""
    (tmp_path / "home").write_text("a file, in which no user can make a folder")
    ports = Ports(tmp_path / "home" / ".cache" / "ports.json")
    assert ports.reserve("/a", ["web"], known={"web": 23000, "old": 23001}) == {"web": 23000}
    with pytest.raises(UcpError, match="failed to create the folder"):
        ports.reserve("/a", ["web", "api"], known={"web": 23000})


def test_known_ports_need_no_registry_that_is_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a command under sudo with the user's home, root may own the files in the cache."""
    file = tmp_path / "ports.json"
    lock = tmp_path / "ports.json.lock"
    lock.touch()
    monkeypatch.setattr("os.access", lambda path, mode: path != lock)
    ports = Ports(file)
    assert ports.reserve("/a", ["web"], known={"web": 23000}) == {"web": 23000}
    with pytest.raises(UcpError, match=r"ports\.json\.lock is not writable for you") as refused:
        ports.reserve("/a", ["web", "api"], known={"web": 23000})
    assert f"ls -l {lock}" in str(refused.value.next)
