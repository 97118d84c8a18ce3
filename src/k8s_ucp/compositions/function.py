"""Request and response of a composition function, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]


class CompositionError(Exception):
    """A function can't continue; the message becomes a condition of the composite resource."""


@dataclass(frozen=True)
class Observed:
    """A composed resource in the cluster, with the data of its connection Secret."""

    object: Object
    connection: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Desired:
    """A desired composed resource. ready: according to the function."""

    object: Object
    ready: bool = False


@dataclass(frozen=True)
class Request:
    """desired and what follows: results of the earlier functions of the pipeline.

    answer: fields of the composite. connection: its connection details.
    """

    composite: Object
    input: Object = field(default_factory=dict)
    observed: Mapping[str, Observed] = field(default_factory=dict)
    desired: Mapping[str, Desired] = field(default_factory=dict)
    environment: Object = field(default_factory=dict)
    answer: Object = field(default_factory=dict)
    connection: Mapping[str, bytes] = field(default_factory=dict)


@dataclass
class Response:
    """resources: everything desired, by resource name in the Composition.

    composite: fields of the composite's status. unready: it waits for a resource that isn't
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
