"""Edits of sources, and error messages of failed builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import CommandFailed, UcpError
from k8s_ucp.tools.build import _go_name, apply_edit, go_environment, require_room
from k8s_ucp.tools.catalogue import Edit, Tool
from k8s_ucp.tools.go.build_failures import explain
from k8s_ucp.tools.go.compiler import ModuleSource

TOOL = Tool(name="tiny", version="1.0.0", programs={"tiny": "example.org/tiny"})


def test_an_edit_replaces_the_named_text(tmp_path: Path) -> None:
    (tmp_path / "a.go").write_text("one two one")
    apply_edit(Edit("a.go", "one", "1", times=2), tmp_path, "tiny")
    assert (tmp_path / "a.go").read_text() == "1 two 1"


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (Edit("a.go", "three", "3"), "'three' occurs 0 times instead of 1"),
        (Edit("a.go", "one", "1"), "'one' occurs 2 times instead of 1"),
        (Edit("b.go", "one", "1"), "the file can't be read: No such file or directory"),
    ],
)
def test_an_edit_that_does_not_apply_fails_and_changes_nothing(
    tmp_path: Path, edit: Edit, says: str
) -> None:
    (tmp_path / "a.go").write_text("one two one")
    with pytest.raises(UcpError, match="does not apply to tiny") as caught:
        apply_edit(edit, tmp_path, "tiny")
    assert says in caught.value.message
    assert edit.path in caught.value.message
    assert (tmp_path / "a.go").read_text() == "one two one"


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
        ("go.etcd.io/etcd/server/v3", "server"),
        ("github.com/argoproj/argo-cd/v3/cmd", "cmd"),
        ("example.org/vault", "vault"),
    ],
)
def test_programs_are_found_under_the_name_that_go_gives_them(package: str, name: str) -> None:
    assert _go_name(package) == name


def test_a_build_ignores_the_users_own_go_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOROOT", "GOARCH", "GOEXPERIMENT"):
        monkeypatch.setenv(name, "foreign")
    for name in ("GOFLAGS", "GOTOOLCHAIN", "GOWORK", "GOMODCACHE"):
        monkeypatch.setenv(name, "foreign")
    monkeypatch.setenv("GOPROXY", "https://mine.example")
    environment = go_environment(tmp_path, tmp_path / "tmp")
    assert "foreign" not in environment.values()
    assert environment["GOPROXY"] == "https://mine.example"
    assert environment["GOMODCACHE"] == str(tmp_path / "modules")


def test_too_little_disk_space_is_reported_before_the_build(tmp_path: Path) -> None:
    require_room(tmp_path, {"tiny": 0})
    with pytest.raises(UcpError, match=r"building tiny needs about 1000000000\.0 GB") as caught:
        require_room(tmp_path, {"tiny": 10**12})
    assert "UCP_CACHE_DIR" in (caught.value.next or "")


@pytest.mark.parametrize(
    ("output", "says", "next_says"),
    [
        ("write /x/y: no space left on device", "disk full", "UCP_CACHE_DIR"),
        (
            "verifying a@v1: checksum mismatch\nSECURITY ERROR",
            "checksum mismatch",
            "the setting",
        ),
        (
            'go: a@v1: Get "https://me:secret@proxy.example/a": dial tcp: connection refused',
            "failed to download the Go modules of tiny 1.0.0 from the setting",
            "check the network",
        ),
        (
            "go: a@v1: module lookup disabled by GOPROXY=off",
            "failed to download",
            "check the network",
        ),
        ("# example.org/tiny\n./main.go:3:2: undefined: x", "undefined: x", "see /log"),
        (
            "# example.org/tiny\n./main.go:3:2: undefined: EOF",
            "failed to build tiny 1.0.0",
            "see /log",
        ),
    ],
)
def test_a_failed_build_is_reported_with_cause_and_next_command(
    output: str, says: str, next_says: str
) -> None:
    source = ModuleSource("https://me:secret@proxy.example,direct", "the setting")
    failed = CommandFailed(["go", "build"], 1, f"go: downloading b v2\n{output}\n")
    error = explain(failed, TOOL, source, Path("/log"))
    assert says in error.message
    assert next_says in (error.next or "")
    assert "secret" not in str(error)
    assert "proxy.example" not in str(error)
    assert "downloading" not in error.message


def test_a_killed_compiler_is_reported_as_killed() -> None:
    error = explain(
        CommandFailed(["go", "build"], -9, ""), TOOL, ModuleSource("", ""), Path("/log")
    )
    assert "killed (signal 9)" in error.message
