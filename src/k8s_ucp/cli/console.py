"""The only writer to the terminal: data on stdout, messages on stderr.

Writes plain text itself; rich is loaded only for the live view of steps.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import sys
import termios
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from k8s_ucp.engine.pipeline import StepEvent, StepRun

REPORT_SECONDS = 10.0
"""Interval of a step's progress messages without a terminal (in a CI log)."""
REPORT_LENGTH = 400
"""Characters of such a progress message."""


class Console:
    """Output of one command. Colors only if stderr is a terminal that supports them."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False, color: bool = True) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self.terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn: os.terminal_size | None = None
        """Size of the terminal at the last `redraw`."""
        self.color = color and self.terminal and not os.environ.get("NO_COLOR")

    @property
    def width(self) -> int | None:
        """Columns of the terminal on stdout; None if stdout is a file or a pipe."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    def data(self, text: str) -> None:
        """Write data for programs to stdout, at once, even with -q."""
        text = printable(text, sys.stdout)
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()

    def say(self, text: str = "") -> None:
        """Write a message for people to stderr; not with -q."""
        if not self.quiet:
            sys.stderr.write(harmless(text) + "\n")
            sys.stderr.flush()

    def detail(self, text: str) -> None:
        """Write a message to stderr, only with -v."""
        if self.verbose:
            self.say(text)

    def warn(self, text: str) -> None:
        """Write a warning to stderr, even with -q."""
        self.refuse(f"ucp: {text}")

    def refuse(self, text: str) -> None:
        """Write why the command did not do what it was asked to stderr, even with -q."""
        sys.stderr.write(harmless(text) + "\n")
        sys.stderr.flush()

    def steps(self) -> StepsView:
        """The view for the steps of a plan."""
        if self.quiet:
            return StepsView()
        return LiveSteps(self) if self.terminal else PlainSteps(self)

    def redraw(self, text: str) -> None:
        """Show a page again (`--watch`): in place on a terminal, otherwise below the last one."""
        if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
            self.data(text)
            return
        size = shutil.get_terminal_size()
        text = printable(text, sys.stdout)
        sys.stdout.write(in_place(text, size, clear=size != self._drawn))
        sys.stdout.flush()
        self._drawn = size


def printable(text: str, stream: TextIO) -> str:
    """The text for a stream: a terminal shows control characters instead of obeying them.

    Logs, commit messages and conditions are written by others. With escape sequences they could
    change what the terminal shows, or what is in the clipboard.
    """
    return _visible(text) if stream.isatty() else text


def harmless(text: str) -> str:
    """A message for people, wherever it is shown: terminal, pager or the log of a CI job.

    GitHub Actions takes commands from the output of a job, such as to mask words in its log, or to
    annotate a file: names of files and objects in a pull request could contain some.
    """
    text = _visible(text)
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return text
    return _COMMAND_LINE.sub(r"\1\\x3a", text).replace("##[", r"#\x23[")


_COMMAND_LINE = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)
"""The beginning of `::name`; the older `##[name]` counts anywhere in a line."""


def _visible(text: str) -> str:
    return text.replace("\r\n", "\n").translate(_CONTROLS)


_CONTROLS = {
    code: repr(chr(code))[1:-1]
    for code in (
        *range(0x20),
        *range(0x7F, 0xA0),
        # These reorder the text around them.
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    )
    if chr(code) not in "\n\t"
}


def silence_closed_terminal() -> bool:
    """Write nothing more to a terminal that was closed, which fails; returns whether it was."""
    closed = [descriptor for descriptor in (1, 2) if _is_closed_terminal(descriptor)]
    for descriptor in closed:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), descriptor)
    return bool(closed)


def _is_closed_terminal(descriptor: int) -> bool:
    try:
        os.write(descriptor, b"")
    except OSError as error:
        return error.errno == errno.EIO
    return False


