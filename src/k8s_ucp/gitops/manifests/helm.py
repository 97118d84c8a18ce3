"""The door to helm: fetches and renders charts, without a cluster or the user's settings."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path

from k8s_ucp.errors import CommandFailed, DeadlineExceeded, UcpError
from k8s_ucp.process import RunningPrograms, passed_on, run

KUBERNETES = "1.35.0"
"""Kubernetes version for which charts are rendered, since no cluster is queried."""
_KINDS = Path(__file__).parents[1] / "check" / "kinds.json"
_SHOWN = 6
"""Maximum number of lines of an error."""
_LONGEST = 2000
"""Maximum number of characters: a template that includes itself is named a thousand times."""
MEMORY = 1_000_000_000
"""Bytes; a template can ask for any number of them. Large charts take a fifth of this."""
OUTPUT = 64_000_000
"""Characters; what a template prints can be of any length, too."""


class HelmFailed(UcpError):
    """Helm failed or timed out. The message is helm's own; the caller may add advice."""


def template(
    helm: Path,
    release: str,
    chart: str | Path,
    options: Sequence[str | Path] = (),
    *,
    home: Path,
    timeout: float,
) -> str:
    """The output of `helm template`. release: its name. options: of helm; the others as in `call`.

    The names may come from others' repositories, and one option of helm runs a program.
    """
    arguments = ["template", "--kube-version", KUBERNETES, *options]
    names = (release, chart)
    return call(helm, arguments, names, home=home, timeout=timeout)


@functools.cache
def api_versions() -> list[str]:
    """The option with Kubernetes' own kinds, by which some charts choose a version of an API.

    helm knows the versions alone; Argo CD also lists the kinds of the cluster.
    """
    return ["--api-versions", ",".join(json.loads(_KINDS.read_text("utf-8"))["kinds"])]


def values_from(file: Path) -> list[str]:
    """The option for a file with values. helm splits it at commas, unless they are quoted."""
    quoted = str(file).replace('"', '""')
    return ["--values", f'"{quoted}"']


def call(
    helm: Path,
    arguments: Sequence[str | Path],
    names: Sequence[str | Path] = (),
    *,
    home: Path,
    timeout: float,
    stdin: str | None = None,
    programs: RunningPrograms | None = None,
) -> str:
    """Run helm and return its output. home: folder for its cache and its logins.

    arguments: the command and its options. names: what it works on, never interpreted as options.
    The caller's proxy and CA settings apply, its credentials and plugins don't. stdin: for a
    password. programs: tracks the process while it runs. Raises HelmFailed, ProgramMissing.
    """
    homes = {f"HELM_{each}_HOME": str(home / each) for each in ("CACHE", "CONFIG", "DATA")}
    environment = {**passed_on(), "PATH": "/usr/bin:/bin", "HOME": str(home), **homes}
    environment.pop("XDG_CONFIG_HOME", None)
    environment["TMPDIR"] = str(home)
    # It ends after a moment, so collecting garbage half as often takes a tenth less CPU time.
    environment["GOGC"] = "200"
    try:
        argv = [helm, *arguments, *(["--", *names] if names else [])]
        return run(
            argv,
            timeout=timeout,
            env=environment,
            stdin=stdin,
            programs=programs,
            memory=MEMORY,
            output=OUTPUT,
        )
    except (CommandFailed, DeadlineExceeded) as error:
        output = error.output if isinstance(error, CommandFailed) else error.message
        raise HelmFailed(own_words(output)) from error


def own_words(output: str) -> str:
    """Helm's last error message; if it ends in a colon, with the lines that follow.

    The middle of a very long one is left out.
    """
    lines = [each.strip() for each in output.splitlines() if each.strip()]
    starts = [at for at, each in enumerate(lines) if each.startswith("Error: ")]
    words = [each.removeprefix("Error: ") for each in lines[starts[-1] if starts else -1 :]]
    words = words[: _SHOWN if words and words[0].endswith(":") else 1]
    said = " ".join(words) or "no message"
    if len(said) <= _LONGEST:
        return said
    return f"{said[: _LONGEST // 2]} … {said[-_LONGEST // 2 :]}"
