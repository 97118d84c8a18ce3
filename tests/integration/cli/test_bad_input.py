"""Invalid input to the real command: one clear message, the right exit code, and no change."""

from __future__ import annotations

import os
import shlex
import socket
from pathlib import Path

import pytest

from k8s_ucp.process import ProcessIdentity, identify, is_running
from k8s_ucp.workspace import Workspace
from tests.e2e.world import Workbench
from tests.integration.cli.conftest import CORE_ALONE, files

HEAD = "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: demo}\n"

FLAGS = {
    "unknown core": (["--core", "embeded"], "unknown provider 'embeded'; allowed: embedded"),
    "cloud without a project": (["--env", "stage=gke"], "requires the key 'project'"),
    "existing without a context": (["--env", "stage=existing"], "requires the key 'context'"),
    "bad name": (["--env", "Stage_1=embedded"], "RFC 1123"),
    "empty name": (["--env", "=embedded"], "RFC 1123"),
    "environment called core": (["--env", "core=embedded"], "can't be named 'core'"),
    "the same environment twice": (["--env", "a=embedded", "--env", "a=embedded"], "duplicate"),
    "unknown app": (["--app", "nginx"], "built-in apps: echo"),
    "bad topology name": (["--topology", "Demo"], "RFC 1123"),
    "no such file": (["--file", "absent.yaml"], "the topology file"),
    "unknown flag": (["--core-provider", "kind"], "No such option"),
    "a flag of another command": (["--delete-data"], "No such option"),
}


@pytest.mark.parametrize("case", FLAGS)
def test_invalid_flags_are_refused(world: Workbench, case: str) -> None:
    flags, expected = FLAGS[case]
    ended = world.ucp_here("start", "--yes", *flags, expect=2)
    assert expected in ended.stderr
    assert "next: " in ended.stderr
    assert ended.stderr.startswith("ucp: ")
    assert ended.stdout == ""
    assert files(world) == []


def test_start_without_a_terminal_asks_for_yes(world: Workbench) -> None:
    ended = world.ucp("start", "--plan", "--env", "stage", expect=2)
    assert "the wizard needs a terminal" in ended.stderr
    assert " start --plan --env stage --yes (by default: " in ended.stderr
    assert files(world) == []


FILES = {
    "unknown key": (HEAD + "spec:\n  enviroments: []\n", 5, "did you mean 'environments'?"),
    "unknown value": (HEAD + "spec:\n  tools: {source: source}\n", 5, "'sources'?"),
    "circle": (
        HEAD + "spec:\n  environments:\n    - {name: a, promotesFrom: b}\n"
        "    - {name: b, promotesFrom: a}\n",
        6,
        "has a cycle",
    ),
    "no YAML": (HEAD + "spec: {\n", 5, "not valid YAML"),
    "two documents": (HEAD + "---\na: b\n", 4, "the file has several documents: keep one"),
}


@pytest.mark.parametrize("case", FILES)
def test_invalid_ucp_yaml_is_refused_with_its_line(world: Workbench, case: str) -> None:
    text, line, expected = FILES[case]
    path = world.workspace / "ucp.yaml"
    path.write_text(text)
    ended = world.ucp_here("start", "--yes", expect=2)
    assert ended.stderr.startswith(f"ucp: ucp.yaml:{line}: ")
    assert expected in ended.stderr
    assert f"next: edit {path}" in ended.stderr
    assert files(world) == ["ucp.yaml"]
    assert path.read_text() == text


def test_topology_that_can_only_be_rendered_is_not_started(world: Workbench) -> None:
    """`ucp render` accepts it, so the file is valid; nothing is started."""
    (world.workspace / "ucp.yaml").write_text(
        HEAD + "spec:\n  environments: [{name: a, cluster: {provider: eks}}]\n"
    )
    ended = world.ucp_here("start", "--yes", expect=1)
    assert "nothing was changed" in ended.stderr
    assert "a on eks needs Crossplane provider pods" in ended.stderr
    assert "use a core with provider: kind" in ended.stderr
    assert "creds/aws.ini: the file does not exist" in ended.stderr
    assert files(world) == ["ucp.yaml"]


def test_flags_that_contradict_the_file_are_refused(world: Workbench) -> None:
    (world.workspace / "ucp.yaml").write_text(CORE_ALONE)
    ended = world.ucp_here("start", "--yes", "--env", "stage=embedded", "--app", "echo", expect=2)
    assert "contradicts --env stage=embedded, --app echo" in ended.stderr
    ended = world.ucp_here("start", "--yes", "--topology", "other", expect=2)
    assert "defines the topology demo, not other" in ended.stderr
    assert files(world) == ["ucp.yaml"]


@pytest.mark.parametrize(
    "words",
    [
        ["stop", "--yes"],
        ["status"],
        ["clusters"],
        ["kubeconfig", "stage"],
        ["logs", "argocd"],
        ["get", "secrets"],
        ["open", "argocd"],
        ["reconciler", "run"],
    ],
    ids=lambda words: words[0],
)
def test_commands_report_that_nothing_was_started(world: Workbench, words: list[str]) -> None:
    ended = world.ucp_here(*words, expect=1)
    assert "nothing was started in" in ended.stderr
    assert "next: ucp start" in ended.stderr
    assert ended.stdout == ""
    assert files(world) == []


def test_workspace_that_is_a_file_is_refused(world: Workbench) -> None:
    file = world.home / "file"
    file.write_text("")
    ended = world.ucp_here("--workspace", str(file), "start", "--yes", expect=1)
    assert f"the folder {file} is not writable" in ended.stderr
    assert "--workspace DIR" in ended.stderr
    assert file.read_text() == ""


def test_credential_that_other_users_can_read_is_refused(world: Workbench) -> None:
    folder = world.workspace / "creds"
    folder.mkdir()
    (folder / "README.md").write_text("words")
    (folder / "gcp.json").write_text("canary")
    (folder / "gcp.json").chmod(0o644)
    ended = world.ucp_here("start", "--yes", expect=1)
    assert "other users can read gcp.json" in ended.stderr
    assert f"chmod 600 {shlex.quote(str(folder / 'gcp.json'))}" in ended.stderr
    assert "canary" not in ended.stderr
    assert files(world) == ["creds", "creds/README.md", "creds/gcp.json"]


def test_foreign_process_on_the_supervisor_socket_is_left_alone(world: Workbench) -> None:
    runtime = Workspace.at(world.workspace).runtime_folder("demo")
    runtime.mkdir(parents=True, mode=0o700)
    us = identify(os.getpid())
    assert isinstance(us, ProcessIdentity)
    try:
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.bind(str(runtime / "supervisor.sock"))
            stranger.listen(1)
            stranger.settimeout(1)
            ended = world.ucp_here("start", "--yes", expect=1)
        assert str(runtime / "supervisor.sock") in ended.stderr
        assert "next: " in ended.stderr
        assert is_running(us)
        assert files(world) == []
    finally:
        (runtime / "supervisor.sock").unlink(missing_ok=True)
        runtime.rmdir()


def test_closed_stdout_is_not_an_error(world: Workbench, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    import subprocess

    ended = subprocess.run(
        [*world.command, "--help"],
        env=world.env,
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert ended.stderr == ""
    assert ended.returncode in (0, 1)
