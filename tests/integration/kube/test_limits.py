"""Limits of what a malicious server can cost its client: seconds, bytes, credentials."""

from __future__ import annotations

import gzip
import json
import socket
import time
import tracemalloc

import pytest

from k8s_ucp.kube import SECRET, Kube, KubeError, Unreachable
from tests.raw_server import Speak, endless, server, trickling

CANARY = "canary-token-77aa"
LIMIT = 1.0
SLACK = 10
"""Seconds beyond the limit that a busy machine may take."""
LARGEST = 200_000


def connect(address: str, longest: float = 30) -> Kube:
    """longest: timeout of a request in seconds; short only where the time itself is tested."""
    config = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": address}}],
        "users": [{"name": "a", "user": {"token": CANARY}}],
    }
    return Kube(config, longest=longest, largest=LARGEST)


def answer(content: bytes, *headers: str, status: str = "200 OK") -> Speak:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers, "", ""]

    def speak(connection: socket.socket) -> None:
        connection.sendall("\r\n".join(lines).encode() + content)
        # The client may send another request on the same connection.
        time.sleep(5)

    return speak


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

ILL: dict[str, Speak] = {
    "a byte of the content now and then": trickling(OK + b"Content-Length: 10000\r\n\r\n", b" "),
    "a byte of the headers now and then": trickling(OK + b"X: ", b"x"),
    "a header now and then": trickling(OK, b"X: x\r\n"),
    "a chunk now and then": trickling(CHUNKED, b"1\r\n \r\n"),
    "content without end": endless(OK + b"\r\n", b" " * 65536),
    "chunks without end": endless(CHUNKED, b"4000\r\n" + b" " * 0x4000 + b"\r\n"),
    "a chunk's length without end": endless(CHUNKED, b"0" * 65536),
    "a header without end": endless(OK + b"X: ", b"x" * 65536),
    "an error without end": endless(b"HTTP/1.1 403 No\r\n\r\n", b" " * 65536),
    "a refusal without end": endless(b"HTTP/1.1 401 No\r\n\r\n", b" " * 65536),
    "nothing": trickling(b"", b""),
}


@pytest.mark.parametrize("speak", ILL.values(), ids=ILL)
@pytest.mark.parametrize("verb", ["request", "list", "watch"])
def test_response_is_limited_in_time_and_size(speak: Speak, verb: str) -> None:
    with server(speak) as (address, _):
        kube = connect(address, LIMIT)
        tracemalloc.start()
        began = time.monotonic()
        with pytest.raises(KubeError):
            if verb == "list":
                kube.list_with_version(SECRET, "default", timeout=LIMIT)
            elif verb == "watch":
                list(kube.watch(SECRET, "default", since="1", seconds=0, silence=LIMIT))
            else:
                kube.request("GET", "/x")
        took = time.monotonic() - began
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        kube.close()
    # A list is requested again in smaller pages if a response was too large.
    assert took < (4 if verb == "list" else 1) * LIMIT + SLACK
    assert peak < 20 * LARGEST


def test_compressed_response_is_not_decompressed() -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < LARGEST
    with server(answer(bomb, "Content-Encoding: gzip")) as (address, _):
        kube = connect(address)
        tracemalloc.start()
        try:
            with pytest.raises(Unreachable, match="not a JSON object"):
                kube.request("GET", "/x")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 20 * LARGEST


@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b"[]", b"1", b"words", b'{"items": 5}', b'{"metadata": {}, "items": [1]}'],
)
def test_invalid_response_is_reported_as_an_error_of_the_server(content: bytes) -> None:
    with server(answer(content)) as (address, _), pytest.raises(Unreachable):
        connect(address).list_all(SECRET, "default")


@pytest.mark.parametrize(
    "event",
    [
        b"1",
        b"{}",
        b'{"type": "ADDED"}',
        b'{"type": "ADDED", "object": {"metadata": {"labels": []}}}',
        b'{"type": "ERROR", "object": {"metadata": {}, "code": []}}',
    ],
)
def test_invalid_event_is_reported_as_an_error_of_the_server(event: bytes) -> None:
    with server(answer(event + b"\n")) as (address, _), pytest.raises(KubeError):
        list(connect(address).watch(SECRET, "default", since="1", seconds=1))


