"""Downloads from a server that breaks off, stalls, redirects and sends wrong data."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.tools import download
from k8s_ucp.tools.download import (
    DownloadLimits,
    NotReached,
    NotServed,
    fetch_file,
    fetch_text,
    server_responds,
    shown,
)
from tests.integration.tools.release_server import Publisher, publisher
from tests.raw_server import Speak, trickling
from tests.raw_server import server as server_of

CONTENT = os.urandom(700_000)
HASTY = DownloadLimits(deadline=20, connect=2, stall=0.4, pause=0.01)


@pytest.fixture
def server() -> Iterator[Publisher]:
    with publisher() as found:
        found.files["/file"] = CONTENT
        yield found


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "file"


def assert_alone(target: Path, content: bytes = CONTENT) -> None:
    assert target.read_bytes() == content
    assert [each.name for each in target.parent.iterdir()] == [target.name]


def test_file_is_downloaded_completely_and_progress_is_reported(
    server: Publisher, target: Path
) -> None:
    told: list[tuple[int, int | None]] = []
    fetch_file(f"{server.address}/file", target, progress=lambda *each: told.append(each))
    assert_alone(target)
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [here for here, _ in told] == sorted(here for here, _ in told)


LIMITED = """
import pathlib, resource, sys
from k8s_ucp.errors import UcpError
from k8s_ucp.tools.download import fetch_file
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    fetch_file(sys.argv[1], pathlib.Path(sys.argv[2]))
except UcpError as error:
    print(error)
