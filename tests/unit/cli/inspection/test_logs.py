"""Finding log files, and reading their last lines."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.cli.inspection.logs import find_logs, refuse_app, tail
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.topology import default
from k8s_ucp.workspace import Workspace


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


def test_tail_reads_a_log_longer_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"{number:01000}\n" for number in range(500)))
    text, _ = tail(path, 200)
    assert [int(line) for line in text.splitlines()] == list(range(300, 500))


def test_a_missing_log_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UcpError, match="failed to read"):
        tail(tmp_path / "log", 1)


@pytest.mark.parametrize("name", ["backup", "local-clusters"])
def test_controllers_in_host_placement_write_to_the_reconcilers_log(
    tmp_path: Path, name: str
) -> None:
    state = Workspace.at(tmp_path).state("demo")
    state.logs.mkdir(parents=True)
    for each in ("backup", "reconciler"):  # the first one by an older version
        (state.logs / f"{each}.log").touch()
    assert find_logs(state, name) == {"reconciler": state.logs / "reconciler.log"}


def test_a_mistyped_component_suggests_the_nearest_log(tmp_path: Path) -> None:
    state = Workspace.at(tmp_path).state("demo")
    state.logs.mkdir(parents=True)
    for each in ("argocd-repo-server", "argocd-server", "crossplane", "reconciler"):
        (state.logs / f"{each}.log").touch()
    expected = {
        "crosplane": "crossplane",
        "argo": "argocd",
        "argocd-servr": "argocd-server",
        "xyz": "argocd-repo-server",
    }
    for typed, near in expected.items():
        with pytest.raises(UcpError, match="no logs of") as refused:
            find_logs(state, typed)
        assert refused.value.next == f"ucp logs {near}"


def test_the_logs_of_an_app_are_looked_for_with_kubectl(tmp_path: Path) -> None:
    state = Workspace.at(tmp_path).state("demo")
    topology = default("demo", ["stage", "prod"], ["echo"])
    refuse_app(topology, state, "argocd")
    with pytest.raises(UsageError, match="echo is an app") as refused:
        refuse_app(topology, state, "echo")
    file = state.kubeconfig("demo-stage")
    assert refused.value.next == f"kubectl --kubeconfig {file} -n echo get pods"

    running = state.kubeconfig("demo-prod")
    running.parent.mkdir(parents=True)
    running.touch()
    with pytest.raises(UsageError) as refused:
        refuse_app(topology, state, "echo")
    assert str(running) in (refused.value.next or "")
