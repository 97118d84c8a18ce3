"""Determines a repository's forge and its token, and creates the client.

Each forge has its own module, imported only if it is needed. The client libraries are the optional
extra `forges`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from k8s_ucp.clouds import is_token
from k8s_ucp.errors import UsageError
from k8s_ucp.git.failures import redact
from k8s_ucp.gitops.forge.base import GITHUB_CLOUD, Forge, Site
from k8s_ucp.workspace.files import ExposedFile, read_private_text

KINDS = ("github", "gitlab", "gitea")


def find_site(
    url: str,
    kind: str,
    environment: Mapping[str, str],
    credentials: Path | None = None,
    allow: Callable[[Path, str], None] = lambda _file, _root: None,
) -> Site:
    """The forge of a repository's URL, and the token for it.

    kind: type of the forge; "" derives it from the host name and CI variables. credentials: the
    folder with credential files. allow: raises if the token in this file must not be sent to this
    forge. Raises UsageError if the type or the token is missing.
    """
    root, path = _split(url)
    root = environment.get("UCP_FORGE_URL", "").rstrip("/") or root
    kind = kind or environment.get("UCP_FORGE", "") or _kind_of(root, environment)
    if kind == "forgejo":
        kind = "gitea"
    if kind not in KINDS:
        raise UsageError(
            f"the type of the forge {redact(root)} is unknown",
            next="--forge github, --forge gitlab or --forge gitea",
        )
    return Site(kind, root, path, _token(kind, root, environment, credentials, allow))


def open_forge(site: Site) -> Forge:
    """Create the client for a site. Raises UsageError if its library is not installed."""
    try:
        if site.kind == "github":
            from k8s_ucp.gitops.forge.github import GitHub

            return GitHub(site)
        if site.kind == "gitlab":
            from k8s_ucp.gitops.forge.gitlab import GitLab

            return GitLab(site)
    except ImportError as error:
        raise UsageError(
            f"pull requests on {site.kind} require a library that is not installed",
            next="install k8s-ucp with the extra forges: pip install 'k8s-ucp[forges]'",
        ) from error
    from k8s_ucp.gitops.forge.gitea import Gitea

    return Gitea(site)


def _split(url: str) -> tuple[str, str]:
    """(root URL of the forge, path of the repository)."""
    short = re.fullmatch(r"(?:[^@/\s]+@)?([^:/\s]+):(?!//)(.+)", url)
    if short:
        root, path = f"https://{short[1]}", short[2]
    else:
        parts, port = _parsed(url)
        if not parts.hostname or parts.scheme not in ("http", "https", "ssh", "git+ssh"):
            raise UsageError(
                f"{redact(url)} is not hosted on a forge, so pull requests are not available",
                next="remove --pr, or set --repo to the URL of a hosted repository",
            )
        web = parts.scheme in ("http", "https")
        shown = f":{port}" if web and port else ""
        root, path = f"{parts.scheme if web else 'https'}://{parts.hostname}{shown}", parts.path
    path = unquote(path).strip("/").removesuffix(".git")
    if path.count("/") < 1:
        raise UsageError(
            f"{redact(url)} is not the URL of a repository on a forge",
            next="--repo …/OWNER/NAME",
        )
    return root, path


def _parsed(url: str) -> tuple[SplitResult, int | None]:
    """(parts of the URL, port)."""
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        # Python's message repeats the invalid port, which may be a password.
        raise UsageError(
            f"{redact(url)} is not a valid URL",
            next="check the repository's URL; a password's special characters are written as %XX",
        ) from None


def _kind_of(root: str, environment: Mapping[str, str]) -> str:
    host = _host(root)
    actions = _host(environment.get("GITHUB_SERVER_URL", ""))
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
        ("github", rf"(^|\.)github\.|^({GITHUB_CLOUD})$"),
    ):
        if re.search(pattern, host):
            return kind
    return ""


@dataclass(frozen=True)
class _Token:
    """Variables with a token, and the hosts that it is for; it is sent to no other host."""

    names: tuple[str, ...]
    public: str = ""
    """Matches the hosts of the public forge."""
    named_by: tuple[str, ...] = ()
    """Variables of CI systems and of the forges' own programs that name a host or its URL."""


_OWN_TOKEN = "UCP_FORGE_TOKEN"  # noqa: S105 (a variable's name)
"""For the forge of the repository, whichever that is."""
_TOKENS = {
    "github": (
        _Token(("GH_TOKEN", "GITHUB_TOKEN"), GITHUB_CLOUD, ("GITHUB_SERVER_URL",)),
        _Token(
            ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"),
            named_by=("GH_HOST", "GITHUB_SERVER_URL"),
        ),
    ),
    "gitlab": (_Token(("GITLAB_TOKEN",), r"gitlab\.com", ("CI_SERVER_HOST", "GITLAB_HOST")),),
    "gitea": (
        _Token(
            ("GITEA_TOKEN", "FORGEJO_TOKEN"),
            r"gitea\.com|codeberg\.org",
            ("GITHUB_SERVER_URL", "GITEA_SERVER_URL"),
        ),
    ),
}

TOKEN_FILE = "forge-token"  # noqa: S105 (a file's name)
_TOKEN_BYTES = 64 * 1024


def _token(
    kind: str,
    root: str,
    environment: Mapping[str, str],
    credentials: Path | None,
    allow: Callable[[Path, str], None],
) -> str:
    if environment.get(_OWN_TOKEN):
        return _checked(environment[_OWN_TOKEN], _OWN_TOKEN)
    host = _host(root)
    other = ""
    for token in _TOKENS[kind]:
        for name in token.names:
            if environment.get(name):
                if _is_for(token, host, environment):
                    return _checked(environment[name], name)
                other = other or name
    path = credentials / TOKEN_FILE if credentials else None
    if path and path.is_file():
        allow(path, root)
        return _from_file(path)
    if other:
        raise UsageError(
            f"{other} is not sent to {host}: nothing says that it is a token for that host",
            next=f"set {_OWN_TOKEN} to a token for {host}, or UCP_FORGE_URL to {redact(root)}",
        )
    names = (_OWN_TOKEN, *(name for token in _TOKENS[kind] for name in token.names))
    raise UsageError(
        f"pull requests on {kind} require a token",
        next=(f"set {' or '.join(names)}, or write the token to {path or 'creds/' + TOKEN_FILE}"),
    )


def _from_file(path: Path) -> str:
    """Never quotes the content, which may be another file's, by a link. Raises UsageError."""
    try:
        text = read_private_text(path, _TOKEN_BYTES)
    except ExposedFile as error:
        raise UsageError(error.message, next=error.next) from None
    except (OSError, ValueError):
        text = ""
    return _checked(text, path)


def _checked(text: str, source: object) -> str:
    """The token without a line break at its end, which client libraries report as another error."""
    token = text.strip()
    if not is_token(token):
        raise UsageError(
            f"{source} does not contain a valid token", next="write only the forge's token to it"
        )
    return token


def _is_for(token: _Token, host: str, environment: Mapping[str, str]) -> bool:
    """Whether a token is for this host: the public forge's, or one that a variable names."""
    named = (environment.get(name, "") for name in ("UCP_FORGE_URL", *token.named_by))
    known = {_host(each) for each in named if each}
    return bool(host) and (bool(re.fullmatch(token.public, host)) or host in known)


def _host(text: str) -> str:
    """The host of a URL or of HOST[:PORT]; empty if it has none."""
    try:
        return (urlsplit(text if "://" in text else f"//{text}").hostname or "").lower()
    except ValueError:
        return ""
