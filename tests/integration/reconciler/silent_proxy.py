"""A TCP proxy whose connections can be cut, made to go silent, or be taken and never answered."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading


class SilentProxy:
    """Listens on 127.0.0.1 and forwards to a port there, until told otherwise."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._generation = 0
        self._deaf = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> None:
        """All connections of now: bytes are swallowed for ever, nothing is closed."""
        self._generation += 1

    def deaf(self, on: bool) -> None:
        """New connections are taken and get no answer, ever; those of before are not touched."""
        self._deaf = on

    def cut(self) -> None:
        """All connections of now are reset."""
        with self._lock:
            found, self._sockets = self._sockets, []
        for each in found:
            with contextlib.suppress(OSError):
                # Closed with this, TCP sends a reset instead of a polite end.
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def __enter__(self) -> SilentProxy:
        return self

    def __exit__(self, *_: object) -> None:
        # shutdown wakes a thread that waits in accept or recv; close alone does not.
        with self._lock:
            everything = [self._listener, *self._sockets]
        for each in everything:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._deaf:
                with self._lock:
                    self._sockets.append(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                # The server is down: so is this one, for that connection.
                client.close()
                continue
            with self._lock:
                self._sockets += [client, server]
            for pair in ((client, server), (server, client)):
                threading.Thread(
                    target=self._pump, args=(*pair, self._generation), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, generation: int) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if generation == self._generation:
                    sink.sendall(data)
            if generation == self._generation:
                sink.shutdown(socket.SHUT_WR)
