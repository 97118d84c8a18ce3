"""Installation from releases: what a malicious or broken publisher can and can't do."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.process import RunningPrograms, run
from k8s_ucp.tools.catalogue import Tool
from k8s_ucp.tools.go.module_archive import WrongHash
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.lock_releases import renew
from k8s_ucp.tools.recipe import ProgramSource, ToolProgress
from k8s_ucp.tools.releases.publishers import Asset, Release
from tests.integration.tools.conftest import Proxy
from tests.integration.tools.release_server import Publisher, publisher
from tests.integration.tools.tiny import TINY

PROGRAM = b"#!/bin/sh\necho released\n"
RAN = Path(tempfile.gettempdir()) / f"ucp-evil-ran-{os.getpid()}"
EVIL = f"#!/bin/sh\ntouch '{RAN}'\n".encode()
FILE = "/v1.0.0/tiny.tar.gz"
SUMS = "/v1.0.0/checksums.txt"


def archive(program: bytes = PROGRAM) -> bytes:
    out = io.BytesIO()
    # The time stamps are fixed, so that equal content has the same hash.
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as files,
    ):
        about = tarfile.TarInfo("tiny-1.0.0/tiny")
        about.size = len(program)
        files.addfile(about, io.BytesIO(program))
    return out.getvalue()


def sums(content: bytes) -> bytes:
    return f"{hashlib.sha256(content).hexdigest()}  tiny.tar.gz\n".encode()


@dataclasses.dataclass
class Scene:
    """A publisher with one release, and the user's installer."""

    publisher: Publisher
    cache: Path
    modules: Path
    locks: Path
    told: list[ToolProgress] = dataclasses.field(default_factory=list)

    @property
    def tool(self) -> Tool:
        address = self.publisher.address
        asset = Asset(
            f"{address}/v{{version}}/tiny.tar.gz",
            f"{address}/v{{version}}/checksums.txt",
            {"tiny": "tiny-{version}/tiny"},
        )
        return dataclasses.replace(TINY, release=Release((asset,), exposed=("port of tiny",)))

    def installer(
        self, source: ProgramSource = ProgramSource.RELEASES, running: RunningPrograms | None = None
    ) -> Installer:
        return Installer(
            self.cache,
            self.told.append,
            source=source,
            catalogue={"tiny": self.tool},
            modules=self.modules,
            keep_build=True,
            locks=self.locks,
            programs=running,
        )

    def entries(self) -> list[str]:
        folder = self.cache / "tools"
        return (
            [] if not folder.is_dir() else [e.name for e in folder.iterdir() if e.name != "locks"]
        )

    def assert_nothing_stored(self, content: bytes) -> None:
        """Check that no entry exists, and that the content is not in the cache and was not run."""
        assert not RAN.exists()
        assert self.entries() == []
        files = [each for each in (self.cache / "downloads").rglob("*") if each.is_file()]
        assert content not in [each.read_bytes() for each in files]
        assert not [each for each in files if each.stat().st_mode & 0o100]


@pytest.fixture
def scene(cache: Path, modules: Path, proxy: Proxy, tmp_path: Path) -> Iterator[Scene]:
    locks = tmp_path / "locks.json"
    locks.write_text("{}")
    with publisher() as server:
        server.files = {FILE: archive(), SUMS: sums(archive())}
        yield Scene(server, cache, modules, locks)


def test_release_is_installed_with_the_files_of_its_module(scene: Scene) -> None:
    toolbox = scene.installer().install(["tiny"])
    assert run([toolbox.path("tiny")], timeout=10) == "released\n"
    kept = toolbox.module("tiny")
    assert (kept / "manifests" / "crds" / "a.yaml").read_text() == "kind: A\n"
    assert run([kept / "hack" / "run.sh"], timeout=10) == "ran\n"
    assert sorted(each.name for each in kept.iterdir()) == ["hack", "manifests"]
    (state,) = scene.installer().states(verify=True)
    assert (state.origin, state.damaged) == ("release", ())
    known = json.loads((scene.cache / "releases.lock.json").read_text())
    assert [each["sha256"] for each in known.values()] == [hashlib.sha256(archive()).hexdigest()]
    assert not list((scene.cache / "downloads").iterdir())
    asked = len(scene.publisher.asked)
    assert scene.installer().install(["tiny"]) == toolbox
    assert len(scene.publisher.asked) == asked


