"""Lands promotions: pushes them to the branch, or proposes them in a pull request."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.promotion.app_repository import app_repository
from k8s_ucp.cli.promotion.results import person
from k8s_ucp.git.failures import Declined
from k8s_ucp.git.push_loop import Pace
from k8s_ucp.gitops.forge.base import Forge
from k8s_ucp.gitops.forge.sites import find_site, open_forge
from k8s_ucp.gitops.promotion.branch import RemoteBranch
from k8s_ucp.gitops.promotion.ci import Run
from k8s_ucp.gitops.promotion.decision import Decision, Intent, all_or_none, decide_all
from k8s_ucp.gitops.promotion.health import HealthGate
from k8s_ucp.gitops.promotion.landing import Landing, land, try_landing
from k8s_ucp.gitops.promotion.message import message
from k8s_ucp.gitops.promotion.proposal import propose, try_proposal
from k8s_ucp.gitops.promotion.repository_ref import RepositoryRef, open_branch
from k8s_ucp.gitops.promotion.targets.chart import ChartContent, ChartKey, ChartMissing
from k8s_ucp.gitops.promotion.tip import GitTip


@dataclass(frozen=True)
class Proposing:
    """Flags about the pull request."""

    forge: str
    merge_when_green: bool


@dataclass(frozen=True)
class Promotions:
    """Promotions for one commit, where they land and under which conditions.

    deadline: seconds to wait for the git host, or for another command that uses the clone.
    proposing: open a pull request instead of pushing to the branch. dry_run: push nothing.
    """

    intents: Sequence[Intent]
    run: Run
    deadline: float
    repo: str = ""
    branch: str = ""
    gate: HealthGate | None = None
    proposing: Proposing | None = None
    dry_run: bool = False

    def message(self, decisions: Sequence[Decision]) -> str:
        """The commit message."""
        return message([each.note for each in decisions if each.writes], self.run.link)


def land_promotions(call: Invocation, promotions: Promotions) -> tuple[Landing, str]:
    """Promote; returns (result, warning for the user)."""
    repository = app_repository(call, promotions.repo, promotions.branch)
    forge = _forge_of(call, repository, promotions.proposing)
    gate = promotions.gate
    charts: dict[ChartKey, ChartContent] = {}
    with open_branch(
        repository,
        apps=[intent.app for intent in promotions.intents],
        message=promotions.message,
        person=person(promotions.run),
        deadline=promotions.deadline,
        patience=gate.soak + gate.patience if gate else 0.0,
        report=call.console.say,
    ) as remote:
        pace = Pace(deadline=remote.seconds_left)
        while True:
            intents = [replace(each, contents=charts) for each in promotions.intents]
            complete = replace(promotions, intents=intents)
            try:
                if forge:
                    return _propose(remote, forge, pace, complete, call.console.detail), ""
                landing = _push(remote, pace, complete, call.console.detail)
                return landing, remote.settle(landing.commit) if landing.commit else ""
            except ChartMissing as missing:
                # No environment has this version; nothing has been written yet.
                if missing.key in charts:
                    raise
                from k8s_ucp.cli.app_sources import fetch_chart

                call.console.detail(f"fetching the chart {missing.chart} {missing.version}")
                charts[missing.key] = fetch_chart(call, missing, own=not promotions.repo)


def _forge_of(
    call: Invocation, repository: RepositoryRef, proposing: Proposing | None
) -> Forge | None:
    if proposing is None:
        return None
    workspace = call.workspace

    def allow(file: Path, root: str) -> None:
        from k8s_ucp.cli.credential_hosts import require_allowed
        from k8s_ucp.credentials import CredentialRef

        require_allowed(file.name, CredentialRef(file=file), workspace.root, [root])

    kind = proposing.forge
    return open_forge(find_site(repository.remote, kind, os.environ, workspace.credentials, allow))


def _propose(
    remote: RemoteBranch,
    forge: Forge,
    pace: Pace,
    promotions: Promotions,
    report: Callable[[str], None],
) -> Landing:
    proposing, link, (intent,) = promotions.proposing, promotions.run.link, promotions.intents
    gate = promotions.gate.hold_up if promotions.gate else lambda decision: decision
    if promotions.dry_run:
        return try_proposal(remote, forge, intent, pace, link=link, gate=gate, report=report)
    merge = proposing is not None and proposing.merge_when_green
    return propose(remote, forge, intent, pace, link=link, merge=merge, gate=gate, report=report)


def _push(
    remote: RemoteBranch, pace: Pace, promotions: Promotions, report: Callable[[str], None]
) -> Landing:
    """Raises Declined, with advice to use --pr if the branch accepts pull requests only."""
    gate = promotions.gate

    def decide(tip: GitTip) -> list[Decision]:
        decisions = decide_all(tip, promotions.intents)
        return all_or_none([gate.hold_up(each) for each in decisions]) if gate else decisions

    if promotions.dry_run:
        return try_landing(remote, decide, promotions.message, pace, report)
    try:
        return land(remote, decide, pace, report)
    except Declined as error:
        if not re.search(r"protected branch|rule violations|pull request", error.message, re.I):
            raise
        advice = f"propose it instead: add --pr; {error.next}"
        raise Declined(error.message, next=advice) from error
