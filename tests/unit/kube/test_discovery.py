"""Lists of kinds are read from servers that may send anything."""

from __future__ import annotations

from typing import Any, cast

import pytest

from k8s_ucp.clusters.embedded.api_server import gateway_kinds
from k8s_ucp.kube import Kube


class Server:
    """An API server with one answer."""

    server = "https://192.0.2.1"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def request(self, method: str, path: str, *, timeout: float) -> Any:
        assert (method, path) == ("GET", "/apis/gateway.networking.k8s.io/v1")
        return self.answer


def test_kinds_of_the_gateway_api_are_listed_without_subresources() -> None:
    listed = [
        {"name": name, "kind": kind, "namespaced": True, "verbs": ["get"]}
        for name, kind in (("gateways", "Gateway"), ("gateways/status", "Gateway"))
    ]
    assert gateway_kinds(cast(Kube, Server({"resources": listed}))) == {"Gateway"}


@pytest.mark.parametrize("answer", [{}, {"resources": 5}, {"resources": [5]}, {"resources": [{}]}])
def test_a_list_of_another_form_counts_as_no_answer(answer: Any) -> None:
    assert gateway_kinds(cast(Kube, Server(answer))) is None
