"""Handles a core cluster that a stop would delete and that exists at a start."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from k8s_ucp.cli.command import Invocation
from k8s_ucp.engine.pipeline import RunInterrupted
from k8s_ucp.providers import PROVIDERS

if TYPE_CHECKING:
    from k8s_ucp.context import StartContext


class ExistingCoreChoice(StrEnum):
    """What to do with a core cluster that exists already."""

    use = "use"
    recreate = "recreate"
    stop = "stop"


def decide(
    call: Invocation, context: StartContext, wanted: ExistingCoreChoice | None, *, ask: bool
) -> bool:
    """Apply the choice made by flag or by a person; True if the start is to continue.

    A core that a stop doesn't delete is always used, so there is nothing to choose.
    """
    name = context.topology.core_cluster
    info = PROVIDERS[context.topology.spec.core.provider]
    if not info.removed_by_stop or name not in context.provider.names():
        return wanted is not ExistingCoreChoice.stop
    chosen = wanted or (_ask(name) if ask else ExistingCoreChoice.use)
    if chosen is ExistingCoreChoice.use:
        return True
    from k8s_ucp import plans
    from k8s_ucp.cli.plan_runner import run_plan

    run_plan(plans.stop(), context, call.console)
    return chosen is ExistingCoreChoice.recreate


def _ask(name: str) -> ExistingCoreChoice:
    from k8s_ucp.cli import questions

    if not questions.can_ask():
        return ExistingCoreChoice.use
    try:
        return ExistingCoreChoice(questions.ask_existing(name))
    except KeyboardInterrupt:
        raise RunInterrupted("interrupted; nothing was changed", next="ucp start") from None
