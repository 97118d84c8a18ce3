"""Upgrades one part of a topology to the version of this ucp release, or rolls it back.

A part that isn't as healthy as before within the deadline is rolled back. The versions of a
topology are recorded only once a part is healthy. After an interruption, the next run finishes the
part or rolls it back (resume.py); a start rolls back components, and leaves clusters to that run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from k8s_ucp.components import argo_rollouts, argocd, crossplane
from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, Step, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.engine.waiting import Cancelled
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.api_usage import one_way, unknown_storage
from k8s_ucp.kube import CRD
from k8s_ucp.steps.preparation.publish_repositories import publish_repositories
from k8s_ucp.steps.preparation.tools_and_images import install_newest
from k8s_ucp.steps.startup.apply_manifests import apply_foundation
from k8s_ucp.steps.startup.start_on_host import start_argocd, start_crossplane, start_rollouts
from k8s_ucp.steps.upgrading.checks import kubernetes_findings, newer_kinds, versions_of
from k8s_ucp.steps.upgrading.health import await_previous_health
from k8s_ucp.steps.upgrading.interrupted import numbers
from k8s_ucp.steps.upgrading.parts import (
    BACK,
    CLUSTER_TOOLS,
    Move,
    UpgradePart,
    chosen,
    entries,
    is_current,
    moves,
    not_upgraded,
    parts,
    provider_of,
)
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.kept_versions import write_kept
from k8s_ucp.tools.toolbox import Toolbox, version_of

STARTS = {
    crossplane.NAME: start_crossplane,
    argocd.NAME: start_argocd,
    argo_rollouts.NAME: start_rollouts,
}
CLUSTER_SECONDS = 120.0
BACK_SECONDS = 180.0
"""Time to become healthy after a rollback, however short the timeout of the upgrade."""


def _preview_install(context: StartContext) -> Iterator[PlannedChange]:
    tools = {each.tool for part in chosen(context) for each in moves(context, part)}
    for tool in sorted(tools):
        version = CATALOGUE[tool].version
        yield PlannedChange(
            "create", f"program {tool} {version}", "installed if the cache lacks it"
        )


@step("Install the newer programs", preview=_preview_install)
def install_pins(context: StartContext, report: Report) -> None:
    """Install the versions of this ucp, in addition to those that are running."""
    context.upgrade.pins = install_newest(context, report)


def upgrade_part(part: UpgradePart) -> Step[StartContext]:
    """The step that upgrades one part."""
    return Step(
        f"upgrade-{part.name}",
        f"Upgrade {part.title}",
        lambda context, report: _upgrade(context, part, report),
        lambda context: _preview(context, part),
    )


def _preview(context: StartContext, part: UpgradePart) -> Iterator[PlannedChange]:
    moved = moves(context, part)
    what = part.what
    if not moved:
        yield PlannedChange("keep", what, _why_kept(context, part))
        return
    yield PlannedChange(
        "change", what, ", ".join(map(str, moved)), "; ".join(losses(context, part))
    )
    yield PlannedChange(
        "wait",
        f"health after {part.name}",
        "it is rolled back unless everything is as healthy as before",
    )
    if part.cluster:
        for each in kubernetes_findings(context, part):
            yield PlannedChange(
                "keep", f"{each.name} on {part.cluster}", _deprecated(each.removed_in)
            )


def _why_kept(context: StartContext, part: UpgradePart) -> str:
    running = entries(context, part)
    newer = [
        f"{tool} {version}"
        for tool in part.tools
        if tool in running
        and numbers(version := version_of(tool, running[tool])) > numbers(CATALOGUE[tool].version)
    ]
    if newer:
        return f"it runs a newer version than this ucp release has: {', '.join(newer)}"
    return "it is up to date with this ucp release"


def _deprecated(removed_in: str) -> str:
    removal = (
        f"it is removed in Kubernetes {removed_in}"
        if removed_in
        else "no release that removes it is known"
    )
    return f"deprecated, and in use: {removal}"


def losses(context: StartContext, part: UpgradePart) -> Iterator[str]:
    """What a rollback can't restore, in words."""
    moved = {each.tool: each for each in moves(context, part)}
    if "etcd" in moved and _minor(moved["etcd"].before) != _minor(moved["etcd"].after):
        yield (
            f"a rollback restores the data of {part.cluster} from before the upgrade: etcd "
            f"{moved['etcd'].before} "
            f"can't read what {moved['etcd'].after} writes"
        )
    if not part.cluster:
        newer = versions_of(newer_kinds(context, part))
        crds = context.kube.list_all(CRD) if newer else []
        yield from unknown_storage(crds, newer)
        yield from one_way(crds, newer)


def preview_others(context: StartContext) -> Iterator[PlannedChange]:
    """Clusters that ucp doesn't upgrade."""
    for name, why in not_upgraded(context.topology).items():
        yield PlannedChange("keep", f"cluster {context.topology.app_cluster(name)}", why)


