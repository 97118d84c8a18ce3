"""A program that supervisord keeps running, and its configuration files.

supervisord's syntax for environments can't escape quotes, and its config cuts values at " ;" and "
#", so no path or value of a user is written there: each program is started by a small private shell
script, named by a path relative to supervisord's working directory.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SCRIPTS = "programs"
"""Folder of the scripts and sections, beside supervisord's config."""

LOG_BYTES = 8 * 1024 * 1024
LOG_BACKUPS = 2
STOP_SECONDS = 1
"""Time after SIGTERM until supervisord sends SIGKILL; it supports only whole seconds."""
START_RETRIES = 4
"""Failed starts until supervisord gives up: about 10 s with its increasing pauses."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Program:
    """A program to keep running.

    name: RFC 1123 label, also the name of its log. argv: the program's absolute path and its
    arguments, visible to all users, so never a secret. env: additions to the base environment;
    secrets go here. directory: its working directory. addresses: bytes of memory that it, and each
    program that it runs, can reserve.
    """

    name: str
    argv: tuple[str, ...]
    directory: Path
    env: Mapping[str, str] = field(default_factory=dict)
    stop_signal: str = "TERM"
    addresses: int | None = None

    def __post_init__(self) -> None:
        words = (*self.argv, *self.env.values(), str(self.directory))
        if not _NAME.fullmatch(self.name) or not self.argv:
            raise ValueError(f"{self.name!r} is not a valid program name")
        for name in self.env:
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"{self.name}: {name!r} is not a valid variable name")
        if any("\0" in word for word in words):
            raise ValueError(f"{self.name}: a value holds a NUL byte")


def script(program: Program) -> str:
    """The shell script that executes the program. Private: its environment may contain secrets."""
    lines = ["# Written by k8s-ucp; run by supervisord.", "umask 077"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(program.env.items())]
    lines.append(f"cd {shlex.quote(str(program.directory))} || exit 1")
    if program.addresses:
        lines.append(f"ulimit -v {program.addresses // 1024} 2>/dev/null || true")
    lines.append("exec " + " ".join(shlex.quote(word) for word in program.argv))
    return "\n".join(lines) + "\n"


def section(program: Program) -> str:
    """The program's section of supervisord's config; changes whenever the script does."""
    digest = hashlib.sha256(script(program).encode()).hexdigest()[:16]
    return f"""[program:{program.name}]
command=/bin/sh {SCRIPTS}/{program.name}.sh
environment=UCP_PROGRAM="{digest}"
autostart=true
autorestart=true
startsecs=1
startretries={START_RETRIES}
stopsignal={program.stop_signal}
stopwaitsecs={STOP_SECONDS}
stopasgroup=true
killasgroup=true
redirect_stderr=true
stdout_logfile=../logs/{program.name}.log
stdout_logfile_maxbytes={LOG_BYTES}
stdout_logfile_backups={LOG_BACKUPS}
"""


def config(socket: Path, identifier: str, sections: Mapping[str, str], *, root: bool) -> str:
    """supervisord's whole config. sections: by program name; sorted by it.

    supervisord must run in the folder of the config. root: it runs as root, which its config must
    confirm.
    """
    head = f"""; Written by k8s-ucp; `ucp start` writes it anew.
[unix_http_server]
file={_escape(str(socket))}
chmod=0600

[supervisord]
nodaemon=true
silent=true
identifier={identifier}
logfile=../logs/supervisord.log
logfile_maxbytes={LOG_BYTES}
logfile_backups={LOG_BACKUPS}
loglevel=info
pidfile=supervisord.pid
nocleanup=true
minfds=1024
minprocs=50
{"user=root" if root else ""}

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""
    return "\n".join([head, *(sections[name] for name in sorted(sections))])


def log_line(line: str) -> None:
    """Print a line for supervisord's log of this program; ignores a supervisord that died."""
    with suppress(OSError):
        sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {line}\n")
        sys.stdout.flush()


def _escape(value: str) -> str:
    """Escape %, since supervisord expands %(name)s everywhere."""
    return value.replace("%", "%%")
