"""Which tests go to one worker: a file's, and those that share the started topology on kind."""

from __future__ import annotations

import re

from xdist.scheduler import LoadFileScheduling

_ON_KIND = re.compile(r"/e2e/.*\[(.*-)?kind(-.*)?\]$")


class SharedTopologies(LoadFileScheduling):
    """Files, but for the end-to-end tests of the fixture `demo[kind]`, which takes a minute."""

    def _split_scope(self, nodeid: str) -> str:
        return "demo[kind]" if _ON_KIND.search(nodeid) else str(super()._split_scope(nodeid))
