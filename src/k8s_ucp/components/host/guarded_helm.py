"""A helm for Argo CD, in front of the real one.

On this machine Argo CD builds others' repositories as the user, who can read much more than its own
container could. helm would read files outside of the repository, and Argo CD's variables, if a
repository names them the right way. `ucp check` takes the same care (gitops/manifests/helm.py).
For kustomize, Argo CD has a guarded git of its own.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from k8s_ucp.workspace import FOLDER_MODE, write_private_file

_HELM = """#!/bin/sh
# Written by k8s-ucp. helm splits the name of a file with values at commas, so that its second part
# could be any file of this machine: quoted, it is one name. A name of a release can be a template,
# which could show variables of Argo CD, such as the password of redis.
refuse() {{ # WHAT
  echo "Error: refused: $1" >&2
  exit 1
}}
left=$#
option=
while test "$left" -gt 0; do
  word=$1
  shift
  left=$((left - 1))
  case $option:$word in
    --values:*\\"*) refuse "a quote in the name of $word" ;;
    --name-template:*'{{{{'*) refuse 'a template as the name of a release' ;;
    --values:*,*) set -- "$@" "\\"$word\\"" ;;
    *) set -- "$@" "$word" ;;
  esac
  option=$word
done
exec {program} "$@"
"""


def write_helm(folder: Path, program: Path) -> Path:
    """Write it to a private folder, for the beginning of a PATH. Returns the folder."""
    script = folder / "helm"
    text = _HELM.format(program=shlex.quote(str(program)))
    if not (os.access(script, os.X_OK) and script.read_text("utf-8") == text):
        write_private_file(script, text)
        script.chmod(FOLDER_MODE)
    return folder
