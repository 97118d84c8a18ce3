"""Which tests go to one worker: a file's, and those that share a topology. Long ones come first."""

from __future__ import annotations

import re

from xdist.scheduler import LoadFileScheduling

_ON_KIND = re.compile(r"/e2e/.*\[(.*-)?kind(-.*)?\]$")

CHAINS = (
    ("test_path", "test_promotion", "test_faults", "test_corpus"),
    ("test_walkthroughs", "test_mirrors", "test_surroundings"),
)
"""Files of tests/e2e whose tests come one after the other, on one topology that is started once."""

_ORDER = (
    *(file for chain in CHAINS for file in chain),
    *("test_takeover", "test_core_of_others", "test_adoption", "test_existing", "test_backup"),
)
_FIRST = {file: chain[0] for chain in CHAINS for file in chain}


def place(file: str) -> int:
    """Of an end-to-end file in the run: what takes longest begins first, lest it run on alone."""
    return _ORDER.index(file) if file in _ORDER else len(_ORDER)


class SharedTopologies(LoadFileScheduling):
    """Files, but for end-to-end tests that share a topology, which takes most of a minute."""

    def _split_scope(self, nodeid: str) -> str:
        if _ON_KIND.search(nodeid):
            return "demo[kind]"
        scope = str(super()._split_scope(nodeid))
        folder, _, file = scope.removesuffix(".py").rpartition("/")
        return _FIRST.get(file, scope) if folder == "tests/e2e" else scope
