"""Assigns tests to workers and orders them.

All tests of a file run on one worker, as do files that share something that is slow to start. Quick
tests run first; then the slowest ones, so that no worker runs on alone at the end; then the rest,
which fills the gaps.
"""

from __future__ import annotations

import re

from xdist.scheduler import LoadFileScheduling

_ON_KIND = re.compile(r"/e2e/.*\[(.*-)?kind(-.*)?\]$")

CHAINS = (
    (
        "tests/golden/test_texts.py",
        "tests/unit/cli/test_next.py",
        "tests/unit/test_names.py",
        "tests/unit/test_provider_names.py",
    ),
    (
        "tests/e2e/test_lifecycle.py",
        "tests/e2e/test_promotion.py",
        "tests/e2e/test_faults.py",
        "tests/e2e/test_mirrors.py",
        "tests/e2e/test_corpus.py",
        "tests/e2e/test_upgrade.py",
    ),
    (
        "tests/e2e/test_walkthroughs.py",
        "tests/e2e/test_migration.py",
    ),
    (
        "tests/integration/gitops/check/test_teams_fence.py",
        "tests/integration/gitops/render/test_every_topology.py",
        "tests/integration/gitops/check/test_unproven_deletions.py",
        "tests/integration/gitops/check/test_api_server_accepts.py",
        "tests/integration/gitops/check/test_guard_rails.py",
    ),
)
"""Files whose tests run one after another, on one shared topology, server or tree."""

_PLACE_IN_CHAIN = {file: place for chain in CHAINS for place, file in enumerate(chain)}
_FIRST = {file: chain[0] for chain in CHAINS for file in chain}

_TOGETHER = (
    "tests/integration/reconciler/",
    "tests/contracts/test_managed_",
)
"""Prefixes of files whose tests share control planes."""

_ON_KIND_LAST = "tests/e2e/test_kind_environment.py"
"""It restarts Docker near its end, as the shared topology on kind does: both workers then wait for
one restart, and neither waits for long.
"""

QUICK = ("tests/unit/", "tests/golden/")
LONG = (
    "tests/e2e/test_lifecycle.py",
    "tests/e2e/test_walkthroughs.py",
    "tests/integration/reconciler/",
    "tests/e2e/test_cloud.py",
    "tests/integration/cli/test_running_topology.py",
    "tests/e2e/test_existing_core.py",
    "tests/integration/gitops/promotion/test_kill.py",
    "tests/integration/gitops/test_argocd.py",
    "tests/integration/gitops/promotion/test_pull_requests.py",
    "tests/integration/cli/test_bringing_apps.py",
    "tests/contracts/test_cluster_provider.py",
    "tests/integration/clusters/embedded/test_provider.py",
    "tests/e2e/test_adoption.py",
    "tests/contracts/test_managed_",
    "tests/integration/gitops/check/test_teams_fence.py",
    "tests/integration/clusters/embedded/test_simulated.py",
)
"""Files that take one worker a minute or more, beside two others on two cores; longest first."""
NEVER_LATE = 3
"""So many of LONG run early even if time is limited: what users do, and all controllers."""


def one_worker(nodeid: str) -> str:
    """Name of the group of tests that run on the same worker."""
    if _ON_KIND.search(nodeid):
        return "demo[kind]"
    file = nodeid.partition("::")[0]
    together = next((each for each in _TOGETHER if file.startswith(each)), None)
    return together or _FIRST.get(file, file)


def place(nodeid: str, *, kind: bool, limited: bool = False) -> tuple[int, int]:
    """Sort key of a test. Those that need kind run last, with their shared topology first.

    limited: tests that have not started at some time are skipped. Most of LONG then follow the
    rest, since one of them takes as long as a hundred others.
    """
    file = nodeid.partition("::")[0]
    if kind:
        rank = 0 if _ON_KIND.search(nodeid) else 2 if file == _ON_KIND_LAST else 1
        return 2 * len(LONG) + 2, rank
    if file.startswith(QUICK):
        return 0, _PLACE_IN_CHAIN.get(file, 0)
    name = one_worker(nodeid)
    rank = LONG.index(name) if name in LONG else len(LONG)
    if limited and name in LONG[NEVER_LATE:]:
        rank += len(LONG)
    return rank + 1, _PLACE_IN_CHAIN.get(file, 0)


class SharedTopologies(LoadFileScheduling):
    """Groups tests by file, or by shared control planes or topologies, which start slowly."""

    def _split_scope(self, nodeid: str) -> str:
        return one_worker(nodeid)
