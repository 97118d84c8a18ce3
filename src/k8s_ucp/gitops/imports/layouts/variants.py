"""Tells overlays of environments from variants of an app, such as `overlays/with-gpu`. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from shlex import quote

from k8s_ucp.gitops.imports.findings import DEFAULT, NAMES, in_text
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.reachable import join

_OF_ANYTHING = frozenset(["overlays", "variants"])
"""Folders whose subfolders may be variants; below `environments` and the like, all are meant."""


def variants_among(overlays: Mapping[str, str], named: Collection[str]) -> list[str]:
    """Names of overlays that are variants of environments, not environments themselves.

    overlays: {name: its folder}. named: environments that the user named. `production-like` beside
    `production` is a variant of it; `prod-eu` and `prod-us` alone are environments.
    """
    known = {each for each in overlays if each in NAMES or each in named}
    return sorted(
        name
        for name, folder in overlays.items()
        if known
        and name not in (*known, DEFAULT)
        and _OF_ANYTHING & {*folder.split("/")}
        and (in_text(name, NAMES) is None or in_text(name, known) is not None)
    )


def beside_bases(tree: RepositoryTree, known: Collection[str]) -> set[str]:
    """Names such as `prod-eu` of folders that include the base beside them: `web/base`.

    known: names of environments. If one of them is beside the base, the others are variants; if any
    folder is of no environment, all of them may be apps with a common base. A longer name that the
    user mapped says nothing of the others: `--map prod-eu=prod` leaves `prod-us` an environment.
    """
    usual = {each for each in known if in_text(each, NAMES) in (None, each)}
    beside: dict[str, set[str]] = {}
    for folder in tree.kustomizations:
        parent, _, name = folder.rpartition("/")
        if join(parent, "base") in tree.taken_in(folder):
            beside.setdefault(parent, set()).add(name)
    return {
        name
        for names in beside.values()
        if len(names) > 1
        and names.isdisjoint(usual)
        and all(in_text(each, known) for each in names)
        for name in names
    }


def note_on(variants: Collection[str]) -> str:
    first, listed = min(variants), ", ".join(sorted(variants))
    word = "overlays" if len(variants) > 1 else "overlay"
    return f"the {word} {listed} of no environment: left out (--map {quote(first)}=ENV uses one)"
