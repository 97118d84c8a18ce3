"""Promotions as pull requests: one branch and one pull request an app and environment.

The branch is never forced either. A newer promotion goes on top of it as a commit whose files are
the base branch's newest ones plus the new tag, and whose parents are both branches: whatever the
branch proposed before, its difference from the base is exactly the new promotion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from k8s_ucp.git.push_loop import Pace
from k8s_ucp.gitops.forge.base import Forge, Proposal, PullRequest
from k8s_ucp.gitops.promotion.branch import RemoteBranch
from k8s_ucp.gitops.promotion.decision import Decision, Intent, decide
from k8s_ucp.gitops.promotion.landing import Landing, land
from k8s_ucp.gitops.promotion.message import message
from k8s_ucp.gitops.promotion.overlay import Writes
from k8s_ucp.gitops.promotion.tip import GitTip


@dataclass(frozen=True)
class PairTip:
    """The base's newest commit, and that of the pull request's branch where there is one."""

    base: GitTip
    head: GitTip | None
    request: PullRequest | None
    """The open pull request of that branch."""

    @property
    def commit(self) -> str:
        return self.head.commit if self.head else f"none on {self.base.commit}"

    def read(self, path: str) -> bytes | None:
        return self.base.read(path)

    def files(self, path: str) -> list[str]:
        return self.base.files(path)

    def folders(self, path: str) -> list[str]:
        return self.base.folders(path)


class ProposalBranch:
    """The branch of a pull request: what `land` fetches and pushes instead of the base."""

    def __init__(self, base: RemoteBranch, forge: Forge, app: str, env: str) -> None:
        self._base = base
        self._forge = forge
        self.name = f"ucp/{app}/{env}"

    def fetch(self) -> PairTip:
        base = self._base.fetch()
        commit = self._base.fetch_beside(self.name)
        request = self._forge.find(self.name, self._base.branch)
        head = GitTip(self._base.repository, commit, self._base.apps) if commit else None
        return PairTip(base, head, request)

    def commit(self, tip: PairTip, writes: Writes, decisions: Sequence[Decision]) -> str:
        if tip.head and tip.base.commit in self._base.parents_of(tip.head.commit):
            parents: tuple[str, ...] = (tip.head.commit,)
        else:
            parents = (tip.head.commit, tip.base.commit) if tip.head else (tip.base.commit,)
        return self._base.commit(tip.base, writes, decisions, parents=parents)

    def push(self, commit: str) -> None:
        self._base.push(commit, branch=self.name)

    def has(self, tip: PairTip, commit: str) -> bool:
        return tip.head is not None and self._base.has(tip.head, commit)

    def publish(self, commit: str, title: str, body: str, *, merge: bool) -> str:
        """Open or update the pull request, perhaps have it merged: its URL."""
        proposal = Proposal(self.name, self._base.branch, commit, title, body)
        request = self._forge.find(self.name, self._base.branch)
        if request is None:
            request = self._forge.create(proposal)
        else:
            self._forge.update(request, proposal)
        if merge:
            self._forge.merge_when_green(request, proposal)
        return request.url


def decide_proposal(tip: PairTip, intent: Intent) -> Decision:
    """What to write for an intent, given the base and what is proposed already.

    A newer one that is proposed supersedes as if it had landed. No writes and the status
    `promoted`: the branch says exactly this already.
    """
    decision = decide(tip.base, intent)
    if decision.status != "promoted" or tip.head is None:
        return decision
    if tip.request is not None:
        pending = decide(tip.head, replace(intent, expect=""), tip.base)
        if pending.status == "superseded":
            return pending
    if all(tip.head.read(path) == content for path, content in decision.writes.items()):
        return replace(decision, writes={})
    return decision


def propose(
    base: RemoteBranch,
    forge: Forge,
    intent: Intent,
    pace: Pace,
    *,
    link: str,
    merge: bool,
    gate: Callable[[Decision], Decision],
    report: Callable[[str], None],
) -> Landing:
    """Push the pull request's branch, then open or update the pull request."""
    branch = ProposalBranch(base, forge, intent.app, intent.env)
    last: list[PairTip] = []

    def decide_here(tip: PairTip) -> list[Decision]:
        last[:] = [tip]
        return [gate(decide_proposal(tip, intent))]

    landing = land(branch, decide_here, pace, report)
    (decision,) = landing.decisions
    request = last[0].request if last else None
    if decision.status != "promoted":
        found = request.url if request and decision.status == "superseded" else ""
        return replace(landing, request=found)
    head = last[0].head
    commit = landing.commit or (head.commit if head else "")
    title, _, body = message([decision.note], link).strip().partition("\n\n")
    url = branch.publish(commit, title, body, merge=merge)
    return replace(landing, decisions=(replace(decision, status="pr"),), commit=commit, request=url)
