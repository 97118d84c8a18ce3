"""Runs the program kind, and pulls node images."""

from __future__ import annotations

import hashlib
from pathlib import Path

from k8s_ucp import process
from k8s_ucp.cluster_provider import Report
from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.errors import CommandFailed, ProgramMissing, UcpError
from k8s_ucp.tools.toolbox import Toolbox


class KindProgram:
    """programs: with kind; None if it is not installed (each call raises ProgramMissing)."""

    def __init__(self, programs: Toolbox | None, engine: ContainerEngine) -> None:
        self._programs = programs
        self._engine = engine

    def create(
        self, name: str, image: str, config: Path, *, timeout: float, report: Report
    ) -> None:
        """Create a cluster. Raises CommandFailed, DeadlineExceeded; may leave containers then."""
        # Keeps kind out of the user's kubeconfig; the content can also be read from the node.
        kubeconfig = config.with_name("kubeconfig")
        arguments = ("create", "cluster", "--name", name, "--image", image, "--config", str(config))
        try:
            self._run(*arguments, "--kubeconfig", str(kubeconfig), timeout=timeout, report=report)
        finally:
            kubeconfig.unlink(missing_ok=True)

    def load_archive(self, name: str, path: str, *, timeout: float) -> None:
        """Load the images of an archive (`docker save`) into the nodes."""
        self._run("load", "image-archive", "--name", name, path, timeout=timeout)

    def _run(self, *arguments: str, timeout: float, report: Report | None = None) -> None:
        if self._programs is None:
            raise ProgramMissing("kind is not installed", next="ucp tools install kind")

        def on_line(line: str) -> None:
            # " • Preparing nodes 📦  ..."
            if report and line.startswith(" • "):
                report(line.encode("ascii", "ignore").decode().strip(" ."))

        process.run(
            [self._programs.path("kind"), *arguments],
            timeout=timeout,
            env=self._engine.environment(),
            on_line=on_line,
        )


def at_hand(
    engine: ContainerEngine, image: str, mirrored: str, report: Report, *, timeout: float
) -> str:
    """The name under which the engine has a node image; pulls it if it has neither.

    mirrored: its name in a mirror, or the same name. Raises UcpError with alternatives.
    """
    for each in (image, mirrored):
        if engine.has_image(each):
            return each
    report(f"pulling the node image {mirrored.partition('@')[0]}")
    try:
        engine.run("pull", mirrored, timeout=timeout)
    except CommandFailed as error:
        last_line = error.output.strip().splitlines()[-1:] or ["no output"]
        raise UcpError(
            f"failed to pull the node image {mirrored}: {last_line[0]}",
            next=(
                "check the network, or set images.nodeImage to a local image "
                f"({engine.name} images)"
            ),
        ) from error
    return mirrored


def fingerprint(archive: Path) -> str:
    """Identifies a version of an archive by size and time; hashing gigabytes would take long."""
    about = archive.stat()
    seed = f"{archive}\0{about.st_size}\0{about.st_mtime_ns}"
    return hashlib.sha256(seed.encode()).hexdigest()[:16]
