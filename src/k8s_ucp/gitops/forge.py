"""Pull requests, on whichever forge hosts the repository.

One pull request an app and environment: its branch has a fixed name, and a newer promotion
updates it instead of piling up another. Each forge lies in a module of its own, imported only
when it is needed; their client libraries are the optional extra `forges`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from k8s_ucp.errors import UcpError, UsageError

REQUEST_SECONDS = 30
KINDS = ("github", "gitlab", "gitea")


class ForgeFailed(UcpError):
    """A forge refused or failed a request."""


class NotReady(ForgeFailed):
    """The forge is still looking at the pull request, or does not let it be merged."""

    def __init__(self, request: PullRequest, said: str) -> None:
        super().__init__(
            f"the pull request {request.url} can't be merged now: {said}",
            next="merge it by hand, or run the same command again",
        )


@dataclass(frozen=True)
class PullRequest:
    """An open pull request. number: as people name it on that forge."""

    number: int
    url: str


@dataclass(frozen=True)
class Proposal:
    """What a pull request says: merge the branch `head`, now at `commit`, into `base`.

    title and body are also the message of the commit that the merge makes.
    """

    head: str
    base: str
    commit: str
    title: str
    body: str


class Forge(Protocol):
    """One repository on a forge. Raises ForgeFailed throughout."""

    def find(self, head: str, base: str) -> PullRequest | None:
        """The open pull request of a branch."""

    def create(self, proposal: Proposal) -> PullRequest:
        """Open one; where another process was faster, that one."""

    def update(self, request: PullRequest, proposal: Proposal) -> None:
        """Say the new proposal in an open one."""

    def merge_when_green(self, request: PullRequest, proposal: Proposal) -> bool:
        """Have it squashed into one commit once its checks are green; True: it is merged now."""


@dataclass(frozen=True)
class Site:
    """Where a repository's forge is. root: of its web pages, without a trailing slash."""

    kind: str
    root: str
    path: str
    """`owner/name`, on GitLab with all groups."""
    token: str = field(repr=False, default="")


def find_site(
    url: str, kind: str, environment: Mapping[str, str], credentials: Path | None = None
) -> Site:
    """The forge of a repository's URL, and the token for it.

    kind: "" finds it out from the host's name and the CI's variables. credentials: the folder
    with credential files. Raises UsageError naming what is missing.
    """
    root, path = _split(url)
    root = environment.get("UCP_FORGE_URL", "").rstrip("/") or root
    kind = kind or environment.get("UCP_FORGE", "") or _kind_of(root, environment)
    if kind == "forgejo":
        kind = "gitea"
    if kind not in KINDS:
        raise UsageError(
            f"which forge is {root}?", next="--forge github, --forge gitlab or --forge gitea"
        )
    return Site(kind, root, path, _token(kind, environment, credentials))


def open_forge(site: Site) -> Forge:
    """The client for a site. Raises UsageError where its library is not installed."""
    try:
        if site.kind == "github":
            from k8s_ucp.gitops.forge_github import GitHub

            return GitHub(site)
        if site.kind == "gitlab":
            from k8s_ucp.gitops.forge_gitlab import GitLab

            return GitLab(site)
    except ImportError as error:
        raise UsageError(
            f"pull requests on {site.kind} need a library that is not installed",
            next="install k8s-ucp with its extra: k8s-ucp[forges]",
        ) from error
    from k8s_ucp.gitops.forge_gitea import Gitea

    return Gitea(site)


def until_ready(
    attempt: Callable[[], bool], sleep: Callable[[float], None], *, tries: int = 20
) -> bool:
    """Ask for a merge until the forge has looked at the new commit: it takes a moment.

    attempt: raises NotReady where it is too early. Raises its last one when it stays too early.
    """
    for _ in range(tries - 1):
        with contextlib.suppress(NotReady):
            return attempt()
        sleep(0.5)
    return attempt()


def _split(url: str) -> tuple[str, str]:
    """(root of the forge's pages, path of the repository)."""
    short = re.fullmatch(r"(?:[^@/\s]+@)?([^:/\s]+):(?!//)(.+)", url)
    if short:
        root, path = f"https://{short[1]}", short[2]
    else:
        parts = urlsplit(url)
        if not parts.hostname or parts.scheme not in ("http", "https", "ssh", "git+ssh"):
            raise UsageError(
                f"{url} is on no forge, so there are no pull requests",
                next="leave --pr out, or give --repo the URL of a hosted repository",
            )
        web = parts.scheme in ("http", "https")
        port = f":{parts.port}" if web and parts.port else ""
        root, path = f"{parts.scheme if web else 'https'}://{parts.hostname}{port}", parts.path
    path = unquote(path).strip("/").removesuffix(".git")
    if path.count("/") < 1:
        raise UsageError(f"{url} names no repository on a forge", next="--repo …/OWNER/NAME")
    return root, path


def _kind_of(root: str, environment: Mapping[str, str]) -> str:
    host = (urlsplit(root).hostname or "").lower()
    actions = urlsplit(environment.get("GITHUB_SERVER_URL", "")).hostname
    if environment.get("GITEA_ACTIONS") or environment.get("FORGEJO_ACTIONS"):
        if actions == host:
            return "gitea"
    elif actions == host:
        return "github"
    if environment.get("CI_SERVER_HOST", "").lower() == host and environment.get("GITLAB_CI"):
        return "gitlab"
    for kind, pattern in (
        ("gitea", r"(^|\.)codeberg\.org$|gitea|forgejo"),
        ("gitlab", r"gitlab"),
        ("github", r"(^|\.)github\."),
    ):
        if re.search(pattern, host):
            return kind
    return ""


_TOKENS = {
    "github": ("UCP_FORGE_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    "gitlab": ("UCP_FORGE_TOKEN", "GITLAB_TOKEN"),
    "gitea": ("UCP_FORGE_TOKEN", "GITEA_TOKEN", "FORGEJO_TOKEN"),
}

TOKEN_FILE = "forge-token"  # noqa: S105 (a file's name)


def _token(kind: str, environment: Mapping[str, str], credentials: Path | None) -> str:
    for name in _TOKENS[kind]:
        if environment.get(name):
            return environment[name]
    path = credentials / TOKEN_FILE if credentials else None
    if path and path.is_file():
        if path.stat().st_mode & 0o077:
            raise UsageError(f"{path} can be read by others", next=f"chmod 600 {path}")
        return path.read_text(encoding="utf-8").strip()
    raise UsageError(
        f"pull requests on {kind} need a token",
        next=f"set {' or '.join(_TOKENS[kind])}, or write it to {path or 'creds/' + TOKEN_FILE}",
    )
