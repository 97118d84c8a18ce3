"""Gives the apps of a repository different names, from the folders that they are in. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from k8s_ucp.gitops.imports.findings import (
    MOST_LETTERS,
    NAMES,
    DiscoveredApp,
    app_name,
    named_by,
)
from k8s_ucp.gitops.manifests.forms import PARTS

_LEAST_ABOVE = 15
"""Minimum number of letters that a short name keeps of the folders above the app."""


def with_distinct_names(findings: Sequence[DiscoveredApp]) -> list[DiscoveredApp]:
    """The apps with as many parent folders in their names as necessary.

    If that is not enough, all folders, even such as `charts`; at last a number, with a note.
    """
    names = _with_parents(findings)
    counted = Counter(names)
    whole = [
        names[at] if counted[names[at]] == 1 else _all(each) for at, each in enumerate(findings)
    ]
    short = [_shortened(name, each, findings) for name, each in zip(whole, findings, strict=True)]
    holders: dict[str, DiscoveredApp] = {}
    found = []
    for name, each in zip(short, findings, strict=True):
        free = name if name not in holders else _numbered(name, {*holders, *short})
        notes = each.notes
        if free != name:
            notes = (*notes, f"it is called {free}, since {name} is {holders[name].where}")
        holders[free] = replace(each, name=free, notes=notes)
        found.append(holders[free])
    return found


def _with_parents(findings: Sequence[DiscoveredApp]) -> list[str]:
    names = [each.name for each in findings]
    above = [_above(each) for each in findings]
    for depth in range(1, max(map(len, above), default=0) + 1):
        counted = Counter(names)
        for at, each in enumerate(findings):
            if counted[names[at]] > 1:
                names[at] = _text([*above[at][-depth:], each.name])
    return names


def _above(finding: DiscoveredApp) -> list[str]:
    """Parent folders that may be in its name: no environment, if it is in several."""
    found, _ = named_by(_folder(finding), "")
    several = len(finding.environments) > 1
    return [each for each in found if not (several and each in NAMES)]


def _all(finding: DiscoveredApp) -> str:
    """A name from all folders above the app; its own may be from the file in them."""
    path = _text([each for each in _folder(finding).split("/") if each not in PARTS])
    return path if finding.name in path else _text([path, finding.name])


def _shortened(name: str, finding: DiscoveredApp, findings: Sequence[DiscoveredApp]) -> str:
    """A name that is not too long: without the folders that tell it from no other app.

    What is still too much is cut off before the app's own name.
    """
    if len(name) <= MOST_LETTERS:
        return name
    namesakes = [_folder(each).split("/") for each in findings if each.name == finding.name]
    shared = set.intersection(*map(set, namesakes)) if len(namesakes) > 1 else set()
    own = [each for each in _folder(finding).split("/") if each not in shared]
    room = max(_LEAST_ABOVE, MOST_LETTERS - len(finding.name) - 1)
    above = _text(own).removesuffix(finding.name)[:room]
    return app_name(f"{above.strip('-')}-{finding.name}")


def _numbered(name: str, taken: set[str]) -> str:
    number = 2
    while (free := f"{name[: MOST_LETTERS - 3].strip('-')}-{number}") in taken:
        number += 1
    return free


def _folder(finding: DiscoveredApp) -> str:
    """The folder that names the app: its own, or that of the file that declares it."""
    file = finding.where.partition(":")[0]
    return file if finding.path is None else finding.path


def _text(segments: Sequence[str]) -> str:
    return re.sub(r"[^a-z0-9]+", "-", "-".join(segments).lower()).strip("-")
