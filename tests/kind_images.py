"""Images that tests need and that can't be pulled everywhere: made here, under the real names."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.tools.compiler import require_compiler

ECHO = "ealen/echo-server"
TAGS = ("0.9.2", "0.9.3")
"""The tag that the topology begins with, and another one to change to."""
_SOURCES = Path(__file__).parent / "images"
_DOCKERFILE = """\
FROM scratch
ARG TAG
ENV TAG=$TAG PORT=80
COPY echo /echo
USER 65532
ENTRYPOINT ["/echo"]
"""


def make_echo(engine: ContainerEngine, tag: str) -> str:
    """An image of the echo app that answers with its tag; its name. Does nothing where it is."""
    name = f"{ECHO}:{tag}"
    if engine.has_image(name):
        return name
    folder = Path(tempfile.mkdtemp(prefix="ucp-image-"))
    try:
        build_program(_SOURCES / "echo", folder / "echo")
        (folder / "Dockerfile").write_text(_DOCKERFILE)
        arguments = ("--build-arg", f"TAG={tag}", "--tag", name)
        engine.run("build", *arguments, str(folder), timeout=120)
    finally:
        shutil.rmtree(folder)
    return name


def build_program(module: Path, output: Path) -> None:
    """A static program out of a Go module without dependencies, by the pinned compiler."""
    compiler = require_compiler((1, 26))
    subprocess.run(
        [compiler.program, "build", "-trimpath", "-ldflags", "-s -w", "-o", output, "."],
        cwd=module,
        env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""},
        check=True,
        timeout=300,
    )
