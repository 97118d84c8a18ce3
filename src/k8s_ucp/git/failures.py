"""Classifies git's error output as typed errors, and redacts credentials in it.

Pure: text in, error out. git/repository.py runs git with LC_ALL=C, so the texts are English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.redaction import USERINFO

_KEPT_LINES = 12


class GitFailed(UcpError):
    """Git failed with an error that has no class of its own."""


class Rejected(GitFailed):
    """The remote branch has moved since it was fetched: fetch, redo the change and push again."""


class Interrupted(GitFailed):
    """The connection broke, so it is unknown whether the operation took effect."""


class Declined(GitFailed):
    """The remote rejects this push by policy: a hook or a protected branch."""


class Unexplained(Declined):
    """The remote rejects this push, and its message doesn't say whether the branch has moved."""


class AuthenticationFailed(GitFailed):
    """The remote rejects the credential, or requires one and none is configured."""


class HostUnreachable(GitFailed):
    """The remote's host does not answer: DNS, network, proxy or TLS."""


class RepositoryMissing(GitFailed):
    """There is no repository at that URL, or the credential has no access to it."""


class Damaged(GitFailed):
    """Objects of a repository are corrupt or missing, as after a power failure."""


class DubiousOwnership(GitFailed):
    """Git refuses to work in a folder that belongs to another user."""


class Locked(GitFailed):
    """Another git process works in the same repository, or crashed and left its lock."""


class TooMuchOutput(GitFailed):
    """A repository has more than should be held in memory: huge files, or too many names."""


class SettingsUnreadable(GitFailed):
    """Git can't read the user's configuration and refuses every command."""


class NoSpace(GitFailed):
    """The disk is full or the folder isn't writable."""


class Unsigned(GitFailed):
    """The user's configuration requires signed commits, and signing failed."""


SETTINGS_ADVICE = "fix your git configuration: git config --list --show-origin"

_FREE = "free disk space or make the folder writable, then run the command again"
_LOCKED = "wait for the other git process; if none runs, delete the .lock file named above"
_CLASSES: tuple[tuple[type[GitFailed], str, str], ...] = (
    # First, because git then also drops the connection of a push, which looks like a network error.
    (
        NoSpace,
        r"no space left on device|out of diskspace|disk quota exceeded|read-only file system",
        _FREE,
    ),
    (
        Unsigned,
        r"failed to sign the data|user\.signingkey needs|couldn't load public key"
        r"|no (private|secret) key",
        "set up the key that git signs with (git config --global user.signingKey), or have it sign "
        "no commits: git config --global commit.gpgSign false",
    ),
    (
        DubiousOwnership,
        r"dubious ownership|unsafe repository",
        "run as the user that owns the folder, or allow it: {safe}",
    ),
    (
        AuthenticationFailed,
        r"authentication failed|could not read (username|password)|permission denied \("
        r"|terminal prompts disabled|invalid (username|credentials)|host key verification failed"
        r"|returned error: 40[13]",
        "check {credential}: it may be expired, revoked, or without write access",
    ),
    (
        TooMuchOutput,
        r"out of memory|cannot allocate memory|memory exhausted",
        "check that the URL is that of a git repository, and that some memory is free",
    ),
    # Git then also drops the connection.
    (
        Damaged,
        r"repository corruption|object file .{1,300} is empty|\(stored in .{1,300}\) is corrupt"
        r"|unable to unpack \w+ header|inflate: data stream error",
        "`git fsck --full` in that repository lists the damaged files: delete them, and copy them "
        "from a clone (cp -rn CLONE/.git/objects REPOSITORY) or from a backup",
    ),
    # Git also reports the rest of these as an URL that it can't access.
    (
        HostUnreachable,
        r"ssl certificate problem|server certificate verification failed|ssl: no alternative cert",
        "let git trust the certificate's CA: git config --global http.sslCAInfo FILE",
    ),
    (
        HostUnreachable,
        r"could not resolve|connection (refused|timed out|reset)|failed to connect"
        r"|network is unreachable|no route to host|unable to access '[a-z]+://|could not connect"
        r"|remote end hung up unexpectedly|operation timed out|early eof"
        # An answer that ends too early.
        r"|fatal: expected (flush after ref listing|'packfile')"
        # Of kustomize, which fetches single files (`openapi`, `configurations`) itself.
        r"|dial tcp\b",
        "check the URL and the network, then run the command again",
    ),
    (
        RepositoryMissing,
        r"does not appear to be a git repository|repository .{0,500}not found|not a git repository"
        r"|no such device or address|repository '.{0,500}' does not exist",
        "check the repository's URL",
    ),
    (
        RepositoryMissing,
        r"unable to update url base from redirection|not valid: is this a git repository",
        "check the repository's URL: its server answers with another page, such as a login; a "
        "private repository needs a credential",
    ),
    (
        GitFailed,
        # Git takes refs/heads/refs/heads/main for main, too, whoever has pushed that branch.
        r"dst refspec .{1,300} matches more than one",
        "delete the branch of the remote whose name begins with refs/ (git ls-remote lists it)",
    ),
    (
        Locked,
        r"\.lock': file exists|another git process seems to be running|cannot lock ref",
        _LOCKED,
    ),
    (
        SettingsUnreadable,
        r"bad (?:\w+ )?config|invalid config|bad boolean config|unable to access '[^']*config'",
        SETTINGS_ADVICE,
    ),
    (
        NoSpace,
        r"insufficient permission|unable to create (file|directory|temporary)"
        r"|(cannot mkdir|could not create|unable to write).*",
        _FREE,
    ),
)

