"""The result of promote and rollback, as text and as data, and the commands it suggests."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import indent
from typing import Any

from k8s_ucp.cli.command import Invocation, Output, notation, with_given_options
from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.git.environment import FALLBACK
from k8s_ucp.git.objects import Author
from k8s_ucp.gitops.promotion.ci import Run
from k8s_ucp.gitops.promotion.decision import REFUSALS, Decision
from k8s_ucp.gitops.promotion.landing import Landing
from k8s_ucp.gitops.promotion.message import DEFAULT, Change, as_data, change_words
from k8s_ucp.gitops.promotion.overlay import OverlayMissing
from k8s_ucp.redaction import without_secrets


def person(run: Run) -> Author | None:
    """Who started the CI run, as author if git has none configured."""
    return Author(run.person, run.email or FALLBACK.email) if run.person else None


_DID = {"rollback": "rolled back", "hold": "hold set", "release": "hold released"}
"""What `ucp rollback` did, by the note's kind."""
_WOULD = {
    "rollback": "would roll back", "hold": "would set the hold", "release": "would release the hold"
}  # fmt: skip
"""What it would do, in a dry run."""


def show_landing(
    call: Invocation, landing: Landing, output: Output, repo: str, branch: str, *, batch: bool
) -> int:
    """Print the result, as text and as data; returns the exit code.

    repo, branch: as typed, to be repeated in suggested commands.
    """
    console = call.console
    for decision in landing.decisions:
        text = with_repository(words(decision, landing), repo, branch)
        show = console.refuse if decision.status in REFUSALS else console.say
        show(with_given_options(text, call.given))
        for location in decision.locations:
            console.say(f"  {decision.note.env}: {location}")
    if output is not Output.table:
        console.data(notation(result(landing, batch=batch), output))
    elif landing.dry_run and landing.dry_run.message:
        console.data(f"{indent(landing.dry_run.message, '    ')}\n{landing.dry_run.diff}")
    return 1 if _worst(landing.decisions).status in REFUSALS else 0


def with_repository(text: str, repo: str, branch: str) -> str:
    """The text, whose commands name the same repository and branch as this one."""
    given = {"--repo": repo, "--branch": branch}
    flags = "".join(f" {command_line(flag, value)}" for flag, value in given.items() if value)
    return _SUGGESTED.sub(lambda found: found[0] + flags, text)


_SUGGESTED = re.compile(
    r"(?<![\w/.-])ucp (?:promote|rollback|history)(?: [A-Za-z0-9][A-Za-z0-9._-]*|(?= --batch))"
)


@contextmanager
def repeating(repo: str, branch: str) -> Iterator[None]:
    """Errors suggest commands with the same repository and branch, or this one with known names."""
    try:
        yield
    except OverlayMissing as error:
        if error.meant and sys.argv.count(error.typed) == 1:
            line = [error.meant if each == error.typed else each for each in sys.argv[1:]]
            error.next = without_secrets(command_line("ucp", *line))
        elif repo and not error.meant:
            # `ucp app list` shows the apps of the workspace only.
            error.next = "run the command again with an available name"
        raise
    except UcpError as error:
        if error.next:
            error.next = with_repository(error.next, repo, branch)
        raise


def result(landing: Landing, *, batch: bool) -> Mapping[str, Any]:
    """The result as data, for -o json and yaml."""
    worst = _worst(landing.decisions)
    common: dict[str, Any] = {
        "commit": landing.commit or None,
        "attempts": landing.attempts,
        "pr": landing.request or None,
    }
    if planned := landing.dry_run:
        common |= {"dryRun": True, "message": planned.message or None, "diff": planned.diff or None}
    if batch:
        items = [_item(decision) for decision in landing.decisions]
        return {"status": worst.status, **common, "promotions": items}
    return {**_item(worst), **common}


