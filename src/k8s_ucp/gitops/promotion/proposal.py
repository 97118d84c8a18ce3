"""Promotions as pull requests: one branch and one pull request per app and environment.

The branch is never force-pushed. A newer promotion adds a commit whose files are the newest ones of
the base branch plus the new tag, and whose parents are both branches. So the difference to the base
is exactly what is proposed now, whatever the branch proposed before: the new promotion, and earlier
ones of other images. These are applied again unless the base has them meanwhile, or something
newer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from k8s_ucp.errors import UsageError
from k8s_ucp.git.push_loop import Pace
from k8s_ucp.gitops.forge.base import Forge, ForgeFailed, Proposal, PullRequest
from k8s_ucp.gitops.promotion.branch import RemoteBranch
from k8s_ucp.gitops.promotion.decision import Decision, Intent, decide
from k8s_ucp.gitops.promotion.landing import Landing, land, try_landing
from k8s_ucp.gitops.promotion.message import Change, are_some, message, read_origins
from k8s_ucp.gitops.promotion.order import UNORDERED, Mark, Order, semver_key, weigh
from k8s_ucp.gitops.promotion.overlay import (
    EditedTip,
    Tip,
    Writes,
    overlay_folder,
    read_overlay,
    written,
)
from k8s_ucp.gitops.promotion.targets.chart import content_of
from k8s_ucp.gitops.promotion.targets.kinds import ChartFiles
from k8s_ucp.gitops.promotion.tip import GitTip

OPENING_SECONDS = 5.0
"""Time that a process which has just pushed the branch may need to open the pull request."""
_LOOKS = 10
"""Number of checks for the pull request in that time."""
_JUST_NOW = 60.0
"""Maximum age of such a push in seconds; allows for small differences between clocks."""
ROUNDS = 20
"""Maximum number of rounds if others change or merge the pull request at the same time."""


@dataclass(frozen=True)
class PairTip:
    """The newest commit of the base, and that of the pull request's branch if it exists."""

    base: GitTip
    head: GitTip | None
    request: PullRequest | None
    """The open pull request of that branch."""
    last_message: str = ""
    """The message of the branch's newest promotion."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The previous version of each image that it proposes to change."""

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
    """The branch of a pull request, which `land` fetches and pushes instead of the base."""

    def __init__(self, base: RemoteBranch, forge: Forge, app: str, env: str) -> None:
        self._base = base
        self._forge = forge
        self._app, self._env = app, env
        self._pushed = ""
        """The last commit that this process pushed."""
        self.name = f"ucp/{app}/{env}"

    def fetch(self) -> PairTip:
        base = self._base.fetch()
        commit = self._base.fetch_beside(self.name)
        head = GitTip(self._base.repository, commit, self._base.apps) if commit else None
        request = self._find(base, head)
        for last_message in self._base.messages(commit) if commit else ():
            origins = read_origins(last_message, self._app, self._env)
            if origins is not None:
                return PairTip(base, head, request, last_message, origins)
        return PairTip(base, head, request)

    def _find(self, base: GitTip, head: GitTip | None) -> PullRequest | None:
        """The open pull request.

        A branch without one proposes nothing and is overwritten. But another promotion pushes
        before it opens its pull request, so after a recent push, wait for that.
        """
        request = self._forge.find(self.name, self._base.branch)
        if request or head is None or not self._is_being_opened(base, head):
            return request
        for _ in range(_LOOKS):
            time.sleep(OPENING_SECONDS / _LOOKS)
            if request := self._forge.find(self.name, self._base.branch):
                break
        return request

    def _is_being_opened(self, base: GitTip, head: GitTip) -> bool:
        if head.commit == self._pushed or abs(self._base.age_of(head.commit)) > _JUST_NOW:
            return False
        folder = overlay_folder(self._app, self._env)
        return self._base.differ(base.commit, head.commit, folder)

    def commit(self, tip: PairTip, writes: Writes, decisions: Sequence[Decision]) -> str:
        if tip.head and tip.base.commit in self._base.parents_of(tip.head.commit):
            parents: tuple[str, ...] = (tip.head.commit,)
        else:
            parents = (tip.head.commit, tip.base.commit) if tip.head else (tip.base.commit,)
        return self._base.commit(tip.base, writes, decisions, parents=parents)

    def push(self, commit: str) -> None:
        self._pushed = commit
        self._base.push(commit, branch=self.name)

    def has(self, tip: PairTip, commit: str) -> bool:
        return tip.head is not None and self._base.has(tip.head, commit)

    def publish(self, tip: PairTip, commit: str, text: str, *, merge: bool) -> tuple[str, bool]:
        """Open or update the pull request, and optionally enable auto-merge: (URL, still current).

        tip: the parent of the commit. text: its message. Not current any more: it was merged, or
        another promotion has pushed to the branch without having seen this one. Raises ForgeFailed.
        """
        title, _, body = text.strip().partition("\n\n")
        proposal = Proposal(self.name, self._base.branch, commit, title, body)
        url = ""
        try:
            request = self._forge.find(self.name, self._base.branch)
            if request is None:
                request = self._forge.create(proposal)
            else:
                self._forge.update(request, proposal)
            url = request.url
            if merge and self._is_newest(commit):
                self._forge.merge_when_green(request, proposal)
        except ForgeFailed:
            # Concurrent changes by others aren't a failure: the caller checks again.
            same = self._is_newest(commit) and self._base.fetch().commit == tip.base.commit
            if same and (not url or self._is_open()):
                raise
            return url, False
        return url, self._is_newest(commit)

    def withdraw(self, request: PullRequest) -> None:
        """Close the pull request, which has nothing left to propose."""
        self._forge.close(request)

    def _is_newest(self, commit: str) -> bool:
        """The branch still exists and nobody else has pushed to it."""
        return self._base.fetch_beside(self.name) == commit

    def _is_open(self) -> bool:
        return self._forge.find(self.name, self._base.branch) is not None


