"""Builds the reconciler's image from the installed code, with the user's container engine.

The tag is derived from the content, so nothing is built twice and a Deployment rolls out only if
something has changed. `make image` calls this module, too.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp import __version__
from k8s_ucp.cluster_provider import Placement, Report
from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.clusters.images import mirrored
from k8s_ucp.components.pods.image_wheels import BASE_VARIABLE, fetch_wheels
from k8s_ucp.errors import CommandFailed, UcpError
from k8s_ucp.process import RunningPrograms
from k8s_ucp.providers import offered_cores

NAME = "docker.io/k8s-ucp/reconciler"
"""Fully qualified: podman would prefix a shorter name with `localhost/`, where nodes don't look."""
BASE = "docker.io/library/python:3.13-slim-trixie"
BUILD_SECONDS = 900.0
PACKAGE = Path(__file__).resolve().parents[2]
RECIPE = Path(__file__).resolve().parent / "image"

_LEFT_OUT = ("tools/modules", "templates")
"""Parts of the package that only the user's machine needs."""


@dataclass(frozen=True)
class ReconcilerImage:
    """base: base image, with the name in the mirror if there is one."""

    base: str = BASE

    @classmethod
    def wanted(cls, mirror: str | None = None) -> ReconcilerImage:
        return cls(os.environ.get(BASE_VARIABLE) or mirrored(BASE, mirror))

    @property
    def name(self) -> str:
        return f"{NAME}:{__version__}-{_digest(self.base)}"

    def ensure(
        self, engine: ContainerEngine, report: Report, *, programs: RunningPrograms | None = None
    ) -> bool:
        """Build it unless the engine has it; returns whether it was built. Raises UcpError."""
        if engine.has_image(self.name):
            return False
        self.build(engine, self.name, report, programs=programs)
        return True

    def build(
        self,
        engine: ContainerEngine,
        tag: str,
        report: Report,
        *,
        programs: RunningPrograms | None = None,
    ) -> None:
        """Build it with the tag of the caller. Raises UcpError."""
        with tempfile.TemporaryDirectory(prefix="ucp-image-") as folder:
            context = Path(folder)
            self._pull(engine, report)
            report("its packages")
            complete = fetch_wheels(
                engine,
                self.base,
                RECIPE / "requirements.txt",
                context / "wheels",
                programs=programs,
            )
            for path in _sources():
                target = context / PACKAGE.name / path.relative_to(PACKAGE)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
            for path in RECIPE.iterdir():
                shutil.copyfile(path, context / path.name)
            report(f"building {tag}")
            arguments = ["--build-arg", f"BASE={self.base}"]
            if complete:
                arguments += ["--build-arg", "PIP_ARGS=--no-index"]
            try:
                engine.run("build", *arguments, "--tag", tag, folder, timeout=BUILD_SECONDS)
            except CommandFailed as error:
                raise UcpError(
                    f"failed to build the reconciler image on {self.base}:\n"
                    + "\n".join(error.output.strip().splitlines()[-6:]),
                    next=f"check the network, or set another base image: {BASE_VARIABLE}=IMAGE",
                ) from error

    def _pull(self, engine: ContainerEngine, report: Report) -> None:
        """Pull the base image if it is missing. Raises UcpError with alternatives."""
        if engine.has_image(self.base):
            return
        report(f"pulling {self.base}")
        try:
            engine.run("pull", self.base, timeout=BUILD_SECONDS)
        except CommandFailed as error:
            last_line = error.output.strip().splitlines()[-1:] or ["no output"]
            raise UcpError(
                f"failed to pull {self.base}, the base of the reconciler image: {last_line[0]}",
                next=(
                    f"check the network, or set {BASE_VARIABLE}=IMAGE to a local image "
                    f"with Python; with --core {' or '.join(offered_cores(Placement.HOST))} no "
                    "image is needed"
                ),
            ) from error


def _sources() -> Iterator[Path]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith(_LEFT_OUT):
            yield path


@functools.cache
def _digest(base: str) -> str:
    digest = hashlib.sha256(base.encode())
    for path in [*_sources(), *sorted(RECIPE.iterdir())]:
        digest.update(f"\0{path.relative_to(PACKAGE)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def main(arguments: list[str] | None = None) -> None:
    """Implements `make image`: build the image and print its name."""
    parser = argparse.ArgumentParser(prog="make image", description=__doc__)
    parser.add_argument("--base", help=f"default: ${BASE_VARIABLE}, or {BASE}")
    parser.add_argument("--tag", help="default: a name derived from the content")
    wanted = parser.parse_args(arguments)
    image = ReconcilerImage(wanted.base) if wanted.base else ReconcilerImage.wanted()
    tag = wanted.tag or image.name
    image.build(ContainerEngine(), tag, lambda line: print(line, file=sys.stderr))  # noqa: T201
    print(tag)  # noqa: T201


if __name__ == "__main__":
    main()