@pytest.mark.parametrize("source", [ProgramSource.RELEASES, ProgramSource.AUTO])
@pytest.mark.parametrize("lie", ["the file", "the checksum", "cut short", "one bit", "elsewhere"])
def test_release_with_a_wrong_checksum_is_neither_stored_nor_run(
    scene: Scene, source: ProgramSource, lie: str
) -> None:
    right = archive(EVIL) if lie == "the checksum" else archive()
    content = {
        "the checksum": archive(),
        "cut short": archive()[:-1],
        "one bit": archive()[:-1] + bytes([archive()[-1] ^ 1]),
    }.get(lie, archive(EVIL))
    scene.publisher.files = {FILE: content, SUMS: sums(right)}
    if lie == "elsewhere":
        scene.publisher.files["/mirror"] = scene.publisher.files.pop(FILE)
        scene.publisher.redirects[FILE] = f"{scene.publisher.address}/mirror"
    with pytest.raises(WrongHash, match="checksum mismatch") as caught:
        scene.installer(source).install(["tiny"])
    assert hashlib.sha256(content).hexdigest() in caught.value.message
    assert "--source sources" in (caught.value.next or "")
    scene.assert_nothing_stored(content)
    assert not (scene.cache / "releases.lock.json").exists()


@pytest.mark.parametrize("known", [True, False])
def test_foreign_file_in_the_download_folder_is_never_run(scene: Scene, known: bool) -> None:
    scene.installer().install(["tiny"])
    (name,) = scene.entries()
    shutil.rmtree(scene.cache / "tools")
    if not known:
        (scene.cache / "releases.lock.json").unlink()
    folder = scene.cache / "downloads" / name
    folder.mkdir(parents=True)
    (folder / "tiny.tar.gz").write_bytes(archive(EVIL))
    with pytest.raises(WrongHash, match="checksum mismatch"):
        scene.installer().install(["tiny"])
    scene.assert_nothing_stored(archive(EVIL))
    toolbox = scene.installer().install(["tiny"])
    assert run([toolbox.path("tiny")], timeout=10) == "released\n"


def test_committed_hash_takes_precedence_over_the_publishers(scene: Scene) -> None:
    url = scene.publisher.address + FILE
    scene.locks.write_text(json.dumps({url: hashlib.sha256(b"what it was").hexdigest()}))
    with pytest.raises(WrongHash, match="locked with this version"):
        scene.installer().install(["tiny"])
    scene.assert_nothing_stored(archive())
    scene.locks.write_text(json.dumps({url: hashlib.sha256(archive()).hexdigest()}))
    scene.publisher.files[SUMS] = b"nonsense"
    scene.installer().install(["tiny"])


def test_release_that_is_changed_later_is_detected(scene: Scene) -> None:
    scene.installer().install(["tiny"])
    shutil.rmtree(scene.cache / "tools")
    scene.publisher.files = {FILE: archive(EVIL), SUMS: sums(archive(EVIL))}
    with pytest.raises(WrongHash, match="locked on this machine on 20"):
        scene.installer().install(["tiny"])
    scene.assert_nothing_stored(archive(EVIL))


def test_damaged_lock_file_is_reported(scene: Scene) -> None:
    (scene.cache / "releases.lock.json").write_text("{")
    with pytest.raises(UcpError, match="damaged") as caught:
        scene.installer().install(["tiny"])
    assert "rm '" in (caught.value.next or "")
    assert scene.entries() == []


def test_changed_module_is_refused(scene: Scene, proxy: Proxy) -> None:
    proxy.files["manifests/crds/a.yaml"] = "kind: Evil\n"
    with pytest.raises(
        WrongHash, match=r"checksum mismatch for the Go module example\.org/tiny v1\.0\.0"
    ):
        scene.installer().install(["tiny"])
    assert scene.entries() == []


def test_archive_without_the_program_is_reported(scene: Scene) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz"):
        pass
    scene.publisher.files = {FILE: out.getvalue(), SUMS: sums(out.getvalue())}
    with pytest.raises(UcpError, match=r"does not contain the program tiny-1\.0\.0/tiny"):
        scene.installer().install(["tiny"])
    assert scene.entries() == []


def test_interrupted_download_is_resumed(scene: Scene) -> None:
    big = archive() + bytes(900_000)
    scene.publisher.files = {FILE: big, SUMS: sums(big)}
    scene.publisher.stalls_after[FILE] = [300_000]
    running = RunningPrograms()
    failures: list[BaseException] = []

    def install() -> None:
        try:
            scene.installer(running=running).install(["tiny"])
        except BaseException as failure:  # noqa: BLE001 (reported by the assertion below)
            failures.append(failure)

    thread = threading.Thread(target=install)
    thread.start()
    until = time.monotonic() + 20
    while not any(each.stat().st_size for each in scene.cache.glob("downloads/*/*.part")):
        assert time.monotonic() < until
        time.sleep(0.01)
    running.end()
    scene.publisher.gate.set()
    thread.join(timeout=30)
    assert "canceled" in str(failures[0])
    assert scene.entries() == []
    scene.installer().install(["tiny"])
    first, second = scene.publisher.ranges_of(FILE)
    assert first == ""
    assert second.startswith("bytes=")


