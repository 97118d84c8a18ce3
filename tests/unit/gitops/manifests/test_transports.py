"""The git transports that a topology uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.gitops.manifests.sources import transports, uses_ssh
from k8s_ucp.topology import parse


@pytest.mark.parametrize(
    ("git", "spoken"),
    [
        ("", {"file"}),
        ("teams: [{name: shop}]", set()),
        ("apps: [{name: web, repo: 'file:///srv/web.git', revision: v1}]", {"file"}),
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


URL = "git: {provider: url, core: 'https://h/c', apps: 'https://h/a'}"


@pytest.mark.parametrize(
    ("spec", "used"),
    [
        ("{}", True),
        ("teams: [{name: shop}]", False),
        ("teams: [{name: shop, repo: 'git@h:shop'}]", True),
        ("teams: [{name: shop, repo: 'https://h/shop'}]", False),
        (URL, False),
        (f"{URL}\n  apps: [{{name: web, repo: 'ssh://git@h/web', revision: v1}}]", True),
        (URL.replace("https://h/a", "ssh://git@h/a"), True),
        (URL.replace("https://h/c", "git@h:c"), True),
    ],
)
def test_repositories_of_others_may_use_ssh_only_if_the_topology_does(
    spec: str, used: bool
) -> None:
    """ssh would authenticate as the user, with repositories that the others can't read."""
    text = (
        "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: demo}\n"
        f"spec:\n  {spec}\n"
    )
    if spec == "{}":
        text = text.replace("\n  {}", " {}")
    assert uses_ssh(parse(text, Path("ucp.yaml"))) is used
