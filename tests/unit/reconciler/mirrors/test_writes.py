"""Responses of app clusters to the writer of copies, which may have any form."""

from __future__ import annotations

from typing import Any, cast

import pytest

from k8s_ucp.kube import Kube, Object, Unreachable
from k8s_ucp.reconciler.mirrors.copies import ObjectRef, copy_of
from k8s_ucp.reconciler.mirrors.rules import Orphan
from k8s_ucp.reconciler.mirrors.writes import Writer

REF = ObjectRef("Secret", "shop", "db")
LIVE: Object = {
    "kind": "Secret",
    "metadata": {"namespace": "shop", "name": "db", "uid": "u1", "resourceVersion": "7"},
}
ODD: list[Any] = [
    {},
    {"metadata": 5},
    {"metadata": {"name": "db"}},
    {**LIVE, "metadata": {**LIVE["metadata"], "annotations": ["x"]}},
    {**LIVE, "type": 5},
    {**LIVE, "data": {"a": object()}},
]


class Server:
    """An API server that answers reads and writes with one object each."""

    server = "https://192.0.2.1"

    def __init__(self, read: Any, written: Any = None) -> None:
        self.read, self.written = read, written

    def request(self, method: str, *_: Any, **__: Any) -> Any:
        return self.read if method == "GET" else self.written


def writer(read: Any, written: Any = None) -> Writer:
    return Writer(cast(Kube, Server(read, written)), "demo-stage", "demo")


@pytest.mark.parametrize("odd", ODD)
def test_a_response_of_another_form_counts_as_no_response(odd: Any) -> None:
    """As a bug it would be logged with each of the cluster's copies, for ever."""
    found = copy_of(LIVE, "demo-stage")
    with pytest.raises(Unreachable, match="the response is not Secret/shop/db"):
        writer(odd).read(REF)
    with pytest.raises(Unreachable, match="the response is not Secret/shop/db"):
        writer(odd).perform(REF, Orphan(found))
    with pytest.raises(Unreachable, match="the response is not Secret/shop/db"):
        writer(LIVE, odd).perform(REF, Orphan(found))


def test_a_released_copy_is_read_and_written() -> None:
    found = writer(LIVE).read(REF)
    assert found is not None and found.version == "7"
    assert writer(LIVE, LIVE).perform(REF, Orphan(found)) is None
