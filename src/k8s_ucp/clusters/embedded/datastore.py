"""Access to an embedded cluster's etcd: its JSON API, on the socket in a private folder.

Used for health checks, for copies, and for the content of a new cluster: CRDs and default objects
are written directly to etcd, and the API server loads them all at once when it starts. CRDs that
are applied it handles one by one, at twice the CPU.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from k8s_ucp.errors import UcpError

CRDS = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
"""Prefix of the keys under which the API server stores CRDs, by name, as JSON."""
SECONDS = 10.0
PAUSE = 0.01
MOST_BYTES = 1_000_000
"""Per request; etcd accepts 1.5 MiB."""
MOST_KEYS = 100
"""Per request; etcd accepts 128."""
PAGE_KEYS = 200
"""Keys per response."""


def read_crds(home: Path) -> dict[str, str]:
    """CRDs of a running cluster by name. home: working folder of its etcd. Raises UcpError."""
    found = read(home, [CRDS])
    return {key.removeprefix(CRDS): _decoded(value) for key, value in found.items()}


def read(home: Path, prefixes: Iterable[str]) -> dict[str, str]:
    """Read the keys below these prefixes from a running cluster's etcd: key -> value in base64.

    home: working folder of its etcd. prefixes: must end with a slash. Raises UcpError.
    """
    found: dict[str, str] = {}
    with contextlib.closing(_connected(home)) as connection:
        for prefix in prefixes:
            end = prefix.removesuffix("/") + "0"  # The character after the slash.
            response = _ask(
                connection, "range", {"key": _encoded(prefix), "range_end": _encoded(end)}
            )
            for each in response.get("kvs", []):
                found[_decoded(each["key"])] = each["value"]
    return found


def write_crds(home: Path, crds: Mapping[str, str]) -> None:
    """Write CRDs, as returned by `read_crds`, as soon as etcd responds. Raises UcpError."""
    write(home, {f"{CRDS}{name}": _encoded(text) for name, text in crds.items()})


def write(home: Path, values: Mapping[str, str], *, absent: bool = False) -> None:
    """Write values, as returned by `read`, as soon as etcd responds. Raises UcpError.

    absent: write only keys that do not exist.
    """
    with contextlib.closing(_connected(home)) as connection:
        for batch in _batches(values):
            puts = [_put(key, value, absent) for key, value in batch.items()]
            _ask(connection, "txn", {"success": puts})


def _put(key: str, value: str, absent: bool) -> dict[str, Any]:
    put = {"requestPut": {"key": _encoded(key), "value": value}}
    if not absent:
        return put
    missing = {
        "key": _encoded(key),
        "target": "CREATE",
        "result": "EQUAL",
        "createRevision": "0",
    }
    return {"requestTxn": {"compare": [missing], "success": [put]}}


def read_pages(home: Path, *, without: Collection[str]) -> Iterator[dict[str, str]]:
    """All keys and values of an etcd at one revision, page by page, in the format of `read`.

    without: prefixes of keys to leave out. Raises UcpError.
    """
    left_out, start, revision = tuple(without), _encoded("\0"), "0"
    with contextlib.closing(_connected(home)) as connection:
        while start:
            asked = {"key": start, "range_end": _ALL, "limit": PAGE_KEYS, "revision": revision}
            found = _ask(connection, "range", asked)
            # Later pages are read at the same revision, whatever has been written since.
            revision = found["header"]["revision"]
            pairs = {_decoded(each["key"]): each.get("value", "") for each in found.get("kvs", [])}
            start = _encoded(f"{max(pairs)}\0") if found.get("more") and pairs else ""
            yield {key: value for key, value in pairs.items() if not key.startswith(left_out)}


def clear(home: Path) -> None:
    """Delete all keys of an etcd. Raises UcpError."""
    with contextlib.closing(_connected(home)) as connection:
        _ask(connection, "deleterange", {"key": _encoded("\0"), "range_end": _ALL})


def health_problem(home: Path, *, seconds: float = SECONDS) -> str:
    """Why etcd is unhealthy, by its own health check; empty if it is healthy. Raises UcpError."""
    with contextlib.closing(_connected(home)) as connection:
        connection.sock.settimeout(seconds)
        try:
            connection.request("GET", "/health")
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        except (OSError, HTTPException) as error:
            raise UcpError(f"etcd failed at its health check: {error}") from error
    return "" if response.status == 200 else f"{response.status} {text.strip()}"


def _batches(values: Mapping[str, str]) -> Iterator[dict[str, str]]:
    batch: dict[str, str] = {}
    size = 0
    for key, value in values.items():
        if batch and (size + len(value) > MOST_BYTES or len(batch) == MOST_KEYS):
            yield batch
            batch, size = {}, 0
        batch[key] = value
        size += len(value)
    if batch:
        yield batch


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()


class _SocketConnection(HTTPConnection):
    """Connects through the folder's descriptor, since the socket's full path may be too long."""

    def __init__(self, home: Path) -> None:
        super().__init__("etcd", timeout=SECONDS)
        self._home = home

    def connect(self) -> None:
        folder = os.open(self._home, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(SECONDS)
            self.sock.connect(f"/proc/self/fd/{folder}/client.sock")
        finally:
            os.close(folder)


def _connected(home: Path) -> HTTPConnection:
    until = time.monotonic() + SECONDS
    connection = _SocketConnection(home)
    while True:
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            if time.monotonic() > until:
                raise UcpError(f"etcd in {home} is not responding: {error}") from error
            time.sleep(PAUSE)
        else:
            return connection


def _ask(connection: HTTPConnection, what: str, body: Mapping[str, Any]) -> dict[str, Any]:
    try:
        connection.request("POST", f"/v3/kv/{what}", json.dumps(body))
        response = connection.getresponse()
        text = response.read()
        answer: dict[str, Any] = json.loads(text)
    except (OSError, HTTPException, ValueError) as error:
        raise UcpError(f"etcd failed at {what}: {error}") from error
    if response.status != 200:
        raise UcpError(f"etcd refused {what}: {answer.get('message') or response.status}")
    return answer


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_ALL = _encoded("\0")
"""As the end of a range: up to the last key."""