def decide_proposal(tip: PairTip, intent: Intent) -> Decision:
    """What to write for an intent, given the base and what is already proposed.

    Status `promoted` without writes: the branch already proposes exactly this. Unchanged, with
    dropped changes: the pull request must be updated, or has nothing left to propose.
    """
    decision = decide(tip.base, intent)
    if decision.status == "unchanged" and tip.request is None:
        # A mark alone doesn't justify a pull request.
        return replace(decision, writes={})
    if decision.status not in ("promoted", "unchanged") or tip.head is None:
        return decision
    if tip.request is not None:
        decision = decide_beside(tip.base, tip.head, intent, decision, tip.origins)
    same = all(tip.head.read(path) == content for path, content in decision.writes.items())
    if same and not (tip.request and _has_moved(tip, intent)):
        return replace(decision, writes={})
    return decision


def _has_moved(tip: PairTip, intent: Intent) -> bool:
    """The base changed something that the branch changes too, so a merge would conflict."""
    pins = read_overlay(tip.base, intent.app, intent.env).pins
    return any(str(pins[name]) != was for name, was in tip.origins.items() if name in pins)


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
    """Push the pull request's branch, then open or update the pull request.

    Repeat if another promotion pushed meanwhile: until the pull request is open, that one can't
    know that the commits on the branch are proposed.
    """
    branch = ProposalBranch(base, forge, intent.app, intent.env)
    last: list[PairTip] = []

    def decide_here(tip: PairTip) -> list[Decision]:
        last[:] = [tip]
        return [gate(decide_proposal(tip, intent))]

    published: Landing | None = None
    for _ in range(ROUNDS):
        landing = land(branch, decide_here, pace, report)
        (decision,), tip = landing.decisions, last[0]
        found = tip.request.url if tip.request else ""
        head = tip.head.commit if tip.head else ""
        if decision.status == "superseded":
            if published and tip.request:
                # The title may be that of the older promotion, which opened it.
                branch.publish(tip, head, tip.last_message, merge=merge)
            return replace(landing, request=found)
        if decision.status not in ("promoted", "unchanged"):
            return landing
        if decision.status == "unchanged" and not decision.dropped:
            # Already merged.
            return published or landing
        if not decision.note.changes and tip.request:
            branch.withdraw(tip.request)
            return replace(landing, request=found)
        commit = landing.commit or head
        url, ours = branch.publish(tip, commit, message([decision.note], link), merge=merge)
        if decision.status == "promoted":
            decision = replace(decision, status="pr")
        published = replace(landing, decisions=(decision,), commit=commit, request=url)
        if ours:
            break
        report("the pull request was merged, or changed by another promotion")
    assert published
    return published


def try_proposal(
    base: RemoteBranch,
    forge: Forge,
    intent: Intent,
    pace: Pace,
    *,
    link: str,
    gate: Callable[[Decision], Decision],
    report: Callable[[str], None],
) -> Landing:
    """What `propose` would push, without changing the branch or its pull request."""
    branch = ProposalBranch(base, forge, intent.app, intent.env)
    urls: list[str] = []

    def decide_here(tip: PairTip) -> list[Decision]:
        urls[:] = [tip.request.url] if tip.request else []
        return [gate(decide_proposal(tip, intent))]

    def text(decisions: Sequence[Decision]) -> str:
        return message([each.note for each in decisions], link)

    landing = try_landing(branch, decide_here, text, pace, report)
    (decision,) = landing.decisions
    if decision.status == "promoted":
        decision = replace(decision, status="pr")
    concerned = decision.status in ("pr", "superseded") or decision.dropped
    return replace(landing, decisions=(decision,), request="".join(urls) if concerned else "")


