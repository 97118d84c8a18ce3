"""Writing a render to a folder (`ucp render --out`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.repositories import Rendered

RENDERED = Rendered({"ucp.yaml": b"kind: Topology\n", "projects/web.yaml": b"a: 1\n"}, {})


def test_no_file_that_a_link_leads_to_is_overwritten(tmp_path: Path) -> None:
    """The output folder may be one of a clone of others."""
    profile, out = tmp_path / "profile", tmp_path / "out"
    profile.write_text("export PATH\n")
    (out / "core").mkdir(parents=True)
    (out / "core/ucp.yaml").symlink_to(profile)
    render_to(out, RENDERED)
    assert profile.read_text() == "export PATH\n"
    assert (out / "core/ucp.yaml").read_bytes() == b"kind: Topology\n"


def test_nothing_is_written_to_a_folder_that_a_link_leads_to(tmp_path: Path) -> None:
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    (out / "core").mkdir(parents=True)
    (out / "core/projects").symlink_to(elsewhere)
    with pytest.raises(UcpError, match="a symbolic link points outside of") as refused:
        render_to(out, RENDERED)
    assert refused.value.next == "delete the link, or name another folder with --out"
    assert not any(elsewhere.iterdir())


def test_another_folder_is_suggested_if_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "core").write_text("in the way")
    with pytest.raises(UcpError, match="failed to write") as refused:
        render_to(tmp_path, RENDERED)
    assert refused.value.next == "name another folder with --out"


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    render_to(tmp_path / "out", RENDERED)
    assert (tmp_path / "disk/core/projects/web.yaml").read_bytes() == b"a: 1\n"
