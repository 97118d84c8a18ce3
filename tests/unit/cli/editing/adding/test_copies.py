"""Sources of apps outside of the workspace are copied, or nothing is left."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.cli.editing.adding import copies
from k8s_ucp.cli.editing.adding.copies import beside
from k8s_ucp.errors import UcpError


def file_elsewhere(folder: Path) -> tuple[Path, Path]:
    """A file of manifests, and an empty workspace beside it."""
    source, root = folder / "web.yaml", folder / "workspace"
    root.mkdir()
    source.write_text("kind: ConfigMap\n")
    return source, root


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


@pytest.mark.parametrize("folder", [True, False])
def test_an_interrupt_right_after_a_copy_was_placed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:
    source, root = file_elsewhere(tmp_path)
    real = copies._is_placed

    def interrupted(part: Path, target: Path) -> bool:
        assert real(part, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(copies, "_is_placed", interrupted)
    with pytest.raises(KeyboardInterrupt), contextlib.ExitStack() as undone:
        beside(root, str(source), "manifests/web", undone, folder=folder)
    assert not (root / "manifests").exists()


@pytest.mark.parametrize("folder", [True, False])
def test_a_copy_that_another_command_made_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:
    """`ucp app add` twice at once: the second is refused, and the first needs its copy."""
    source, root = file_elsewhere(tmp_path)
    real = copies._is_placed

    def second(part: Path, target: Path) -> bool:
        with monkeypatch.context() as first:
            first.setattr(copies, "_is_placed", real)
            beside(root, str(source), "manifests/web", contextlib.ExitStack(), folder=folder)
        return real(part, target)

    monkeypatch.setattr(copies, "_is_placed", second)
    with pytest.raises(KeyError), contextlib.ExitStack() as undone:
        beside(root, str(source), "manifests/web", undone, folder=folder)
        raise KeyError

    assert (root / "manifests/web").exists()


def test_a_copy_that_ucp_yaml_needs_is_not_removed(tmp_path: Path) -> None:
    """Another command added the same app with the copy of this one, or the edit was kept."""
    source, root = file_elsewhere(tmp_path)
    with pytest.raises(KeyError), contextlib.ExitStack() as undone:
        beside(root, str(source), "manifests/web", undone, folder=True)
        (root / "ucp.yaml").write_text("apps: [{name: web, path: manifests/web}]\n")
        raise KeyError

    assert (root / "manifests/web/web.yaml").exists()


def test_a_copy_of_a_refused_app_is_removed(tmp_path: Path) -> None:
    source, root = file_elsewhere(tmp_path)
    (root / "ucp.yaml").write_text("apps: []\n")
    for folder in (True, False):
        with pytest.raises(KeyError), contextlib.ExitStack() as undone:
            beside(root, str(source), "manifests/web", undone, folder=folder)
            raise KeyError
        assert not (root / "manifests").exists()


def test_a_file_in_place_of_the_folder_of_copies_is_reported(tmp_path: Path) -> None:
    source = tmp_path / "web.yaml"
    source.write_text("kind: ConfigMap\n")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "manifests").write_text("")
    with (
        pytest.raises(UcpError, match=r"failed to create the folder .*manifests: File exists"),
        contextlib.ExitStack() as undone,
    ):
        beside(tmp_path / "workspace", str(source), "manifests/web", undone, folder=True)
