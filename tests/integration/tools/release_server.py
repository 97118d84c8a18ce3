"""A publisher's server under the control of a test, which can misbehave in several ways."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Publisher:
    """Files by path, and faults. All fields can be changed while it runs."""

    files: dict[str, bytes] = field(default_factory=dict)
    statuses: dict[str, list[int]] = field(default_factory=dict)
    """Status codes of the next responses to GET a path, instead of the file."""
    redirects: dict[str, str] = field(default_factory=dict)
    breaks_after: dict[str, list[int]] = field(default_factory=dict)
    """The next responses end after so many bytes of their body."""
    stalls_after: dict[str, list[int]] = field(default_factory=dict)
    """The next responses stall after so many bytes, until `gate` is set."""
    gate: threading.Event = field(default_factory=threading.Event)
    ranges: bool = True
    """Honors Range."""
    lies_about_ranges: bool = False
    """Answers a Range request with the beginning of the file."""
    tags: bool = True
    """Sends an ETag."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """(path, Range) of every GET."""
    credentials: list[str] = field(default_factory=list)
    """Proxy-Authorization of every GET that had one."""
    sent: int = 0
    """Bytes of bodies."""
    address: str = ""

    def ranges_of(self, path: str) -> list[str]:
        """Range headers of the requests for a path; empty for the whole file."""
        return [range_ for asked, range_ in self.asked if asked == path]


@contextmanager
def publisher() -> Iterator[Publisher]:
    """Run such a server."""
    found = Publisher()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200)
            self.end_headers()

        def do_GET(self) -> None:
            # A proxy gets the whole URL.
            path = self.path.removeprefix(found.address)
            found.asked.append((path, self.headers.get("Range", "")))
            if told := self.headers.get("Proxy-Authorization"):
                found.credentials.append(told)
            with contextlib.suppress(OSError):  # the client has disconnected
                self.answer(path)

        def answer(self, path: str) -> None:
            if queue := found.statuses.get(path):
                self.send_error(queue.pop(0))
            elif path in found.redirects:
                self.send_response(302)
                self.send_header("Location", found.redirects[path])
                self.end_headers()
            elif path in found.files:
                self.serve(path, found.files[path])
            else:
                self.send_error(404)

        def serve(self, path: str, content: bytes) -> None:
            tag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
            range_, wanted_tag = self.headers.get("Range"), self.headers.get("If-Range", tag)
            begin = 0
            if range_ and found.ranges and wanted_tag == tag:
                begin = int(range_.removeprefix("bytes=").rstrip("-"))
                if begin >= len(content):
                    self.send_error(416)
                    return
                told = 0 if found.lies_about_ranges else begin
                begin = told
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {told}-{len(content) - 1}/{len(content)}")
            else:
                self.send_response(200)
            if found.tags:
                self.send_header("ETag", tag)
            body = content[begin:]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if queue := found.breaks_after.get(path):
                body = body[: queue.pop(0)]
                self.close_connection = True
            if queue := found.stalls_after.get(path):
                count = queue.pop(0)
                self.send_body(body[:count])
                found.gate.wait(60)
                body = body[count:]
            self.send_body(body)

        def send_body(self, body: bytes) -> None:
            found.sent += len(body)  # First: the client may check it at once.
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    found.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield found
    finally:
        found.gate.set()
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
