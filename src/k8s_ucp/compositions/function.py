"""Request and response of a composition function, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]


class CompositionError(Exception):
    """A function can't go on; the message becomes a condition of the composite resource."""


@dataclass(frozen=True)
class Observed:
    """A composed resource as it is in the cluster, with the keys of its connection Secret."""

    object: Object
    connection: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Desired:
    """A composed resource as it is to be. ready: what the function knows of it."""

    object: Object
    ready: bool = False


@dataclass(frozen=True)
class Request:
    """desired, environment: what functions before this one in the pipeline have composed, and what
    they hand on.
    """

    composite: Object
    input: Object = field(default_factory=dict)
    observed: Mapping[str, Observed] = field(default_factory=dict)
    desired: Mapping[str, Desired] = field(default_factory=dict)
    environment: Object = field(default_factory=dict)


@dataclass
class Response:
    """resources: all that is desired, by the name that the Composition has for each.

    composite: fields of the composite's own status. unready: it waits for something that isn't
    composed yet.
    """

    resources: dict[str, Desired] = field(default_factory=dict)
    composite: dict[str, Any] = field(default_factory=dict)
    connection: dict[str, bytes] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    unready: bool = False


Function = Callable[[Request], Response]
"""Raises CompositionError."""
