"""Image archives have to be inside the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.clusters.kind.checks import check_archives
from k8s_ucp.errors import UsageError


def test_an_archive_outside_the_workspace_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "outside.tar").write_bytes(b"x")
    (tmp_path / "inside").mkdir()
    with pytest.raises(UsageError, match="outside the workspace"):
        check_archives([tmp_path / "inside" / ".." / "outside.tar"])
    check_archives([tmp_path / "outside.tar"])
