"""Serves the bare repositories of a folder over HTTP, read-only.

Runs in the core cluster beside Argo CD if the repositories are local: the workspace's folder is
mounted into the nodes. Serves fetches of `/<name>.git` and `/healthz` only; there is no handler for
pushes.
"""

from __future__ import annotations

import argparse
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from dulwich.errors import NotGitRepository
from dulwich.repo import Repo
from dulwich.server import Backend, UploadPackHandler
from dulwich.web import GunzipFilter, HTTPGitApplication, LimitedInputFilter

from k8s_ucp.bounded_server import BoundedConnections

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

REQUEST_SECONDS = 60
LARGEST_REQUEST = 16 * 1024 * 1024
"""Bytes, once unpacked: any pod can send requests, and zipped ones grow three hundredfold.

A fetch needs 50 bytes for each ref that it wants and for each commit that it has.
"""

_PATH = re.compile(r"/?([a-z0-9][a-z0-9-]*\.git)/?")


class Folder(Backend):
    """The bare repositories directly below a folder, for one request; no name leads outside of it.

    Repositories are opened for every request, because they are pushed to and repacked meanwhile.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._opened: list[Repo] = []

    def open_repository(self, path: str | bytes) -> Repo:
        text = path if isinstance(path, str) else path.decode("utf-8", "replace")
        found = _PATH.fullmatch(text)
        folder = self._root / found[1] if found else None
        if folder is None or not folder.is_dir():
            raise NotGitRepository(f"unknown repository {text}")
        self._opened.append(Repo(str(folder), bare=True))
        return self._opened[-1]

    def close(self) -> None:
        for each in self._opened:
            each.close()


def application(root: Path) -> WSGIApplication:
    """The WSGI application."""

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterator[bytes]:
        if environ["PATH_INFO"] == "/healthz":
            start("200 OK", [("Content-Type", "text/plain")])
            yield b"ok\n"
            return
        folder = Folder(root)
        git = HTTPGitApplication(folder, dumb=False)
        # The `handlers` argument adds to the default handlers, which accept pushes: replace them.
        git.handlers = {b"git-upload-pack": UploadPackHandler}
        # Unpacking reads ahead, so it must not wait for bytes beyond the request's.
        unpacked = GunzipFilter(LimitedInputFilter(git, LARGEST_REQUEST))
        try:
            yield from LimitedInputFilter(unpacked)(environ, start)
        finally:
            folder.close()

    return answer


class _Server(BoundedConnections, WSGIServer):
    request_queue_size = 64


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_SECONDS

    def log_message(self, format: str, *args: object) -> None:
        """Not logged: Argo CD fetches all the time."""


def serve(root: Path, address: str, port: int) -> WSGIServer:
    """A listening server; serve_forever() handles requests."""
    return make_server(
        address, port, application(root), server_class=_Server, handler_class=_Handler
    )


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the Deployment: runs until SIGTERM."""
    parser = argparse.ArgumentParser(prog="k8s_ucp.gitops.serve", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="with the bare repositories")
    parser.add_argument("--address", default="0.0.0.0", help="default: all of the pod")  # noqa: S104
    parser.add_argument("--port", type=int, required=True)
    wanted = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = serve(wanted.folder, wanted.address, wanted.port)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
