"""Changes on the board: the same operations, checks and messages as the commands'."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.promotion.overlay import check_name
from k8s_ucp.gitops.promotion.targets.versions import parse_version

KINDS = ("promote", "rollback", "hold", "release-hold")


@dataclass(frozen=True)
class Action:
    """One requested change, with the state that the page showed."""

    kind: str
    app: str
    env: str
    images: Mapping[str, str] = field(default_factory=dict)
    """To promote: {image: tag or digest}"""
    seen: Mapping[str, str] = field(default_factory=dict)
    """Versions that the page showed: {image: version}. If they have changed, nothing is done."""


@dataclass(frozen=True)
class Outcome:
    """Result, with the command's message."""

    ok: bool
    message: str


Run = Callable[[Action], Outcome]


def parse(body: bytes) -> Action:
    """Parse a request of the page. Raises UsageError."""
    try:
        request: Any = json.loads(body)
    except ValueError as error:
        raise UsageError("the request's body can't be parsed as JSON") from error
    if not isinstance(request, dict) or request.get("kind") not in KINDS:
        raise UsageError(f"the kind of the request must be one of {', '.join(KINDS)}")
    kind, app, env = (str(request.get(name, "")) for name in ("kind", "app", "env"))
    check_name("app", app)
    check_name("environment", env)
    images, seen = (_versions(request, name) for name in ("images", "seen"))
    if kind == "promote" and not images:
        raise UsageError("the tag to promote is not specified")
    if not seen:
        raise UsageError("the tag to replace is not specified")
    for version in images.values():
        parse_version(version)
    return Action(kind, app, env, images, seen)


def _versions(request: Mapping[str, Any], name: str) -> Mapping[str, str]:
    found = request.get(name) or {}
    if not isinstance(found, dict):
        raise UsageError(f"the request's {name} is not a mapping")
    return {str(image): str(version) for image, version in found.items()}


def attempt(run: Run, body: bytes) -> Outcome:
    """Parse and run a request; expected errors are outcomes too."""
    try:
        return run(parse(body))
    except UcpError as error:
        return Outcome(False, str(error))