class StepsView(AbstractContextManager["StepsView"]):
    """Shows steps while a plan runs; this base class shows nothing."""

    def on_event(self, event: StepEvent) -> None:
        """A step changed."""

    def __exit__(self, *_: object) -> None:
        return None


class PlainSteps(StepsView):
    """Prints a line when a step ends, and a progress message from time to time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed: dict[str, float] = {}

    def on_event(self, event: StepEvent) -> None:
        step, now = event.step, time.monotonic()
        if step.state == "running":
            last = self._printed.setdefault(step.id, now)
            pause = 0.0 if self._console.verbose else REPORT_SECONDS
            if step.message and now - last >= pause:
                self._printed[step.id] = now
                self._console.say(f"{step.seconds:7.1f} s  ... {step.title}: {self._brief(step)}")
        else:
            self._console.say(f"{step.seconds:7.1f} s  {_line(step)}")

    def _brief(self, step: StepRun) -> str:
        """The progress message, shortened: waits can name dozens of Applications."""
        if self._console.verbose or len(step.message) <= REPORT_LENGTH:
            return step.message
        return f"{step.message[:REPORT_LENGTH]}..."


class LiveSteps(StepsView):
    """Prints a line for each finished step; below these, running steps are redrawn in place."""

    def __init__(self, console: Console) -> None:
        from rich.console import Console as Terminal
        from rich.live import Live

        self._steps: Sequence[StepRun] = ()
        self._printed: set[str] = set()
        self._began = time.monotonic()
        self._keyboard = contextlib.ExitStack()
        self._terminal = Terminal(stderr=True, no_color=not console.color, highlight=False)
        self._live = Live(
            console=self._terminal,
            get_renderable=self._page,
            refresh_per_second=5,
            transient=True,
        )

    def __enter__(self) -> StepsView:
        self._keyboard.enter_context(_no_echo())
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._print_finished(each for each in self._steps if each.state == "running")
        self._live.stop()
        self._keyboard.close()

    def on_event(self, event: StepEvent) -> None:
        self._steps = event.steps
        self._print_finished(
            each for each in event.steps if each.state not in ("waiting", "running")
        )

    def _print_finished(self, steps: Iterable[StepRun]) -> None:
        """Print finished steps permanently, above the running ones."""
        ended = [each for each in steps if each.id not in self._printed]
        if ended:
            self._printed |= {each.id for each in ended}
            # Printing repeats what was running at the last refresh, so refresh first.
            self._live.refresh()
            for each in ended:
                self._terminal.print(self._row(each))

    def _page(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        running = [each for each in self._steps if each.state == "running"]
        if not running:
            return Group()
        count = f"{len(self._printed)} of {len(self._steps)} steps, {self._now:.0f} s"
        return Group(*map(self._row, running), Text(count, style="dim"))

    def _row(self, step: StepRun) -> Text:
        from rich.text import Text

        running = step.state == "running"
        seconds = self._now - step.began if running else step.seconds
        style = {"failed": "red", "done": "green", "cancelled": "yellow"}.get(step.state, "cyan")
        width = max(len(each.title) for each in self._steps)
        return Text.assemble(
            (_SYMBOLS[step.state], style),
            f" {step.title:{width}} ",
            (f"{seconds:6.1f} s  {' '.join(_visible(step.message).split())}", "dim"),
            no_wrap=True,
            overflow="ellipsis",
        )

    @property
    def _now(self) -> float:
        return time.monotonic() - self._began


@contextlib.contextmanager
def _no_echo() -> Iterator[None]:
    """Disable echo: an echoed Enter moves the cursor below the view, and garbles it for good.

    Ctrl-C still works.
    """
    if not sys.stdin.isatty() or not _in_foreground():
        # A background process that changes the terminal is stopped.
        yield
        return
    before = termios.tcgetattr(0)
    silent = [*before]
    silent[_LOCAL_FLAGS] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        # Discard what was typed meanwhile: the shell would run it.
        with contextlib.suppress(termios.error):  # The terminal was closed.
            termios.tcsetattr(0, termios.TCSAFLUSH, before)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:  # a terminal of another session, such as under `su -c` or setsid
        return False


_LOCAL_FLAGS = 3
"""Index of the local flags in the result of tcgetattr."""

_SYMBOLS = {"waiting": " ", "running": "…", "done": "✓", "failed": "✗", "cancelled": "-"}


def _line(step: StepRun) -> str:
    words = {"done": "", "failed": ": failed", "cancelled": ": canceled"}[step.state]
    return f"{step.title}{words}"


def in_place(text: str, size: os.terminal_size, *, clear: bool) -> str:
    """Text that redraws a page in place, line by line, so that nothing flickers.

    A page that is longer than the terminal is cut, since it would scroll with every redraw.
    """
    lines, room = text.splitlines(), size.lines - 1
    rows = [max(1, -(-len(line) // size.columns)) for line in lines]
    if sum(rows) > room:
        shown = 0
        while sum(rows[: shown + 1]) < room:
            shown += 1
        lines = [*lines[:shown], f"... {len(lines) - shown} more lines"]
    drawn = "".join(f"{line}\x1b[K\n" for line in lines)
    return f"\x1b[H{_CLEAR if clear else ''}{drawn}\x1b[J"


_CLEAR = "\x1b[2J"


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    width: int | None = None,
    spare: Container[str] = (),
) -> str:
    """Lines with aligned columns, with the column names in capitals as header.

    width: of the terminal. If a line would be longer, empty columns are left out, then those named
    in `spare`, and then the widest cells are cut.
    """
    lines = [
        [each.upper() for each in columns],
        *[[_cell(cell) for cell in row] for row in rows],
    ]
    limit = sys.maxsize if width is None else width
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    kept = _fitting_columns(lines, widths, [each in spare for each in columns], limit)
    lines = [[line[index] for index in kept] for line in lines]
    heads = [len(each) for each in lines[0]]
    widths = _fitting([widths[index] for index in kept], heads, limit)
    return "\n".join(
        _GAP.join(
            _cut(cell, size).ljust(size) for cell, size in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def _fitting_columns(
    lines: Sequence[Sequence[str]], widths: Sequence[int], spare: Sequence[bool], width: int
) -> list[int]:
    """Indexes of the columns that remain: empty ones go first, then spare ones, while it is needed.

    lines: with the header.
    """
    indexes = range(len(widths))
    empty = [each for each in indexes if {line[each] for line in lines[1:]} == {_EMPTY}]
    kept = list(indexes)
    for each in (*empty, *(each for each in indexes if spare[each] and each not in empty)):
        if sum(widths[index] + len(_GAP) for index in kept) - len(_GAP) <= width:
            break
        kept.remove(each)
    return kept or list(indexes)


_EMPTY = "-"
_GAP = "   "
_NARROWEST = 12
"""Minimum characters of a cell, whatever the terminal's width, so that names stay distinct."""
_CUT = "..."


def _cell(value: Any) -> str:
    """A cell as one line of text; a hyphen if empty.

    Control characters are spelled out before columns are measured, not when the table is printed.
    """
    return _visible(" ".join(str(value).split())) or _EMPTY if value not in ("", None) else _EMPTY


def _fitting(widths: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Column widths that fit: the widest columns shrink, each down to a minimum.

    The first one, the subject of a line, shrinks last.
    """
    found = list(widths)
    least = [min(size, max(head, _NARROWEST)) for size, head in zip(widths, least, strict=True)]
    over = sum(found) + len(_GAP) * (len(found) - 1) - width
    while over > 0:
        wide = [index for index in range(len(found)) if found[index] > least[index]]
        if not wide:
            break
        index = max(wide, key=lambda each: found[each] if each else 0)
        found[index] -= 1
        over -= 1
    return found


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - len(_CUT)] + _CUT
