"""Builds images that tests need but that not every machine can pull, under their real names.

`python -m tests.kind_images` builds the missing ones; `--argocd` prints the name of Argo CD's
image, which kind_machine.sh builds.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.go.compiler import require_compiler
from k8s_ucp.tools.recipe import MODULES, linker_flags

ARGOCD = f"quay.io/argoproj/argocd:v{CATALOGUE['argocd'].version}"
CROSSPLANE = f"xpkg.crossplane.io/crossplane/crossplane:v{CATALOGUE['crossplane'].version}"
REDIS = "public.ecr.aws/docker/library/redis:8.2.3-alpine"
"""From Argo CD's install manifest."""
PYTHON = os.environ.get("UCP_BASE_IMAGE", "")
"""Base image of the reconciler's image; empty: the pinned one, which is pulled."""
ECHO = "ealen/echo-server"
TAGS = ("0.9.2", "0.9.3")
"""The tag that the topology begins with, and one to change to."""

ROLES = {
    "postgres": "postgres",
    "frontend": "nginxinc/nginx-unprivileged",
    "backend": "postgrest/postgrest",
}
"""Stand-ins for the images of the quote app: {role: image}."""
_QUOTE_BASE = "ucp-tests/debian-postgres:15-small"

_WITH_PYTHON = ("python3", "python3-pip", "ca-certificates", "libstdc++6")
"""grpc is written in C++, and no essential package depends on its library."""

_SOURCES = Path(__file__).parent / "images"
_ECHO_DOCKERFILE = """\
FROM scratch
ARG TAG
ENV TAG=$TAG PORT=80
COPY echo /echo
USER 65532
ENTRYPOINT ["/echo"]
"""
_INGRESS_DOCKERFILE = """\
FROM scratch
COPY ingress /ingress
USER 65532
ENTRYPOINT ["/ingress"]
"""
_CROSSPLANE_DOCKERFILE = """\
FROM scratch
COPY root /
ENV PATH=/bin
USER 65532
ENTRYPOINT ["/bin/crossplane"]
"""
_PASSWD = "nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"


def make_echo(engine: ContainerEngine, tag: str) -> str:
    """Build an image of the echo app that answers with its tag; return its name."""
    name = f"{ECHO}:{tag}"
    if not engine.has_image(name):
        with _folder() as folder:
            _build_program(_SOURCES / "echo", ".", folder / "echo")
            _build_image(engine, folder, name, _ECHO_DOCKERFILE, "--build-arg", f"TAG={tag}")
    return name


def make_ingress(engine: ContainerEngine) -> str:
    """Build the stand-in for an ingress controller; its name contains a hash of its code."""
    code = hashlib.sha256((_SOURCES / "ingress" / "main.go").read_bytes()).hexdigest()[:12]
    name = f"ucp-tests/ingress:{code}"
    if not engine.has_image(name):
        with _folder() as folder:
            _build_program(_SOURCES / "ingress", ".", folder / "ingress")
            _build_image(engine, folder, name, _INGRESS_DOCKERFILE)
    return name


def make_quote(engine: ContainerEngine) -> dict[str, str]:
    """Build images of Postgres and of the stand-ins for the quote app, by role."""
    source = _SOURCES / "quote"
    files = sorted(filter(Path.is_file, source.iterdir()))  # not __pycache__
    code = hashlib.sha256(b"".join(each.read_bytes() for each in files))
    names = {role: f"ucp-tests/quote-{role}:{code.hexdigest()[:12]}" for role in ROLES}
    missing = [role for role, name in names.items() if not engine.has_image(name)]
    if missing:
        make_python(engine, _QUOTE_BASE, "postgresql-15", "nginx-light")
    for role in missing:
        arguments = ("--build-arg", f"BASE={_QUOTE_BASE}", "--build-arg", f"ROLE={role}")
        engine.run("build", *arguments, "--tag", names[role], str(source), timeout=300)
    return names


def make_crossplane(engine: ContainerEngine) -> None:
    """Build Crossplane as its publisher does; the toolbox's build listens on loopback only."""
    if engine.has_image(CROSSPLANE):
        return
    tool = CATALOGUE["crossplane"]
    with _folder() as folder:
        module, root = folder / "module", folder / "root"
        shutil.copytree(MODULES / tool.name, module)
        (root / "bin").mkdir(parents=True)
        package = tool.programs["crossplane"]
        _build_program(module, package, root / "bin" / "crossplane", flags=linker_flags(tool))
        source = Path(_go("list", "-m", "-f", "{{.Dir}}", tool.module, cwd=module).strip())
        for each in ("crds", "webhookconfigurations"):
            shutil.copytree(source / "cluster" / each, root / each)
        for each in ("tmp", "home/nonroot", "etc/ssl/certs"):
            (root / each).mkdir(parents=True)
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs/")
        (root / "etc/passwd").write_text(_PASSWD)
        (root / "tmp").chmod(0o1777)
        subprocess.run(["chmod", "-R", "u+w,go+rX", root], check=True)
        _build_image(engine, folder, CROSSPLANE, _CROSSPLANE_DOCKERFILE)


def make_python(engine: ContainerEngine, name: str, *packages: str) -> None:
    """Build a small Debian image with Python; requires root. packages: additional ones."""
    if engine.has_image(name):
        return
    with _folder() as folder:
        tree = folder / "root.tar"
        command = [
            *("mmdebstrap", "--quiet", "--variant=essential"),
            f"--include={','.join((*_WITH_PYTHON, *packages))}",
            '--aptopt=APT::Install-Recommends "false"',
            '--aptopt=Acquire::Check-Valid-Until "false"',
            *(f"--dpkgopt=path-exclude=/usr/share/{each}/*" for each in ("doc", "man", "locale")),
            # Postgres uses it, where present, to compile queries; it takes 130 MB.
            "--dpkgopt=path-exclude=/usr/lib/*/libLLVM*",
            *("bookworm", str(tree)),
        ]
        subprocess.run(command, check=True, timeout=600)
        engine.run("import", str(tree), name, timeout=300)


def _build_image(
    engine: ContainerEngine, folder: Path, name: str, dockerfile: str, *arguments: str
) -> None:
    (folder / "Dockerfile").write_text(dockerfile)
    engine.run("build", *arguments, "--tag", name, str(folder), timeout=300)


def _build_program(module: Path, package: str, output: Path, *, flags: str = "-s -w") -> None:
    """Build a static program with the pinned compiler."""
    _go("build", "-trimpath", "-ldflags", flags, "-o", str(output), package, cwd=module)


def _go(*words: str, cwd: Path) -> str:
    return subprocess.run(
        [require_compiler((1, 26)).program, *words],
        cwd=cwd,
        env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""},
        check=True,
        timeout=1200,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ucp-image-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def main() -> None:
    if "--argocd" in sys.argv:
        print(ARGOCD)
        return
    engine = ContainerEngine()
    for tag in TAGS:
        make_echo(engine, tag)
    make_ingress(engine)
    make_quote(engine)
    if PYTHON:
        make_python(engine, PYTHON)
    make_crossplane(engine)


if __name__ == "__main__":
    main()
