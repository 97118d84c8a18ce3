"""To which hosts the user allows credentials from outside of the workspace to be sent.

Whoever writes ucp.yaml names both the source of a credential and the host that gets it. So a file
that came with a clone could send any variable of whoever runs it to any host. The user's own git
settings say which source is for which host.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from k8s_ucp.credentials import BadCredential, CredentialRef
from k8s_ucp.errors import command_line
from k8s_ucp.git.command import LOCAL_SECONDS, execute
from k8s_ucp.gitops.promotion.ci import find_run
from k8s_ucp.loopback import is_loopback

_CREDENTIAL_SCHEMES = ("http", "https", "oci")
"""Over SSH the user's own keys are used."""


def require_allowed(
    name: str, ref: CredentialRef, workspace: Path, urls: Sequence[str], *, in_ci: bool = False
) -> None:
    """Refuse a credential for hosts that the user hasn't allowed to get it. Raises BadCredential.

    In a CI job nobody can be asked, and its variables are those that the job needs. in_ci: even so.
    """
    source = outside_source(ref, workspace)
    if source is None or (not in_ci and is_ci_job()):
        return
    for site in dict.fromkeys(filter(None, map(site_of, urls))):
        key = f"ucp.{site}.credential"
        if source not in _allowed(key):
            allow = command_line("git", "config", "--global", "--add", key, source)
            raise BadCredential(
                f"credential {name}: this workspace sends {source if ref.file else ref} to "
                f"{site}, which you have not allowed so far",
                next=f"{allow} (once, if it is meant for this host)",
            )


def outside_source(ref: CredentialRef, workspace: Path) -> str | None:
    """The source as written in the settings; None for files in the workspace.

    A symbolic link that came with the workspace may lead to any file of the user.
    """
    if ref.file is None:
        return ref.variable or ref.reference
    file = ref.file.resolve()
    return None if file.is_relative_to(workspace.resolve()) else str(file)


def site_of(url: str) -> str | None:
    """Scheme, host and port of a URL that a credential is sent to; None on this machine."""
    parts = urlsplit(url)
    if parts.scheme not in _CREDENTIAL_SCHEMES or is_loopback(parts.hostname or ""):
        return None
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"


def is_ci_job() -> bool:
    """Whether a CI system runs this command."""
    named = os.environ.get("CI", "").lower() in ("1", "true")
    return named or find_run(os.environ).sequence is not None


def _allowed(key: str) -> list[str]:
    """Sources that the user's settings name; a repository around the folder has no say."""
    arguments = ("config", "--global", "--includes", "--null", "--get-all", key)
    out, _, _ = execute(arguments, timeout=LOCAL_SECONDS)
    return out.decode("utf-8", "surrogateescape").split("\0")
