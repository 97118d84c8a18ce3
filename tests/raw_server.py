"""A TCP server that answers each connection with arbitrary bytes of a test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Speak = Callable[[socket.socket], None]


@contextmanager
def server(speak: Speak) -> Iterator[tuple[str, list[bytes]]]:
    """Answer every connection's first request with `speak`; yields (address, requests received)."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []
    stop = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                heard.append(connection.recv(65536))
                speak(connection)
            except OSError:
                return

    def accept() -> None:
        while not stop.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
    finally:
        stop.set()
        # Otherwise it listens, and answers one more connection, until `accept` returns.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def trickling(beginning: bytes, drop: bytes) -> Speak:
    """Send the beginning at once, then a drop ten times a second for a minute."""

    def speak(connection: socket.socket) -> None:
        connection.sendall(beginning)
        for _ in range(600):
            connection.sendall(drop)
            time.sleep(0.1)

    return speak


def endless(beginning: bytes, part: bytes) -> Speak:
    """Send the beginning, then parts until the client closes the connection."""

    def speak(connection: socket.socket) -> None:
        connection.sendall(beginning)
        while True:
            connection.sendall(part)

    return speak
