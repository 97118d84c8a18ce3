"""How git is called: its settings, its environment, and how it gets a credential. Pure.

The user's own settings (proxy, credential helpers, SSH, identity) stay in force; in repositories
that ucp created, only those do (settings.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from k8s_ucp.git.objects import Author, CommitIdentity

# Git sets these for its hooks. If inherited, ucp's git would work in the wrong repository.
_REPOSITORY_VARIABLES = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"),
    *("GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE"),
    *("GIT_NO_REPLACE_OBJECTS", "GIT_INTERNAL_SUPER_PREFIX", "GIT_CONFIG_PARAMETERS"),
    *("GIT_IMPLICIT_WORK_TREE", "GIT_ATTR_SOURCE", "GIT_TEMPLATE_DIR"),
    # These change what paths in a git call mean.
    *("GIT_LITERAL_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_GLOB_PATHSPECS"),
    "GIT_NOGLOB_PATHSPECS",
)
_FORMAT = {"GIT_DEFAULT_HASH": "sha1", "GIT_DEFAULT_REF_FORMAT": "files"}
"""Format of new repositories, whatever the caller's settings: Argo CD can read no other."""
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    # Background maintenance would outlive the command that started it.
    "gc.autoDetach=false",
    "maintenance.autoDetach=false",
    "clone.defaultRemoteName=origin",
)
_OWN_SETTINGS = ("core.attributesFile=/dev/null", "core.excludesFile=/dev/null")
"""Files in the user's home directory that git reads by default."""
_LOCAL_VARIABLES = ("GIT_CONFIG_COUNT", "GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL_FROM_USER")
"""Settings from the caller's environment that a local repository doesn't need."""
_SECRET = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIAL|(ACCESS|API|PRIVATE|ACCOUNT|AGE)_KEY|KUBECONFIG",
    re.I,
)
"""Names of environment variables that a local repository and its hooks don't need."""
# The helper prints variables of its environment, so that argv contains only their names. It answers
# only for the intended remote, because a redirect or a submodule can point to any host.
_HELPER = (
    '!f() { test "$1" = get || return 0; p=; h=;'
    " while IFS== read -r k v; do case $k in protocol) p=$v ;; host) h=$v ;; esac; done;"
    ' case "$UCP_GIT_FOR" in "$p://$h" | "http://$h") ;; *) return 0 ;; esac;'
    " case $p in https | http) ;; *) return 0 ;; esac;"
    ' printf "username=%s\\npassword=%s\\n" "$UCP_GIT_USERNAME" "$UCP_GIT_PASSWORD"; }; f'
)


FALLBACK = Author("ucp", "ucp@localhost")
ANY_USER = "x-access-token"
"""User name that forges accept together with a token."""


@dataclass(frozen=True)
class Credential:
    """A user name and a password or token for an http(s) remote."""

    username: str
    password: str = field(repr=False)
    source: str = field(default="", compare=False)
    """The file or variable that it is from, for messages."""


@dataclass(frozen=True)
class Call:
    """argv, and the variables to add to the environment."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)


def git_call(
    arguments: Sequence[str],
    *,
    folder: Path | None,
    credential: Credential | None,
    bare: bool = False,
    remote: str = "",
    written: str = "",
    own: Path | None = None,
    local: bool = False,
    ssh_command: str = "",
    inherited: Mapping[str, str] = os.environ,
) -> Call:
    """A git call in `folder`, without prompts and hooks, with messages in English.

    bare: the folder itself is a bare repository; users can have git refuse to work in one that it
    only finds (safe.bareRepository). remote: the address that the credential is for. written: that
    address as the repository's settings contain it, if it includes another credential. own:
    settings file to use instead of the user's. local: the remote is on this machine. ssh_command:
    to use instead of the user's.
    """
    settings = list(_SETTINGS)
    environment = {"GIT_TERMINAL_PROMPT": "0", "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
    environment |= _FORMAT
    if ssh_command:
        environment["GIT_SSH_COMMAND"] = ssh_command
    if credential:
        settings += ["credential.helper=", f"credential.helper={_HELPER}"]
        environment["UCP_GIT_USERNAME"] = credential.username
        environment["UCP_GIT_PASSWORD"] = credential.password
        site = environment["UCP_GIT_FOR"] = _site(remote)
        if site.startswith(("http://", "https://")):
            # A CI job's own header would be sent first, and git would never ask the helper.
            settings.append(f"http.{site}/.extraheader=")
        if written:
            environment |= _led_to(split_credential(remote)[0], written, inherited)
    dropped = list(_REPOSITORY_VARIABLES)
    if own:
        settings += _OWN_SETTINGS
        environment |= {"GIT_CONFIG_GLOBAL": str(own), "GIT_CONFIG_NOSYSTEM": "1"}
        environment["GIT_ATTR_NOSYSTEM"] = "1"
    if own and local:
        dropped += _LOCAL_VARIABLES
        dropped += [each for each in inherited if _SECRET.search(each) and each not in environment]
    # GitPython can add to the environment, but can't remove variables from it.
    leaked = [word for name in dropped if name in inherited for word in ("-u", name)]
    return Call(
        (
            *(["env", *leaked] if leaked else []),
            "git",
            *(["-C", str(folder)] if folder else []),
            *(["--git-dir=."] if bare else []),
            *(word for each in settings for word in ("-c", each)),
            *arguments,
        ),
        environment,
    )


def _led_to(address: str, written: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """Variables that make git use `address` wherever a remote says `written`.

    Not in argv, because `written` can contain a CI job's password.
    """
    count = inherited.get("GIT_CONFIG_COUNT") or "0"
    if not count.isdigit():
        return {}
    environment = {"GIT_CONFIG_COUNT": str(int(count) + 2)}
    for index, key in enumerate(("insteadOf", "pushInsteadOf"), int(count)):
        environment[f"GIT_CONFIG_KEY_{index}"] = f"url.{address}.{key}"
        environment[f"GIT_CONFIG_VALUE_{index}"] = written
    return environment


def _site(url: str) -> str:
    """Scheme, host and port of a URL, in the form that git passes to a credential helper."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def split_credential(url: str) -> tuple[str, Credential | None]:
    """(the URL without its password, the credential that was in it)."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or "@" not in parts.netloc:
        return url, None
    userinfo, host = parts.netloc.rsplit("@", 1)
    name, _, password = userinfo.partition(":")
    if not password:
        # Forges accept a bare token as the user name.
        name, password = ANY_USER, name
    return urlunsplit(parts._replace(netloc=host)), Credential(unquote(name), unquote(password))


def identity_of(settings: Mapping[str, str]) -> CommitIdentity:
    """Author and committer from the environment or git's settings, else `ucp <ucp@localhost>`."""

    def who(role: str) -> Author:
        name = os.environ.get(f"GIT_{role}_NAME") or settings.get("user.name")
        email = os.environ.get(f"GIT_{role}_EMAIL") or settings.get("user.email")
        return Author(name, email or FALLBACK.email) if name else FALLBACK

    return CommitIdentity(who("AUTHOR"), who("COMMITTER"))
