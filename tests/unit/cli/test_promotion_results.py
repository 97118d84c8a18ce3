"""Output of `ucp promote` about its result."""

from __future__ import annotations

from dataclasses import replace

import pytest

from k8s_ucp.cli.command import Invocation, Output
from k8s_ucp.cli.promotion.results import repeating, result, show_landing, with_repository, words
from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.promotion.decision import Decision
from k8s_ucp.gitops.promotion.landing import Landing
from k8s_ucp.gitops.promotion.message import Change, PromotionNote
from k8s_ucp.gitops.promotion.overlay import OverlayMissing

WEB = Change("web", Pin("1"), Pin("2"))
API = Change("api", Pin("5"), Pin("4"))


def landing(asked: tuple[Change, ...], changes: tuple[Change, ...]) -> Landing:
    note = PromotionNote("promote", "shop", "prod", changes, several=True)
    decision = Decision("promoted", note, asked)
    return Landing(decisions=(decision,), commit="c" * 40, attempts=1)


def test_an_image_that_stays_newer_is_reported_as_superseded() -> None:
    landed = landing((WEB, API), (WEB,))
    data = result(landed, batch=False)

    assert data["images"] == [{"name": "web", "from": "1", "to": "2"}]
    assert data["superseded"] == [{"name": "api", "from": "5", "to": "4"}]
    assert "superseded: api stays 5, not 4" in words(landed.decisions[0], landed)


def test_nothing_is_reported_as_superseded_if_every_image_changed() -> None:
    landed = landing((WEB,), (WEB,))

    assert "superseded" not in result(landed, batch=False)
    assert "superseded" not in words(landed.decisions[0], landed)


def test_a_released_hold_is_told_apart_from_a_promotion() -> None:
    landed = landing((), ())
    (decision,) = landed.decisions
    assert "kind" not in result(landed, batch=False)
    for kind in ("rollback", "hold", "release"):
        did = replace(decision, note=replace(decision.note, kind=kind))
        assert result(replace(landed, decisions=(did,)), batch=False)["kind"] == kind


def test_suggested_commands_name_the_same_repository_and_branch() -> None:
    landed = landing((WEB,), (WEB,))
    held = replace(landed.decisions[0], held=("1",))
    text = with_repository(words(held, landed), "https://git.example/my apps.git", "live")
    assert text.endswith(
        "release: ucp rollback shop --repo 'https://git.example/my apps.git' --branch live "
        "--env prod --release-hold"
    )
    assert with_repository(words(held, landed), "", "") == words(held, landed)


@pytest.mark.parametrize(("status", "printed"), [("held", True), ("unchanged", False)])
def test_a_refusal_is_printed_even_with_quiet(
    status: str, printed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    landed = landing((WEB,), ())
    landed = replace(landed, decisions=(replace(landed.decisions[0], status=status, reason="why"),))
    code = show_landing(Invocation(quiet=True), landed, Output.table, "", "", batch=False)
    assert code == (1 if printed else 0)
    assert (f"{status}: why" in capsys.readouterr().err) is printed


@pytest.mark.parametrize(
    ("line", "known", "repo", "advice"),
    [
        ("promote ehco --tag 1 --env stage", ["echo"], "", "ucp promote echo --tag 1 --env stage"),
        ("promote ehco --repo a.git", ["echo"], "a.git", "ucp promote echo --repo a.git"),
        ("promote --batch -", ["echo"], "", "did you mean echo?"),
        ("promote ehco --env stage", ["quote"], "", "ucp app list"),
        (
            "history ehco --repo a.git",
            ["quote"],
            "a.git",
            "run the command again with an available name",
        ),
    ],
)
def test_an_unknown_name_is_corrected_in_the_command(
    line: str, known: list[str], repo: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["ucp", *line.split()])
    with pytest.raises(OverlayMissing) as found, repeating(repo, ""):
        raise OverlayMissing("the app ehco does not exist", "ehco", known)
    assert found.value.next == advice
