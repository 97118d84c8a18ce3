"""A TCP proxy whose open connections can be made to go silent without being closed."""

from __future__ import annotations

import contextlib
import socket
import threading


class SilentProxy:
    """Listens on 127.0.0.1 and forwards to a port there, until told to be silent."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._generation = 0
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> None:
        """All connections of now: bytes are swallowed for ever, nothing is closed."""
        self._generation += 1

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
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
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
