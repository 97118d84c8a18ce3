"""The mirrors' session with one app cluster."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from k8s_ucp.reconciler.mirrors.rights import MOST_NAMESPACES
from k8s_ucp.reconciler.mirrors.rules import CopyProblem
from k8s_ucp.reconciler.mirrors.session import Session


def test_the_reason_why_a_cluster_cannot_be_used_is_shown() -> None:
    clusters = SimpleNamespace(
        connect=lambda _: SimpleNamespace(), administer=lambda _: nullcontext()
    )
    runtime: Any = SimpleNamespace(registered_clusters=clusters)
    session = Session("demo-stage", runtime, lambda _cluster, _ref: None)
    session.reconcile({f"n{number}": {"Secret"} for number in range(MOST_NAMESPACES + 1)})
    assert isinstance(session.away, CopyProblem)
    assert session.away.reason == "TooManyNamespaces"
