"""Git transports that a topology uses; remote bases may use no others besides https and ssh."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Topology


def transports(topology: Topology) -> set[str]:
    """Git transports that the topology uses; for repositories over plain http, their URLs."""
    git, apps = topology.spec.git, topology.spec.apps
    named = [git.core, git.apps, *(each.repo for each in apps)]
    texts = [str(each) for each in named if each and "://" in str(each)]
    found = {each if is_http(each) else each.partition("://")[0] for each in texts}
    return found | ({"file"} if git.provider == "local" else set())


def is_http(address: str) -> bool:
    """Whether kustomize or git would fetch it over plain http."""
    return address.strip().removeprefix("git::").lower().startswith("http:")
