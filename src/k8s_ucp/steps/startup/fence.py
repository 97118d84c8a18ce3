"""Claims the fence before any change, and waits until the previous core's writers have stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator

from k8s_ucp.components.watcher import NAME as WATCHER
from k8s_ucp.components.watcher import WRITERS
from k8s_ucp.context import StartContext
from k8s_ucp.credentials import credential_ref
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import (
    FencePermit,
    FenceSettings,
    boot_clock,
    boot_id,
    period_asked,
)
from k8s_ucp.fence.record import PERIODS, FenceRecord
from k8s_ucp.fence.rules import FenceVerdict, wait_of
from k8s_ucp.git.clones import make_remote, replaceable
from k8s_ucp.gitops.publish.addresses import addresses
from k8s_ucp.preflight.fence import holder_of, opened_fence, read_fence
from k8s_ucp.topology.placement import writes_elsewhere

WHAT = "fence of the core repository"


def _seen(context: StartContext) -> FenceRecord | None:
    try:
        return read_fence(context, context.git_credential)
    except UcpError:
        return None  # The steps that need the repository report it.


def _preview_claim(context: StartContext) -> Iterator[PlannedChange]:
    found = _seen(context)
    if found is None or found.holder is None:
        yield PlannedChange("create", WHAT, "no core holds it")
    elif found.is_held_by(holder_of(context).id):
        yield PlannedChange("keep", WHAT, "this workspace's core holds it")
    else:
        yield PlannedChange("change", WHAT, f"it is taken over from {found}")


@step("Claim the core repository", id="take-fence", preview=_preview_claim)
def take_fence(context: StartContext, report: Report) -> None:
    git = context.topology.spec.git
    if git.provider == "local":
        make_remote(context.gitops.core_remote, branch=git.branch)
    fence, period = context.fence, period_asked()
    reference = opened_fence(context, fence.clone, context.git_credential)
    holder, core = holder_of(context), context.state.kubeconfig(context.topology.core_cluster)
    with replaceable(reference.clone):
        commit, record = reference.claim(holder, time.time, takeover=context.takeover)
    before = fence.settings()
    if before and before.record == record and before.boot == boot_id():
        # At most as long as after a takeover now: a clock may have been wrong then.
        longest = PERIODS * max(period, before.period)
        not_before = min(before.not_before, boot_clock() + longest)
    else:
        not_before = boot_clock() + wait_of(record, period=period, now=time.time())
    fence.write_settings(
        FenceSettings(
            id=holder.id,
            url=addresses(context.topology, context.gitops).core,
            period=period,
            stops_when_silent=writes_elsewhere(context.topology),
            commit=commit,
            record=record,
            boot=boot_id(),
            not_before=not_before,
            kubeconfig=str(core) if context.in_pods else "",
            adopted=context.topology.spec.core.adopt,
            credential=_credential(context),
        )
    )
    report(f"epoch {record.epoch}")


def _credential(context: StartContext) -> tuple[str, str] | None:
    """The credential, if the guard can read it; it doesn't have the caller's variables."""
    name = context.topology.spec.git.auth
    file = credential_ref(context.topology, context.workspace, name).file if name else None
    return (name, str(file)) if name and file else None


def _preview_wait(context: StartContext) -> Iterator[PlannedChange]:
    found = _seen(context)
    ours = holder_of(context).id
    if found is not None and found.holder is not None and not found.is_held_by(ours):
        seconds = PERIODS * period_asked()
        yield PlannedChange(
            "wait", "the other core", f"it stops its writers within {seconds:.0f} s"
        )


@step("Confirm that no other core writes", id="await-fence", preview=_preview_wait)
def await_fence(context: StartContext, report: Report) -> None:
    """Wait after a takeover, then permit this core to write and resume what its guard stopped."""
    settings = context.fence.settings()
    assert settings, "take-fence comes first"

    def pending() -> str:
        left = settings.not_before - boot_clock()
        return f"{left:.0f} s left" if left > 0 else ""

    seconds = max(0.0, settings.not_before - boot_clock()) + 60
    context.wait("stop of the core that had the fence", pending, report, seconds=seconds)
    old = context.fence.permit()
    # A running guard acts at once; if none is running, the reconciler starts without it.
    context.fence.write_permit(
        FencePermit(
            verdict=FenceVerdict.HELD,
            until=boot_clock() + settings.period,
            boot=settings.boot,
            record=settings.record,
            confirmed=bool(old and old.confirmed and old.record == settings.record),
        )
    )
    programs = context.placement.states()
    if programs:
        context.placement.resume(WRITERS)
    if old and old.has_expired(boot_clock(), boot_id()) and WATCHER in programs:
        # The guard hangs: supervisord only notices programs that exit.
        context.placement.restart(WATCHER)
