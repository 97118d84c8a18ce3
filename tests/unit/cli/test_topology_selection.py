"""Selection of the topology that a command acts on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.lifecycle.start_request import parse_flags, resolve_topology
from k8s_ucp.cli.topology_selection import (
    chosen_name,
    chosen_topology,
    declared_topology,
    refuse_inner_folder,
    remember,
    selecting,
    start_command,
)
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text
from k8s_ucp.workspace import Workspace

NO_FLAGS = parse_flags(yes=True, file=None, core=None, environments=None, apps=None)


def start(root: Path, *names: str) -> None:
    for name in names:
        remember(Workspace.at(root), name, topology_text(default(name, ["dev"])))


def test_a_single_topology_is_selected_without_a_name(tmp_path: Path) -> None:
    with pytest.raises(UcpError, match="nothing was started"):
        chosen_name(Invocation(tmp_path))
    start(tmp_path, "one")
    assert chosen_name(Invocation(tmp_path)) == "one"
    assert chosen_topology(Invocation(tmp_path)) == default("one", ["dev"])


def test_advice_on_a_second_topology_selects_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands would stop the first one, or start it."""
    start(tmp_path, "one")
    (tmp_path / "ucp.yaml").write_text(topology_text(default("one", ["dev"])))
    call = Invocation(tmp_path)
    assert (selecting(call, "one"), start_command(call, "one")) == ({}, "ucp start")
    start(tmp_path, "two")
    file = tmp_path / "second.yaml"
    file.write_text(topology_text(default("two", ["dev"])))
    assert selecting(call, "one") == {}
    assert selecting(call, "two") == {"--topology": "two"}
    assert start_command(call, "two") == f"ucp start --file {file}"
    monkeypatch.chdir(tmp_path)
    assert start_command(call, "two") == "ucp start --file second.yaml"
    assert resolve_topology(Invocation(tmp_path, "two"), NO_FLAGS, plan=True).path == file
    with pytest.raises(UsageError, match="defines the topology one, not three") as caught:
        resolve_topology(Invocation(tmp_path, "three"), NO_FLAGS, plan=True)
    assert caught.value.next == "ucp start --topology one"
    file.unlink()
    with pytest.raises(UsageError, match="defines the topology one, not two"):
        resolve_topology(Invocation(tmp_path, "two"), NO_FLAGS, plan=True)


def test_an_edit_of_another_topology_than_that_of_the_file_is_refused(tmp_path: Path) -> None:
    """`ucp --topology two stop --env dev` would stop the environment of one."""
    start(tmp_path, "one", "two")
    for name in ("one", "two"):
        file = tmp_path / ("ucp.yaml" if name == "one" else "second.yaml")
        file.write_text(topology_text(default(name, ["dev"])))
    assert declared_topology(Invocation(tmp_path, "one")).name == "one"
    with pytest.raises(UsageError, match="defines the topology one, not two") as caught:
        declared_topology(Invocation(tmp_path, "two"))
    assert str(caught.value.next).endswith(f"ucp start --file {tmp_path / 'second.yaml'}")
    with pytest.raises(UsageError, match="defines the topology one, not tow") as caught:
        declared_topology(Invocation(tmp_path, "tow"))
    assert caught.value.next == "leave out --topology tow"
    assert declared_topology(Invocation(tmp_path, "two"), tmp_path / "second.yaml").name == "two"


def test_in_a_folder_of_a_workspace_that_workspace_is_named(tmp_path: Path) -> None:
    start(tmp_path, "one")
    inner = tmp_path / "gitops" / "one" / "apps"
    inner.mkdir(parents=True)
    with pytest.raises(UcpError, match=r"nothing was started in .*, but in ") as caught:
        chosen_name(Invocation(inner))
    assert caught.value.next == f"cd {tmp_path}, or add --workspace {tmp_path} to the command"


def test_a_file_that_is_in_the_workspace_above_is_found_by_its_folder(tmp_path: Path) -> None:
    start(tmp_path, "one")
    inner = tmp_path / "deploy"
    inner.mkdir()
    with pytest.raises(UsageError, match="but a topology was started in") as caught:
        declared_topology(Invocation(inner))
    assert caught.value.next == f"cd {tmp_path}, or add --workspace {tmp_path} to the command"


def test_a_file_that_was_deleted_after_a_start_can_be_restored(tmp_path: Path) -> None:
    start(tmp_path, "one")
    with pytest.raises(UsageError, match="but the topology one was started here") as caught:
        declared_topology(Invocation(tmp_path))
    copy = tmp_path / ".ucp" / "one" / "ucp.yaml"
    assert caught.value.next == f"restore it: cp {copy} {tmp_path / 'ucp.yaml'}"


def test_a_mistyped_workspace_is_reported_as_missing(tmp_path: Path) -> None:
    with pytest.raises(UcpError, match="which does not exist"):
        chosen_name(Invocation(tmp_path / "absent"))


def test_a_clone_of_a_workspace_is_no_workspace(tmp_path: Path) -> None:
    start(tmp_path, "one")
    inner, own = tmp_path / "gitops" / "one" / "core", tmp_path / "another"
    for each in (inner, own):
        each.mkdir(parents=True)
        shutil.copy(tmp_path / ".ucp" / "one" / "ucp.yaml", each)
    with pytest.raises(UsageError, match="belongs to the workspace") as caught:
        declared_topology(Invocation(inner))
    assert caught.value.next == f"cd {tmp_path}, or add --workspace {tmp_path} to the command"
    assert declared_topology(Invocation(own)).name == "one"
    refuse_inner_folder(Invocation(own))
    refuse_inner_folder(Invocation(tmp_path))
    refuse_inner_folder(Invocation(inner, given={"--workspace": str(inner)}))


def test_one_of_several_topologies_is_selected_by_flag_or_by_ucp_yaml(tmp_path: Path) -> None:
    start(tmp_path, "one", "two")
    with pytest.raises(UsageError, match="one, two"):
        chosen_name(Invocation(tmp_path))
    assert chosen_name(Invocation(tmp_path, topology="two")) == "two"
    with pytest.raises(UsageError, match="no topology tow") as caught:
        chosen_name(Invocation(tmp_path, topology="tow"))
    assert caught.value.next == "select one: --topology two"
    (tmp_path / "ucp.yaml").write_text(topology_text(default("one")))
    assert chosen_name(Invocation(tmp_path)) == "one"


def test_repositories_without_state_count_as_a_topology(tmp_path: Path) -> None:
    (tmp_path / "gitops" / "demo" / "core").mkdir(parents=True)
    assert chosen_name(Invocation(tmp_path)) == "demo"
    assert chosen_topology(Invocation(tmp_path)) == default("demo", (), ())
    (tmp_path / "ucp.yaml").write_text(topology_text(default("demo")))
    assert chosen_topology(Invocation(tmp_path)) == default("demo")
