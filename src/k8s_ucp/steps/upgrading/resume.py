"""Finishes or rolls back parts whose upgrade was interrupted, before any other is upgraded."""

from __future__ import annotations

from collections.abc import Iterator

from k8s_ucp.context import StartContext
from k8s_ucp.engine.journal import RunRecord
from k8s_ucp.engine.pipeline import Report, Step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.steps.upgrading.health import await_previous_health, healthy_names, observe
from k8s_ucp.steps.upgrading.interrupted import PartialUpgrade, ResumeDecision, decide
from k8s_ucp.steps.upgrading.parts import (
    BACK,
    CORE,
    HEALTHY,
    UpgradePart,
    moves,
    partial_upgrade,
    parts,
    target_versions,
)
from k8s_ucp.steps.upgrading.upgrade import roll_back_part, upgrade_or_roll_back


def interrupted_parts(context: StartContext, run: RunRecord | None) -> list[str]:
    """Names of the parts whose upgrade was interrupted. run: that upgrade, if known.

    Raises UcpError.
    """
    return [
        part.name
        for part in parts(context.topology)
        if decide(partial_upgrade(context, part, run), target_versions(part))
        is not ResumeDecision.NOTHING
    ]


def resume_part(part: UpgradePart) -> Step[StartContext]:
    """The step that ends the upgrade of one part."""
    return Step(
        f"resume-{part.name}",
        f"Finish or undo the upgrade of {part.title}",
        lambda context, report: _resume(context, part, report),
        lambda context: _preview(context, part),
    )


def _preview(context: StartContext, part: UpgradePart) -> Iterator[PlannedChange]:
    what = part.what
    found, decision = _decided(context, part)
    if decision is ResumeDecision.RESUME:
        yield PlannedChange("change", what, "its upgrade was interrupted: it continues")
    elif decision is ResumeDecision.ROLL_BACK and found:
        old = ", ".join(f"{tool} {version}" for tool, version in sorted(found.before.items()))
        yield PlannedChange(
            "change", what, f"its upgrade was interrupted: it is rolled back to {old}"
        )


def _decided(
    context: StartContext, part: UpgradePart
) -> tuple[PartialUpgrade | None, ResumeDecision]:
    found = partial_upgrade(context, part, context.journal.resumed)
    return found, decide(found, target_versions(part))


def _resume(context: StartContext, part: UpgradePart, report: Report) -> None:
    decision = _decided(context, part)[1]
    if decision is ResumeDecision.NOTHING:
        return
    context.upgrade.healthy_before = frozenset(context.journal.data.get(HEALTHY) or ())
    if decision is ResumeDecision.RESUME:
        report("the upgrade continues")
        context.upgrade.healthy_before = context.upgrade.healthy_before or _own_health(part)
        upgrade_or_roll_back(context, part, moves(context, part), report)
        return
    report("it is rolled back")
    roll_back_part(context, part, context.toolbox, report)
    context.upgrade.healthy_before = context.upgrade.healthy_before or frozenset(
        healthy_names(observe(context).summary())
    )
    await_previous_health(context, report)
    context.journal.keep(**{BACK: part.name})


def _own_health(part: UpgradePart) -> frozenset[str]:
    """The health of this part alone, if it is unknown what was healthy before."""
    if not part.cluster:
        return frozenset({f"component {part.name}"})
    if part.name == CORE:
        return frozenset({f"core cluster {part.cluster}"})
    return frozenset({f"environment {part.name}"})
