"""What `ucp doctor --fix` changes."""

from __future__ import annotations

import stat
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.inspection import status
from k8s_ucp.cli.inspection.doctor_fixes import fix, to_restart
from k8s_ucp.components.host.supervisor_client import ProgramState
from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.doctor.finding import Finding
from k8s_ucp.topology import default


def exposed(path: Path) -> Finding:
    return Finding(f"credential/{path}", "error", "others can read it", "", f"chmod 600 {path}")


def test_only_files_of_the_workspace_are_made_private(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a clone of others, a credential may be a link to /etc/passwd."""
    call = Invocation(tmp_path / "work")
    creds = call.workspace.credentials
    creds.mkdir(parents=True)
    system = tmp_path / "passwd"
    for each in (system, creds / "gcp.json"):
        each.write_text("root:x:0:0")
        each.chmod(0o644)
    (creds / "aws.ini").symlink_to(system)
    view = TopologyView(call.workspace, default())
    findings = [exposed(creds / "gcp.json"), exposed(creds / "aws.ini")]

    assert fix(call, view, findings, yes=True) == {findings[0].id}

    assert stat.S_IMODE((creds / "gcp.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(system.stat().st_mode) == 0o644
    assert f"it is a symbolic link to {system}" in capsys.readouterr().err


def test_a_component_whose_port_another_program_has_is_not_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(ports: dict[str, int], _: str) -> None:
        assert ports == {"argocd-server": 8080}
        raise UcpError("port 8080 is already in use by another program: nc (PID 7)")

    monkeypatch.setattr(status, "refuse_taken", refuse)
    call = Invocation(tmp_path)
    state = call.workspace.state("demo")
    state.make()
    placement = SimpleNamespace(unused=lambda ports: ports)  # nothing may be restarted
    host = SimpleNamespace(ports={"argocd-server": 8080, "crossplane": 8081})
    view = SimpleNamespace(
        workspace=call.workspace, topology=default(), placement=placement, host=host
    )
    found = Finding("component/argocd", "error", "argocd is not ready", "", "restart argocd")
    assert fix(call, cast("TopologyView", view), [found], yes=True) == set()
    said = capsys.readouterr().err
    assert "not fixed: restart argocd: port 8080 is already in use by another program" in said


@pytest.mark.parametrize(
    ("states", "restarted"),
    [
        (("RUNNING", "FATAL", "RUNNING"), ["argocd-server"]),
        (("RUNNING", "RUNNING", "RUNNING"), ["redis", "argocd-server", "argocd-repo-server"]),
    ],
)
def test_if_all_programs_of_a_component_run_one_hangs_and_all_are_restarted(
    states: tuple[str, ...], restarted: list[str]
) -> None:
    programs = [
        ProgramState(name, state, 1, "")
        for name, state in zip(
            ("redis", "argocd-server", "argocd-repo-server"), states, strict=True
        )
    ]
    programs.append(ProgramState("crossplane", "FATAL", 0, ""))
    assert to_restart("argocd", programs) == restarted
