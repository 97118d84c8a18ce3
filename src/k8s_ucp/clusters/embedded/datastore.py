"""The door to an embedded cluster's etcd: its JSON interface, on the socket in a private folder.

For health, copies, and what a new cluster is made with: it gets kinds and default objects past its
API server, which learns in one go what it finds there as it starts. Kinds that are applied it
learns one by one, at twice the CPU.
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

KINDS = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
"""Prefix of the keys under which the API server keeps CRDs, by name, as JSON."""
SECONDS = 10.0
PAUSE = 0.01
MOST_BYTES = 1_000_000
"""Of one request; etcd takes 1.5 MiB."""
MOST_KEYS = 100
"""Of one request; etcd takes 128."""
PAGE_KEYS = 200
"""Of one answer."""


def read_kinds(home: Path) -> dict[str, str]:
    """The CRDs of a running cluster by name. home: where its etcd works. Raises UcpError."""
    found = read(home, [KINDS])
    return {key.removeprefix(KINDS): _plain(value) for key, value in found.items()}


def read(home: Path, prefixes: Iterable[str]) -> dict[str, str]:
    """What a running cluster's datastore holds under these prefixes: key -> value, as base64.

    home: where its etcd works. prefixes: with a slash at their ends. Raises UcpError.
    """
    found: dict[str, str] = {}
    with contextlib.closing(_connected(home)) as connection:
        for prefix in prefixes:
            end = prefix.removesuffix("/") + "0"  # The character after the slash.
            told = _ask(connection, "range", {"key": _coded(prefix), "range_end": _coded(end)})
            for each in told.get("kvs", []):
                found[_plain(each["key"])] = each["value"]
    return found


def write_kinds(home: Path, kinds: Mapping[str, str]) -> None:
    """Write CRDs, as `read_kinds` tells them, as soon as etcd answers. Raises UcpError."""
    write(home, {f"{KINDS}{name}": _coded(text) for name, text in kinds.items()})


def write(home: Path, values: Mapping[str, str], *, absent: bool = False) -> None:
    """Write what `read` tells, as soon as etcd answers. Raises UcpError.

    absent: only keys that are not there.
    """
    with contextlib.closing(_connected(home)) as connection:
        for batch in _batches(values):
            puts = [_put(key, value, absent) for key, value in batch.items()]
            _ask(connection, "txn", {"success": puts})


def _put(key: str, value: str, absent: bool) -> dict[str, Any]:
    put = {"requestPut": {"key": _coded(key), "value": value}}
    if not absent:
        return put
    never_made = {"key": _coded(key), "target": "CREATE", "result": "EQUAL", "createRevision": "0"}
    return {"requestTxn": {"compare": [never_made], "success": [put]}}


def read_pages(home: Path, *, without: Collection[str]) -> Iterator[dict[str, str]]:
    """All that an etcd holds at one moment, page by page, as `read` tells it.

    without: prefixes of keys that are left out. Raises UcpError.
    """
    left_out, start, revision = tuple(without), _coded("\0"), "0"
    with contextlib.closing(_connected(home)) as connection:
        while start:
            asked = {"key": start, "range_end": _ALL, "limit": PAGE_KEYS, "revision": revision}
            found = _ask(connection, "range", asked)
            # Later pages are of the same moment, whatever has been written since.
            revision = found["header"]["revision"]
            pairs = {_plain(each["key"]): each.get("value", "") for each in found.get("kvs", [])}
            start = _coded(f"{max(pairs)}\0") if found.get("more") and pairs else ""
            yield {key: value for key, value in pairs.items() if not key.startswith(left_out)}


def clear(home: Path) -> None:
    """Delete all that an etcd holds. Raises UcpError."""
    with contextlib.closing(_connected(home)) as connection:
        _ask(connection, "deleterange", {"key": _coded("\0"), "range_end": _ALL})


def trouble(home: Path) -> str:
    """Why etcd is not well, by its own health check; empty where it is. Raises UcpError."""
    with contextlib.closing(_connected(home)) as connection:
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


def _plain(coded: str) -> str:
    return base64.b64decode(coded).decode()


class _SocketConnection(HTTPConnection):
    """By the folder's descriptor: the socket's whole path may be longer than one may be."""

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
                raise UcpError(f"etcd in {home} does not answer: {error}") from error
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


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_ALL = _coded("\0")
"""As the end of a range: to the last key."""
