"""Building an overlay into the objects that it stands for."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.errors import CommandFailed, UcpError
from k8s_ucp.process import run

BUILD_SECONDS = 60.0


class BuildFailed(UcpError):
    """kustomize can't build a folder: the message is its own."""


def build(kustomize: Path, folder: Path, *, timeout: float = BUILD_SECONDS) -> str:
    """The objects of a folder with a kustomization, as YAML documents.

    kustomize: the program. Raises BuildFailed, ProgramMissing, DeadlineExceeded.
    """
    try:
        return run([kustomize, "build", folder], timeout=timeout)
    except CommandFailed as error:
        reason = error.output.strip().splitlines()
        raise BuildFailed(
            f"kustomize can't build {folder}: {reason[-1] if reason else 'no message'}",
            next=f"kustomize build {folder}",
        ) from error


def roots(folder: Path) -> list[Path]:
    """Every folder below (and with) this one that has a kustomization, sorted."""
    return sorted(each.parent for each in folder.rglob("kustomization.yaml"))
