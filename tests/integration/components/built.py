"""Programs that only tests use: built from pinned modules into the user's cache, like others."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.tools.catalogue import Tool
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.toolbox import Toolbox
from tests.conftest import CACHE

MODULES = Path(__file__).parent / "modules"


def built(tool: Tool) -> Toolbox:
    """The tool, from the cache or built now, which may take minutes."""
    cache = CACHE / "tests" / "tools"
    installer = Installer(cache, lambda _: None, catalogue={tool.name: tool}, modules=MODULES)
    return installer.install([tool.name])
