"""Settings of one embedded cluster, from the parameters of a request."""

from __future__ import annotations

import re
from dataclasses import dataclass

from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.errors import UsageError


@dataclass(frozen=True)
class Parameters:
    """Supported keys of `ClusterRequest.parameters`; others (region, size …) have no effect."""

    nodes: int = 1
    """Simulated nodes, 0 to 1000."""
    gogc: int = 100
    """GOGC of the API server: growth of its heap in percent, 50 to 1000.

    At a start, 75 takes 45 MiB less in each cluster and 0.4 s more CPU.
    """

    @classmethod
    def of(cls, request: ClusterRequest) -> Parameters:
        """Read the parameters of a request. Raises UsageError."""
        return cls(
            nodes=_number(request, "nodes", cls.nodes, 0, 1000),
            gogc=_number(request, "gogc", cls.gogc, 50, 1000),
        )


def _number(request: ClusterRequest, name: str, default: int, lowest: int, highest: int) -> int:
    text = request.parameters.get(name, str(default))
    if not re.fullmatch("[0-9]{1,6}", text) or not lowest <= int(text) <= highest:
        raise UsageError(
            f"{name} of {request.name} must be a number from {lowest} to {highest}, not {text!r}"
        )
    return int(text)
