"""The summary of `ucp start`: what it names beside what ucp.yaml declares."""

from __future__ import annotations

from k8s_ucp.cli.lifecycle.start_summary import undeclared
from k8s_ucp.topology import default


def test_what_only_the_repositories_have_is_named() -> None:
    topology = default(environments=("stage", "prod"), apps=("echo",))

    assert undeclared(topology, ["stage", "prod", "eu"], {"echo", "web"}) == [
        "environment eu",
        "app web",
    ]
    assert undeclared(topology, ["stage", "prod"], {"echo"}) == []
