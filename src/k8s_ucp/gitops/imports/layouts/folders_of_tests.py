"""Recognizes folders with tests of a program and with data for them, which hold no apps. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from k8s_ucp.errors import some_of
from k8s_ucp.gitops.imports.findings import PARENTS, RefusedApp
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
from k8s_ucp.gitops.manifests.reachable import join
from k8s_ucp.gitops.manifests.yaml_text import OBJECT

_AMBIGUOUS = frozenset(["test", "testing", "integration"])
"""Names of environments that are also usual names of folders with tests."""
_HOLDING_TESTS = frozenset(["test", "testing"])
"""Of these, those whose subfolders are taken for tests; `integration` may hold integrations."""
_CLEAR = re.compile(
    r"tests|e2e(?:[-_]tests?)?|__tests__|_?test[-_]?data\d*|test[-_]resources|(?:test[-_]?|__)?fixtures?(?:__)?"
)
_YAML = (".yaml", ".yml")
_SHOWN = 3


def words_of_tests(tree: RepositoryTree, environments: Collection[str]) -> set[str]:
    """Words such as `test` whose folders hold tests, not an environment.

    An environment's folder is below `overlays` and the like, or beside that of another or a base.
    """
    others = (frozenset(environments) | {"base", "bases", "common"}) - _AMBIGUOUS
    found = {*_AMBIGUOUS}
    with_yaml = _with_yaml(tree)
    for folder in with_yaml:
        parent, _, name = folder.rpartition("/")
        beside = (join(parent, each) for each in others)
        if name in found and (
            parent.rpartition("/")[2] in PARENTS or any(each in with_yaml for each in beside)
        ):
            found.discard(name)
    return found


def _with_yaml(tree: RepositoryTree) -> set[str]:
    """Folders with YAML in them or below: `common` without is a package of a program."""
    found = set[str]()
    for name in tree.names:
        if name.endswith(_YAML):
            while (name := name.rpartition("/")[0]) and name not in found:
                found.add(name)
    return found


def folders_of_tests(tree: RepositoryTree, words: Collection[str]) -> frozenset[str]:
    """The outermost folders with tests, outside of charts. words: as in `words_of_tests`."""
    holding = _HOLDING_TESTS & frozenset(words)
    found = set()
    for folder in tree.folders:
        segments = folder.split("/")
        for at, each in enumerate(segments):
            above = segments[at - 1] if at else ""
            # An app may be called `test`, but not a folder of apps.
            if (_CLEAR.fullmatch(each) and above not in PARENTS) or above in holding:
                found.add("/".join(segments[: at + 1]))
                break
    return frozenset(each for each in found if not tree.in_chart(each))


def tests_not_searched(tree: RepositoryTree, folders: Iterable[str]) -> list[RefusedApp]:
    """A note about folders of tests that have manifests: one line for all of them."""
    found = [each for each in sorted(folders) if _has_manifests(tree, each)]
    if not found:
        return []
    what = "folders with tests are" if len(found) > 1 else "a folder with tests is"
    reason = f"{what} not searched: {some_of(found, _SHOWN)}"
    advice = f"{tree.origin.command('NAME', join(found[0], 'FOLDER'))}, for an app in it"
    return [RefusedApp("tests", found[0], reason, advice)]


def _has_manifests(tree: RepositoryTree, folder: str) -> bool:
    return any(
        name.rpartition("/")[2] in (*KUSTOMIZATIONS, "Chart.yaml")
        or (name.endswith(_YAML) and OBJECT.search(tree.read(name)))
        for name in tree.below(folder)
    )
