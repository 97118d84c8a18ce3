"""Where things lie, and that neither the caller's login nor another user changes it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import Workspace, cache_folder, write_private_file


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.at(tmp_path / "work")


def test_without_a_home_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container under a user that it doesn't know."""
    for name in ("HOME", "UCP_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**22 + 7)
    with pytest.raises(UcpError) as caught:
        cache_folder()
    assert caught.value.next == "set HOME or UCP_CACHE_DIR to a folder you may write to"
