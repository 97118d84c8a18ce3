"""Runs git: with a deadline and a limit of its output, without prompts and hooks, in English.

Credentials are passed only in the environment of the git process: never in argv, a file or an
error. environment.py defines how git is called.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from k8s_ucp.errors import DeadlineExceeded, ProgramMissing
from k8s_ucp.git.environment import Call, Credential, git_call, split_credential
from k8s_ucp.git.failures import (
    SETTINGS_ADVICE,
    Declined,
    GitFailed,
    Locked,
    Rejected,
    SettingsUnreadable,
    TooMuchOutput,
    classify,
    redact,
)
from k8s_ucp.git.settings import FILE, chosen, is_local, settings_file
from k8s_ucp.git.ssh_connection import SshConnection, ssh_connection, ssh_target
from k8s_ucp.process import find_program

LOCAL_SECONDS = 60.0
NETWORK_SECONDS = 120.0
LOCK_PAUSES = (0.1, 0.3, 1.0, 2.0)
"""Pauses in seconds between retries of a call in a repository that is locked by another git."""
MOST_BYTES = 1_000_000_000
"""Maximum output of a call. Some megabytes of others' repositories can be any number of zeros."""
MOST_NAMES = 200_000_000
"""The same for lists of files and refs, which take several times as much once they are parsed."""
MOST_MESSAGES = 50_000_000
"""The same for stderr, where a host writes what it likes: a line on each of its refs fits in."""
MOST_MEMORY = 4_000_000_000
"""Bytes of each process of a call to a host: git keeps an answer in memory, however long it is."""
_READ_BYTES = 100_000
"""The end of a failed call's messages that is searched for the cause: 4 s for each megabyte."""
_LISTS = ("ls-remote", "ls-tree")
_LOOK_SECONDS = 0.5
"""Interval of looks at the output of a running call."""

_NETWORK = ("fetch", "push", "ls-remote")
_SILENT = "check the URL and the network, then run the command again"


def is_bare(folder: Path) -> bool:
    """The folder looks like a bare repository."""
    files = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    return files and not (folder / ".git").exists()


def _action(arguments: Sequence[str]) -> str:
    """The git command, without the options before it: `push` of `-c key=value push origin`."""
    return next(word for word in arguments if not word.startswith("-") and "=" not in word)


def run_git(
    arguments: Sequence[str],
    *,
    where: str,
    folder: Path | None = None,
    stdin: bytes | None = None,
    timeout: float = LOCAL_SECONDS,
    codes: Sequence[int] = (0,),
    credential: Credential | None = None,
    connection: SshConnection | None = None,
) -> bytes:
    """Run git and return its stdout.

    where: the name of the repository in errors. codes: exit codes that count as success.
    connection: to the host; closed if the call fails and the host hasn't refused it. Raises
    GitFailed or one of its subclasses, ProgramMissing, DeadlineExceeded (git and its children are
    terminated).
    """
    action = _action(arguments)
    ssh_command = connection.command if connection else ""
    for pause in (*LOCK_PAUSES, None):
        try:
            out, errors, code = execute(
                arguments, timeout=timeout, folder=folder, stdin=stdin, credential=credential,
                ssh_command=ssh_command,
            )  # fmt: skip
        except _TooLong as error:
            if connection:
                connection.close()
            repository_name = redact(_repository_name(action, arguments, folder, where))
            raise TooMuchOutput(
                f"`git {action}` of {repository_name} returned more than "
                f"{error.most // 1_000_000} MB",
                next="delete huge files from the repository, or use another one",
            ) from error
        except DeadlineExceeded as error:
            if connection:
                connection.close()
            if action not in (*_NETWORK, "clone"):
                raise
            repository_name = redact(_repository_name(action, arguments, folder, where))
            raise DeadlineExceeded(
                f"`git {action}` of {repository_name}",
                timeout,
                "its host gave no answer",
                next=_SILENT,
            ) from error
        if code in codes:
            return out
        output = _end_of(errors)
        if action == "push":
            output = _end_of(out) + output
        repository_name = _repository_name(action, arguments, folder, where)
        secrets = [credential.password] if credential else []
        failure = classify(
            action,
            redact(repository_name),
            redact(output, secrets),
            str(folder or where),
            source=credential.source if credential else "",
        )
        # Another process, such as an editor or another command, briefly holds a lock in this clone.
        if pause is None or not isinstance(failure, Locked):
            break
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 (no secret)
    if connection and not isinstance(failure, Rejected | Declined):
        connection.close()
    raise failure


def _end_of(output: bytes) -> str:
    """From the start of a line: half a URL would not show that it contains a password."""
    end = output[-_READ_BYTES:]
    return (end if end == output else end.partition(b"\n")[2]).decode("utf-8", "replace")


