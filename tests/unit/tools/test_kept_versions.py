"""A topology keeps running the versions of its programs until it is upgraded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from k8s_ucp.clusters.embedded import program_upgrade, programs
from k8s_ucp.clusters.embedded.folder import ClusterFolder, Record
from k8s_ucp.clusters.local import linked_entries
from k8s_ucp.errors import UsageError
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.kept_versions import (
    kept_anywhere,
    kept_versions,
    lost_versions,
    newer_pins,
    read_kept,
    states,
    write_kept,
)
from k8s_ucp.tools.required import refuse_other_versions
from k8s_ucp.tools.store import StoreEntry, ToolStore
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.workspace import StateFolder, Workspace, cache_folder
from tests.unit.gitops.topologies import demo, on_clouds

OLD = "crossplane-2.3.3-0123456789ab"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path / "cache"))
    found = Workspace.at(tmp_path / "work").state("demo")
    found.make()
    return found


def install(entry: str) -> None:
    store = ToolStore(cache_folder())
    store.make()
    partial = store.new_partial(entry, lambda _: None)
    (partial / "bin").mkdir()
    program = partial / "bin" / "crossplane"
    program.touch(mode=0o755)
    about = StoreEntry(entry, "crossplane", "2.3.3", "", "", 1.0, {"crossplane": ""}, False)
    store.publish(about, partial)


def test_an_installed_version_is_kept_and_newer_ones_are_reported(state: StateFolder) -> None:
    install(OLD)
    write_kept(demo(), state, Toolbox({}, {}, {"crossplane": OLD, "redis": "redis-1-abc"}))
    pin = CATALOGUE["crossplane"].version
    assert read_kept(demo(), state) == {"crossplane": OLD}
    assert kept_versions(demo(), state)["crossplane"] == "2.3.3"
    assert newer_pins(demo(), state) == {"crossplane": ("2.3.3", pin)}
    assert lost_versions(demo(), state) == {}
    assert kept_anywhere(cache_folder()) == {OLD}


def test_the_versions_of_a_moved_workspace_are_still_kept_from_pruning(
    state: StateFolder, tmp_path: Path
) -> None:
    toolbox = Toolbox({}, {}, {"crossplane": OLD})
    write_kept(demo(), state, toolbox)
    (tmp_path / "work").rename(tmp_path / "moved")
    assert kept_anywhere(cache_folder()) == set()

    write_kept(demo(), Workspace.at(tmp_path / "moved").state("demo"), toolbox)

    assert kept_anywhere(cache_folder()) == {OLD}


@pytest.mark.parametrize(
    "entry", ["/proc/self/cwd/mine", "../../mine", "kustomize-5.8.2-e/../../mine", "helm-1-e", ""]
)
def test_only_programs_of_the_users_cache_are_run(state: StateFolder, entry: str) -> None:
    """A foreign repository may contain a state folder, whose programs `ucp diff` must not run."""
    state.versions.write_text(json.dumps({"kustomize": entry, "crossplane": OLD}))
    assert read_kept(demo(), state) == {"crossplane": OLD}


def test_entries_of_a_cluster_upgraded_on_its_own_are_kept_too(state: StateFolder) -> None:
    write_kept(demo(), state, Toolbox({}, {}, {"crossplane": OLD}))
    folder = ClusterFolder(state.clusters, "demo-stage")
    (folder.home / "bin").mkdir(parents=True)
    older, newer = (cache_folder() / f"etcd-3.{each}.0-e" / "bin" / "etcd" for each in (6, 7))
    programs.link(folder, {"etcd": older})
    program_upgrade.begin_record(folder, Record("v1.35.4", {}), "v1.36.0")
    programs.link(folder, {"etcd": newer})
    found = [linked_entries(each) for each in states(cache_folder())]
    assert found == [{"etcd-3.6.0-e", "etcd-3.7.0-e"}]


def test_a_version_that_is_no_longer_installed_is_replaced(state: StateFolder) -> None:
    write_kept(demo(), state, Toolbox({}, {}, {"crossplane": OLD}))
    assert kept_versions(demo(), state)["crossplane"] == CATALOGUE["crossplane"].version
    assert newer_pins(demo(), state) == {}
    assert lost_versions(demo(), state) == {"crossplane": "2.3.3"}


def test_no_versions_are_recorded_for_components_in_pods(state: StateFolder) -> None:
    write_kept(on_clouds(), state, Toolbox({}, {}, {"crossplane": OLD}))
    assert not state.versions.exists()
    assert read_kept(on_clouds(), state) == {}


def test_a_corrupt_versions_file_keeps_no_version(state: StateFolder) -> None:
    for text in ("", "[]", '{"crossplane": '):
        state.versions.write_text(text)
        assert read_kept(demo(), state) == {}


def test_only_the_named_tools_are_replaced() -> None:
    old = Toolbox({"argocd": Path("/old")}, {"argocd": Path("/m")}, {"argocd": "argocd-3.5.6-a"})
    new = Toolbox({"argocd": Path("/new")}, {"argocd": Path("/n")}, {"argocd": "argocd-3.5.7-b"})
    assert old.with_tools(["crossplane"], new) == old
    assert old.with_tools(["argocd"], new) == new
    assert new.versions == {"argocd": "3.5.7"}


def test_a_pinned_version_is_accepted_only_if_it_is_running() -> None:
    named = demo(crossplane={"version": "v2.3.3"})
    refuse_other_versions(named, {"crossplane": "2.3.3"})
    with pytest.raises(UsageError):
        refuse_other_versions(named, {})
