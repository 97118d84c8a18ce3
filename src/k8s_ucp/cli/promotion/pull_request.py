"""`ucp promote --pr`: how a promotion becomes a pull request. Imported only for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from k8s_ucp.cli.command import Invocation
from k8s_ucp.git.push_loop import Pace
from k8s_ucp.git.repository import Repository
from k8s_ucp.gitops.forge.sites import find_site, open_forge
from k8s_ucp.gitops.promotion.branch import RemoteBranch
from k8s_ucp.gitops.promotion.ci import Run
from k8s_ucp.gitops.promotion.decision import Decision, Intent
from k8s_ucp.gitops.promotion.landing import Landing
from k8s_ucp.gitops.promotion.proposal import propose
from k8s_ucp.gitops.promotion.repository_ref import RepositoryRef

Proposer = Callable[[RemoteBranch, Intent, Pace, Callable[[Decision], Decision]], Landing]


def make_proposer(
    call: Invocation, place: RepositoryRef, kind: str, run: Run, *, merge_when_green: bool
) -> Proposer:
    """Raises UsageError, before anything is done, where there can be no pull request."""
    url = place.url or Repository(place.clone or Path()).url()
    forge = open_forge(find_site(url, kind, os.environ, call.workspace.credentials))

    def proposer(
        there: RemoteBranch, intent: Intent, pace: Pace, gate: Callable[[Decision], Decision]
    ) -> Landing:
        return propose(
            there,
            forge,
            intent,
            pace,
            link=run.link,
            merge=merge_when_green,
            gate=gate,
            report=call.console.detail,
        )

    return proposer
