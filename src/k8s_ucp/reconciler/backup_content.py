"""The content of backup/state.age: what only the core cluster knows and can't be recreated.

It contains generated passwords; kubeconfig Secrets that a user approved with a label (those of
LocalClusters and of Crossplane are recreated); and external names of managed resources, with which
a new core finds the existing cloud resources. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from k8s_ucp.errors import UcpError

VERSION = 1
PATH = "backup/state.age"
"""Path in the core repository."""

PASSWORDS, SOURCES, EXTERNAL_NAMES = "passwords", "registrationSources", "externalNames"
SECTIONS = (PASSWORDS, SOURCES, EXTERNAL_NAMES)

IsDeleted = Callable[[str, str], bool]
"""(section, key): whether the core says that the object does not exist any more."""


@dataclass(frozen=True)
class Backup:
    """passwords: {`<namespace>/<Secret>`: {key: value in base64}}.

    sources: {`<namespace>/<Secret>`: the labels, annotations, type and data to keep}.
    external_names: {`<kind>.<group>/<namespace>/<name>`: the name in the cloud}.
    """

    passwords: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    external_names: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.passwords or self.sources or self.external_names)

    def section(self, name: str) -> Mapping[str, Any]:
        """One of SECTIONS."""
        found: Mapping[str, Any] = getattr(self, _FIELDS[name])
        return found


_FIELDS = {PASSWORDS: "passwords", SOURCES: "sources", EXTERNAL_NAMES: "external_names"}


def dump(backup: Backup) -> bytes:
    """Serialize for encryption; equal content gives equal bytes."""
    content = {"version": VERSION, **{name: backup.section(name) for name in SECTIONS}}
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def parse(text: bytes) -> Backup:
    """Parse a decrypted backup. Raises UcpError, which does not contain any of the text."""
    try:
        content = json.loads(text)
        version = content["version"]
        sections = {_FIELDS[name]: dict(content.get(name) or {}) for name in SECTIONS}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UcpError(
            f"{PATH} of the core repository was decrypted, but is not a valid backup",
            next=f"restore an older version from the git history: git log -- {PATH}",
        ) from None
    if version != VERSION:
        raise UcpError(
            f"{PATH} of the core repository was written by a newer version of ucp "
            f"(format {version}; supported: {VERSION})",
            next="use that version of ucp",
        )
    return Backup(**sections)


def updated(known: Backup, seen: Backup, is_deleted: IsDeleted) -> Backup:
    """The backup to keep: everything that exists, and of the rest what isn't known to be gone."""

    def of(name: str) -> dict[str, Any]:
        left = {
            key: value
            for key, value in known.section(name).items()
            if key not in seen.section(name) and not is_deleted(name, key)
        }
        return {**left, **seen.section(name)}

    return replace(known, **{_FIELDS[name]: of(name) for name in SECTIONS})


def is_renewal(known: Backup, wanted: Backup) -> bool:
    """Whether only the content of kubeconfigs differs, such as renewed tokens."""

    def without_content(backup: Backup) -> Backup:
        bare = {
            key: {part: value for part, value in kept.items() if part != "data"}
            for key, kept in backup.sources.items()
        }
        return replace(backup, sources=bare)

    return known != wanted and without_content(known) == without_content(wanted)
