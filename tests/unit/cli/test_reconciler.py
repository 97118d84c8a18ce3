"""Settings of a reconciler in host placement, and when it is restarted because they changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.reconciler import Outdated, settings_here, token_seconds
from k8s_ucp.cli.topology_selection import remember
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.workspace import Workspace

TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
"""
MIRROR = """\
  mirrors:
    - {name: a, source: {namespace: far, name: a}, targets: {namespace: a}}
"""


def test_a_mirror_from_a_new_namespace_makes_the_settings_outdated(tmp_path: Path) -> None:
    workspace = Workspace.at(tmp_path)
    call = Invocation(folder=tmp_path, topology="demo")

    def write(spec: str) -> None:
        remember(workspace, "demo", TOPOLOGY + spec)

    write("  environments: [{name: stage}]\n")
    first = settings_here(call, frozenset(), None)
    assert first.mirror_namespaces == ()
    file = workspace.state("demo").root / "ucp.yaml"
    outdated = Outdated((file,), lambda: settings_here(call, frozenset(), None) != first)
    assert not outdated()
    write("  environments: [{name: stage}, {name: prod}]\n")
    assert not outdated(), "it has nothing to do with these settings"
    write("  environments: [{name: stage}]\n" + MIRROR)
    assert outdated()
    assert settings_here(call, frozenset(), None).mirror_namespaces == ("far",)
    write("  environments: [{name: stage}]\n" + MIRROR + "  teams: [{name: payments}]\n")
    assert outdated(), "connections of a team's claims are copied from its namespace"
    now = settings_here(call, frozenset(), None)
    assert now.mirror_namespaces == ("far", "team-payments")
    assert now.password_namespaces == ("ucp-clusters", "team-payments")


def test_the_backup_is_pushed_to_the_topologys_core_repository(tmp_path: Path) -> None:
    workspace = Workspace.at(tmp_path)
    call = Invocation(folder=tmp_path, topology="demo")
    environments = "  environments: [{name: stage}]\n"
    remember(workspace, "demo", TOPOLOGY + environments)
    here = settings_here(call, frozenset(), None).backup
    assert here
    assert (here.key, here.clone) == (workspace.backup_key, workspace.gitops("demo").core)
    assert here.url == workspace.gitops("demo").core_remote.as_uri()
    # Older versions kept it here too; `ucp doctor` and `ucp stop` read it.
    assert here.folder == workspace.state("demo").components / "backup"
    git = "  git: {provider: url, core: 'https://git.corp/core', apps: 'https://git.corp/apps'}\n"
    remember(workspace, "demo", TOPOLOGY + environments + git)
    there = settings_here(call, frozenset(), None).backup
    assert there
    assert there.url == "https://git.corp/core"


def test_a_changed_file_is_read_once_and_an_invalid_one_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "ucp.yaml"
    file.write_text("a")
    asked: list[str] = []

    def differs() -> bool:
        asked.append(file.read_text())
        if asked[-1] == "nonsense":
            raise UcpError("no topology")
        return asked[-1] == "c"

    outdated = Outdated((file,), differs)
    for number, text in enumerate(("nonsense", "b", "c")):
        file.write_text(text)
        os.utime(file, ns=(number, number))
        assert outdated() is (text == "c")
        assert not outdated()
    assert asked == ["nonsense", "b", "c"]
    file.unlink()
    assert not Outdated((file,), differs)()


def test_a_token_lifetime_is_parsed_as_a_duration() -> None:
    assert [token_seconds(each) for each in ("30s", "1m30s", "24h")] == [30, 90, 86400]
    for wrong in ("", "30", "s", "1 m", "-1s", "1d", "0s"):
        with pytest.raises(UsageError):
            token_seconds(wrong)