@pytest.mark.parametrize("status", ["301 Moved", "307 Temporary Redirect"])
def test_redirect_gets_no_credential(status: str) -> None:
    with server(answer(b"{}")) as (elsewhere, heard):
        led = answer(b"", f"Location: {elsewhere}/x", status=status)
        with server(led) as (address, _), pytest.raises(Unreachable, match="redirect"):
            connect(address).request("GET", "/x")
    assert not heard


def test_token_that_a_server_repeats_is_in_no_message() -> None:
    body = json.dumps({"message": f"no {CANARY} " + "x" * 100_000, "reason": {"a": CANARY}})
    refusing = answer(body.encode(), status="403 Forbidden")
    with server(refusing) as (address, heard), pytest.raises(KubeError) as caught:
        connect(address).request("GET", "/x")
    assert CANARY.encode() in heard[0]
    assert CANARY not in str(caught.value)
    assert len(str(caught.value)) < 2_000


def test_page_that_is_too_large_is_requested_in_parts() -> None:
    items = [{"metadata": {"name": f"a{number}"}, "x": "x" * 10_000} for number in range(40)]

    def speak(connection: socket.socket) -> None:
        request = b""
        for _ in range(100):
            # The server has already read the first request.
            query = (request or heard[-1]).split(b" ")[1].decode()
            limit = int(query.split("limit=")[1].split("&")[0])
            start = int(query.split("continue=")[1]) if "continue=" in query else 0
            rest = start + limit < len(items)
            metadata = {"continue": str(start + limit)} if rest else {"resourceVersion": "7"}
            page = {"metadata": metadata, "items": items[start : start + limit]}
            text = json.dumps(page).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n"
            connection.sendall(head.encode() + text)
            request = connection.recv(65536)

    with server(speak) as (address, heard):
        found, version = connect(address).list_with_version(SECRET, "default", timeout=30)
    assert ([each["metadata"]["name"] for each in found], version) == (
        [each["metadata"]["name"] for each in items],
        "7",
    )


def silent(connection: socket.socket) -> None:
    time.sleep(5)


def hanging_up(connection: socket.socket) -> None:
    connection.close()


def no_tls(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize(
    ("speak", "scheme", "words"),
    [
        (silent, "http", "no response within 1 s"),
        (hanging_up, "http", "it closed the connection without a response"),
        (no_tls, "https", "no TLS connection: "),
        (None, "http", "connection refused"),
    ],
)
def test_connection_failure_is_explained_in_plain_words(
    speak: Speak | None, scheme: str, words: str
) -> None:
    """They are shown in tables, conditions and findings, so they contain no class of a library."""
    with server(speak or silent) as (address, _):
        address = address.replace("http", scheme)
        if speak is None:
            with socket.create_server(("127.0.0.1", 0)) as closed:
                address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        kube = connect(address, LIMIT)
        with pytest.raises(Unreachable) as refused:
            kube.request("GET", "/readyz")
        kube.close()
    assert refused.value.message.startswith(f"{address} is not responding: {words}")
    assert refused.value.message.endswith("(GET /readyz)")
    assert "urllib3" not in refused.value.message
    assert "Pool" not in refused.value.message


def test_unresolvable_host_is_explained_in_plain_words() -> None:
    kube = connect("https://no.such.host.invalid")
    with pytest.raises(Unreachable, match="its host name can't be resolved") as refused:
        kube.request("GET", "/readyz")
    kube.close()
    assert "Pool" not in refused.value.message


def test_endless_list_is_given_up() -> None:
    page = {"metadata": {"continue": "more"}, "items": [{"metadata": {"name": "a"}}] * 4_000}
    text = json.dumps(page).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n".encode()
    asked = 0

    def speak(connection: socket.socket) -> None:
        nonlocal asked
        while True:
            asked += 1
            connection.sendall(head + text)
            if not connection.recv(65536):
                return

    with server(speak) as (address, _), pytest.raises(Unreachable, match="does not end"):
        connect(address).list_with_version(SECRET, "default", timeout=30)
    assert asked < 40
