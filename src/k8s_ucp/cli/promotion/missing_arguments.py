"""What to type if a promotion lacks its app, environment or version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

import typer

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.topology_selection import declared_topology
from k8s_ucp.errors import UcpError, UsageError, command_line

EVERY_APP = "*"
"""What is typed for all apps of an environment; `--all` is the same."""

_REPEATED = (
    "--sequence", "--semver", "--expect", "--require-env", "--require-healthy", "--soak", "--force",
    "--pr", "--merge-when-green", "--forge", "--to", "--hold", "--release-hold", "--dry-run",
    "--timeout",
)  # fmt: skip
_NOT_IN_A_BATCH = ("--pr", "--merge-when-green", "--forge")


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


def typed_options(ctx: typer.Context) -> dict[str, list[str]]:
    """The options on the command line that say how to promote or roll back, as words by flag."""
    given = {}
    for each in ctx.command.params:
        flag, source = each.opts[0], ctx.get_parameter_source(each.name or "")
        if flag in _REPEATED and source is not None and source.name == "COMMANDLINE":
            value = ctx.params[each.name or ""]
            given[flag] = [flag] if value is True else [flag, str(value)]
    return given


def refuse_incomplete(
    known: PromotionNames,
    app: str,
    env: str,
    version: Sequence[str],
    options: Mapping[str, Sequence[str]],
) -> NoReturn:
    """Raise UsageError with the complete command.

    version: the flags that set it. options: other flags, which the suggestion repeats.
    """
    if not env and app in known.sources and app not in known.apps:
        app, env = "", app  # ucp promote prod --from stage
    name, _, tag = app.partition(":")
    if name and tag and not version:
        problem, app, version = f"{app!r} is not a valid name of an app", name, ["--tag", tag]
    elif app in ("", EVERY_APP):
        app, problem = "", "the app is not specified"
    elif not env:
        problem = "the environment is not specified" + _listed("environments", [*known.sources])
    else:
        flags = "--tag, --digest, --from, --image or --chart-version"
        problem = f"the tag to promote is not specified: {flags}"
    advice = _complete(known, app, env, version)
    batch = "--batch" in advice
    if not app:
        problem += "; several apps in one commit: --batch" if batch else _listed("apps", known.apps)
    unfit = _NOT_IN_A_BATCH if batch else ()
    kept = [command_line(*words) for flag, words in options.items() if flag not in unfit]
    raise UsageError(problem, next=" ".join([advice, *kept]))


def refuse_rollback_without_env(
    known: PromotionNames, app: str, options: Mapping[str, Sequence[str]]
) -> NoReturn:
    """Raise UsageError with the command, without proposing which environment to roll back."""
    kept = [command_line(*words) for words in options.values()]
    raise UsageError(
        "the environment is not specified" + _listed("environments", [*known.sources]),
        next=" ".join([f"ucp rollback {app} --env ENV", *kept]),
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
        return command_line("ucp", "promote", app or [*known.apps, "APP"][0], "--env", env, *flags)
    items = [f"{{app: {each}, env: {env}, from: {source}}}" for each in known.apps or ["APP"]]
    batch = "[" + ", ".join(items) + "]"
    return f"{command_line('echo', batch)} | ucp promote --batch -"
