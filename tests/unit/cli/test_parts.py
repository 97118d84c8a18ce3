"""Small parts of the commands: merging kubeconfigs, reading logs, tables, choosing a topology."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.console import Console, PlainSteps, table
from k8s_ucp.cli.inspection.kubeconfig import renamed
from k8s_ucp.cli.inspection.logs import find_logs, tail
from k8s_ucp.cli.questions import split_names
from k8s_ucp.cli.topology_selection import chosen_name, chosen_topology, remember
from k8s_ucp.clusters.user_contexts import merged
from k8s_ucp.engine.pipeline import StepEvent, StepRun, StepState
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text
from k8s_ucp.workspace import Workspace

CONFIG = {
    "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "y", "user": {"token": "t"}}],
    "contexts": [{"name": "z", "context": {"cluster": "x", "user": "y"}}],
}


def test_merging_twice_is_merging_once() -> None:
    base = {"clusters": [{"name": "mine"}], "contexts": None, "extensions": [1]}
    once = merged(base, renamed(CONFIG, "demo-core"))
    assert merged(once, renamed(CONFIG, "demo-core")) == once
    assert [each["name"] for each in once["clusters"]] == ["mine", "demo-core"]
    assert once["contexts"] == [
        {"name": "demo-core", "context": {"cluster": "demo-core", "user": "demo-core"}}
    ]
    assert once["current-context"] == "demo-core"
    assert once["extensions"] == [1]


@given(
    lines=st.lists(
        st.text(
            st.characters(codec="ascii", exclude_characters="\n\r\x0b\x0c\x1c\x1d\x1e"),
            max_size=300,
        ),
        max_size=60,
    ),
    wanted=st.integers(0, 70),
    ended=st.booleans(),
)
def test_tail_is_the_end_of_the_file(lines: list[str], wanted: int, ended: bool) -> None:
    text = "\n".join(lines) + ("\n" if ended else "")
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        found, end = tail(Path(file.name), wanted)
    assert end == len(text.encode())
    assert found == "\n".join(
        text.split("\n")[: -1 if text.endswith("\n") or not text else None][-wanted:]
        if wanted
        else []
    )


def test_a_log_longer_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"{number:01000}\n" for number in range(500)))
    text, _ = tail(path, 200)
    assert [int(line) for line in text.splitlines()] == list(range(300, 500))


def test_a_log_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(UcpError, match="failed to read"):
        tail(tmp_path / "log", 1)


def test_columns_are_aligned_and_nothing_is_empty() -> None:
    assert table(("a", "name"), [["1", None], ["long", "x"]]) == "A      NAME\n1      -\nlong   x"


def test_a_table_fits_the_terminal_and_its_widest_cells_are_cut() -> None:
    columns = ("name", "images", "why")
    images = " ".join(f"registry.example.org/image-{number}:1.0" for number in range(13))
    rows = [["a-name-of-24-characters-x", images, "because " * 40], ["b", "c:1", ""]]
    for width in (80, 120, 200):
        lines = table(columns, rows, width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert lines[1].startswith("a-name-of-24-characters-x   registry.example.org/")
        assert lines[1].endswith("...")
        assert lines[2].split() == ["b", "c:1", "-"]
    # Nothing is cut to nothing, and nothing at all where a program reads.
    assert "a-name-of..." in table(columns, rows, width=20)
    assert images in table(columns, rows)
    assert "one two" in table(("a",), [["one\ntwo"]])


@pytest.mark.parametrize(
    ("text", "names"),
    [("stage, prod", ["stage", "prod"]), (" a  b,,c ", ["a", "b", "c"]), ("", []), (" , ", [])],
)
def test_names_as_people_type_them(text: str, names: list[str]) -> None:
    assert split_names(text) == names


def test_where_nobody_looks_a_step_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainSteps(Console())
    step = StepRun("a", "Do it", StepState.RUNNING)
    view.hear(StepEvent(step, [step]))
    step.message, step.seconds = "half way", 3.0
    view.hear(StepEvent(step, [step]))
    step.state, step.seconds = StepState.DONE, 12.34
    view.hear(StepEvent(step, [step]))
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "   12.3 s  Do it\n"


def test_quiet_means_errors_only(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(quiet=True)
    console.say("words")
    step = StepRun("a", "Do it", StepState.DONE)
    console.steps().hear(StepEvent(step, [step]))
    console.data("data")
    assert capsys.readouterr() == ("data\n", "")


def start(root: Path, *names: str) -> None:
    for name in names:
        remember(Workspace.at(root), name, topology_text(default(name, ["dev"])))


def test_the_only_topology_needs_no_name(tmp_path: Path) -> None:
    with pytest.raises(UcpError, match="nothing was started"):
        chosen_name(Invocation(tmp_path))
    start(tmp_path, "one")
    assert chosen_name(Invocation(tmp_path)) == "one"
    assert chosen_topology(Invocation(tmp_path)) == default("one", ["dev"])


def test_of_several_one_must_be_said_or_be_that_of_the_file(tmp_path: Path) -> None:
    start(tmp_path, "one", "two")
    with pytest.raises(UsageError, match="one, two"):
        chosen_name(Invocation(tmp_path))
    assert chosen_name(Invocation(tmp_path, topology="two")) == "two"
    with pytest.raises(UsageError, match="no topology three"):
        chosen_name(Invocation(tmp_path, topology="three"))
    (tmp_path / "ucp.yaml").write_text(topology_text(default("one")))
    assert chosen_name(Invocation(tmp_path)) == "one"


def test_repositories_without_state_are_a_topology_too(tmp_path: Path) -> None:
    (tmp_path / "gitops" / "demo" / "core").mkdir(parents=True)
    assert chosen_name(Invocation(tmp_path)) == "demo"
    assert chosen_topology(Invocation(tmp_path)) == default("demo", (), ())
    (tmp_path / "ucp.yaml").write_text(topology_text(default("demo")))
    assert chosen_topology(Invocation(tmp_path)) == default("demo")


@pytest.mark.parametrize("name", ["backup", "local-clusters"])
def test_controllers_of_this_machine_write_to_the_reconcilers_log(
    tmp_path: Path, name: str
) -> None:
    state = Workspace.at(tmp_path).state("demo")
    state.logs.mkdir(parents=True)
    for each in ("backup", "reconciler"):  # the first one by an older version
        (state.logs / f"{each}.log").touch()
    assert find_logs(state, name) == {"reconciler": state.logs / "reconciler.log"}
