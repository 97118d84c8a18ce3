"""A small program as a real Go module, served by a module proxy of the test.

The module is `example.org/tiny`; `modules/tiny` requires it, as the real modules require theirs.
The proxy can hold its responses, so that an installation stops in the middle for as long as a test
needs.
"""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from k8s_ucp import process
from tests.conftest import CACHE

SOURCES = {
    "go.mod": "module example.org/tiny\n\ngo 1.24\n",
    "cmd/tiny/main.go": (
        "package main\n\nvar version = "
        '"none"\n\nfunc main() { println("tiny", version, "0.0.0.0") }\n'
    ),
    "manifests/crds/a.yaml": "kind: A\n",
    "hack/run.sh": "#!/bin/sh\necho ran\n",
    "docs/big.md": "not kept\n",
}


def module_zip(files: Mapping[str, str]) -> bytes:
    """A module archive as a proxy serves it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"example.org/tiny@v1.0.0/{name}", text)
    return out.getvalue()


@dataclass
class Proxy:
    """A Go module proxy on loopback with one module; it counts responses and can hold them."""

    files: dict[str, str] = field(default_factory=lambda: dict(SOURCES))
    gate: threading.Event = field(default_factory=threading.Event)
    """Set: responds immediately. Cleared: responses with archives wait."""
    asked: threading.Event = field(default_factory=threading.Event)
    """Set once the archive was requested."""
    archives: int = 0
    address: str = ""

    def answer(self, path: str) -> bytes | None:
        name = path.removeprefix("/example.org/tiny/@v/")
        if name == "v1.0.0.info":
            return b'{"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}'
        if name == "v1.0.0.mod":
            return self.files["go.mod"].encode()
        if name == "v1.0.0.zip":
            self.archives += 1
            self.asked.set()
            self.gate.wait(120)
            return module_zip(self.files)
        return None


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The running, open proxy, which the environment names."""
    found = Proxy()
    found.gate.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = found.answer(self.path)
            try:
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")
            except OSError:
                pass  # the client was killed

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    found.address = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("GOPROXY", found.address)
    monkeypatch.setenv("GOSUMDB", "off")
    yield found
    found.gate.set()
    server.shutdown()
    server.server_close()
    thread.join(timeout=10)


@pytest.fixture(scope="session")
def objects() -> Path:
    """Compiled object files of the standard library, shared by all tests of all workers and runs.

    Go keeps the folder consistent, and deletes entries that were not used for some days.
    """
    folder = CACHE / "tests" / "go-objects"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def cache(tmp_path: Path, objects: Path) -> Path:
    """An empty cache folder (with a space in its name) with the shared object files."""
    folder = tmp_path / "user cache"
    (folder / "build").mkdir(parents=True)
    (folder / "build" / "objects").symlink_to(objects)
    return folder


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """Module folders like those in tools/modules, with the checksum of the served module."""
    folder = tmp_path / "modules" / "tiny"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text(
        "module k8s-ucp.io/tools/tiny\n\ngo 1.24\n\nrequire example.org/tiny v1.0.0\n\n"
        "tool example.org/tiny/cmd/tiny\n"
    )
    (folder / "go.sum").write_text(go_sum(SOURCES))
    return folder.parent


def go_sum(files: Mapping[str, str]) -> str:
    """go.sum for the served module: Go's `h1` hashes of the archive and of its go.mod."""
    import base64

    def h1(named: Mapping[str, str]) -> str:
        lines = "".join(
            f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n"
            for name, text in sorted(named.items())
        )
        return "h1:" + base64.b64encode(hashlib.sha256(lines.encode()).digest()).decode()

    whole = {f"example.org/tiny@v1.0.0/{name}": text for name, text in files.items()}
    return (
        f"example.org/tiny v1.0.0 {h1(whole)}\n"
        f"example.org/tiny v1.0.0/go.mod {h1({'go.mod': files['go.mod']})}\n"
    )


@pytest.fixture(autouse=True)
def nothing_left_running(tmp_path: Path) -> Iterator[None]:
    """Check that no compiler outlives a test."""
    yield
    left = process.working_in(tmp_path)
    for each in left:
        process.terminate(each, grace=1)
    assert left == []
