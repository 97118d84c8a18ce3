"""The door to helm: a chart as manifests, without a cluster and a person's own settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from k8s_ucp.process import Programs, passed_on, run


def template(
    helm: Path,
    words: Sequence[str | Path],
    *,
    home: Path,
    timeout: float,
    programs: Programs | None = None,
) -> str:
    """What `helm template` prints. words: its arguments. home: what it fetches stays there.

    Proxies and certificates of the caller count, credentials and plugins don't. programs: where it
    is noted while it runs. Raises CommandFailed, ProgramMissing, DeadlineExceeded.
    """
    homes = {f"HELM_{each}_HOME": str(home / each) for each in ("CACHE", "CONFIG", "DATA")}
    environment = {**passed_on(), "PATH": "/usr/bin:/bin", "HOME": str(home), **homes}
    environment.pop("XDG_CONFIG_HOME", None)
    argv = [helm, "template", *words]
    return run(argv, timeout=timeout, env=environment, programs=programs)
