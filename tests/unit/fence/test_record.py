"""Who may write the next record, and what it says."""

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


def test_what_nobody_has_is_claimed() -> None:
    assert claimed(None, HERE, 10.0) == FenceRecord(1, HERE, 10.0)


def test_a_holder_keeps_its_epoch() -> None:
    first = claimed(None, HERE, 10.0)
    assert claimed(first, replace(HERE, workspace="/moved"), 20.0) == first


def test_another_core_is_refused_and_told_who_has_it() -> None:
    with pytest.raises(FenceHeld) as refused:
        claimed(FenceRecord(4, THERE, 0.0), HERE, 20.0)
    assert "/home/user/there on machine laptop" in refused.value.message
    assert "since 1970-01-01 00:00:00 UTC (epoch 4)" in refused.value.message
    assert "ucp stop --workspace /home/user/there on machine laptop" in str(refused.value.next)
    assert "ucp start --takeover" in str(refused.value.next)


def test_a_takeover_counts_up_and_says_that_the_core_before_may_still_write() -> None:
    taken = claimed(FenceRecord(4, THERE, 0.0), HERE, 20.0, takeover=True)
    assert taken == FenceRecord(5, HERE, 20.0, taken=True)


def test_what_was_released_is_free_for_all_and_nothing_is_waited_for() -> None:
    free = released(FenceRecord(4, THERE, 0.0), THERE.id, 10.0)
    assert free is not None
    assert claimed(free, HERE, 20.0) == FenceRecord(5, HERE, 20.0)
    assert claimed(free, HERE, 20.0, takeover=True) == FenceRecord(5, HERE, 20.0)


def test_only_its_holder_releases_it() -> None:
    assert released(FenceRecord(4, THERE, 0.0), HERE.id, 10.0) is None
    assert released(None, HERE.id, 10.0) is None


@pytest.mark.parametrize("record", [FenceRecord(1, HERE, 1.5, taken=True), FenceRecord(2, None, 0)])
def test_what_was_written_is_read(record: FenceRecord) -> None:
    assert parse(dump(record)) == record


@pytest.mark.parametrize("since", ["1e99", "Infinity", "NaN"])
@pytest.mark.parametrize("epoch", ["1", "Infinity"])
def test_a_time_that_can_not_be_told_is_an_error(since: str, epoch: str) -> None:
    """Whoever may push can write it; the guard of each core tells the time to its log."""
    content = f'{{"epoch": {epoch}, "holder": null, "since": {since}, "taken": false}}'
    with pytest.raises(UcpError, match="can't be read"):
        parse(content.encode())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"epoch": 1}', b'{"holder": 3}'])
def test_anything_else_is_an_error(content: bytes) -> None:
    with pytest.raises(UcpError, match="can't be read"):
        parse(content)