def _repository_name(action: str, arguments: Sequence[str], folder: Path | None, where: str) -> str:
    """The name of the repository in an error: the remote's URL if the call goes to a remote."""
    if action in _NETWORK and folder is not None:
        remote = _remote_in(arguments)
        with contextlib.suppress(GitFailed):
            return remote_url(folder, remote) or (where if remote == "origin" else remote)
    return where


def remote_url(folder: Path, remote: str) -> str:
    """The URL of a remote; "" if it isn't configured. Raises GitFailed."""
    arguments = ("config", "--get", f"remote.{remote}.url")
    return run_git(arguments, where=str(folder), folder=folder, codes=(0, 1)).decode().strip()


def execute(
    arguments: Sequence[str],
    *,
    timeout: float,
    folder: Path | None = None,
    stdin: bytes | None = None,
    credential: Credential | None = None,
    ssh_command: str = "",
) -> tuple[bytes, bytes, int]:
    """Run git until it exits: (stdout, stderr, exit code), whatever the exit code is.

    Raises ProgramMissing.
    """
    if find_program("git") is None:
        raise ProgramMissing("git is not installed", next="install git")
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    own = _own_settings(folder) if folder else None
    remote, written = _remote(folder, arguments) if credential else ("", "")
    call = git_call(
        arguments,
        folder=folder,
        credential=credential,
        bare=folder is not None and is_bare(folder),
        remote=remote,
        written=written,
        own=own,
        local=own is not None and is_local(own.read_text("utf-8", "surrogateescape")),
        ssh_command=ssh_command,
    )
    return _run(call, _action(arguments), timeout=timeout, folder=folder, stdin=stdin)


def _run(
    call: Call, action: str, *, timeout: float, folder: Path | None, stdin: bytes | None = None
) -> tuple[bytes, bytes, int]:
    try:
        from git.cmd import Git
    except ImportError as error:
        # The import runs `git version`, which fails with this message if git can't read its
        # configuration.
        reason = re.search(r"(?:fatal|error): [^\n']+", str(error))
        message = f"failed to run git: {reason[0] if reason else error}"
        raise SettingsUnreadable(message, next=SETTINGS_ADVICE) from error
    limit = _limit() if action in (*_NETWORK, "clone") else []
    # GitPython kills the process when the wrapper is garbage-collected, so keep a reference to it.
    wrapper = Git().execute(
        [*limit, *call.argv],
        istream=subprocess.PIPE if stdin is not None else None,
        as_process=True,
        env=call.environment,
        start_new_session=True,
    )
    running = wrapper.proc
    assert running is not None
    try:
        out, errors = _communicate(
            running, stdin, timeout, MOST_NAMES if action in _LISTS else MOST_BYTES
        )
    except BaseException as error:
        _end(running)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        raise DeadlineExceeded(f"`git {action}` in {folder}", timeout, "it timed out") from None
    return out, errors, running.returncode


