"""A redis-server for machines without a wheel: built from source, started like the real one."""

from __future__ import annotations

import dataclasses
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp import process
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.installer import Installer

PASSWORD = "not-in-argv"


@pytest.fixture
def server(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[process.ProcessIdentity]:
    built = dataclasses.replace(CATALOGUE["redis"], wheel=None, megabytes=10)
    installer = Installer(cache, print, catalogue={"redis": built}, keep_build=True)
    program = installer.install(["redis"]).path("redis-server")
    conf = tmp_path / "redis.conf"
    conf.write_text(
        "# a comment\nbind 127.0.0.1\nport 0\n"
        f'unixsocket "redis.sock"\nrequirepass {PASSWORD}\nsave ""\n'
    )
    # One that an earlier server left. Relative: the path of a socket can't be long.
    (tmp_path / "redis.sock").touch()
    monkeypatch.chdir(tmp_path)
    found = process.spawn([program, conf], env={}, cwd=tmp_path, log=tmp_path / "redis.log")
    yield found
    process.terminate(found, grace=5)


def ask(connection: socket.socket, *words: str) -> str:
    parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    connection.sendall(f"*{len(words)}\r\n{parts}".encode())
    return connection.recv(1000).decode()


def test_stand_in_requires_the_password_and_keeps_values_until_they_expire(
    server: process.ProcessIdentity,
) -> None:
    until = time.monotonic() + 60
    while not process.listeners(server.pid) and time.monotonic() < until:
        time.sleep(0.02)
    ((address, port),) = process.listeners(server.pid)
    assert address == "127.0.0.1"
    with socket.create_connection((address, port), timeout=10) as connection:
        assert ask(connection, "GET", "a").startswith("-NOAUTH")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        while True:
            try:
                connection.connect("redis.sock")
            except (ConnectionRefusedError, FileNotFoundError):
                assert time.monotonic() < until
                time.sleep(0.02)
            else:
                break
        assert ask(connection, "GET", "a").startswith("-NOAUTH")
        assert ask(connection, "AUTH", "wrong").startswith("-WRONGPASS")
        assert ask(connection, "AUTH", PASSWORD) == "+OK\r\n"
        assert ask(connection, "SET", "a", "b", "PX", "1500") == "+OK\r\n"
        assert ask(connection, "GET", "a") == "$1\r\nb\r\n"
        until = time.monotonic() + 10
        while ask(connection, "EXISTS", "a") == ":1\r\n" and time.monotonic() < until:
            time.sleep(0.1)
        assert ask(connection, "GET", "a") == "$-1\r\n"
