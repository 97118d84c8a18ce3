"""Builds equal folders of repositories once, for tests of the commands around these builds.

Each command that edits ucp.yaml checks all that is rendered from it, and most of that is the same
in all tests: two of three builds repeat an earlier one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.manifests import build_many
from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
from k8s_ucp.gitops.manifests.sources import find_outside

_built: dict[object, build_many.Built] = {}


@contextmanager
def remembered_builds() -> Iterator[None]:
    """In this block, folders whose content was built before are not built again."""
    build = build_many._build

    def build_once(
        program: build_many._Kustomize, root: Path, folders: list[str]
    ) -> build_many.Built:
        inputs = [_input(root, folder) for folder in folders]
        key = program, tuple(folders), tuple(inputs)
        if key in _built:
            return _built[key]
        found = build(program, root, folders)
        if None not in inputs and not found.failures:
            _built[key] = found
        return found

    with patch.object(build_many, "_build", build_once):
        yield


def _input(root: Path, folder: str) -> bytes | None:
    """Digest of the files that kustomize can read for a folder; None if it can read others."""
    above = (root / each for each in (Path(folder), *Path(folder).parents))
    try:
        top = next(each for each in above if find_outside(root / folder, each) is None)
    except (UcpError, OSError):
        return None
    paths = [each for each in sorted(top.rglob("*")) if ".git" not in each.relative_to(root).parts]
    files = {each.relative_to(root): each.read_bytes() for each in paths if each.is_file()}
    if any(each.is_symlink() for each in paths) or any(
        b"://" in content for path, content in files.items() if path.name in KUSTOMIZATIONS
    ):
        return None
    return hashlib.sha256(repr(files).encode()).digest()
