"""A real registry on plain HTTP: crane, built from its pinned Go module into the user's cache."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.tools.go.compiler import require_compiler
from k8s_ucp.tools.recipe import needed_compiler
from tests.built_once import built_once

MODULE = Path(__file__).parent / "images" / "registry"
PACKAGE = "github.com/google/go-containerregistry/cmd/crane"

_PORT = re.compile(r"serving on port (\d+)$", re.M)
_ASKED = re.compile(r"^\S+ \S+ (?:GET|HEAD) /v2/(\S+)/manifests/([^\s:?]+)(?:\?\S*)?$", re.M)
"""Log line of a manifest that was requested by its tag and found: otherwise a status follows."""


def build(cache: Path) -> Path:
    """Return the program from the cache; a missing one is built within half a minute."""
    compiler = require_compiler(needed_compiler(MODULE))
    seed = compiler.version.encode() + b"".join(
        (MODULE / name).read_bytes() for name in ("go.mod", "go.sum")
    )

    def make(partial: Path) -> None:
        done = subprocess.run(
            [
                compiler.program,
                "build",
                "-trimpath",
                "-ldflags=-s -w",
                "-o",
                partial / "crane",
                PACKAGE,
            ],
            cwd=MODULE,
            env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]

    return built_once(cache, "registry", seed, make) / "crane"


@dataclass(frozen=True)
class Registry:
    """A running registry. address: its host and port."""

    crane: Path
    address: str
    log: Path

    def push(self, engine: ContainerEngine, image: str, path: str) -> None:
        """Push an image of the engine to it. path: without the registry, with a tag."""
        archive = self.log.with_name("image.tar")
        engine.run("save", "--output", str(archive), image, timeout=300)
        done = subprocess.run(
            [self.crane, "push", "--insecure", archive, f"{self.address}/{path}"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        archive.unlink()
        assert done.returncode == 0, done.stderr[-2000:]

    def seen(self) -> int:
        """Current size of its log in bytes."""
        return self.log.stat().st_size

    def asked_for(self, *, since: int) -> set[str]:
        """Paths with tags of the images that were pulled. since: an earlier result of `seen`."""
        text = self.log.read_bytes()[since:].decode()
        return {f"{path}:{tag}" for path, tag in _ASKED.findall(text)}


@contextlib.contextmanager
def running(crane: Path, folder: Path, host: str) -> Iterator[Registry]:
    """Run an empty registry that keeps everything in memory, until the end of the block.

    folder: for its log. host: address of this machine to listen on.
    """
    log = folder / "registry.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(
            [crane, "registry", "serve", "--address", f"{host}:0"],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )
    try:
        yield Registry(crane, f"{host}:{_port(server, log)}", log)
    finally:
        server.kill()
        server.wait()


def _port(server: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if found := _PORT.search(log.read_text()):
            return int(found[1])
        assert server.poll() is None, log.read_text()
        time.sleep(0.05)
    raise AssertionError(f"the registry tells no port: {log.read_text()}")
