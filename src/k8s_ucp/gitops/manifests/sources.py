"""Remote sources of kustomizations, and which of them are rejected before a build."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from k8s_ucp.errors import UsageError
from k8s_ucp.git.failures import redact
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
from k8s_ucp.gitops.manifests.yaml_text import (
    first_map,
    maps,
    multiplied,
    nodes,
    plain_text,
    repeated_key,
    texts,
)
from k8s_ucp.redaction import holds_credential

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

FIELDS = (
    *("resources", "components", "bases", "generators", "transformers", "validators"),
    *("crds", "configurations"),
)
"""Lists of a kustomization whose entries may be folders, files or URLs."""
_LOADING = (
    *("patches", "patchesJson6902", "replacements"),
    *("configMapGenerator", "secretGenerator"),
)
"""Lists of a kustomization whose entries contain names of files to load."""
LARGEST = 64_000_000
"""Bytes of a file that are read; a link can lead to an endless one."""
_REVISION = re.compile(r"(?:^|&)(?:ref|version)=-")
_HOST = re.compile(r"(?:^|://|@|::)-")
_TRANSPORT = re.compile(r"^(?!git::)[A-Za-z0-9+.-]+::")


def entries(kustomization: Mapping[str, Any]) -> list[str]:
    """Folders, files and URLs that a kustomization includes. Tolerates malformed fields."""
    found: list[str] = []
    for name in FIELDS:
        content = kustomization.get(name)
        if isinstance(content, list | tuple):
            found += [each for each in content if isinstance(each, str)]
    openapi = kustomization.get("openapi")
    if isinstance(openapi, dict) and isinstance(openapi.get("path"), str):
        found.append(openapi["path"])
    return found


def loaded(kustomization: Mapping[str, Any]) -> list[str]:
    """`entries`, and the other files and URLs whose content kustomize loads."""
    found: list[Any] = [*entries(kustomization)]
    found += _listed(kustomization, "patchesStrategicMerge")
    for each in (item for name in _LOADING for item in maps(kustomization, name)):
        found += [each.get("path"), each.get("env"), *_listed(each, "envs")]
        # KEY=FILE
        found += [file.rpartition("=")[2] for file in _listed(each, "files")]
    return [each for each in found if isinstance(each, str)]


def _listed(content: Mapping[str, Any], name: str) -> list[str]:
    found = content.get(name)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def transports(topology: Topology) -> set[str]:
    """Git transports that a topology uses; for repositories over plain http, their URLs.

    Remote bases may use no others besides https and ssh.
    """
    git, apps = topology.spec.git, topology.spec.apps
    named = [git.core, git.apps, *(each.repo for each in apps)]
    urls = [str(each) for each in named if each and "://" in str(each)]
    found = {each if is_http(each) else each.partition("://")[0] for each in urls}
    return found | ({"file"} if _only_the_user_writes(topology) else set())


def uses_ssh(topology: Topology) -> bool:
    """Whether what others write may have git connect over ssh, with the user's own keys.

    Of a repository that ucp.yaml doesn't name they could read all that these keys open.
    """
    spec = topology.spec
    named = [spec.git.core, spec.git.apps]
    named += [each.repo for each in spec.apps] + [each.repo for each in spec.teams]
    return _only_the_user_writes(topology) or any(_is_ssh(str(each)) for each in named if each)


def _only_the_user_writes(topology: Topology) -> bool:
    """To the repositories: they are on this machine, and no team has one."""
    return topology.spec.git.provider == "local" and not topology.spec.teams


def _is_ssh(url: str) -> bool:
    # Without a scheme: scp's short form, `git@host:path`.
    return "://" not in url or url.partition("://")[0].endswith("ssh")


def is_http(address: str) -> bool:
    """Whether kustomize or git would fetch it over plain http."""
    return address.strip().removeprefix("git::").lower().startswith("http:")


def http_repositories(also: Collection[str]) -> list[str]:
    """Git repositories over plain http among the URLs that a topology names, without `.git`."""
    return sorted({each.rstrip("/").removesuffix(".git") for each in also if is_http(each)})


def by_http(address: str) -> str:
    """Why such a URL is rejected."""
    return (
        f"{redact(address)} is fetched by plain http, which others can change in transit: "
        "use https or ssh"
    )


def refuse_password(url: str, *, next: str) -> None:
    """Raise UsageError for a URL with a credential: programs get URLs as arguments."""
    if holds_credential(url):
        raise UsageError(
            "the repository's URL contains a user or password, which other users could see in "
            "the process list",
            next=next,
        )


def refused(entry: str, also: Collection[str] = ()) -> str | None:
    """Why an entry is not passed to kustomize, or None.

    Git would interpret part of it as an option, or it uses plain http. also: as in `find_refused`.
    """
    if "\n" in entry:  # An inline document, not a URL.
        return None
    if is_http(entry) and not _is_of(entry, http_repositories(also)):
        return by_http(entry)
    address, _, query = entry.strip().partition("?")
    if _REVISION.search(unquote_plus(query)) or _REVISION.search(query):
        return f"the revision in {entry} begins with '-', which git would treat as an option"
    if "://" in address or "@" in address or query:
        if _HOST.search(unquote_plus(address)):
            return f"the host in {entry} begins with '-', which git would treat as an option"
        if _TRANSPORT.search(address):
            return f"{entry} uses a program as its transport"
    return None


def _is_of(entry: str, repositories: Collection[str]) -> bool:
    """The entry is in one of these repositories."""
    address = entry.strip().removeprefix("git::").partition("?")[0]
    return any(
        address in (each, f"{each}.git") or address.startswith((f"{each}/", f"{each}.git/"))
        for each in repositories
    )


def find_refused(folder: Path, also: Collection[str] = ()) -> Iterator[tuple[Path, str]]:
    """(file, reason) of every rejected entry in a folder and the local folders that it includes.

    also: URLs that ucp.yaml names, the only ones allowed over plain http. Files that can't be
    parsed are left to kustomize, which reports the reason.
    """
    for file, content, kustomization in _kustomizations(folder):
        # Each inline patch is a text of its own.
        for text in (_text(content, file), *_strings(kustomization)):
            if why := multiplied(text):
                yield file, why
        for entry in loaded(kustomization):
            if words := refused(entry, also):
                yield file, words
        for path in _files(file, loaded(kustomization)):
            if why := multiplied(_text(_content(path), path)):
                yield path, why


def find_repeated_key(folder: Path) -> tuple[Path, str] | None:
    """The first (file, key with its line) of the manifests of a kustomization; None if none has."""
    for file, _, kustomization in _kustomizations(folder):
        for path in _files(file, entries(kustomization)):
            with contextlib.suppress(UsageError):
                if key := repeated_key(_content(path), str(path)):
                    return path, key
    return None


def _kustomizations(folder: Path) -> Iterator[tuple[Path, bytes, Mapping[str, Any]]]:
    """(file, content, parsed) of a folder and of the local folders that it includes."""
    waiting, seen = [folder], set()
    while waiting:
        each = Path(os.path.realpath(waiting.pop()))
        if each in seen:
            continue
        seen.add(each)
        for file in (each / name for name in KUSTOMIZATIONS):
            content = _content(file)
            kustomization = _first_map(content, file)
            yield file, content, kustomization
            paths = _local(file, loaded(kustomization))
            # Unlike Path's methods, these accept a text that is too long for a path.
            waiting += [path for path in paths if os.path.isdir(path)]  # noqa: PTH112


def _files(kustomization: Path, entries: list[str]) -> list[Path]:
    return [path for path in _local(kustomization, entries) if os.path.isfile(path)]  # noqa: PTH113


def _local(kustomization: Path, entries: list[str]) -> list[Path]:
    """Paths of a kustomization's entries; not inline documents."""
    return [kustomization.parent / each for each in entries if not {"\n", "\0"} & set(each)]


