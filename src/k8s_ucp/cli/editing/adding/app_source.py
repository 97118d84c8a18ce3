"""Translates the SOURCE of `ucp app add` to the equivalent flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs

from k8s_ucp.errors import UsageError, command_line

SSH = re.compile(r"[\w.-]+@[\w.-]+:.+")
"""A git URL in scp's short form."""
_BROWSED = re.compile(
    r"(https?://[^/]+/(?:[^/]+/[^/]+|.+?(?=/-/)))(?:/-)?/(?:tree|blob|raw)/"
    r"(?:refs/(?:heads|tags)/)?([^/]+)(?:/(.+?))?/?"
)
"""URL of a folder or file on the web pages of GitHub or GitLab."""
_RAW = re.compile(
    r"https://raw\.githubusercontent\.com/([^/]+/[^/]+)/(?:refs/(?:heads|tags)/)?([^/]+)/(.+)"
)
"""URL of a raw file on GitHub."""
_IMAGE = re.compile(r"[a-z0-9]+([._-]+[a-z0-9]+)*(:[0-9]+(?=/))?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
"""Name of an image, without tag and digest."""
_MANIFEST = re.compile(r"https?://.+\.(?:ya?ml|json)")
_WITH = {"repo": {"path", "revision", "chart", "version"}, "chart": {"version"}}
"""Flags that may be combined with such a source."""


def with_source(app: str, source: str, given: Mapping[str, str | None]) -> dict[str, str | None]:
    """The given flags with those of the source. given: by name, or None. Raises UsageError."""
    found = flags_of(app, source)
    more = set().union(*(_WITH.get(each, set()) for each in found)) - found.keys()
    for flag, value in given.items():
        if value is not None and flag not in more:
            below = Path(source).expanduser() / value
            raise UsageError(
                f"{source} and --{flag} {value} contradict each other",
                next=command_line("ucp", "app", "add", app, below)
                if flag == "path" and below.exists()
                else f"leave out --{flag}, or {source}",
            )
    return {**given, **found}


def with_split_image(app: str, given: Mapping[str, str | None]) -> dict[str, str | None]:
    """The given flags, with `--image NAME:TAG` as name and tag. Raises UsageError without a tag."""
    from k8s_ucp.gitops.manifests.images_and_ports import split_image

    image, tag = given["image"], given["tag"]
    if not image or "@" in image:
        return dict(given)
    name, own = split_image(image)
    if own and tag and own != tag:
        raise UsageError(
            f"--image {image} and --tag {tag} contradict each other",
            next=f"ucp app add {app} --image {name} --tag {tag}",
        )
    if not own and not tag:
        raise UsageError(
            f"the tag of the image {image} is not specified",
            next=f"ucp app add {app} --image {image} --tag TAG",
        )
    return {**given, "image": name, "tag": tag or own}


def flags_of(app: str, source: str) -> dict[str, str]:
    """Flags for a folder, file, git repository, chart of an OCI registry or image, by name.

    For a repository also path and revision, if its URL contains them: as on web pages
    (`…/tree/REF/DIR`) or in kustomize (`REPO//DIR?ref=REF`). Raises UsageError.
    """
    from k8s_ucp.gitops.manifests.images_and_ports import split_image

    if source.startswith("oci://"):
        name, version = split_image(source.removeprefix("oci://"))
        return {"chart": f"oci://{name}"} | ({"version": version} if version else {})
    if Path(source).expanduser().exists():
        return {"path": _folder_of(source)}
    if "://" in source or SSH.fullmatch(source):
        return _repository(app, source)
    image, tag = split_image(source)
    if source.startswith((".", "/", "~")):
        raise UsageError(f"{source} does not exist", next=f"ucp app add {app} DIR (or FILE)")
    if tag:
        return {"image": image, "tag": tag}
    if _IMAGE.fullmatch(source):
        raise UsageError(
            f"{source} is not a folder or a file; an image needs a tag",
            next=f"ucp app add {app} {source}:TAG (or DIR, FILE, URL, oci://…/CHART)",
        )
    raise UsageError(
        f"{source} is not a folder, a file, the URL of a repository or an image with a tag",
        next=f"ucp app add {app} DIR (or FILE, URL, oci://…/CHART, IMAGE:TAG)",
    )


def name_in(source: str) -> str | None:
    """A name for the app whose source was given in its stead; None if the text may be a name."""
    if not set(":/@") & set(source):
        return None
    last = source.partition("?")[0].rstrip("/").rpartition("/")[2]
    word = re.split(r"[:@.]", last)[0].lower()
    return re.sub(r"[^a-z0-9]+", "-", word).strip("-") or "NAME"


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
            f"{url} is a single file, not a git repository",
            next=f"download it: {command_line('curl', '-fLO', url)} && ucp app add {app} "
            f"{address.rpartition('/')[2]}",
        )
    scheme, mark, rest = address.rpartition("://")
    repository, _, folder = rest.partition("//")
    revision = parse_qs(query).get("ref", [""])[-1]
    fields = {"repo": f"{scheme}{mark}{repository}", "path": folder, "revision": revision}
    return {flag: value for flag, value in fields.items() if value}


def _folder_of(path: str) -> str:
    """The folder of a kustomization or Chart.yaml, if the path is such a file; else the path."""
    from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS

    folder, _, name = path.rpartition("/")
    return (folder or ".") if name in (*KUSTOMIZATIONS, "Chart.yaml") else path
