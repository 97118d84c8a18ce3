"""A TCP proxy that can reset connections, silence them, or accept them without ever responding."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading


class SilentProxy:
    """Listens on 127.0.0.1, and forwards to another port there."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._generation = 0
        self._deaf = False
        self._closed = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> None:
        """Drop all data of the open connections from now on, without closing them."""
        self._generation += 1

    def deaf(self, on: bool) -> None:
        """Accept new connections without responding; open connections aren't affected."""
        self._deaf = on

    def cut(self) -> None:
        """Reset all open connections."""
        with self._lock:
            found, self._sockets = self._sockets, []
        for each in found:
            with contextlib.suppress(OSError):
                # With a linger time of 0, close sends RST instead of FIN.
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def __enter__(self) -> SilentProxy:
        return self

    def __exit__(self, *_: object) -> None:
        # shutdown wakes threads blocked in accept or recv; close alone does not.
        with self._lock:
            self._closed = True
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
                self._keep(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                # The server is down, so the client sees a closed connection.
                client.close()
                continue
            self._keep(client, server)
            for pair in ((client, server), (server, client)):
                threading.Thread(
                    target=self._pump, args=(*pair, self._generation), daemon=True
                ).start()

    def _keep(self, *sockets: socket.socket) -> None:
        """Close them with the proxy, at once if that was closed meanwhile."""
        with self._lock:
            self._sockets += sockets
            closed = self._closed
        if closed:
            for each in sockets:
                each.close()

    def _pump(self, source: socket.socket, sink: socket.socket, generation: int) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if generation == self._generation:
                    sink.sendall(data)
            if generation == self._generation:
                sink.shutdown(socket.SHUT_WR)
