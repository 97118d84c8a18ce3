"""Credentials of the simulated cloud in a file."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from k8s_ucp.cloud.keys import settle_keys
from k8s_ucp.errors import UcpError


@pytest.mark.parametrize("content", ["", "{", "\0\0"])
def test_corrupt_keys_are_refused_with_the_command_that_replaces_them(
    tmp_path: Path, content: str
) -> None:
    """Another start would keep the file."""
    kept = settle_keys(tmp_path)
    (file,) = tmp_path.iterdir()
    assert settle_keys(tmp_path) == kept
    file.write_text(content)
    with pytest.raises(UcpError, match="are corrupt") as caught:
        settle_keys(tmp_path)
    assert f"rm {shlex.quote(str(file))}; " in (caught.value.next or "")
    file.unlink()
    assert settle_keys(tmp_path) != kept
