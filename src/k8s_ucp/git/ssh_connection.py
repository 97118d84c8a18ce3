"""One SSH connection for several git calls to the same host, as OpenSSH can share it.

A promotion clones, pushes, and fetches again after each lost race. Without a shared connection each
of these logs in anew, which takes longer than git itself. Source: ssh_config(5), ControlMaster.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from k8s_ucp.errors import UcpError
from k8s_ucp.process import run

IDLE_SECONDS = 60
"""A connection closes by itself after that time, if the command that opened it was killed."""

_LONGEST = 40
"""Length of the folder's path: ssh appends 58 characters, and the kernel allows 104 to 108."""
_PLAIN = re.compile(r"[\w/.+-]+")
_VERBOSE = re.compile(r"\s-\w*v")
"""With -v, the process that keeps the connection also keeps stderr open, and git would not end."""
_SCP = re.compile(r"(?:(?P<user>[^@/:\s]+)@)?(?P<host>\[[^\]]+\]|[^/:\s]+):(?!//)")
_SECONDS = 5.0


class SshConnection:
    """A connection that git calls share. command: for GIT_SSH_COMMAND; "": git's own choice."""

    def __init__(self, base: str = "", folder: Path | None = None) -> None:
        """base: ssh with the user's options. folder: of the sockets, one for each host."""
        self._base, self._folder = base, folder
        self.command = ""
        if folder:
            self.command = (
                f"{base} -o ControlPath={folder}/%C -o ControlMaster=auto "
                f"-o ControlPersist={IDLE_SECONDS}"
            )

    def close(self) -> None:
        """Close it, if it is open; the next git call opens a new one."""
        for socket in self._folder.iterdir() if self._folder else ():
            # The path decides which connection is meant; ssh requires the name of a host anyway.
            _output(f"{self._base} -o ControlPath={shlex.quote(str(socket))} -O exit -- host")
            socket.unlink(missing_ok=True)


@contextmanager
def ssh_connection(url: str, configured: str) -> Iterator[SshConnection]:
    """Share one connection to the URL's host during the block.

    configured: git's setting core.sshCommand. Nothing is shared if the URL isn't one of SSH, if
    another program than OpenSSH is used, or if the user's SSH settings share connections already.
    """
    target = ssh_target(url)
    base = base_command(configured, os.environ)
    if not target or not base or _shares_already(base, target):
        yield SshConnection()
        return
    parent = tempfile.gettempdir()
    short = _PLAIN.fullmatch(parent) and len(parent) <= _LONGEST - len("/ucp-ssh-12345678")
    # Only the user can enter the new folder, wherever it is.
    parent = parent if short else "/tmp"  # noqa: S108
    folder = Path(tempfile.mkdtemp(prefix="ucp-ssh-", dir=parent))
    connection = SshConnection(base, folder)
    try:
        yield connection
    finally:
        connection.close()
        shutil.rmtree(folder, ignore_errors=True)


def ssh_target(url: str) -> tuple[str, ...]:
    """Arguments that name the host to ssh; empty if the URL isn't one of SSH."""
    if "://" in url:
        with suppress(ValueError):
            parts = urlsplit(url)
            if parts.scheme in ("ssh", "git+ssh", "ssh+git") and parts.hostname:
                host = f"{parts.username}@{parts.hostname}" if parts.username else parts.hostname
                port = ("-p", str(parts.port)) if parts.port else ()
                return (*port, "--", host)
        return ()
    found = _SCP.match(url)
    if not found:
        return ()
    user, host = found["user"], found["host"].strip("[]")
    return ("--", f"{user}@{host}" if user else host)


def base_command(configured: str, environment: Mapping[str, str]) -> str:
    """The command that git would run, if it is OpenSSH's; else "".

    Source: git-config(1), core.sshCommand and ssh.variant.
    """
    if "GIT_SSH_COMMAND" in environment:
        command = environment["GIT_SSH_COMMAND"]
    elif configured:
        command = configured
    elif environment.get("GIT_SSH") or environment.get("GIT_SSH_VARIANT", "ssh") != "ssh":
        return ""
    else:
        command = "ssh"
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    plain = words and Path(words[0]).name == "ssh" and not re.search(r"[;&|()<>#\n]", command)
    return command if plain and not _VERBOSE.search(command) else ""


def _shares_already(base: str, target: tuple[str, ...]) -> bool:
    """The user's SSH settings for the host share connections, or can't be read."""
    settings = _output(f"{base} -G {shlex.join(target)}")
    found = dict(line.split(" ", 1) for line in settings.splitlines() if " " in line)
    master, path = found.get("controlmaster", "no"), found.get("controlpath", "none")
    return not found or master not in ("no", "false") or path != "none"


def _output(command: str) -> str:
    """stdout of a command of the shell, by which git runs ssh, too; "" if it fails."""
    with suppress(UcpError):
        return run(("sh", "-c", command), timeout=_SECONDS)
    return ""
