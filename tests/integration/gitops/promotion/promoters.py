"""Many concurrent promotions on one branch, and the proof that none was lost."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.integration.gitops.promotion.app_repository import (
    AppRepository,
    Person,
    Result,
    Ucp,
    finish,
    overlay,
)
from tests.integration.gitops.promotion.conftest import Transport


@dataclass(frozen=True)
class Wish:
    """The tag that one promotion should set."""

    app: str
    tag: str
    sequence: int | None = None

    @property
    def words(self) -> tuple[str, ...]:
        order = () if self.sequence is None else ("--sequence", str(self.sequence))
        return ("promote", self.app, "--env", "stage", "--tag", self.tag, *order, "-o", "json")


@dataclass(frozen=True)
class Outcome:
    wish: Wish
    result: Result


def many_apps(count: int) -> list[Wish]:
    return [Wish(f"app-{number}", f"v{number}") for number in range(count)]


def one_app(count: int) -> list[Wish]:
    return [Wish("echo", f"v{number}") for number in range(count)]


def in_sequence(count: int, seed: int) -> list[Wish]:
    wishes = [Wish("echo", f"v{number}", number) for number in range(1, count + 1)]
    random.Random(seed).shuffle(wishes)
    return wishes


def mixed(count: int, seed: int) -> list[Wish]:
    """Half of them for several apps, half of them for one app with sequences."""
    half = count // 2
    wishes = [*many_apps(half), *in_sequence(count - half, seed)]
    random.Random(seed).shuffle(wishes)
    return wishes


def apps_of(wishes: Sequence[Wish]) -> list[str]:
    return sorted({"echo", *(wish.app for wish in wishes)})


def promote_all(
    ucp: Ucp, repository: AppRepository, transport: Transport, wishes: Sequence[Wish]
) -> list[Outcome]:
    """Run all promotions concurrently, each in its own process."""
    where = ("--repo", transport.url(repository.folder))
    running = [(wish, ucp.start(*wish.words, *where, **transport.variables)) for wish in wishes]
    return [Outcome(wish, finish(each)) for wish, each in running]


def promote_in_turn(
    ucp: Ucp, repository: AppRepository, transport: Transport, wishes: Sequence[Wish]
) -> list[Outcome]:
    """Run the promotions one after another."""
    where = ("--repo", transport.url(repository.folder))
    return [
        Outcome(wish, finish(ucp.start(*wish.words, *where, **transport.variables)))
        for wish in wishes
    ]


def with_people(
    repository: AppRepository, folder: Path, people: int, pushes: int, work: Callable[[], None]
) -> list[str]:
    """Run `work` while people push files of their own; return their commits."""
    landed: list[str] = []
    failed: list[BaseException] = []

    def live(person: Person, name: str) -> None:
        try:
            for number in range(pushes):
                landed.append(person.push(f"notes/{name}.md", f"{number}\n"))
        except BaseException as error:  # noqa: BLE001 (shown by the caller)
            failed.append(error)

    clones = [Person(repository, folder / f"person{number}") for number in range(people)]
    threads = [
        threading.Thread(target=live, args=(person, f"person{number}"))
        for number, person in enumerate(clones)
    ]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    assert not failed, failed
    return landed


def prove_none_lost(
    repository: AppRepository, outcomes: Sequence[Outcome], people: Sequence[str] = ()
) -> None:
    """Check that each promoted commit exists, all others were superseded, and none was forced."""
    repository.prove_sound()
    commits = repository.commits
    for outcome in outcomes:
        assert outcome.result.code == 0, f"{outcome.wish}: {outcome.result.err}"
        assert outcome.result.status in ("promoted", "superseded")
    promoted = [each for each in outcomes if each.result.status == "promoted"]
    landed = [each.result.data["commit"] for each in promoted]
    assert sorted([repository.first, *landed, *people]) == sorted(commits), "a commit is missing"
    _prove_tags(repository, promoted)
    _prove_order(repository, outcomes)


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Figures that a soak records."""
    statuses = [each.result.status for each in outcomes]
    return {
        "promoters": len(outcomes),
        "landed": statuses.count("promoted"),
        "superseded": statuses.count("superseded"),
        "tries_in_all": sum(each.result.data["attempts"] for each in outcomes),
        "lost": 0,
        "forced": 0,
    }


def _prove_tags(repository: AppRepository, promoted: Sequence[Outcome]) -> None:
    """Each app must have the tag of its last promotion, and each commit must change one line."""
    place = {commit: number for number, commit in enumerate(repository.commits)}
    newest: dict[str, tuple[int, str]] = {}
    for each in promoted:
        commit, app = each.result.data["commit"], each.wish.app
        newest[app] = max(newest.get(app, (-1, "")), (place[commit], each.wish.tag))
        changed = repository.git(
            "diff", "--numstat", f"{commit}~1", commit, "--", overlay(app, "stage")
        )
        assert changed.split()[:2] == ["1", "1"]
    for app, (_, tag) in newest.items():
        assert repository.tag(app, "stage") == tag


def _prove_order(repository: AppRepository, outcomes: Sequence[Outcome]) -> None:
    """Sequences of one app must only increase, and the highest must win."""
    sequences = {
        each.result.data["commit"]: each.wish.sequence
        for each in outcomes
        if each.wish.sequence is not None and each.result.status == "promoted"
    }
    landed = [sequences[commit] for commit in repository.commits if commit in sequences]
    assert landed == sorted(landed, key=lambda each: each or 0)
    wanted = [each.wish.sequence for each in outcomes if each.wish.sequence is not None]
    if wanted:
        assert landed[-1] == max(wanted)
