"""Faults to inject into the simulated cloud, by region, service and operation. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from k8s_ucp.cloud.call import ApiCall
from k8s_ucp.errors import UsageError

KINDS = ("unavailable", "throttle", "hang", "lost", "slow")
"""Status 503; a request limit; no response; done, but no response; response after `seconds`."""


@dataclass(frozen=True)
class CloudFault:
    """One rule. Patterns as in a shell. times: how often it applies; 0: until it is cleared."""

    kind: str
    service: str = "*"
    operation: str = "*"
    region: str = "*"
    times: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(
                f"{self.kind!r} is not a valid kind of fault", next=f"use one of {', '.join(KINDS)}"
            )
        if self.times < 0 or self.seconds < 0:
            raise UsageError("the times and seconds of a fault can't be negative")

    def applies(self, call: ApiCall) -> bool:
        """Whether its patterns match a call."""
        pairs = (
            (call.service, self.service),
            (call.operation, self.operation),
            (call.region, self.region),
        )
        return all(fnmatchcase(value, pattern) for value, pattern in pairs)


def take(
    faults: Sequence[CloudFault], call: ApiCall
) -> tuple[CloudFault | None, tuple[CloudFault, ...]]:
    """(the first rule that applies to a call, the rules that are left after it)"""
    for index, fault in enumerate(faults):
        if fault.applies(call):
            left = list(faults)
            if fault.times == 1:
                del left[index]
            elif fault.times:
                left[index] = replace(fault, times=fault.times - 1)
            return fault, tuple(left)
    return None, tuple(faults)


def read_faults(items: Any) -> tuple[CloudFault, ...]:
    """Parse rules from JSON: a list of objects with its fields. Raises UsageError."""
    if not isinstance(items, list) or not all(isinstance(each, Mapping) for each in items):
        raise UsageError("faults must be a list of objects")
    try:
        return tuple(CloudFault(**each) for each in items)
    except TypeError as error:
        raise UsageError(f"a fault has an invalid field: {error}") from None


def as_items(faults: Sequence[CloudFault]) -> list[dict[str, Any]]:
    """Rules as JSON."""
    return [asdict(each) for each in faults]
