"""The git transports that a topology uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.gitops.manifests.sources import transports
from k8s_ucp.topology import parse


@pytest.mark.parametrize(
    ("git", "spoken"),
    [
        ("", {"file"}),
        ("git: {provider: url, core: 'https://h/c', apps: 'ssh://git@h/a'}", {"https", "ssh"}),
        ("git: {provider: url, core: 'https://h/c', apps: 'git@h:a'}", {"https"}),
        (
            "git: {provider: url, core: 'http://h.lan/c', apps: 'https://h/a'}",
            {"http://h.lan/c", "https"},
        ),
    ],
)
def test_bases_may_use_unencrypted_transports_only_if_the_topology_does(
    git: str, spoken: set[str]
) -> None:
    text = (
        "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: demo}\n"
        f"spec:\n  {git or '{}'}\n"
    )
    assert transports(parse(text, Path("ucp.yaml"))) == spoken
