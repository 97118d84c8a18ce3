"""Charts are fetched once, and unpacked inside of their folders, within limits."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.manifests import chart_source
from k8s_ucp.gitops.manifests.chart_source import (
    ChartRef,
    pin,
    pull,
    unpack,
    with_dependencies,
    write_files,
)


def packed(*files: tuple[str, bytes], **headers: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.pax_headers = headers
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
        packed(("web/a", b""), comment="x" * 300_000),
    ],
    ids=["file", "files-that-are-left-out", "header"],
)
def test_an_archive_that_grows_is_refused(archive: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(archive) < 3000
    monkeypatch.setattr(chart_source, "MOST_BYTES", 100_000)
    monkeypatch.setattr(chart_source, "MOST_UNPACKED", 200_000)
    with pytest.raises(UcpError, match="the chart web is too large"):
        unpack(archive, "web")


def sparse(size: str) -> bytes:
    """A chart's file that is said to be of that size, as GNU tar writes files with holes."""
    headers = {"major": "1", "minor": "0", "name": "web/a", "realsize": size}
    named = {f"GNU.sparse.{name}": value for name, value in headers.items()}
    return packed(("web/a", b"0\n".ljust(512, b"\0")), **named)


@pytest.mark.parametrize(
    "archive",
    [
        *(b"", b"\x1f\x8b", b"\x1f\x8b" + 50 * b"x", packed(("web/a", b"x"))[:-9], b"no tar"),
        sparse("many"),
        sparse("-900000000"),  # It would allow others to be as much larger.
    ],
    ids=["empty", "start", "no-gzip", "cut-off", "no-tar", "no-size", "negative"],
)
def test_a_broken_archive_is_reported(archive: bytes) -> None:
    with pytest.raises(UcpError, match="the chart web can't be unpacked"):
        unpack(archive, "web")


def test_a_broken_compression_is_reported() -> None:
    archive = bytearray(gzip.compress(bytes(range(256)) * 40))
    archive[12:20] = b"\xff" * 8
    with pytest.raises(UcpError, match="the chart web can't be unpacked"):
        unpack(bytes(archive), "web")


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("dial tcp: lookup charts.example.org: no such host", "check its address and the network"),
        ('chart "web" version "9" not found', "helm show chart web --repo https://c.example.org"),
        ("failed to authorize: 401 Unauthorized", "declare its credential in ucp.yaml"),
    ],
)
def test_a_chart_that_cannot_be_fetched_has_a_next_step(
    words: str, advice: str, tmp_path: Path
) -> None:
    helm = tmp_path / "helm"
    helm.write_text(f"#!/bin/sh\necho 'Error: {words}' >&2\nexit 1\n")
    helm.chmod(0o755)
    with pytest.raises(UcpError) as caught:
        pin(helm, ChartRef("https://c.example.org", "web"), None, tmp_path / "cache", None)
    assert words in caught.value.message
    assert caught.value.next
    assert advice in caught.value.next


@pytest.mark.parametrize("left", [b"", b"\0" * 4096], ids=["empty", "zeros"])
def test_an_archive_that_a_power_failure_damaged_is_fetched_again(
    left: bytes, tmp_path: Path
) -> None:
    chart, helm, cache = tmp_path / "web.tgz", tmp_path / "helm", tmp_path / "cache"
    chart.write_bytes(packed(("web/Chart.yaml", b"name: web\nversion: 1.0.0\n")))
    helm.write_text(
        f"""#!/bin/sh
while [ "$1" != --destination ]; do shift; done
cp {chart} "$2/web-1.0.0.tgz"
"""
    )
    helm.chmod(0o755)
    ref = ChartRef("https://c.example.org", "web")
    found = pin(helm, ref, None, cache, None)
    (kept,) = (cache / "sources/charts").iterdir()
    kept.write_bytes(left)
    assert "Chart.yaml" in pull(helm, ref, "1.0.0", cache, None)
    kept.write_bytes(left)
    assert pin(helm, ref, None, cache, None) == found
    assert kept.read_bytes() == chart.read_bytes()


def test_dependencies_of_the_same_files_are_fetched_once(tmp_path: Path) -> None:
    helm, log = tmp_path / "helm", tmp_path / "log"
    helm.write_text(
        f"""#!/bin/sh
echo "$1 $2" >> {log}
for last; do :; done
[ "$1" = dependency ] && mkdir "$last/charts" && echo x > "$last/charts/db-1.0.0.tgz"
exit 0
"""
    )
    helm.chmod(0o755)
    chart = b"""
name: web
version: 1.0.0
dependencies: [{name: db, version: 1.0.0, repository: "https://c.example.org"}]
"""
    for _ in range(2):
        found = with_dependencies(helm, {"Chart.yaml": chart}, {})
        assert found["charts/db-1.0.0.tgz"] == b"x\n"
    assert log.read_text() == "repo add\ndependency update\n"
    with_dependencies(helm, {"Chart.yaml": chart, "values.yaml": b""}, {})
    assert log.read_text().count("dependency update") == 2