@step("Skip clusters that ucp does not upgrade", preview=preview_others)
def leave_others(_: StartContext, __: Report) -> None:
    """Does nothing; shows in `--plan` clusters whose versions ucp doesn't manage."""


def _upgrade(context: StartContext, part: UpgradePart, report: Report) -> None:
    if moved := moves(context, part):
        upgrade_or_roll_back(context, part, moved, report)
    elif part.cluster:
        # The last cluster with older programs may have been removed since.
        record_versions(context)


def upgrade_or_roll_back(
    context: StartContext, part: UpgradePart, moved: Sequence[Move], report: Report
) -> None:
    """Upgrade a part to this ucp's versions, and check that everything is as healthy as before.

    If not, roll it back and raise UcpError. moved: may be empty after an interruption.
    """
    changes = ", ".join(map(str, moved)) or f"finished with {_running(context, part)}"
    report(changes)
    before = context.toolbox
    try:
        _start_part(
            context, part, before.with_tools(part.tools, context.upgrade.pins), moved, report
        )
        await_previous_health(context, report)
    except Cancelled:
        raise
    except UcpError as error:
        _roll_back(context, part, before, moved, report, error)
    _settle(context, part)
    context.upgrade.changes.append(f"{part.name}: {changes}")


def _start_part(
    context: StartContext,
    part: UpgradePart,
    toolbox: Toolbox,
    moved: Sequence[Move],
    report: Report,
) -> None:
    """Start a part with the versions of a toolbox. Raises UcpError."""
    if part.cluster:
        found = provider_of(context, part, toolbox)
        timeout = min(CLUSTER_SECONDS, context.upgrade.patience)
        if moved:
            found.upgrade(part.cluster, timeout=timeout)
        else:
            found.start(part.cluster, timeout=timeout)
        return
    _run_with(context, part, toolbox, f"Upgrade {part.name} to {_version(part, toolbox)}", report)


def _run_with(
    context: StartContext, part: UpgradePart, toolbox: Toolbox, subject: str, report: Report
) -> None:
    """Run the start's steps of a component: commit CRDs and settings, then start its programs."""
    context.toolbox, context.publishing.subject = toolbox, subject
    context.settle_runtime()
    publish_repositories.run(context, report)
    apply_foundation.run(context, report)
    STARTS[part.name].run(context, report)


def _roll_back(
    context: StartContext,
    part: UpgradePart,
    before: Toolbox,
    moved: Sequence[Move],
    report: Report,
    error: UcpError,
) -> None:
    """Roll a part back. Always raises UcpError, since the upgrade has failed."""
    old = ", ".join(f"{each.tool} {each.before}" for each in moved) or "its previous programs"
    report(f"rolling back to {old}")
    context.upgrade.patience = max(context.upgrade.patience, BACK_SECONDS)
    logs = f"ucp logs {part.name}" if not part.cluster else "ucp doctor"
    failed = f"{part.title} is not as healthy as before: {error.message}"
    try:
        roll_back_part(context, part, before, report)
        await_previous_health(context, report)
    except UcpError as second:
        raise UcpError(
            f"{failed}\n  the rollback to {old} failed, too: {second.message}",
            next=f"{logs}; then ucp start, which starts {old} again",
        ) from error
    context.journal.keep(**{BACK: part.name})
    raise UcpError(
        f"{failed}\n  it was rolled back to {old} and is healthy", next=f"see {logs}"
    ) from error


def roll_back_part(
    context: StartContext, part: UpgradePart, before: Toolbox, report: Report
) -> None:
    """Start a part as it was before. before: toolbox for components. Raises UcpError."""
    if part.cluster:
        provider_of(context, part, before).roll_back(part.cluster)
    else:
        subject = f"Roll {part.name} back to {_version(part, before)}"
        _run_with(context, part, before, subject, report)


def _settle(context: StartContext, part: UpgradePart) -> None:
    """Record the new versions, a cluster's last, since that marks the end of its upgrade."""
    record_versions(context)
    if part.cluster:
        provider_of(context, part).settle_upgrade(part.cluster)


def record_versions(context: StartContext) -> None:
    """Record what the topology runs.

    New clusters get the old versions until all existing ones have those of this ucp release.
    """
    clusters = [each for each in parts(context.topology) if each.cluster]
    if all(is_current(context, each) for each in clusters):
        context.toolbox = context.toolbox.with_tools(CLUSTER_TOOLS, context.upgrade.pins)
    context.settle_runtime()
    write_kept(context.topology, context.state, context.toolbox)


def _running(context: StartContext, part: UpgradePart) -> str:
    running = entries(context, part)
    return ", ".join(f"{tool} {version_of(tool, running[tool])}" for tool in sorted(running))


def _version(part: UpgradePart, toolbox: Toolbox) -> str:
    return toolbox.version(part.tools[0]) or "another version"


def _minor(version: str) -> tuple[int, ...]:
    return numbers(version)[:2]