_PUSH_REASON = re.compile(r"^!\t\S*\t\[(?:remote )?rejected\] \((.*)\)\s*$", re.MULTILINE)
"""The remote's verdict on a ref. Only this is parsed: the output of hooks can contain anything."""

_PUSH_FINAL = re.compile(
    r"hook declined|protected branch|denied|prohibited|not (?:permitted|allowed)|rule violation",
    re.IGNORECASE,
)
_PUSH_RACE = re.compile(
    r"\[rejected\]|non-fast-forward|fetch first|stale info|cannot lock ref"
    r"|incorrect old value|failed to update ref|failed to lock|atomic transaction failed",
    re.IGNORECASE,
)
_LEFT_LOCK = re.compile(r"\.lock': file exists", re.IGNORECASE)
"""Of a remote on this machine: it is no race if the push was repeated for long."""
_PUSH_DECLINED = re.compile(
    r"hook declined|protected branch|denied by|prohibited|remote rejected", re.IGNORECASE
)
# The remote host writes part of git's output: no pattern may search a line again and again.
_USERINFO = re.compile(
    rf"(?i)\b(https?://){USERINFO}|\b([a-z][a-z0-9+.-]{{0,30}}+://[^/\s:]*+):{USERINFO}"
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without credentials in URLs and without the given secrets."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return _USERINFO.sub(lambda found: found[1] or f"{found[2]}:***@", text)


def classify(
    action: str, where: str, output: str, folder: str = "", *, source: str = ""
) -> GitFailed:
    """The error for a failed git command.

    action: the git command ("fetch"); where: the repository or URL; output: redacted stdout and
    stderr. source: of the credential for an http(s) URL.
    """
    over_http = where.startswith(("http://", "https://"))
    credential = (over_http and source) or "the credential of this repository"
    tail = "\n".join(f"  {line}" for line in relevant_lines(output)[-_KEPT_LINES:])
    message = f"git {action} failed on {where}" + (f":\n{tail}" if tail else "")
    if action == "push":
        kind = _push_class(output)
        if kind is not None:
            left = kind is Rejected and _LEFT_LOCK.search(output)
            return kind(message, next=_LOCKED if left else _PUSH_ADVICE[kind])
    for kind, pattern, advice in _CLASSES:
        if re.search(pattern, output, re.IGNORECASE):
            safe = command_line("git", "config", "--global", "--add", "safe.directory", folder)
            return kind(message, next=advice.format(safe=safe, credential=credential))
    return GitFailed(message)


_READ_IT = "see the remote's message above; the commit was not pushed"
_PUSH_ADVICE: dict[type[GitFailed], str] = {
    Declined: _READ_IT,
    Unexplained: _READ_IT,
    Rejected: "run the command again: it starts from the new state of the branch",
}


def _push_class(output: str) -> type[GitFailed] | None:
    """The error class of a failed push; None if the output contains no verdict of the remote."""
    reasons = "\n".join(_PUSH_REASON.findall(output))
    if reasons:
        if _PUSH_FINAL.search(reasons):
            return Declined
        return Rejected if _PUSH_RACE.search(reasons) else Unexplained
    if _PUSH_RACE.search(output):
        return Rejected
    return Declined if _PUSH_DECLINED.search(output) else None


def relevant_lines(output: str) -> Sequence[str]:
    """Lines of the output without progress and without hints about git's settings."""
    lines = (line.strip() for line in output.replace("\r", "\n").splitlines())
    return [line for line in lines if line and not line.startswith("hint:")]
