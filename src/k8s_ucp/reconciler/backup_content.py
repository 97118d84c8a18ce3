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


_TOPOLOGY = "topology"
_RESTORE = f"restore an older version from the git history: git log -- {PATH}"
_FIELDS = {PASSWORDS: "passwords", SOURCES: "sources", EXTERNAL_NAMES: "external_names"}


def dump(backup: Backup, topology: str = "") -> bytes:
    """Serialize for encryption; equal content gives equal bytes. topology: whose backup it is."""
    content = {
        "version": VERSION,
        **({_TOPOLOGY: topology} if topology else {}),
        **{name: backup.section(name) for name in SECTIONS},
    }
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def parse(text: bytes, topology: str = "") -> Backup:
    """Parse a decrypted backup. Raises UcpError, which does not contain any of its secrets.

    topology: whose backup it must be; "" for any. Earlier versions did not record it.
    """
    try:
        content = json.loads(text)
        version = content["version"]
        of = content.get(_TOPOLOGY, "")
        sections = {name: dict(content.get(name) or {}) for name in SECTIONS}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _invalid() from None
    if isinstance(version, int) and version > VERSION:
        raise UcpError(
            f"{PATH} of the core repository was written by a newer version of ucp "
            f"(format {version}; supported: {VERSION})",
            next="use that version of ucp",
        )
    if version != VERSION or not isinstance(of, str) or not _is_well_formed(sections):
        raise _invalid()
    if of and topology and of != topology:
        # Its passwords and external names could fit objects of the same names.
        raise UcpError(
            f"{PATH} of the core repository is the backup of the topology {of}, not of {topology}",
            next=f"a topology can't be renamed: if it was {of}, set metadata.name of ucp.yaml back "
            f"to {of}; otherwise {_RESTORE}; if there is none, delete the file by a commit",
        )
    return Backup(**{_FIELDS[name]: entries for name, entries in sections.items()})


def _invalid() -> UcpError:
    return UcpError(
        f"{PATH} of the core repository was decrypted, but is not a valid backup", next=_RESTORE
    )


def _is_well_formed(sections: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether all entries can be restored, so that none fails in the middle of a start."""
    passwords, sources = sections[PASSWORDS], sections[SOURCES]
    return (
        all(key.count("/") == 1 for key in (*passwords, *sources))
        and all(map(_is_texts, passwords.values()))
        and all(map(_is_source, sources.values()))
        and all(key.count("/") >= 2 for key in sections[EXTERNAL_NAMES])
        and _is_texts(sections[EXTERNAL_NAMES])
    )


def _is_source(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and all(_is_texts(value.get(name)) for name in ("labels", "annotations", "data"))
    )


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def updated(recorded: Backup, observed: Backup, is_deleted: IsDeleted) -> Backup:
    """The backup to keep: everything that exists, and of the rest what isn't known to be gone."""

    def of(name: str) -> dict[str, Any]:
        left = {
            key: value
            for key, value in recorded.section(name).items()
            if key not in observed.section(name) and not is_deleted(name, key)
        }
        return {**left, **observed.section(name)}

    return replace(recorded, **{_FIELDS[name]: of(name) for name in SECTIONS})


def is_renewal(recorded: Backup, renewed: Backup) -> bool:
    """Whether only the content of kubeconfigs differs, such as renewed tokens."""

    def without_content(backup: Backup) -> Backup:
        bare = {
            key: {part: value for part, value in kept.items() if part != "data"}
            for key, kept in backup.sources.items()
        }
        return replace(backup, sources=bare)

    return recorded != renewed and without_content(recorded) == without_content(renewed)
