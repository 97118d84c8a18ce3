"""Compares the copy after the upgrade with its state before. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from k8s_ucp.errors import some_of
from k8s_ucp.steps.upgrading.rehearsal.inventory import ClusterInventory

_KINDS = "customresourcedefinitions.apiextensions.k8s.io"
MOST_FIELDS = 3


@dataclass(frozen=True)
class CopyDifference:
    """Differences between two inventories of one API server, in words."""

    lost: tuple[str, ...]
    """Objects that no longer exist, or were replaced by others of the same name."""
    changed: tuple[str, ...]
    """Objects with a changed or missing value, with the fields."""
    removed_kinds: tuple[str, ...]
    """Kinds that had objects, and are no longer served or can't be listed."""
    removed_versions: tuple[str, ...]
    """Removed versions of kinds that have others: <plural>.<version>.<group>."""
    unused: tuple[str, ...]
    """Removed kinds and versions that nothing used."""


def compare(
    before: ClusterInventory, after: ClusterInventory, renewed: Collection[str]
) -> CopyDifference:
    """Compare two inventories. renewed: names of CRDs that were applied in between.

    Additions are ignored, since a newer version may set defaults; so are objects that Kubernetes
    writes itself.
    """
    removed_kinds = sorted(set(before.versions) - set(after.versions))
    used = [each for each in removed_kinds if before.counts.get(each)]
    versions = list(_removed_versions(before, after))
    missed = [name for kind, name in versions if before.counts.get(kind) and kind in before.stored]
    return CopyDifference(
        lost=tuple(_lost(before, after)),
        changed=tuple(_changed(before, after, renewed)),
        removed_kinds=(*used, *_unreadable(before, after)),
        removed_versions=tuple(missed),
        unused=(
            *(each for each in removed_kinds if each not in used),
            *(name for _, name in versions if name not in missed),
        ),
    )


def _lost(before: ClusterInventory, after: ClusterInventory) -> Iterator[str]:
    for name, item in sorted(before.items.items()):
        now = after.items.get(name)
        if item.automatic or name.partition(" ")[0] in after.unreadable:
            continue
        if now is None:
            if not item.fleeting:
                yield name
        elif now.uid != item.uid and not item.fleeting:
            yield f"{name}: recreated, with another UID"


def _changed(
    before: ClusterInventory, after: ClusterInventory, renewed: Collection[str]
) -> Iterator[str]:
    for name, item in sorted(before.items.items()):
        now = after.items.get(name)
        kind, _, short = name.partition(" ")
        if now is None or item.automatic or now.packed == item.packed:
            continue
        if kind == _KINDS and short in renewed:
            continue
        if fields := list(lost_values(item.content, now.content)):
            yield f"{name}: {some_of(fields, MOST_FIELDS)}"


def lost_values(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Paths of changed or missing values; additions are ignored."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            where = f"{path}.{name}" if path else str(name)
            if name in after:
                yield from lost_values(value, after[name], where)
            elif value is not None:
                yield where
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from lost_values(one, other, f"{path}[{number}]")
    elif before != after:
        yield path


def _unreadable(before: ClusterInventory, after: ClusterInventory) -> Iterator[str]:
    for kind, why in sorted(after.unreadable.items()):
        if kind not in before.unreadable and before.counts.get(kind):
            yield f"{kind}: {why}"


def _removed_versions(
    before: ClusterInventory, after: ClusterInventory
) -> Iterator[tuple[str, str]]:
    """(kind, removed version as people write it) of kinds that still exist."""
    for kind, versions in sorted(before.versions.items()):
        for version in versions:
            if kind in after.versions and version not in after.versions[kind]:
                plural, _, group = kind.partition(".")
                yield kind, ".".join(filter(None, (plural, version, group)))
