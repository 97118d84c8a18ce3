"""What kustomizations load from elsewhere, and what of it is refused before anything is built."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
from k8s_ucp.gitops.manifests.yaml_text import first_map

FIELDS = (
    *("resources", "components", "bases", "generators", "transformers", "validators"),
    *("crds", "configurations"),
)
"""Lists of a kustomization whose entries may be folders, files or addresses."""
_REVISION = re.compile(r"(?:^|&)(?:ref|version)=-")
_HOST = re.compile(r"(?:^|://|@|::)-")
_TRANSPORT = re.compile(r"^(?!git::)[A-Za-z0-9+.-]+::")


def entries(kustomization: Mapping[str, Any]) -> list[str]:
    """Folders, files and addresses that a kustomization takes in, whatever else stands there."""
    found: list[str] = []
    for name in FIELDS:
        content = kustomization.get(name)
        if isinstance(content, list | tuple):
            found += [each for each in content if isinstance(each, str)]
    openapi = kustomization.get("openapi")
    if isinstance(openapi, dict) and isinstance(openapi.get("path"), str):
        found.append(openapi["path"])
    return found


def refused(entry: str) -> str | None:
    """Why an entry is not handed to kustomize: a part of it would be an option of git's."""
    if "\n" in entry:  # A document of its own, not an address.
        return None
    address, _, query = entry.strip().partition("?")
    if _REVISION.search(unquote_plus(query)) or _REVISION.search(query):
        return f"the revision in {entry} begins with '-', which git would treat as an option"
    if "://" in address or "@" in address or query:
        if _HOST.search(unquote_plus(address)):
            return f"the host in {entry} begins with '-', which git would treat as an option"
        if _TRANSPORT.search(address):
            return f"{entry} uses a program as its transport"
    return None


def find_refused(folder: Path) -> Iterator[tuple[Path, str]]:
    """(file, why) of all that a folder takes in on this machine.

    What can't be read is left to kustomize: it says why.
    """
    waiting, seen = [folder], set()
    while waiting:
        each = Path(os.path.realpath(waiting.pop()))
        if each in seen:
            continue
        seen.add(each)
        for file in (each / name for name in KUSTOMIZATIONS):
            for entry in entries(_read(file)):
                if words := refused(entry):
                    yield file, words
                elif "\n" not in entry and "\0" not in entry and (each / entry).is_dir():
                    waiting.append(each / entry)


def _read(file: Path) -> Mapping[str, Any]:
    try:
        return first_map(file.read_bytes(), str(file))
    except (OSError, UsageError):
        return {}
