"""What to type if a promotion lacks its app, environment or version."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.topology_selection import declared_topology
from k8s_ucp.errors import UcpError, UsageError

EVERY_APP = "*"
"""What is typed for all apps of an environment; `--all` is the same."""


@dataclass(frozen=True)
class PromotionNames:
    """Names for complete suggestions; empty where the topology isn't known."""

    apps: Sequence[str] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    """Environments, each with the one that it is promoted from, or ""."""


def known_names(call: Invocation, repo: str) -> PromotionNames:
    """The names of the workspace's topology; none of another repository (`--repo`)."""
    with suppress(UcpError):
        if not repo:
            spec = declared_topology(call).spec
            return PromotionNames(
                [each.name for each in spec.apps],
                {each.name: each.promotes_from or "" for each in spec.environments},
            )
    return PromotionNames()


def is_complete(app: str, env: str, version: Sequence[str]) -> bool:
    """Whether a promotion says of what, to where and to which version."""
    return bool(app and app != EVERY_APP and env and version)


def refuse_incomplete(
    known: PromotionNames, app: str, env: str, version: Sequence[str]
) -> NoReturn:
    """Raise UsageError with the complete command. version: the flags that set it."""
    if not env and app in known.sources and app not in known.apps:
        app, env = "", app  # ucp promote prod --from stage
    if app in ("", EVERY_APP):
        advice = _complete(known, "", env, version)
        how = "; several apps in one commit: --batch"
        if "--batch" not in advice:
            how = _listed("apps", known.apps)
        raise UsageError(f"the app is not specified{how}", next=advice)
    if not env:
        problem = "the environment is not specified" + _listed("environments", [*known.sources])
        raise UsageError(problem, next=_complete(known, app, env, version))
    raise UsageError(
        "the tag to promote is not specified: --tag, --digest, --from, --image or --chart-version",
        next=_complete(known, app, env, version),
    )


def _listed(what: str, names: Sequence[str]) -> str:
    return f"; {what}: {', '.join(names)}" if names else ""


def _complete(known: PromotionNames, app: str, env: str, version: Sequence[str]) -> str:
    """The command line with what is missing: for all apps, a batch."""
    flags, source = [*version], version[1] if version[:1] == ["--from"] else ""
    followers = [name for name, before in known.sources.items() if before == source]
    env = env or next(iter(followers or known.sources), "ENV")
    if not flags:
        source = known.sources.get(env, "")
        flags = ["--from", source] if source else ["--tag", "TAG"]
    if app or not source:
        return shlex.join(["ucp", "promote", app or [*known.apps, "APP"][0], "--env", env, *flags])
    items = [f"{{app: {each}, env: {env}, from: {source}}}" for each in known.apps or ["APP"]]
    batch = "[" + ", ".join(items) + "]"
    return f"echo {shlex.quote(batch)} | ucp promote --batch -"
