"""Tables, and the output of steps without a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from k8s_ucp.cli.console import Console, LiveSteps, PlainSteps, table
from k8s_ucp.engine.pipeline import StepEvent, StepRun, StepState


def test_columns_are_aligned_and_empty_cells_are_marked() -> None:
    assert table(("a", "name"), [["1", None], ["long", "x"]]) == "A      NAME\n1      -\nlong   x"


def test_a_table_fits_the_terminal_and_its_widest_cells_are_truncated() -> None:
    columns = ("name", "images", "why")
    images = " ".join(f"registry.example.org/image-{number}:1.0" for number in range(13))
    rows = [["a-name-of-24-characters-x", images, "because " * 40], ["b", "c:1", ""]]
    for width in (80, 120, 200):
        lines = table(columns, rows, width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert lines[1].startswith("a-name-of-24-characters-x   registry.example.org/")
        assert lines[1].endswith("...")
        assert lines[2].split() == ["b", "c:1", "-"]
    # Cells keep a minimum width, and nothing is truncated if the output is no terminal.
    assert "a-name-of..." in table(columns, rows, width=20)
    assert images in table(columns, rows)
    assert "one two" in table(("a",), [["one\ntwo"]])


def test_a_narrow_terminal_lacks_empty_columns_and_then_spare_ones() -> None:
    columns = ("time", "from", "sequence", "commit")
    rows = [["2026-11-29", "0.9.2", None, "0123456789ab"], ["2026-11-28", None, "", "ba9876543210"]]

    def heads(width: int | None) -> list[str]:
        return table(columns, rows, width=width, spare=("commit",)).splitlines()[0].split()

    assert heads(None) == heads(44) == ["TIME", "FROM", "SEQUENCE", "COMMIT"]
    assert heads(43) == heads(33) == ["TIME", "FROM", "COMMIT"]
    assert heads(32) == ["TIME", "FROM"]
    assert table(("a",), [[""]], width=0) == "A\n-"


def test_control_characters_in_a_table_are_spelled_out_before_columns_are_aligned() -> None:
    lines = table(("name", "why"), [["a\x1b[2J", "x"], ["long-name", "y"]]).splitlines()
    assert lines == ["NAME        WHY", r"a\x1b[2J    x", "long-name   y"]


def test_without_a_terminal_a_step_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainSteps(Console())
    step = StepRun("a", "Do it", StepState.RUNNING)
    view.on_event(StepEvent(step, [step]))
    step.message, step.seconds = "half way", 3.0
    view.on_event(StepEvent(step, [step]))
    step.state, step.seconds = StepState.DONE, 12.34
    view.on_event(StepEvent(step, [step]))
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "   12.3 s  Do it\n"


def test_a_progress_report_is_truncated_unless_verbose(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("k8s_ucp.cli.console.REPORT_SECONDS", 0.0)
    step = StepRun("a", "Do it", StepState.RUNNING, message="web: OutOfSync; " * 100)
    PlainSteps(Console()).on_event(StepEvent(step, [step]))
    assert len(capsys.readouterr().err) < 450
    PlainSteps(Console(verbose=True)).on_event(StepEvent(step, [step]))
    assert step.message in capsys.readouterr().err


def test_quiet_suppresses_progress_but_not_data(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(quiet=True)
    console.say("words")
    step = StepRun("a", "Do it", StepState.DONE)
    console.steps().on_event(StepEvent(step, [step]))
    console.data("data")
    assert capsys.readouterr() == ("data\n", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


HOSTILE = "Name\x1b]0;evil\x07\x1b[2J\x9b1A\x7f: 1\r2"
SHOWN = r"Name\x1b]0;evil\x07\x1b[2J\x9b1A\x7f: 1\r2"


def test_control_characters_of_data_are_shown_on_a_terminal_and_kept_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A commit's author, or whoever writes a log, must not control the terminal."""
    streams: dict[io.StringIO, str] = {Terminal(): SHOWN, io.StringIO(): HOSTILE}
    for stream, expected in streams.items():
        monkeypatch.setattr(sys, "stdout", stream)
        Console().data(f"a\tb\n{HOSTILE}\nc")
        assert stream.getvalue() == f"a\tb\n{expected}\nc\n"


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_control_characters_of_messages_are_shown_everywhere(
    monkeypatch: pytest.MonkeyPatch, kind: type[io.StringIO]
) -> None:
    """Pagers and the pages of CI logs obey them, too."""
    stream = kind()
    monkeypatch.setattr(sys, "stderr", stream)
    console = Console()
    console.say(f"a\tb\n{HOSTILE}\u202ec")
    console.warn(HOSTILE)
    assert stream.getvalue() == f"a\tb\n{SHOWN}\\u202ec\nucp: {SHOWN}\n"


def test_messages_in_a_github_job_contain_no_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The names of files in a pull request are in messages of `ucp check`."""
    text = "apps/a::b:\n::add-mask::a\n  ::warning::b\nc ##[add-mask]d #[e] ::f"
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    Console().say(text)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    Console().say(text)
    shown = "apps/a::b:\n\\x3a:add-mask::a\n  \\x3a:warning::b\nc #\\x23[add-mask]d #[e] ::f"
    assert capsys.readouterr().err == f"{text}\n{shown}\n"


def test_line_ends_of_other_systems_are_line_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    Console().data("a\r\nb\r\n")
    assert terminal.getvalue() == "a\nb\n"


def test_messages_of_steps_do_not_control_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    view = LiveSteps(Console())
    step = StepRun("a", "Do it", StepState.DONE, message=HOSTILE)
    view.on_event(StepEvent(step, [step]))
    assert "\x1b]0;" not in terminal.getvalue()
    assert r"\x1b]0;evil" in terminal.getvalue()
