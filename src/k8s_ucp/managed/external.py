"""What a cloud is to the engine: one resource, by the name that the cloud has for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from k8s_ucp.errors import UcpError


class CloudFailed(UcpError):
    """The cloud refused a call, or gave no answer. The message is the cloud's own.

    certain: it was refused, so nothing was done; a call without an answer may have been.
    """

    def __init__(self, message: str, *, certain: bool = True) -> None:
        super().__init__(message)
        self.certain = certain


@dataclass(frozen=True)
class ExternalObservation:
    """What the cloud says of a resource.

    late: fields of forProvider that the cloud has chosen and the declaration leaves out. details:
    of the connection, as text. at_provider: for status.
    """

    exists: bool
    up_to_date: bool = True
    ready: bool = True
    why: str = ""
    """It isn't ready, or differs, in the cloud's words."""
    late: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    at_provider: Mapping[str, Any] = field(default_factory=dict)


ABSENT = ExternalObservation(exists=False)


@dataclass(frozen=True)
class Declared:
    """A managed resource, ready to be compared. parameters: forProvider, references resolved.

    name: in the cloud; "" where the cloud gives it one and hasn't yet.
    """

    parameters: Mapping[str, Any]
    name: str
    object_name: str
    namespace: str = ""
    leaving: bool = False
    """Its object is being deleted."""


class External(Protocol):
    """One kind of resource in one cloud. Every method raises CloudFailed."""

    @property
    def named_by_us(self) -> bool:
        """The external name is the object's unless it says otherwise; else the cloud makes it."""

    @property
    def whole_at_once(self) -> bool:
        """What was made is all there when the creation is answered: nothing is to be waited for."""

    def observe(self, declared: Declared) -> ExternalObservation: ...

    def create(self, declared: Declared) -> str:
        """Returns the name that the cloud has for it."""

    def recover(self, declared: Declared) -> str | None:
        """The name of what a creation without an answer has made: "" where it made nothing, None
        where that can't be told.
        """

    def update(self, declared: Declared) -> None: ...

    def delete(self, declared: Declared) -> None:
        """Begin to delete it; nothing to do where it is gone."""
