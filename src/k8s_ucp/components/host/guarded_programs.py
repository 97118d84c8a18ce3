"""A helm and a kustomize for Argo CD, in front of the real ones.

On this machine Argo CD builds others' repositories as the user, who can read much more than its own
container could. helm would read files outside of the repository, pack charts from there
(local_charts.py), and read Argo CD's variables, if a repository names them the right way. kustomize
takes any folder as a base (local_bases.py). A remote base can be a `file://` URL, of any git
repository that the user can read, so kustomize's git uses only the transports that `ucp check`
allows; Argo CD's own git isn't affected.
Over plain http both would load what only this machine can reach, such as a port on loopback or a
cloud's metadata; and both would use any amount of memory. `ucp check` takes the same care
(gitops/manifests).
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
from k8s_ucp.gitops.manifests.kustomize import COLLECTING, MEMORY, NO_HTTP
from k8s_ucp.workspace import FOLDER_MODE, write_private_file

_NO_HTTP = " ".join(f"{name}={value}" for name, value in NO_HTTP.items())
_COLLECTING = " ".join(f"{name}={value}" for name, value in COLLECTING.items())
_RESERVED = 2_000_000_000
"""Bytes of addresses that a Go program reserves without using them."""
ADDRESSES = MEMORY + _RESERVED
"""Bytes of addresses for each of Argo CD's programs that builds others' repositories."""
_LIMIT = f"""# A few lines can ask for all memory of the machine: with aliases, or in a template.
ulimit -v {ADDRESSES // 1024} 2>/dev/null || true
"""
_HELM = """#!/bin/sh
# Written by k8s-ucp. helm splits the name of a file with values at commas, so that its second part
# could be any file of this machine: quoted, it is one name. A name of a release can be a template,
# which could show variables of Argo CD, such as the password of redis.
{limit}refuse() {{ # WHAT
  echo "Error: refused: $1" >&2
  exit 1
}}
# A dependency can name a folder of this machine.
if test "$1" = dependency; then
  {python} -I -m k8s_ucp.components.host.local_charts || exit 1
fi
# A schema for values can name a file of this machine, whose words helm's message would have.
schema='/values\\.schema\\.json$'
if test "$1 $2" = "template ." && find -L . 2>/dev/null | grep -q -e "$schema" -e '\\.tgz$'; then
  {python} -I -m k8s_ucp.components.host.local_charts schemas || exit 1
fi
# Files with values can be URLs. Go refuses those over plain http if both variables are set.
test "$1" != template || export {no_http}
left=$#
option=
while test "$left" -gt 0; do
  word=$1
  shift
  left=$((left - 1))
  case $option:$word in
    --values:*\\"*) refuse "a quote in the name of $word" ;;
    --name-template:*'{{{{'*) refuse 'a template as the name of a release' ;;
    # A name of a parameter could bring another parameter, of any file of this machine.
    --set-file:*[,{{]*) refuse "a comma or a brace in the file parameter $word" ;;
    --values:*,*) set -- "$@" "\\"$word\\"" ;;
    *) set -- "$@" "$word" ;;
  esac
  option=$word
done
exec {program} "$@"
"""


_HARMLESS = r"""
FNR == 1 { name = FILENAME; depth = gsub("/", "", name) - 1 }
/[^ -~]/ || /[\\!&%]/ { exit 1 }
/\.\./ {
  if ($0 !~ "^ *- ([.][.]/)+[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$") exit 1
  if (gsub("[.][.]/", "") > depth) exit 1
}
"""
"""For awk: fails for a kustomization that could name a folder above the working folder.

All of its texts consist of its own characters, without escapes, tags and aliases, and no fold of
lines makes `..` of single dots. So a text has it only where the file has it: in lines that contain
nothing but one path, with no more of it than there are folders above the file.
"""
_KUSTOMIZE = """#!/bin/sh
# Written by k8s-ucp. A remote base must not be a repository of this machine, nor a file over plain
# http, which Go refuses if both of the other variables are set. A base can be any folder, too.
{limit}
# Whether no base can be outside: the folder is in the repository, without links, and every
# kustomization is harmless. Anything else is left to Python, which reads YAML but takes 0.1 s.
is_inside() {{ # FOLDER
  cd -P . || return 1
  case $1 in
    */..*) return 1 ;;
    "$PWD" | "$PWD"/*) ;;
    *) return 1 ;;
  esac
  LC_ALL=C find . -path ./.git -prune -o -type l -exec false {{}} + \\
    -o -type f \\( {names} \\) -size +999999c -exec false {{}} + \\
    -o -type f \\( {names} \\) -exec awk {harmless} {{}} + >/dev/null 2>&1
}}
if test "$1" = build && ! is_inside "$2"; then
  {python} -I -m k8s_ucp.components.host.local_bases "$2" || exit 1
fi
export GIT_ALLOW_PROTOCOL={protocols} {no_http} {collecting}
exec {program} "$@"
"""


def write_helm(folder: Path, program: Path) -> Path:
    """Write it to a private folder, for the beginning of a PATH. Returns the folder."""
    python, quoted = shlex.quote(sys.executable), shlex.quote(str(program))
    text = _HELM.format(python=python, program=quoted, no_http=_NO_HTTP, limit=_LIMIT)
    return _write(folder / "helm", text)


def write_kustomize(folder: Path, program: Path, protocols: str) -> Path:
    """Write it to a private folder, for the beginning of a PATH. Returns the folder.

    protocols: as in git's variable GIT_ALLOW_PROTOCOL.
    """
    text = _KUSTOMIZE.format(
        python=shlex.quote(sys.executable),
        program=shlex.quote(str(program)),
        protocols=shlex.quote(protocols),
        names=" -o ".join(f"-name {each}" for each in KUSTOMIZATIONS),
        harmless=shlex.quote(_HARMLESS),
        no_http=_NO_HTTP,
        collecting=_COLLECTING,
        limit=_LIMIT,
    )
    return _write(folder / "kustomize", text)


def _write(script: Path, text: str) -> Path:
    if not (os.access(script, os.X_OK) and script.read_text("utf-8") == text):
        write_private_file(script, text)
        script.chmod(FOLDER_MODE)
    return script.parent
