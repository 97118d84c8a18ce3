"""Where the cache is, and what to type if a folder can't be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import cache_folder, make_private_folder


def test_a_missing_home_is_reported_with_the_variables_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a container that runs as an unknown user."""
    for name in ("HOME", "UCP_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**22 + 7)
    with pytest.raises(UcpError) as caught:
        cache_folder()
    assert caught.value.next == "set HOME or UCP_CACHE_DIR to a writable folder"


@pytest.mark.parametrize(
    ("variable", "value", "folder"),
    [
        ("UCP_CACHE_DIR", ".cache", ".cache"),
        ("XDG_CACHE_HOME", "x", "x/k8s-ucp"),
        ("HOME", "h", "h/.cache/k8s-ucp"),
    ],
)
def test_a_relative_cache_is_the_same_for_programs_in_other_folders(
    variable: str, value: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("UCP_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, value)
    assert cache_folder() == tmp_path / folder


def test_the_advice_for_an_unwritable_folder_depends_on_its_location(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UCP_CACHE_DIR", str(tmp_path / "cache"))
    for parent, advice in (("cache", "UCP_CACHE_DIR"), ("work", "--workspace")):
        (tmp_path / parent).write_text("in the way")
        with pytest.raises(UcpError) as caught:
            make_private_folder(tmp_path / parent / "new")
        assert advice in str(caught.value.next)