def test_unreachable_publisher_is_reported_before_the_first_change(scene: Scene) -> None:
    installer = scene.installer()
    scene.publisher.files.clear()
    dead = dataclasses.replace(
        scene.tool,
        release=Release((Asset("http://127.0.0.1:9/x", "http://127.0.0.1:9/y", {"tiny": ""}),)),
    )
    installer = Installer(
        scene.cache,
        print,
        source=ProgramSource.RELEASES,
        catalogue={"tiny": dead},
        modules=scene.modules,
    )
    for way in (installer.check, installer.install):
        with pytest.raises(UcpError, match=r"127\.0\.0\.1 did not respond within 4 s") as caught:
            way(["tiny"])
        assert "tools.source: sources" in (caught.value.next or "")
    assert scene.entries() == []


@pytest.mark.parametrize("fault", ["nobody there", "no file", "no checksums", "out of order"])
def test_auto_builds_if_no_release_is_available(scene: Scene, fault: str) -> None:
    installer = scene.installer(ProgramSource.AUTO)
    if fault == "nobody there":
        dead = Release((Asset("http://127.0.0.1:9/x", "http://127.0.0.1:9/y", {"tiny": ""}),))
        catalogue = {"tiny": dataclasses.replace(scene.tool, release=dead)}
        installer = Installer(
            scene.cache,
            scene.told.append,
            source=ProgramSource.AUTO,
            catalogue=catalogue,
            modules=scene.modules,
            keep_build=True,
        )
    if fault == "no file":
        del scene.publisher.files[FILE]
    if fault == "no checksums":
        scene.publisher.files[SUMS] = b"something else\n"
    if fault == "out of order":
        scene.publisher.statuses[FILE] = [500]
    heard: list[str] = []
    toolbox = installer.install(["tiny"])
    run([toolbox.path("tiny")], timeout=10, on_line=heard.append)
    assert heard == ["tiny 1.0.0 127.0.0.1"]
    if fault != "nobody there":
        assert [each for each in scene.told if "building it from sources instead" in each.detail]


def test_auto_uses_what_is_installed_and_prefers_a_build_unless_releases_are_chosen(
    scene: Scene,
) -> None:
    released = scene.installer().install(["tiny"])
    auto = scene.installer(ProgramSource.AUTO)
    assert auto.install(["tiny"]) == released
    assert auto.check(["tiny"]) == ["port of tiny"]
    built = scene.installer(ProgramSource.SOURCES).install(["tiny"])
    assert built.path("tiny") != released.path("tiny")
    asked = len(scene.publisher.asked)
    assert auto.install(["tiny"]) == built
    assert auto.check(["tiny"]) == []
    assert scene.installer().install(["tiny"]) == released
    scene.installer().choose(["tiny"])
    assert auto.install(["tiny"]) == auto.find(["tiny"]) == released
    assert auto.check(["tiny"]) == ["port of tiny"]
    assert scene.installer(ProgramSource.SOURCES).install(["tiny"]) == built
    scene.installer(ProgramSource.SOURCES).choose(["tiny"])
    assert auto.install(["tiny"]) == built
    assert len(scene.publisher.asked) == asked


def test_listening_programs_are_listed_before_the_installation(scene: Scene) -> None:
    assert scene.installer(ProgramSource.AUTO).check(["tiny"]) == ["port of tiny"]
    assert scene.installer(ProgramSource.SOURCES).check(["tiny"]) == []
    assert scene.entries() == []


def test_committed_hashes_get_new_entries_but_never_change(scene: Scene) -> None:
    catalogue = {"tiny": scene.tool}
    assert renew(catalogue, scene.locks) == "1 files are locked, 1 of them new"
    before = scene.locks.read_text()
    assert json.loads(before) == {
        scene.publisher.address + FILE: hashlib.sha256(archive()).hexdigest()
    }
    scene.publisher.files[SUMS] = sums(archive(EVIL))
    with pytest.raises(UcpError, match="published checksums differ from the locked ones"):
        renew(catalogue, scene.locks)
    assert scene.locks.read_text() == before
