"""A packed chart from a hostile registry is unpacked inside its folder, within limits."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.manifests import chart_source
from k8s_ucp.gitops.manifests.chart_source import unpack, write_files


def packed(*files: tuple[str, bytes], pax: str = "") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.pax_headers = {"comment": pax} if pax else {}
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def test_only_files_inside_of_the_chart_are_unpacked() -> None:
    names = ("web/../../up", "web//etc/hosts", "web/./here", "./web/Chart.yaml", "web/a/b")
    assert unpack(packed(*((each, b"x") for each in names)), "web") == {
        "Chart.yaml": b"x",
        "a/b": b"x",
    }


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x"])
def test_nothing_is_written_outside_of_a_folder(path: str, tmp_path: Path) -> None:
    with pytest.raises(UcpError, match="would be written outside"):
        write_files(tmp_path / "a", {path: b"x"})


@pytest.mark.parametrize(
    "archive",
    [
        packed(("web/a", b"\0" * 300_000)),
        packed(*((f"web/../{each}", b"\0" * 100_000) for each in range(3))),
        packed(("web/a", b""), pax="x" * 300_000),
    ],
    ids=["file", "files-that-are-left-out", "header"],
)
def test_an_archive_that_grows_is_refused(archive: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(archive) < 3000
    monkeypatch.setattr(chart_source, "MOST_BYTES", 100_000)
    monkeypatch.setattr(chart_source, "MOST_UNPACKED", 200_000)
    with pytest.raises(UcpError, match="the chart web is too large"):
        unpack(archive, "web")


@pytest.mark.parametrize(
    "archive",
    [b"", b"\x1f\x8b", b"\x1f\x8b" + 50 * b"x", packed(("web/a", b"x"))[:-9], b"no tar"],
    ids=["empty", "start", "no-gzip", "cut-off", "no-tar"],
)
def test_a_broken_archive_is_reported(archive: bytes) -> None:
    with pytest.raises(UcpError, match="the chart web can't be unpacked"):
        unpack(archive, "web")


def test_a_broken_compression_is_reported() -> None:
    archive = bytearray(gzip.compress(bytes(range(256)) * 40))
    archive[12:20] = b"\xff" * 8
    with pytest.raises(UcpError, match="the chart web can't be unpacked"):
        unpack(bytes(archive), "web")
