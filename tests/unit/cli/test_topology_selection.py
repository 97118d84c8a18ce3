"""Selection of the topology that a command acts on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.editing.topology_edit import edit_topology
from k8s_ucp.cli.lifecycle.start_request import parse_flags, resolve_topology
from k8s_ucp.cli.topology_selection import (
    chosen_name,
    chosen_topology,
    declared_file,
    declared_topology,
    refuse_inner_folder,
    remember,
    selecting,
    start_command,
)
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.topology import Topology, default, load
from k8s_ucp.topology.edit import with_item
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
    with pytest.raises(UsageError, match=r"no valid file in .* defines the topology two"):
        resolve_topology(Invocation(tmp_path, "two"), NO_FLAGS, plan=True)


def test_an_edit_of_a_second_topology_changes_its_file(tmp_path: Path) -> None:
    """`ucp --topology two stop --env dev` would stop the environment of one, or be refused."""
    start(tmp_path, "one", "two")
    usual, second = tmp_path / "ucp.yaml", tmp_path / "second.yaml"
    usual.write_text(topology_text(default("one", ["dev"])))
    second.write_text(topology_text(default("two", ["dev"])))
    assert declared_topology(Invocation(tmp_path, "one")).name == "one"
    assert declared_topology(Invocation(tmp_path, "two")).name == "two"
    assert declared_file(Invocation(tmp_path, "two")) == second
    edit_topology(Invocation(tmp_path, "two"), adding_environment)
    assert [each.name for each in load(second).spec.environments] == ["dev", "eu"]
    assert [each.name for each in load(usual).spec.environments] == ["dev"]
    with pytest.raises(UsageError, match="defines the topology one, not tow") as caught:
        declared_topology(Invocation(tmp_path, "tow"))
    assert caught.value.next == "leave out --topology tow"


def adding_environment(text: str, path: Path) -> tuple[str, Topology]:
    cluster = {"provider": "embedded"}
    return with_item(text, "environments", {"name": "eu", "cluster": cluster}, path)


def test_each_file_is_parsed_once_for_all_steps_of_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, "one", "two")
    (tmp_path / "ucp.yaml").write_text(topology_text(default("one", ["dev"])))
    second = tmp_path / "second.yaml"
    second.write_text(topology_text(default("two", ["dev"])))
    read: list[Path] = []
    monkeypatch.setattr("k8s_ucp.topology.load", lambda path: read.append(path) or load(path))
    call = Invocation(tmp_path, "two")
    assert [declared_file(call), declared_file(call)] == [second, second]
    assert sorted(read) == [second, tmp_path / "ucp.yaml"]
    edit = second.with_name("new")
    edit.write_text(topology_text(default("oww", ["dev"])))
    edit.replace(second)
    assert declared_file(call) == tmp_path / "ucp.yaml"


def test_the_file_of_the_only_topology_is_found_without_a_flag(tmp_path: Path) -> None:
    """It was started with --file; a copy as ucp.yaml, as was suggested, is a second truth."""
    start(tmp_path, "one")
    file = tmp_path / "one.yaml"
    file.write_text(topology_text(default("one", ["dev"])))
    assert declared_topology(Invocation(tmp_path)).name == "one"
    assert resolve_topology(Invocation(tmp_path), NO_FLAGS, plan=True).path == file
    other = parse_flags(yes=True, file=None, core=None, environments=["eu"], apps=None)
    new = resolve_topology(Invocation(tmp_path), other, plan=True)
    assert (new.path, new.exists) == (tmp_path / "ucp.yaml", False)
    start(tmp_path, "two")
    with pytest.raises(UsageError, match=r"one was started here with one\.yaml") as caught:
        declared_topology(Invocation(tmp_path))
    assert caught.value.next == "select one: --topology one"


def test_of_two_files_of_a_topology_none_is_edited(tmp_path: Path) -> None:
    """One may be an old copy: publishing it would take back what was edited since."""
    start(tmp_path, "one")
    for name in ("new.yaml", "old.yaml"):
        (tmp_path / name).write_text(topology_text(default("one", ["dev"])))
    with pytest.raises(UsageError, match=r"new\.yaml and old\.yaml in .* both define"):
        declared_topology(Invocation(tmp_path))


def test_a_second_file_that_is_lost_or_invalid_is_not_replaced_by_ucp_yaml(tmp_path: Path) -> None:
    start(tmp_path, "one", "two")
    (tmp_path / "ucp.yaml").write_text(topology_text(default("one", ["dev"])))
    copy, file = tmp_path / ".ucp" / "two" / "ucp.yaml", tmp_path / "two.yaml"
    with pytest.raises(UsageError, match=r"no valid file in .* defines the topology two") as caught:
        declared_topology(Invocation(tmp_path, "two"))
    assert caught.value.next == f"move its file there, or restore it: cp {copy} {file}"
    file.write_text("kind: [")
    with pytest.raises(UsageError, match=r"no valid file in .* defines the topology two") as caught:
        declared_topology(Invocation(tmp_path, "two"))
    assert str(caught.value.next).endswith(f": ucp start --plan --file {file}")
    assert declared_topology(Invocation(tmp_path, "two"), copy).name == "two"


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