@dataclass(frozen=True)
class Pending:
    """What a pull request proposes, relative to the base's versions.

    writes: the changes in `kept` that the base lacks. dropped: changes for which the base has
    something newer.
    """

    writes: Writes
    kept: tuple[Change, ...]
    dropped: tuple[Change, ...]


def find_pending(base: Tip, head: Tip, app: str, env: str, origins: Mapping[str, str]) -> Pending:
    """What the branch `head` proposes.

    origins: the previous version of each image that it changes. Raises what read_overlay raises.
    """
    here, proposed = read_overlay(base, app, env), read_overlay(head, app, env)
    marks, pins = dict(here.marks), here.pins
    kept: list[Change] = []
    dropped: list[Change] = []
    for name, pin in proposed.pins.items():
        if name not in origins or name not in pins or pins[name] == pin:
            continue
        change = Change(name, pins[name], pin)
        mark = _mark(
            change, origins[name], marks.get(name, Mark()), proposed.marks.get(name, Mark())
        )
        (dropped if mark is None else kept).append(change)
        if mark is not None and mark != Mark():
            marks[name] = mark
    pins = {each.image: each.new for each in kept}
    charts = {
        name: content_of(proposed.files, env)
        for name in pins
        if isinstance(here.target(name).locations[0], ChartFiles)
    }
    return Pending(written(here, pins, marks, charts), tuple(kept), tuple(dropped))


def decide_beside(
    base: Tip, head: Tip, intent: Intent, decision: Decision, origins: Mapping[str, str]
) -> Decision:
    """The decision on the base, combined with what the open pull request proposes.

    decision: promoted or unchanged on the base alone. The proposed changes count as if they had
    landed, so a newer one supersedes. Unchanged, with dropped changes: the pull request no longer
    proposes another version of this image, and only `kept` is left.
    """
    app, env = intent.app, intent.env
    pending = find_pending(base, head, app, env, origins)
    edited = EditedTip(base, pending.writes)
    renewed = decide(edited, replace(intent, expect="", seen={}), base)
    if renewed.status not in ("promoted", "unchanged"):
        return renewed
    if decision.status == renewed.status == "unchanged":
        return replace(decision, writes={})
    pins = read_overlay(base, app, env).pins
    news = {each.image: each.new for each in (*pending.kept, *renewed.note.changes)}
    final = tuple(Change(name, pins[name], pin) for name, pin in news.items() if pin != pins[name])
    asked = {each.image: each.new for each in decision.asked}
    kept = tuple(each for each in final if asked.get(each.image) != each.new)
    settled = [each for each in pending.kept if news[each.image] == each.old]
    dropped = (*pending.dropped, *settled)
    writes = {**pending.writes, **renewed.writes} if final else {}
    if dropped and final:
        # Restore the base's content explicitly, or the commit would not remove the dropped changes.
        writes = {**_restored(base, head, overlay_folder(app, env)), **writes}
    note = replace(decision.note, changes=final, several=are_some(final, pins))
    note = replace(note, kind="promote") if final else note
    return replace(decision, note=note, writes=writes, kept=kept, dropped=dropped)


def _mark(change: Change, origin: str, here: Mark, proposed: Mark) -> Mark | None:
    """The mark with which a proposed change is kept; None if the base has something newer."""
    order = UNORDERED
    if proposed.sequence is not None and proposed.sequence != here.sequence:
        order = Order(proposed.sequence, proposed.source)
    elif proposed.version and proposed.version != here.version:
        order = Order(semver=True)
    if str(change.old) != origin and not _ordered(here, order, change):
        # The base has changed since, and it is unknown whether by an older promotion.
        return None
    try:
        verdict = weigh(here, order, change.old, change.new)
    except UsageError:
        # The sequences have different sources, so it is unknown which one is newer.
        return None
    return verdict.mark if verdict.kind == "passes" else None


def _ordered(here: Mark, order: Order, change: Change) -> bool:
    """The proposal's order can be compared with that of the base's version."""
    if order.semver:
        return semver_key(change.old.tag) is not None
    return order.sequence is not None and here.sequence is not None


def _restored(base: Tip, head: Tip, folder: str) -> Writes:
    """The base's content of the files that the branch changed."""
    paths = [f"{folder}/{name}" for name in {*base.files(folder), *head.files(folder)}]
    return {path: base.read(path) for path in paths if base.read(path) != head.read(path)}
