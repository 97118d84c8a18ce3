"""Releases the fence once this core has stopped, so that the next core can claim it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import UcpError
from k8s_ucp.preflight.fence import SECONDS, holder_of, lost_fence, opened_fence


def _preview_release(context: StartContext) -> Iterator[PlannedChange]:
    if lost := lost_fence(context):
        yield PlannedChange(
            "keep", "fence of the core repository", f"it is held by another core: {lost}"
        )
    elif context.fence.settings():
        yield PlannedChange(
            "change", "fence of the core repository", "any core can claim it afterwards"
        )


@step("Release the core repository", preview=_preview_release)
def release_fence(context: StartContext, report: Report) -> None:
    """If the remote doesn't respond, the rest of the stop goes on."""
    fence, local = context.fence, context.topology.spec.git.provider == "local"
    if local and not context.gitops.core_remote.exists():
        fence.forget()
        return
    try:
        credential = context.git_credential
        reference = opened_fence(context, fence.clone, credential, seconds=SECONDS)
        reference.release(holder_of(context).id, time.time)
    except (UcpError, OSError) as error:
        why = str(error).splitlines()[0]
        report(f"not released: {why}; another workspace needs `ucp start --takeover`")
    fence.forget()
