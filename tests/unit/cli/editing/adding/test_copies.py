"""Sources of apps outside of the workspace are copied, or nothing is left."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.cli.editing.adding.copies import beside


def test_an_interrupt_while_a_copy_is_tidied_up_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, root = tmp_path / "web", tmp_path / "workspace"
    for each in (source, root):
        each.mkdir()
    (source / "web.yaml").write_text("kind: ConfigMap\n")

    def interrupted(folder: Any) -> None:
        folder._finalizer.detach()
        raise KeyboardInterrupt

    monkeypatch.setattr(tempfile.TemporaryDirectory, "cleanup", interrupted)
    with pytest.raises(KeyboardInterrupt), contextlib.ExitStack() as undone:
        beside(root, str(source), "manifests/web", undone, folder=True)
    assert not (root / "manifests").exists()
