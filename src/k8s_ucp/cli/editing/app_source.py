"""The SOURCE of `ucp app add` as the flags that say the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs

from k8s_ucp.errors import UsageError

SSH = re.compile(r"[\w.-]+@[\w.-]+:.+")
"""An address of git in the short form of scp."""
_BROWSED = re.compile(
    r"(https?://[^/]+/(?:[^/]+/[^/]+|.+?(?=/-/)))(?:/-)?/(?:tree|blob|raw)/"
    r"(?:refs/(?:heads|tags)/)?([^/]+)(?:/(.+?))?/?"
)
"""A folder or a file as the web pages of GitHub and GitLab name it."""
_RAW = re.compile(
    r"https://raw\.githubusercontent\.com/([^/]+/[^/]+)/(?:refs/(?:heads|tags)/)?([^/]+)/(.+)"
)
"""A file as GitHub serves it."""
_MANIFEST = re.compile(r"https?://.+\.(?:ya?ml|json)")
_WITH = {"repo": {"path", "revision", "chart", "version"}, "chart": {"version"}}
"""Flags that say more about such a source."""


def with_source(app: str, source: str, given: Mapping[str, str | None]) -> dict[str, str | None]:
    """The flags of both. given: by name, None where it isn't. Raises UsageError."""
    found = flags_of(app, source)
    more = set().union(*(_WITH.get(each, set()) for each in found)) - found.keys()
    for flag, value in given.items():
        if value is not None and flag not in more:
            raise UsageError(
                f"{source} and --{flag} {value} contradict each other",
                next=f"leave out --{flag}, or {source}",
            )
    return {**given, **found}


def flags_of(app: str, source: str) -> dict[str, str]:
    """A folder, file, git repository, chart of an OCI registry or image, by names of flags.

    Of a repository also path and revision where its URL names them, as web pages do
    (`…/tree/REF/DIR`) or kustomize does (`REPO//DIR?ref=REF`). Raises UsageError.
    """
    from k8s_ucp.gitops.manifests.own import split_image

    if source.startswith("oci://"):
        name, version = split_image(source.removeprefix("oci://"))
        return {"chart": f"oci://{name}"} | ({"version": version} if version else {})
    if Path(source).expanduser().exists():
        return {"path": _folder_of(source)}
    if "://" in source or SSH.fullmatch(source):
        return _repository(app, source)
    image, tag = split_image(source)
    if tag and not source.startswith((".", "/", "~")):
        return {"image": image, "tag": tag}
    raise UsageError(
        f"{source} is not a folder, a file, the URL of a repository or an image with a tag",
        next=f"ucp app add {app} DIR (or FILE, URL, oci://…/CHART, IMAGE:TAG)",
    )


def _repository(app: str, url: str) -> dict[str, str]:
    address, _, query = url.partition("?")
    if found := _BROWSED.fullmatch(address):
        return {"repo": found[1], "revision": found[2]} | (
            {"path": _folder_of(found[3])} if found[3] else {}
        )
    if found := _RAW.fullmatch(address):
        repository = f"https://github.com/{found[1]}"
        return {"repo": repository, "revision": found[2], "path": _folder_of(found[3])}
    if _MANIFEST.fullmatch(address):
        raise UsageError(
            f"{url} is a file, and no commit of a repository",
            next=f"download it: curl -fLO '{url}' && ucp app add {app} "
            f"{address.rpartition('/')[2]}",
        )
    scheme, mark, place = address.rpartition("://")
    repository, _, folder = place.partition("//")
    revision = parse_qs(query).get("ref", [""])[-1]
    found_there = {"repo": f"{scheme}{mark}{repository}", "path": folder, "revision": revision}
    return {flag: value for flag, value in found_there.items() if value}


def _folder_of(path: str) -> str:
    """A folder for the file that says what it is: a kustomization or Chart.yaml."""
    from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS

    folder, _, name = path.rpartition("/")
    return (folder or ".") if name in (*KUSTOMIZATIONS, "Chart.yaml") else path
