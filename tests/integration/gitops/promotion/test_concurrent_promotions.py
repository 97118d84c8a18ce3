"""Many concurrent promotions: none lost, none forced, linear history, over every transport."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.gitops.promotion import promoters
from tests.integration.gitops.promotion.app_repository import AppRepository, Ucp
from tests.integration.gitops.promotion.conftest import Transport

SEED = 4
FEW, MANY = 8, 50
EVERY = [
    pytest.param(MANY, transport, marks=pytest.mark.soak, id=f"{MANY}-{transport}")
    for transport in ("file", "http", "ssh")
]
"""The full matrix; `make test` runs each kind once, and each transport once (ssh is slow)."""

WISHES: dict[str, Callable[[int], list[promoters.Wish]]] = {
    "an app each": promoters.many_apps,
    "one app": promoters.one_app,
    "one app in sequence": lambda count: promoters.in_sequence(count, SEED),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("count", "transport"), [pytest.param(FEW, "file"), *EVERY], indirect=["transport"]
)
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(each, marks=pytest.mark.slow if each == "an app each" else ())
        for each in WISHES
    ],
)
def test_no_concurrent_promotion_is_lost(
    kind: str,
    count: int,
    hosted: Callable[..., AppRepository],
    transport: Transport,
    ucp: Ucp,
    record: Callable[..., None],
) -> None:
    wishes = WISHES[kind](count)
    repository = hosted(*promoters.apps_of(wishes))

    outcomes = promoters.promote_all(ucp, repository, transport, wishes)

    promoters.prove_none_lost(repository, outcomes)
    record(**promoters.counts(outcomes))


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("count", "transport"),
    [pytest.param(FEW, "http"), pytest.param(FEW, "ssh", marks=pytest.mark.slow), *EVERY],
    indirect=["transport"],
)
def test_no_promotion_is_lost_while_people_push(
    count: int,
    hosted: Callable[..., AppRepository],
    transport: Transport,
    ucp: Ucp,
    tmp_path: Path,
    record: Callable[..., None],
) -> None:
    wishes = promoters.mixed(count, SEED)
    repository = hosted(*promoters.apps_of(wishes))
    outcomes: list[promoters.Outcome] = []

    people = promoters.with_people(
        repository, tmp_path, people=2, pushes=max(2, count // 10),
        work=lambda: outcomes.extend(promoters.promote_all(ucp, repository, transport, wishes)),
    )  # fmt: skip

    promoters.prove_none_lost(repository, outcomes, people)
    record(**promoters.counts(outcomes), pushes_of_people=len(people))


def test_promotions_in_one_working_clone_take_turns(
    repository: AppRepository, ucp: Ucp, tmp_path: Path
) -> None:
    folder = tmp_path / "clone"
    repository._git(tmp_path, "clone", "--quiet", repository.url, str(folder))
    inside = Transport("clone", lambda _: str(folder))

    outcomes = promoters.promote_all(ucp, repository, inside, promoters.one_app(4))

    promoters.prove_none_lost(repository, outcomes)
    assert repository._git(folder, "rev-parse", "HEAD").strip() == repository.tip
