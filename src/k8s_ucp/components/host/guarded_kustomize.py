"""A kustomize for Argo CD, in front of the real one.

On this machine Argo CD builds others' repositories as the user, and a remote base can be a
`file://` URL: of any git repository that the user can read. So kustomize's git uses only the
transports that `ucp check` allows, too. Argo CD's own git isn't affected.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from k8s_ucp.workspace import FOLDER_MODE, write_private_file

_KUSTOMIZE = """#!/bin/sh
# Written by k8s-ucp. A remote base must not be a repository of this machine.
export GIT_ALLOW_PROTOCOL={protocols}
exec {program} "$@"
"""


def write_kustomize(folder: Path, program: Path, protocols: str) -> Path:
    """Write it to a private folder, for the beginning of a PATH. Returns the folder.

    protocols: as in git's variable GIT_ALLOW_PROTOCOL.
    """
    script = folder / "kustomize"
    text = _KUSTOMIZE.format(program=shlex.quote(str(program)), protocols=shlex.quote(protocols))
    if not (os.access(script, os.X_OK) and script.read_text("utf-8") == text):
        write_private_file(script, text)
        script.chmod(FOLDER_MODE)
    return folder
