"""Downloads Python packages for an image with this machine's pip, so its index and proxy apply."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.errors import CommandFailed, UcpError
from k8s_ucp.process import RunningPrograms, run

BASE_VARIABLE = "UCP_BASE_IMAGE"
"""Environment variable for another base image, such as one that is available locally."""
FETCH_SECONDS = 900.0

_OLDEST_GLIBC, _NEWEST_GLIBC = 5, 36
_ASK = "import platform,sys; print(*sys.version_info[:2], platform.machine())"


def fetch_wheels(
    engine: ContainerEngine,
    base: str,
    requirements: Path,
    folder: Path,
    *,
    programs: RunningPrograms | None = None,
) -> bool:
    """Download wheels of hash-locked requirements for the Python of image `base`.

    folder: target, created. Returns False if there is no pip. Raises UcpError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("pip") is None:
        return False
    try:
        answer = engine.run(
            *("run", "--rm", "--network", "none", "--entrypoint", "python3"),
            *(base, "-c", _ASK),
            timeout=FETCH_SECONDS,
        )
    except CommandFailed as error:
        raise UcpError(
            f"the base image of the reconciler image, {base}, can't be pulled or has "
            "no python3:\n" + "\n".join(error.output.strip().splitlines()[-3:]),
            next=f"check the network, or set another base image: {BASE_VARIABLE}=IMAGE",
        ) from error
    major, minor, machine = answer.split()
    try:
        run(
            [sys.executable, "-P", "-m", "pip", "download", "--quiet"]
            + ["--disable-pip-version-check", "--require-hashes", "--no-deps"]
            + ["--only-binary", ":all:"]
            + ["--python-version", f"{major}.{minor}", "--implementation", "cp"]
            + [word for each in _platforms(machine) for word in ("--platform", each)]
            + ["--dest", folder, "-r", requirements],
            timeout=FETCH_SECONDS,
            programs=programs,
        )
    except CommandFailed as error:
        raise UcpError(
            "failed to download the Python packages of the image:\n"
            + "\n".join(error.output.strip().splitlines()[-3:]),
            next=(
                "check the network and pip's configuration (pip config list), then run the "
                "command again"
            ),
        ) from error
    return True


def _platforms(machine: str) -> list[str]:
    """Platform tags of wheels that run on an image with a glibc of recent years."""
    older = [f"manylinux{each}_{machine}" for each in ("2014", "2010", "1")]
    return older + [
        f"manylinux_2_{each}_{machine}" for each in range(_NEWEST_GLIBC, _OLDEST_GLIBC - 1, -1)
    ]
