"""Three-way merge of one file, as git does it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from k8s_ucp.git.repository import LOCAL_SECONDS, execute


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
    """(text, True when no conflict is left in it). Binary content conflicts.

    ours is the repository's version, theirs the new render's.
    """
    with tempfile.TemporaryDirectory(prefix="ucp-merge-") as folder:
        names = [Path(folder) / each for each in ("repository", "last-render", "new-render")]
        for path, content in zip(names, (ours, base, theirs), strict=True):
            path.write_bytes(content)
        labels = ["-L", "repository", "-L", "last render", "-L", "new render"]
        arguments = ["merge-file", "-p", *labels, *(str(each) for each in names)]
        out, _, code = execute(arguments, timeout=LOCAL_SECONDS)
    return out, code == 0
