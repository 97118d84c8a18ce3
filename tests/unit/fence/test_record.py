"""Which core may write the next fence record, and its contents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.fence.record import (
    FenceHeld,
    FenceHolder,
    FenceRecord,
    claimed,
    dump,
    parse,
    released,
)

HERE = FenceHolder("1", "desk", "/home/user/here", "embedded")
THERE = replace(HERE, id="2", machine="laptop", workspace="/home/user/there")


def test_an_absent_fence_is_claimed() -> None:
    assert claimed(None, HERE, 10.0) == FenceRecord(1, HERE, 10.0)


def test_a_holder_keeps_its_epoch() -> None:
    first = claimed(None, HERE, 10.0)
    assert claimed(first, HERE, 20.0) == first
    # Others are told where to stop it.
    moved = replace(HERE, workspace="/moved")
    assert claimed(first, moved, 20.0) == replace(first, holder=moved)


def test_another_core_is_refused_with_the_current_holder() -> None:
    with pytest.raises(FenceHeld) as refused:
        claimed(FenceRecord(4, THERE, 0.0), HERE, 20.0)
    assert "/home/user/there on machine laptop" in refused.value.message
    assert "since 1970-01-01 00:00:00 UTC (epoch 4)" in refused.value.message
    assert "on machine laptop: ucp stop --workspace /home/user/there; " in str(refused.value.next)
    assert "ucp start --takeover" in str(refused.value.next)


def test_a_takeover_increments_the_epoch_and_is_marked_as_taken() -> None:
    taken = claimed(FenceRecord(4, THERE, 0.0), HERE, 20.0, takeover=True)
    assert taken == FenceRecord(5, HERE, 20.0, taken=True)


def test_a_released_fence_can_be_claimed_without_waiting() -> None:
    free = released(FenceRecord(4, THERE, 0.0), THERE.id, 10.0)
    assert free is not None
    assert claimed(free, HERE, 20.0) == FenceRecord(5, HERE, 20.0)
    assert claimed(free, HERE, 20.0, takeover=True) == FenceRecord(5, HERE, 20.0)


def test_only_the_holder_can_release_the_fence() -> None:
    assert released(FenceRecord(4, THERE, 0.0), HERE.id, 10.0) is None
    assert released(None, HERE.id, 10.0) is None


def test_deeply_nested_record_is_refused() -> None:
    with pytest.raises(UcpError, match="can't be read"):
        parse(100_000 * b"[")


@pytest.mark.parametrize("record", [FenceRecord(1, HERE, 1.5, taken=True), FenceRecord(2, None, 0)])
def test_a_record_is_parsed_back_unchanged(record: FenceRecord) -> None:
    assert parse(dump(record)) == record


@pytest.mark.parametrize("since", ["1e99", "Infinity", "NaN"])
@pytest.mark.parametrize("epoch", ["1", "Infinity"])
def test_a_record_with_an_invalid_time_is_an_error(since: str, epoch: str) -> None:
    """Anyone who can push can write it, and the guard of each core formats it for its log."""
    content = f'{{"epoch": {epoch}, "holder": null, "since": {since}, "taken": false}}'
    with pytest.raises(UcpError, match="can't be read"):
        parse(content.encode())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"epoch": 1}', b'{"holder": 3}'])
def test_a_record_that_cannot_be_parsed_is_an_error(content: bytes) -> None:
    with pytest.raises(UcpError, match="can't be read"):
        parse(content)
