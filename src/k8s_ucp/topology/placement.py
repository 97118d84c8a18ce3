"""Where the components run and what the core cluster is given, by its provider. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from k8s_ucp.topology.model import Topology


@dataclass(frozen=True)
class CoreTraits:
    """What a provider of core clusters means for all that runs there."""

    in_pods: bool = True
    """The components are pods; else processes of the user's machine."""
    of_others: bool = False
    """Others made the cluster, and have things on it that are none of ours."""
    takes_images: bool = False
    """Its nodes are containers of the user's machine, which can copy images into them."""


CORES = {
    "embedded": CoreTraits(in_pods=False),
    "kind": CoreTraits(takes_images=True),
    "gke": CoreTraits(),
    "existing": CoreTraits(of_others=True),
}


def in_pods(topology: Topology) -> bool:
    """The components run as pods of the core cluster."""
    return _core(topology).in_pods


def of_others(topology: Topology) -> bool:
    """Somebody else made the core cluster."""
    return _core(topology).of_others


def fed_by_us(topology: Topology) -> bool:
    """This machine can copy images into the core's nodes; other nodes pull them."""
    return _core(topology).takes_images


def served(topology: Topology) -> bool:
    """The repositories are local, and pods read them: a server in the core cluster has them."""
    return in_pods(topology) and topology.spec.git.provider == "local"


def _core(topology: Topology) -> CoreTraits:
    return CORES[topology.spec.core.provider]