"""


def test_file_that_cannot_be_written_is_not_blamed_on_the_network(
    server: Publisher, target: Path
) -> None:
    """As on a full disk; here the process may only write small files."""
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, f"{server.address}/file", target],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert run.stdout.startswith(f"failed to write {target}.part: File too large")
    assert server.ranges_of("/file") == [""], "no retry"


def test_broken_download_is_resumed(server: Publisher, target: Path) -> None:
    server.breaks_after["/file"] = [300_000, 200_000]
    fetch_file(f"{server.address}/file", target, limits=HASTY)
    assert_alone(target)
    assert server.ranges_of("/file") == ["", "bytes=300000-", "bytes=500000-"]
    assert server.sent == len(CONTENT)


def test_stalled_download_is_resumed(server: Publisher, target: Path) -> None:
    server.stalls_after["/file"] = [100_000]
    fetch_file(f"{server.address}/file", target, limits=HASTY)
    assert_alone(target)
    assert server.ranges_of("/file") == ["", "bytes=100000-"]


def test_later_call_resumes_a_partial_download(server: Publisher, target: Path) -> None:
    def ended() -> bool:
        return True

    with pytest.raises(UcpError, match="canceled"):
        fetch_file(f"{server.address}/file", target, ended=ended)
    assert not target.exists()
    have = target.with_name("file.part").stat().st_size
    assert 0 < have < len(CONTENT)
    fetch_file(f"{server.address}/file", target)
    assert_alone(target)
    assert server.ranges_of("/file") == ["", f"bytes={have}-"]


@pytest.mark.parametrize("why", ["no ranges", "lies", "changed", "shorter", "no tag"])
def test_download_that_can_not_be_resumed_starts_anew(
    server: Publisher, target: Path, why: str
) -> None:
    content = CONTENT
    server.tags = why != "no tag"
    with pytest.raises(UcpError, match="canceled"):
        fetch_file(f"{server.address}/file", target, ended=lambda: True)
    if why == "no ranges":
        server.ranges = False
    if why == "lies":
        server.lies_about_ranges = True
    if why == "changed":
        content = server.files["/file"] = os.urandom(500_000)
    if why == "shorter":
        content = server.files["/file"] = os.urandom(1000)
    fetch_file(f"{server.address}/file", target, limits=HASTY)
    assert_alone(target, content)


def test_download_without_progress_is_given_up(server: Publisher, target: Path) -> None:
    server.breaks_after["/file"] = [1000] + [0] * 9
    with pytest.raises(NotReached, match=r"/file: .* \(4 attempts\)") as caught:
        fetch_file(f"{server.address}/file", target, limits=HASTY)
    assert "HTTPS_PROXY" in (caught.value.next or "")
    assert not target.exists()


def test_trickling_download_ends_at_the_deadline(server: Publisher, target: Path) -> None:
    server.stalls_after["/file"] = [1] * 200
    with pytest.raises((DeadlineExceeded, NotReached)):
        fetch_file(
            f"{server.address}/file",
            target,
            limits=DownloadLimits(1.0, connect=1, stall=0.1, pause=0.01),
        )
    assert not target.exists()


@pytest.mark.parametrize("status", [403, 404, 410, 500])
def test_error_of_the_server_is_reported(server: Publisher, target: Path, status: int) -> None:
    server.statuses["/file"] = [status]
    with pytest.raises(NotServed, match=f"/file: {status} ") as caught:
        fetch_file(f"{server.address}/file", target, limits=HASTY)
    assert caught.value.status == status
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_temporary_error_of_the_server_is_retried(
    server: Publisher, target: Path, status: int
) -> None:
    server.statuses["/file"] = [status, status]
    fetch_file(f"{server.address}/file", target, limits=HASTY)
    assert_alone(target)


def test_redirects_are_followed(server: Publisher, target: Path) -> None:
    server.redirects = {"/a": "/b", "/b": f"{server.address}/file?signature=secret"}
    server.files["/file?signature=secret"] = CONTENT
    server.breaks_after["/file?signature=secret"] = [300_000]
    fetch_file(f"{server.address}/a", target, limits=HASTY)
    assert_alone(target)
    assert server.ranges_of("/file?signature=secret") == ["", "bytes=300000-"]


def test_redirect_to_plain_http_is_not_followed(server: Publisher, target: Path) -> None:
    server.redirects["/file"] = "http://releases.invalid/file?signature=secret"
    with pytest.raises(
        NotServed, match=r"redirects to http://releases\.invalid/file.*not https"
    ) as e:
        fetch_file(f"{server.address}/file", target, limits=HASTY)
    assert "secret" not in str(e.value)


@pytest.mark.parametrize("address", ["https://[::1", "//[x/file"])
def test_redirect_to_no_address_is_an_error(server: Publisher, target: Path, address: str) -> None:
    server.redirects["/file"] = address
    url = f"{server.address}/file"
    with pytest.raises(NotReached, match="the URL is not valid"):
        fetch_file(url, target, limits=HASTY)
    with pytest.raises(NotReached, match="the URL is not valid"):
        fetch_text(url)


@pytest.mark.parametrize("length", [b"\xb2", b"9" * 5000])
def test_length_that_is_no_number_is_ignored(target: Path, length: bytes) -> None:
    answer = b"HTTP/1.0 200 OK\r\nContent-Length: " + length + b"\r\n\r\n" + CONTENT
    with server_of(lambda connection: connection.sendall(answer)) as (address, _):
        fetch_file(f"{address}/file", target, limits=HASTY)
    assert_alone(target)


@pytest.mark.parametrize(
    "speak",
    [
        trickling(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        trickling(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        trickling(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n", b"x"),
    ],
    ids=["headers", "interim responses", "content"],
)
def test_response_that_trickles_in_ends_at_the_deadline(
    speak: Speak, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "TEXT_SECONDS", 0.5)
    limits = DownloadLimits(deadline=0.5, connect=2, stall=2, pause=0.01)
    with server_of(speak) as (address, _):
        with pytest.raises(NotReached):
            fetch_text(f"{address}/checksums")
        with pytest.raises(DeadlineExceeded):
            fetch_file(f"{address}/file", target, limits=limits)


def test_endless_redirects_end(server: Publisher, target: Path) -> None:
    server.redirects["/file"] = "/file"
    with pytest.raises(NotServed, match="redirect loop"):
        fetch_file(f"{server.address}/file", target, limits=HASTY)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_unreachable_server_is_reported(target: Path) -> None:
    with pytest.raises(NotReached, match="connection failed"):
        fetch_file(f"http://127.0.0.1:{closed_port()}/file", target, limits=HASTY)
    assert not server_responds(f"http://127.0.0.1:{closed_port()}/", seconds=1)


def test_silent_server_is_reported() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        assert not server_responds(f"http://127.0.0.1:{silent.getsockname()[1]}/", seconds=0.3)


def test_proxy_of_the_environment_is_used(
    server: Publisher, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = server.address.removeprefix("http://")
    monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@{host}")
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    server.files["http://127.0.0.1:1/file"] = CONTENT
    fetch_file("http://127.0.0.1:1/file", target, limits=HASTY)
    assert_alone(target)
    assert server.credentials
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(NotReached):
        fetch_file("http://127.0.0.1:1/other", target, limits=HASTY)


def test_proxy_that_is_down_is_reported_without_its_password(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{closed_port()}")
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        NotReached, match="the proxy refused the connection or is not responding"
    ) as caught:
        fetch_file("http://127.0.0.1:1/file", target, limits=HASTY)
    assert "secret" not in str(caught.value)


def test_texts_are_limited_in_size(server: Publisher) -> None:
    server.files = {"/text": b"hash  file\n", "/big": b"x" * 5_000_000, "/binary": b"\xff\xfe"}
    assert fetch_text(f"{server.address}/text") == "hash  file\n"
    with pytest.raises(NotReached, match="is larger than"):
        fetch_text(f"{server.address}/big")
    with pytest.raises(NotServed, match="not valid UTF-8"):
        fetch_text(f"{server.address}/binary")
    with pytest.raises(NotServed, match="404"):
        fetch_text(f"{server.address}/absent")


def test_files_are_limited_in_size(
    server: Publisher, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "FILE_BYTES", 300_000)
    with pytest.raises(NotReached, match="larger than 300,000 bytes"):
        fetch_file(f"{server.address}/file", target, limits=HASTY)
    assert not list(target.parent.iterdir())


def test_urls_are_shown_without_secrets() -> None:
    assert shown("https://me:pw@example.org/a/b?token=x#y") == "https://example.org/a/b"


def test_cancelled_download_does_not_wait_for_a_stalled_server(
    server: Publisher, target: Path
) -> None:
    server.stalls_after["/file"] = [300_000] * 9
    end = threading.Event()
    failures: list[BaseException] = []

    def fetch() -> None:
        try:
            fetch_file(f"{server.address}/file", target, limits=HASTY, ended=end.is_set)
        except BaseException as failure:  # noqa: BLE001 (reported by the assertion below)
            failures.append(failure)

    thread = threading.Thread(target=fetch)
    thread.start()
    end.set()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert "canceled" in str(failures[0])