def find_outside(folder: Path, root: Path) -> tuple[Path, str] | None:
    """The first (file, text) that leads a kustomization out of a repository; None if none does.

    kustomize restricts what files it loads, but not the folders. root: the repository's. Raises
    UsageError for a kustomization that can't be read.
    """
    root = Path(os.path.realpath(root))
    waiting, seen = [os.path.realpath(folder)], set[str]()
    while waiting:
        base = waiting.pop()
        if base in seen:
            continue
        seen.add(base)
        for file in (Path(base, name) for name in KUSTOMIZATIONS):
            # Any text, not only entries: kustomize ignores the case of keys.
            for text in _plain_texts(file):
                # As kustomize does: `..` is removed from the text, before links are followed.
                path = os.path.normpath(Path(base, text))
                # kustomize refuses absolute ones. For a text that is no path, Path.is_dir fails.
                if text.startswith("/") or not os.path.isdir(path):  # noqa: PTH112
                    continue
                path = os.path.realpath(path)
                if not Path(path).is_relative_to(root):
                    return file, text
                waiting.append(path)
    return None


def _plain_texts(file: Path) -> Iterator[str]:
    content = _content(file)
    if len(content) >= LARGEST:
        raise UsageError(f"{file} is too large", next=f"split {file}")
    if b"\t" in content and not nodes(plain_text(content, str(file))):
        raise UsageError(f"{file} has tabs that YAML does not allow", next="use spaces")
    return texts(content, str(file))


def _first_map(content: bytes, file: Path) -> Mapping[str, Any]:
    try:
        return first_map(content, str(file))
    except UsageError:
        return {}


def _text(content: bytes, file: Path) -> str:
    try:
        return plain_text(content, str(file))
    except UsageError:
        return ""


def _content(file: Path) -> bytes:
    """The content of a file; empty if it can't be read, such as a link to a device."""
    try:
        if not file.is_file():
            return b""
        with file.open("rb") as stream:
            return stream.read(LARGEST)
    except OSError:
        return b""


def _strings(value: Any) -> Iterator[str]:
    """All strings in a value."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else ():
        yield from _strings(each)
    for each in value if isinstance(value, list) else ():
        yield from _strings(each)
