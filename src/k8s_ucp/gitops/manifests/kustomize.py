"""The door to kustomize: builds an overlay into its objects.

The input is untrusted, and kustomize passes parts of it to git. So it gets a minimal environment,
and instead of git a script that allows only the few calls that kustomize makes: no URL or revision
can be interpreted as an option, and git uses only the transports listed here. kustomize's own
downloads use https only.
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import tempfile
from collections.abc import Collection
from pathlib import Path

from k8s_ucp.errors import CommandFailed, UcpError
from k8s_ucp.git.failures import redact, relevant_lines
from k8s_ucp.gitops.manifests.sources import (
    by_http,
    find_refused,
    find_repeated_key,
    http_repositories,
)
from k8s_ucp.process import (
    RunningPrograms,
    find_program,
    passed_on,
    run,
    terminate_all,
    working_in,
)

BUILD_SECONDS = 60.0
_TRANSPORTS = ("https", "ssh")
_KNOWN = {*_TRANSPORTS, "file", "git", "http"}
"""Transports that `also` may add: those that can't start arbitrary programs."""
_FOR_GIT = ("GIT_SSL_CAINFO", "GIT_SSH_COMMAND")
"""Settings for reaching a host that only git has; no other git variables are passed on."""
NO_HTTP = {"REQUEST_METHOD": "GET", "HTTP_PROXY": "http://127.0.0.1:1"}
"""With both set, Go refuses requests over plain http (golang.org/s/cgihttpproxy).

That includes loopback addresses, for which it would use no proxy, and redirects from https.
"""
_RECURSED = re.compile(
    r".*': (?:recursed accumulation of|couldn't make target for) path '(?P<folder>[^'\n]*)': "
)
_MISSING = re.compile(
    r"evalsymlink failure on '([^'\n]+)' : (?:lstat [^:\n]+: )?no such file or directory"
)
_REPEATED = " already defined at line "
_UNTYPED = re.compile(r"missing kind in object .*")
_BY_HTTP = re.compile(r'Get "(http://[^"]*)": refusing to use HTTP_PROXY')
COLLECTING = {"GOGC": "800", "GOMEMLIMIT": "1GiB"}
"""It ends after a moment, so collecting garbage rarely takes a fifth less CPU time.

A hundred overlays at once take 50 MB more; from 1 GiB on, garbage is collected as it appears.
"""
MEMORY = 4_000_000_000
"""Bytes; aliases in a remote base, which can't be checked before, ask for any number of them."""
OUTPUT = 64_000_000
"""Characters."""
_OUTSIDE = re.compile(
    r"security; file '(?P<file>[^'\n]+)' is not in or below '(?P<folder>[^'\n]+)'"
)
_GIT = """#!/bin/sh
# The git that kustomize finds on PATH. It allows only the calls that kustomize makes.
PATH={path}
GIT_ALLOW_PROTOCOL={transports}
GIT_TERMINAL_PROMPT=0
SSH_ASKPASS_REQUIRE=never
# A URL can set any timeout for kustomize: give up on a host that sends almost nothing.
GIT_HTTP_LOW_SPEED_LIMIT=1000
GIT_HTTP_LOW_SPEED_TIME=20
export PATH GIT_ALLOW_PROTOCOL GIT_TERMINAL_PROMPT SSH_ASKPASS_REQUIRE
export GIT_HTTP_LOW_SPEED_LIMIT GIT_HTTP_LOW_SPEED_TIME
unset {unset}
what="git $*"

failed() {{ # CODE: logs the message on stdin for the user and passes it to kustomize.
  {{ echo "$what"; cat; }} | tee -a {log} >&2
  exit "$1"
}}

plain() {{ # WORD: fails if git would read it as an option, or for http that ucp.yaml doesn't name.
  case $1 in
    '' | -*) echo "fatal: refused: '$1' is not a valid URL or revision" | failed 128 ;;
    {named}) ;;
    [Hh][Tt][Tt][Pp]:*) echo "fatal: refused: '$1' is plain http: use https or ssh" | failed 128 ;;
  esac
}}

test -n {git} || echo 'fatal: git is not installed' | failed 127
case "$#:$*" in
  1:init) set -- init --quiet --template= ;;
  "4:remote add origin "*) plain "$4" && set -- remote add -- origin "$4" ;;
  "4:fetch --depth=1 "*) plain "$3" && plain "$4" && set -- fetch --depth=1 -- "$3" "$4" ;;
  "2:checkout FETCH_HEAD") ;;
  # The URLs come from the fetched repository.
  "4:submodule update --init --recursive") GIT_ALLOW_PROTOCOL={submodules} ;;
  *) echo 'fatal: refused: not a call that kustomize makes' | failed 128 ;;
esac || exit 128
said=$({git} -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@" 2>&1)
code=$?
test "$code" = 0 || printf '%s\\n' "$said" | failed "$code"
"""


class BuildFailed(UcpError):
    """kustomize can't build a folder. The message is kustomize's, or git's."""


