"""The interface to a cloud: operations on one resource, by its name in the cloud."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from k8s_ucp.errors import UcpError


class CloudFailed(UcpError):
    """The cloud rejected a call, or didn't respond. The message is the cloud's own.

    certain: it was rejected and had no effect; otherwise it may have been executed.
    """

    def __init__(self, message: str, *, certain: bool = True) -> None:
        super().__init__(message)
        self.certain = certain


@dataclass(frozen=True)
class ExternalObservation:
    """State of a resource in the cloud.

    late: values of forProvider that the cloud has set and the declaration omits. details:
    connection details, as text. at_provider: for status.
    """

    exists: bool
    up_to_date: bool = True
    ready: bool = True
    why: str = ""
    """Why it isn't ready or up to date, in the cloud's words."""
    late: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    at_provider: Mapping[str, Any] = field(default_factory=dict)


ABSENT = ExternalObservation(exists=False)


@dataclass(frozen=True)
class Declared:
    """A managed resource, ready to be compared. parameters: forProvider with references resolved.

    name: in the cloud; "" if the cloud assigns it and hasn't yet.
    """

    parameters: Mapping[str, Any]
    name: str
    object_name: str
    namespace: str = ""
    deleting: bool = False
    """The object is being deleted."""


class External(Protocol):
    """One kind of resource in one cloud. All methods raise CloudFailed."""

    @property
    def named_by_us(self) -> bool:
        """The external name defaults to the object's name; otherwise the cloud assigns it."""

    @property
    def created_synchronously(self) -> bool:
        """The resource is complete when the creation returns, so that no wait is needed."""

    def observe(self, declared: Declared) -> ExternalObservation: ...

    def create(self, declared: Declared) -> str:
        """Returns the name that the resource has in the cloud."""

    def recover(self, declared: Declared) -> str | None:
        """The name of the resource that a creation without a response has made.

        "" if it made none, None if that can't be determined.
        """

    def update(self, declared: Declared) -> None: ...

    def delete(self, declared: Declared) -> None:
        """Begin the deletion; no error if the resource does not exist."""