def _item(decision: Decision) -> dict[str, Any]:
    note = decision.note
    landed = decision.status in ("promoted", "pr") and bool(note.changes)
    listed = _own(decision) if landed else decision.asked
    item = {"status": decision.status, "app": note.app, "env": note.env, **as_data(listed)}
    if note.kind in _DID:
        item["kind"] = note.kind
    if decision.held:
        item["held"] = list(decision.held)
    for name, changes in (("kept", decision.kept), ("dropped", decision.dropped)):
        if changes:
            item[name] = as_data(changes)["images"]
    if superseded := _superseded(decision):
        item["superseded"] = as_data(superseded)["images"]
    return {**item, "reason": decision.reason} if decision.reason else item


def _own(decision: Decision) -> tuple[Change, ...]:
    """Changes of the command itself, without other proposals of the same pull request."""
    return tuple(each for each in decision.note.changes if each not in decision.kept)


def _superseded(decision: Decision) -> list[Change]:
    """Images that keep a newer version, while others were promoted."""
    note = decision.note
    if decision.status not in ("promoted", "pr") or note.kind != "promote" or not note.changes:
        return []
    changed = {each.image for each in _own(decision)}
    return [each for each in decision.asked if each.image not in changed and each.old != each.new]


def _on_hold(decision: Decision, label: str) -> str:
    """What a rollback keeps out from now on, and the command that ends that."""
    if not decision.held:
        return ""
    note = decision.note
    return (
        f"\n  {label}: {', '.join(decision.held)}; release: "
        f"ucp rollback {note.app} --env {note.env} --release-hold"
    )


def _beside(decision: Decision) -> str:
    """What the same pull request also proposes, and what it no longer proposes."""
    return "".join(
        f"\n  {label}: {each.image} {each.old or DEFAULT} -> {each.new or DEFAULT}"
        for label, changes in (
            ("also proposed there", decision.kept),
            ("no longer proposed", decision.dropped),
        )
        for each in changes
    )


def _worst(decisions: Sequence[Decision]) -> Decision:
    """The decision that determines the exit code: a refusal, or else what landed, or the rest."""
    rank = (*REFUSALS, "promoted", "pr", "superseded", "unchanged")
    return min(decisions, key=lambda decision: rank.index(decision.status))


def _would(decision: Decision, landing: Landing) -> str:
    """What a dry run found that the command would do."""
    if decision.status != "pr":
        return _WOULD.get(decision.note.kind, "would promote")
    if not landing.request:
        return "would open a pull request"
    return f"would update {landing.request}" if decision.writes else f"already in {landing.request}"


def words(decision: Decision, landing: Landing) -> str:
    """The result as text: what was changed, or why nothing was."""
    note = decision.note
    if decision.status in ("promoted", "pr"):
        what = change_words(_own(decision) or decision.asked, several=note.several)
        subject = f"{note.app} in {note.env}"
        kept = "".join(
            f"\n  superseded: {each.image} stays {each.old or DEFAULT}, not {each.new or DEFAULT}"
            for each in _superseded(decision)
        )
        if landing.dry_run:
            label = f"{_would(decision, landing)}: {subject}{what and f': {what}'}"
            return f"{label}{kept}{_beside(decision)}{_on_hold(decision, 'would be on hold')}"
        if decision.status == "pr":
            return f"pull request: {subject}: {what} ({landing.request}){kept}{_beside(decision)}"
        did = _DID.get(note.kind, "promoted")
        tries = f", {landing.attempts} tries" if landing.attempts > 1 else ""
        landed = f"{did}: {subject}{what and f': {what}'} ({landing.commit[:12]}{tries})"
        return f"{landed}{kept}{_on_hold(decision, 'on hold')}"
    text = f"{decision.status}: {decision.reason}{_beside(decision)}"
    if decision.dropped and not decision.kept:
        closed = "would close" if landing.dry_run else "closed"
        text += f"\n  {closed} the pull request {landing.request}"
    return f"{text}\n  next: {decision.next}" if decision.next else text