class LoadsFromOutside(BuildFailed):
    """A kustomization loads a file outside its folder, which neither ucp nor Argo CD allows."""

    @classmethod
    def parse(cls, folder: Path, output: str) -> LoadsFromOutside | None:
        """Parse kustomize's output; None for any other error. folder: the one that was built."""
        found = _OUTSIDE.search(output)
        if found is None:
            return None
        file, base = found["file"], found["folder"]
        return cls(
            f"kustomize failed to build {folder}: the kustomization in {base} loads {file}, which "
            "is outside of its folder",
            next=f"copy {posixpath.basename(file)} into that folder and name it there; or add what "
            "`kustomize build --load-restrictor LoadRestrictionsNone` prints: ucp app add NAME "
            "FILE.yaml",
        )


def build(
    kustomize: Path,
    folder: Path,
    *,
    timeout: float = BUILD_SECONDS,
    also: Collection[str] = (),
    programs: RunningPrograms | None = None,
) -> str:
    """Build a folder with a kustomization: its objects as YAML documents.

    kustomize: the program. also: git transports besides https and ssh, and repository URLs that are
    allowed over plain http. programs: kustomize is added to them. Raises BuildFailed,
    ProgramMissing, DeadlineExceeded.
    """
    for path, words in find_refused(folder, also):
        raise BuildFailed(
            f"kustomize failed to build {folder}: {path}: {words}", next=f"correct {path}"
        )
    with tempfile.TemporaryDirectory(prefix="ucp-build-") as name:
        work = Path(name).resolve()
        log = work / "git.log"
        environment = _environment(work, log, also)
        try:
            return run(
                [kustomize, "build", folder],
                timeout=timeout,
                env=environment,
                memory=MEMORY,
                output=OUTPUT,
                programs=programs,
            )
        except CommandFailed as error:
            if "timeout running" in error.output:
                # kustomize doesn't kill its git after a timeout.
                terminate_all(working_in(work), grace=1)
            output = log.read_text("utf-8", "replace") if log.exists() else ""
            # In that case kustomize's last line is only `exit status`, and git's message is further
            # up.
            if outside := LoadsFromOutside.parse(folder, error.output):
                raise outside from error
            words = (
                "; ".join(relevant_lines(output))
                or _of_http(error.output)
                or _with_file(innermost(error.output), folder)
            )
            raise BuildFailed(
                f"kustomize failed to build {folder}: {redact(words) or 'no message'}",
                next=f"kustomize build {folder}",
            ) from error


def _of_http(output: str) -> str:
    found = _BY_HTTP.search(output)
    return by_http(found[1]) if found else ""


def innermost(output: str) -> str:
    """The last line of kustomize's output; for nested folders, the file that caused the error."""
    # A patch that kustomize quotes ends on the line of the message.
    line = "".join(output.strip().splitlines()[-1:]).removeprefix("`: ")
    _, _, cause = line.rpartition("accumulating resources from '")
    words = cause.partition("': must build at directory")[0].replace("': ", ": ", 1) or line
    # Not `sub`, which begins again at each character: names can have thousands.
    folders = _RECURSED.match(words)
    words = _MISSING.sub(r"\1 does not exist", words[folders.end() :] if folders else words)
    below = _RECURSED.match(line)
    if below and below["folder"] not in words:
        words = f"{below['folder']}: {words}"
    return _UNTYPED.sub("kind is missing; each item of a list needs its own", words)


def _with_file(words: str, folder: Path) -> str:
    """kustomize names the lines of a repeated key, but not the file."""
    found = find_repeated_key(folder) if _REPEATED in words else None
    return f"{found[0]}: {found[1]} is there twice" if found else words


def git_protocols(also: Collection[str]) -> str:
    """Value of GIT_ALLOW_PROTOCOL: https, ssh, and the transports that `also` names.

    Plain http is one only as part of a URL.
    """
    named = {each.partition("://")[0] for each in also if each != "http"}
    return ":".join(sorted({*_TRANSPORTS, *named} & _KNOWN))


def _environment(work: Path, log: Path, also: Collection[str]) -> dict[str, str]:
    """Environment for kustomize: clones go to `work`, and only the git script is on the PATH."""
    programs = work / "bin"
    programs.mkdir()
    script = programs / "git"
    repositories = http_repositories(also)
    script.write_text(
        _GIT.format(
            path=shlex.quote(os.environ.get("PATH", os.defpath)),
            transports=git_protocols(also),
            named=" | ".join(shlex.quote(f"{a}{b}") for a in repositories for b in ("", ".git"))
            or "''",
            unset=" ".join(NO_HTTP),
            submodules=":".join(_TRANSPORTS),
            log=shlex.quote(str(log)),
            git=shlex.quote(str(find_program("git") or "")),
        ),
        "utf-8",
    )
    script.chmod(0o700)
    clones = work / "clones"
    clones.mkdir()
    kept = {name: os.environ[name] for name in _FOR_GIT if name in os.environ}
    folders = {"PATH": str(programs), "TMPDIR": str(clones)}
    return {**passed_on(), **kept, **NO_HTTP, **COLLECTING, **folders}
