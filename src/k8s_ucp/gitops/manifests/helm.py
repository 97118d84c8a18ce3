"""The door to helm: fetches and renders charts, without a cluster or the user's settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from k8s_ucp.errors import CommandFailed, DeadlineExceeded, UcpError
from k8s_ucp.process import RunningPrograms, passed_on, run

KUBERNETES = "1.35.0"
"""What charts are told the cluster is, since nobody can ask it."""
_SHOWN = 6
"""Lines of an error."""


class HelmFailed(UcpError):
    """helm ended with an error, or not in time, in its own words: advice may follow an error."""


def template(
    helm: Path,
    words: Sequence[str | Path],
    *,
    home: Path,
    timeout: float,
    programs: RunningPrograms | None = None,
) -> str:
    """What `helm template` prints. words: its arguments; the rest as in `call`."""
    return call(helm, ["template", *words], home=home, timeout=timeout, programs=programs)


def call(
    helm: Path,
    words: Sequence[str | Path],
    *,
    home: Path,
    timeout: float,
    stdin: str | None = None,
    programs: RunningPrograms | None = None,
) -> str:
    """What helm prints. home: what it fetches and who it logs in as stays there.

    Proxies and certificates of the caller count, credentials and plugins don't. stdin: where a
    password goes. programs: where it is noted while it runs. Raises HelmFailed, ProgramMissing.
    """
    homes = {f"HELM_{each}_HOME": str(home / each) for each in ("CACHE", "CONFIG", "DATA")}
    environment = {**passed_on(), "PATH": "/usr/bin:/bin", "HOME": str(home), **homes}
    environment.pop("XDG_CONFIG_HOME", None)
    environment["TMPDIR"] = str(home)
    try:
        return run([helm, *words], timeout=timeout, env=environment, stdin=stdin, programs=programs)
    except (CommandFailed, DeadlineExceeded) as error:
        said = error.output if isinstance(error, CommandFailed) else error.message
        raise HelmFailed(own_words(said)) from error


def own_words(said: str) -> str:
    """helm's last error; where that ends in a colon, with the lines that it announces."""
    lines = [each.strip() for each in said.splitlines() if each.strip()]
    starts = [at for at, each in enumerate(lines) if each.startswith("Error: ")]
    words = [each.removeprefix("Error: ") for each in lines[starts[-1] if starts else -1 :]]
    words = words[: _SHOWN if words and words[0].endswith(":") else 1]
    return " ".join(words) or "no message"
