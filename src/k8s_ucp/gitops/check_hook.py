"""Refuses pushes to a local repository that bring something wrong: a hook, and what it starts.

What was wrong before the push is no reason. Where nothing can be checked (the Python that wrote the
hook or kustomize has moved, time is up) the push passes.
"""

from __future__ import annotations

import argparse
import re
import shlex
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check import Checkout, check
from k8s_ucp.gitops.hooks import write_hook

_SECONDS = 50
"""The program ends by then, and the push passes."""
_MARK = "# Written by k8s-ucp: checks a push before it lands."
_HOOK = """#!/bin/sh
{mark}
python={python}
kustomize={kustomize}
core={core}
test -x "$python" && test -x "$kustomize" || exit 0
work=$(mktemp -d "${{TMPDIR:-/tmp}}/ucp-check.XXXXXX") || exit 0
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

files_of() {{ # REPOSITORY COMMIT FOLDER: git's variables name this repository and what is pushed.
  mkdir -p "$3" && rm -f "$work/index" || return 1
  GIT_INDEX_FILE="$work/index" git --git-dir="$1" read-tree "$2" 2>/dev/null &&
    GIT_INDEX_FILE="$work/index" git --git-dir="$1" --work-tree="$3" \\
      checkout-index --all --prefix="$3/" 2>/dev/null
}}

look() {{ # FOLDER: 0 nothing is wrong, 1 findings, else it can't be told
  "$python" -P -m k8s_ucp.gitops.check_hook --kustomize "$kustomize" --repository {name} \\
    --folder "$1" --changed "$work/changed" --core "$work/core" </dev/null 2>"$work/log"
}}

if test -n "$core" && test -d "$core"; then
  (unset GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_QUARANTINE_PATH
   files_of "$core" {ref} "$work/core") || rm -rf "$work/core"
fi
while read -r old new ref; do
  test "$ref" = {ref} || continue
  case "$new" in *[!0]*) ;; *) continue ;; esac
  git diff-tree -r --name-only --no-renames "$old" "$new" >"$work/changed" 2>/dev/null ||
    echo '*' >"$work/changed"
  # The backup is encrypted, and nothing refers to it.
  grep -qv '^backup/' "$work/changed" || continue
  files_of "$PWD" "$new" "$work/new" || exit 0
  look "$work/new" >"$work/findings"
  test $? = 1 || exit 0
  : >"$work/before"
  if files_of "$PWD" "$old" "$work/old"; then look "$work/old" >"$work/before"; fi
  grep -vxF -f "$work/before" "$work/findings" >"$work/brought" || exit 0
  {{ echo 'this push is refused, since it brings:'; sed 's/^/  /' "$work/brought"
    echo '  next: correct it, run `ucp check`, commit, push again'; }} >&2
  exit 1
done
exit 0
"""


def ensure_check_hook(
    bare: Path, name: str, *, python: Path, kustomize: Path, branch: str = "main"
) -> str | None:
    """Write the hook of a local remote, `core` or `apps`, where it is missing or old.

    Returns what a person should know when a hook of their own is in its place, else None.
    """
    core = bare.with_name("core.git") if name == "apps" else None
    text = _HOOK.format(
        mark=_MARK,
        python=shlex.quote(str(python)),
        kustomize=shlex.quote(str(kustomize)),
        core=shlex.quote(str(core or "")),
        ref=shlex.quote(f"refs/heads/{branch}"),
        name=name,
    )
    if write_hook(bare, "pre-receive", text, mark=_MARK):
        return None
    return f"{bare / 'hooks' / 'pre-receive'} is not ours: pushes are not checked"


def changed_apps(paths: Iterable[str]) -> set[str] | None:
    """Apps that a push touches; None for all of them."""
    found = set()
    for path in paths:
        match = re.match(r"apps/([^/]+)/", path)
        if match:
            found.add(match[1])
        elif path == "*" or path.startswith('"'):
            return None
    return found


def main(arguments: list[str] | None = None) -> int:
    """What the hook starts: prints findings, one a line. Exit code 1 where there are some."""
    parser = argparse.ArgumentParser(prog="k8s_ucp.gitops.check_hook", description=__doc__)
    parser.add_argument("--kustomize", type=Path, required=True)
    parser.add_argument("--repository", choices=("core", "apps"), required=True)
    parser.add_argument("--folder", type=Path, required=True, help="the pushed files")
    parser.add_argument("--changed", type=Path, required=True, help="file of the changed paths")
    parser.add_argument("--core", type=Path, help="files of the core repository, for an app's")
    wanted = parser.parse_args(arguments)
    signal.alarm(_SECONDS)
    if wanted.repository == "core":
        findings = check(wanted.kustomize, Checkout(core=wanted.folder))
    else:
        core = wanted.core if wanted.core and wanted.core.is_dir() else None
        only = changed_apps(wanted.changed.read_text("utf-8", "replace").splitlines())
        findings = [
            each
            for each in check(wanted.kustomize, Checkout(core, wanted.folder), only)
            if each.repository == "apps"
        ]
    for each in findings:
        print(f"{each.path}: {each.message}")  # noqa: T201 (for the hook)
    return 1 if findings else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UcpError as error:
        print(error, file=sys.stderr)  # noqa: T201 (the hook's log)
        sys.exit(2)