def _limit() -> list[str]:
    """Words before a command that limit its memory, and that of its children.

    The limit must be set before git runs, which starts its helper for HTTP at once. Python's
    `preexec_fn` could do it too, but makes a copy of the whole process for each call.
    """
    kibibytes = str(MOST_MEMORY // 1024)
    return ["/bin/sh", "-c", 'ulimit -d "$0" 2>/dev/null; exec "$@"', kibibytes]


class _TooLong(Exception):
    def __init__(self, most: int) -> None:
        self.most = most


def _communicate(
    running: subprocess.Popen[bytes], stdin: bytes | None, timeout: float, most: int
) -> tuple[bytes, bytes]:
    """The output, as of Popen.communicate. Raises TimeoutExpired, and _TooLong while it is read."""
    until = time.monotonic() + timeout
    if stdin is not None:
        _write_input(running, stdin)
    while True:
        left = until - time.monotonic()
        try:
            out, errors = running.communicate(timeout=min(left, _LOOK_SECONDS))
        except subprocess.TimeoutExpired as expired:
            if len(expired.output or b"") > most:
                raise _TooLong(most) from None
            if len(expired.stderr or b"") > MOST_MESSAGES:
                raise _TooLong(MOST_MESSAGES) from None
            if left <= _LOOK_SECONDS:
                raise
            continue
        if len(out) > most:
            raise _TooLong(most)
        return out, errors


def _write_input(running: subprocess.Popen[bytes], content: bytes) -> None:
    """Write it in the background: `communicate` drops what is left of it after a timeout."""
    stream, running.stdin = running.stdin, None
    assert stream is not None

    def write() -> None:
        with contextlib.suppress(OSError), stream:  # git may end without reading it.
            stream.write(content)

    threading.Thread(target=write, name="git-input", daemon=True).start()


def keep_settings(folder: Path, *, local: bool) -> None:
    """Restrict a repository that ucp created to a copy of some of the user's git settings.

    local: its remote is on this machine. Raises SettingsUnreadable if git can't read its
    configuration.
    """
    git_folder = folder / ".git" if (folder / ".git").is_dir() else folder
    file = git_folder / FILE
    arguments = ("config", "--null", "--list", "--show-scope")
    call = git_call(arguments, folder=git_folder, credential=None)
    out, errors, code = _run(call, "config", timeout=LOCAL_SECONDS, folder=folder)
    if code != 0:
        output = errors.decode("utf-8", "replace").strip()
        raise SettingsUnreadable(
            f"git failed to read your configuration: {output}", next=SETTINGS_ADVICE
        )
    text = chosen(out, local=local)
    kept = file.is_file() and not file.stat().st_mode & 0o077 and os.access(file, os.R_OK)
    if kept and file.read_text("utf-8", "surrogateescape") == text:
        return
    temporary = file.with_name(f".{FILE}.{uuid.uuid4().hex}")
    # Readable by the user only: URLs, headers and helpers may contain tokens.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text)
    temporary.replace(file)


def _own_settings(folder: Path) -> Path | None:
    file = settings_file(folder)
    if file is not None and not os.access(file, os.R_OK):
        return None  # Another user's repository: git itself explains why it refuses to work in it.
    if file is not None:
        with contextlib.suppress(OSError):
            _renew(folder, file, os.environ.get("HOME"), os.environ.get("GIT_CONFIG_GLOBAL"))
    return file


@functools.cache
def _renew(folder: Path, file: Path, *_: str | None) -> None:
    """Update the copy of the settings once per process, since the user may have changed them."""
    keep_settings(folder, local=is_local(file.read_text("utf-8", "surrogateescape")))


def _remote_in(arguments: Sequence[str]) -> str:
    """The name of the remote that a call uses."""
    if arguments[0] not in _NETWORK:
        return "origin"
    return next((each for each in arguments[1:] if not each.startswith("-")), "origin")


def _remote(folder: Path | None, arguments: Sequence[str]) -> tuple[str, str]:
    """The URL that a call uses, after the user's insteadOf settings: (URL, URL as configured).

    The second one is "" unless the first one contains a credential.
    """
    if folder is None:
        if arguments[0] != "clone":
            return next((each for each in arguments if "://" in each), ""), ""
        typed = arguments[arguments.index("--") + 1]
        address = used_address(typed)
        # With a credential in the configured URL, git would never ask the helper for another one.
        return address, "" if split_credential(address)[0] == address else typed
    named = [each for each in arguments if "://" in each and not each.startswith("-")]
    if named:
        return named[0], ""
    name, pushes = _remote_in(arguments), arguments[0] == "push"

    def ask(*arguments: str) -> str:
        call = git_call(
            arguments,
            folder=folder,
            credential=None,
            bare=folder is not None and is_bare(folder),
            own=settings_file(folder),
        )
        out, _, _ = _run(call, arguments[0], timeout=LOCAL_SECONDS, folder=folder)
        return out.decode("utf-8", "replace").partition("\n")[0].strip()

    address = ask("remote", "get-url", "--push", name) if pushes else ""
    address = address or ask("ls-remote", "--get-url", name)
    if split_credential(address)[0] == address:
        return address, ""
    written = ask("config", "--get-all", f"remote.{name}.pushurl") if pushes else ""
    return address, written or ask("config", "--get-all", f"remote.{name}.url")


def used_address(url: str) -> str:
    """The URL that git uses for `url`, which the user's settings (insteadOf) may rewrite.

    The settings of a repository around the current folder don't apply, as they don't in a clone.
    Raises ProgramMissing.
    """
    arguments = ("--git-dir=/dev/null", "ls-remote", "--get-url", "--", url)
    out, _, code = execute(arguments, timeout=LOCAL_SECONDS)
    return out.decode("utf-8", "replace").strip() if code == 0 else url


@contextlib.contextmanager
def shared_connection(url: str, folder: Path | None = None) -> Iterator[SshConnection]:
    """Let several calls to the URL's host share one connection, if it is reached over SSH.

    folder: of the repository whose settings apply; None: only the user's. Raises ProgramMissing.
    """
    address = used_address(url)
    if not ssh_target(address):
        yield SshConnection()
        return
    arguments = ("config", "--get", "core.sshCommand")
    out, _, _ = execute(arguments, timeout=LOCAL_SECONDS, folder=folder)
    with ssh_connection(address, out.decode("utf-8", "replace").strip()) as connection:
        yield connection


def _end(running: subprocess.Popen[bytes]) -> None:
    """Terminate git and its children. SIGTERM first: killed, git leaves locks, also in remotes."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.communicate(timeout=3)
            return
