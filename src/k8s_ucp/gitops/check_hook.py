"""Rejects pushes to a local repository that add errors: a git hook and the program it starts.

Warnings are shown to the user who pushes, but don't reject the push.

Errors that existed before the push don't count. What can't be checked counts as an error: an
exception in the check, or a timeout. If the check of the commit before ended in the same way, or
the check itself is missing (the hook's Python or kustomize has moved), the push is accepted with a
message that it was not checked. Commits that a ucp command has just checked and pushes unchanged
aren't checked again.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from k8s_ucp import __version__
from k8s_ucp.check_rules import PAGE
from k8s_ucp.git.clones import write_hook
from k8s_ucp.git.objects import tree_id
from k8s_ucp.gitops.check.findings import CheckFinding
from k8s_ucp.gitops.check.repositories import (
    SHOWN,
    Checkout,
    CheckResult,
    check,
    transports_in,
)
from k8s_ucp.workspace import write_private_file

_SECONDS = 50
"""Limit of each of the two runs (pushed commit, previous commit); ucp's own pushes wait longer."""
FINDINGS = 10
"""Exit code for findings. Python's own are 1 if it can't start and 2 for wrong arguments."""
_OLD_FINDINGS = 1
"""Exit code for hooks of earlier versions, which don't pass one."""
MOST_FILES = 100_000
"""Most files and folders of a pushed commit: a tree can name itself many times at each level, and
so have billions of files in some kilobytes."""
MOST_BYTES = 1_000_000_000
"""Largest total size of these files: each may be listed many times."""
_CHECKED = "ucp-checked"
"""File in a local remote, out of reach of pushes: the version that checked, and the tree ids."""
_MARK = "# Written by k8s-ucp:"
"""Identifies the hooks of all versions."""
_HOOK = """#!/bin/sh
{mark} checks pushes before they are accepted.
python={python}
kustomize={kustomize}
helm={helm}
core={core}
unchecked() {{ # WHY
  echo "this push was not checked: $1" >&2
  exit 0
}}
full() {{ # What the check needs to know, or has found, is missing.
  echo "this push is rejected because $work can't be written" >&2
  echo '  next: free disk space (df -h), or set TMPDIR to another folder' >&2
  exit 1
}}
test -x "$python" && test -x "$kustomize" ||
  unchecked 'python or kustomize was moved or deleted; next: ucp start'
temporary=${{TMPDIR:-/tmp}}
test -d "$temporary" && test -w "$temporary" || temporary=/tmp
# Ignore replace objects: those who read the repository don't have them.
export GIT_NO_REPLACE_OBJECTS=1
# Remove files of hooks that were killed.
find "$temporary/" -maxdepth 1 -name 'ucp-check.??????' -user "$(id -u)" -mmin +60 \\
  -exec rm -rf {{}} + 2>/dev/null
work=$(mktemp -d "$temporary/ucp-check.XXXXXX") ||
  unchecked 'failed to create a temporary folder'
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

files_of() {{ # REPOSITORY COMMIT FOLDER: git's variables lead to the pushed objects.
  mkdir -p "$3" && rm -f "$work/index" || return 1
  GIT_INDEX_FILE="$work/index" git --git-dir="$1" read-tree "$2" 2>"$work/unread" &&
    GIT_INDEX_FILE="$work/index" git --git-dir="$1" --work-tree="$3" \\
      checkout-index --all --prefix="$3/" 2>"$work/unread"
}}

is_too_large() {{ # COMMIT: has more files than the check and Argo CD should write
  git ls-tree -r -t -l "$1" 2>/dev/null |
    awk '{{ size += $4 }} NR > {most_files} || size > {most_bytes} {{ exit 3 }}'
  test $? -eq 3
}}

in_core() {{ # COMMAND: without git's variables, which refer to the repository of this push.
  (unset GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_QUARANTINE_PATH; "$@")
}}

is_checked() {{ # COMMIT: checked against the same core by the ucp command that pushes it
  noted=$(find "$PWD/{checked}" -prune -user "$(id -u)" -mmin -5 2>/dev/null) &&
    test -n "$noted" || return 1
  trees=$(git rev-parse --verify --quiet "$1^{{tree}}") || return 1
  if test -n "$core"; then
    beside=$(in_core git --git-dir="$core" rev-parse --verify --quiet {ref}'^{{tree}}') || return 1
    trees="$beside $trees"
  fi
  test "$(cat "$noted" 2>/dev/null)" = "{version} $trees"
}}

look() {{ # FOLDER: returns 0 without errors, {findings} with errors (printed), 1 if it can't start
  : >"$work/warnings"
  TMPDIR="$work" "$python" -P -m k8s_ucp.gitops.check_hook --kustomize "$kustomize" \\
    --helm "$helm" --repository {name} --code {findings} --folder "$1" \\
    --changed "$work/changed" --core "$work/core" --warnings "$work/warnings" \\
    </dev/null 2>"$work/log"
  code=$?
  case $code in 0 | {findings}) return $code ;; esac
  # A push must not be accepted because it crashes the check, only if the check can't start.
  "$python" -P -c 'import k8s_ucp.gitops.check_hook' </dev/null 2>/dev/null || return 1
  echo ".: can't be checked: the check exited with code $code"
  return {findings}
}}

if test -n "$core" && test -d "$core"; then
  in_core files_of "$core" {ref} "$work/core" || rm -rf "$work/core"
fi
while read -r old new ref; do
  test "$ref" = {ref} || continue
  case "$new" in *[!0]*) ;; *) continue ;; esac
  if is_too_large "$new"; then
    echo 'this push is rejected because its files and folders are more than {most_files}, or' \
      'larger than {most_bytes} bytes' >&2
    exit 1
  fi
  git diff-tree -r --name-only --no-renames "$old" "$new" >"$work/changed" 2>/dev/null ||
    echo '*' >"$work/changed" || full
  # A push of the backup alone needs no check: it is encrypted, and no manifest uses it.
  test {name} = apps || grep -qv '^backup/' "$work/changed" || continue
  is_checked "$new" && continue
  # Argo CD could not read them either: names such as `..`, or more than the disk can hold.
  files_of "$PWD" "$new" "$work/new" || {{
    {{ echo "this push is rejected because git can't write its files:"
      head -n {shown} "$work/unread" | sed 's/^/  /'; }} >&2
    exit 1
  }}
  look "$work/new" >"$work/findings"
  case $? in
    0) test -s "$work/warnings" || continue ;;
    1) unchecked "$(tail -n 1 "$work/log"); next: ucp start" ;;
    *) test -s "$work/findings" || full ;;
  esac
  mv "$work/warnings" "$work/warned"
  : >"$work/before"
  if files_of "$PWD" "$old" "$work/old"; then look "$work/old" >"$work/before"; fi
  if grep -vxF -f "$work/warnings" "$work/warned" >"$work/brought"; then
    {{ echo 'this push adds warnings, which do not block it:'
      head -n {shown} "$work/brought" | sed 's/^/  /'; }} >&2
  fi
  if ! grep -vxF -f "$work/before" "$work/findings" >"$work/brought"; then
    # The commit before could not be checked either, so what this push adds is not known.
    ! grep -q '^[.]: ' "$work/findings" || {{
      echo 'this push was not checked, like the commit before it:'
      grep '^[.]: ' "$work/findings" | head -n {shown} | sed 's/^/  /'
      echo '  next: fix the cause, and run `ucp check`'
    }} >&2
    continue
  fi
  {{ echo 'this push is rejected because it adds errors:'; sed 's/^/  /' "$work/brought"
    echo '  next: fix them (rules: {page}), run `ucp check`, commit and push again'; }} >&2
  exit 1
done
exit 0
"""


def ensure_check_hook(
    bare: Path,
    name: str,
    *,
    python: Path,
    kustomize: Path,
    branch: str = "main",
    helm: Path | None = None,
) -> str | None:
    """Create or update the hook of a local remote, `core` or `apps`.

    helm: the program that renders charts; without it, a push with a chart is rejected.

    Returns a message for the user if there is a hook that ucp did not write, else None.
    """
    core = bare.with_name("core.git") if name == "apps" else None
    text = _HOOK.format(
        mark=_MARK,
        python=shlex.quote(str(python)),
        kustomize=shlex.quote(str(kustomize)),
        helm=shlex.quote(str(helm or "")),
        core=shlex.quote(str(core or "")),
        ref=shlex.quote(f"refs/heads/{branch}"),
        name=name,
        findings=FINDINGS,
        shown=SHOWN,
        most_files=MOST_FILES,
        most_bytes=MOST_BYTES,
        page=PAGE,
        checked=_CHECKED,
        version=__version__,
    )
    if write_hook(bare, "pre-receive", text, mark=_MARK):
        return None
    return f"{bare / 'hooks' / 'pre-receive'} was not created by ucp: pushes are not checked"


@contextlib.contextmanager
def already_checked(
    core: Path, apps: Path, files: Mapping[str, bytes], app_files: Mapping[str, bytes]
) -> Iterator[None]:
    """Let the hooks of both local remotes accept exactly these files during the block.

    files, app_files: all files of the repositories, {path: content}, that were checked together. A
    push with any other content, such as a concurrent commit of a user, is checked as usual.
    """
    trees = tree_id(files)
    records = ((core, trees), (apps, f"{trees} {tree_id(app_files)}"))
    try:
        for bare, found in records:
            # Without the record the hook runs the check, so a failure here doesn't matter.
            with contextlib.suppress(OSError):
                write_private_file(bare / _CHECKED, f"{__version__} {found}\n")
        yield
    finally:
        for bare, _ in records:
            with contextlib.suppress(OSError):
                (bare / _CHECKED).unlink(missing_ok=True)


def changed_apps(paths: Iterable[str]) -> set[str] | None:
    """Apps that a push changes; None for all of them."""
    found = set()
    for path in paths:
        match = re.match(r"apps/([^/]+)/", path)
        if match:
            found.add(match[1])
        elif path == "*" or path.startswith('"'):
            return None
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print errors, one per line, for the hook. Exit code: `--code` if there are errors, else 0."""
    parser = argparse.ArgumentParser(prog="k8s_ucp.gitops.check_hook", description=__doc__)
    parser.add_argument("--kustomize", type=Path, required=True)
    parser.add_argument("--helm", default="")
    parser.add_argument("--repository", choices=("core", "apps"), required=True)
    parser.add_argument("--folder", type=Path, required=True, help="the pushed files")
    parser.add_argument("--changed", type=Path, required=True, help="file of the changed paths")
    parser.add_argument("--core", type=Path, help="files of the core repository, for an app's")
    parser.add_argument("--code", type=int, default=_OLD_FINDINGS, help="exit code for findings")
    parser.add_argument("--warnings", type=Path, help="file to write warnings to, one a line")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGALRM, _expire(options.code))
    signal.alarm(_SECONDS)
    try:
        checked = _checked(options)
    except Exception as error:  # noqa: BLE001 (never accept a push because of an error)
        message = f"failed to check: {_words(error)}"
        checked = CheckResult([CheckFinding(options.repository, ".", message, "check-failed")])
    signal.alarm(0)
    findings = [each for each in checked.findings if each.repository == options.repository]
    errors = [each.text for each in findings if each.blocks]
    for each in errors:
        print(each)  # noqa: T201 (for the hook)
    if options.warnings:
        warnings = [each.text for each in findings if not each.blocks]
        warnings += [each for each in checked.notes if each.startswith(f"{options.repository}: ")]
        options.warnings.write_text("".join(f"{each}\n" for each in warnings), "utf-8")
    return int(options.code) if errors else 0


def _checked(options: argparse.Namespace) -> CheckResult:
    if options.repository == "core":
        also = _transports(options.folder)
        return check(options.kustomize, Checkout(core=options.folder), also=also)
    core = options.core if options.core and options.core.is_dir() else None
    also = _transports(core)
    helm = Path(options.helm) if options.helm else None
    changed = options.changed.read_text("utf-8", "replace").splitlines()
    checkout = Checkout(core, options.folder)
    only = changed_apps(changed)
    return check(options.kustomize, checkout, only, changed=changed, also=also, helm=helm)


def _transports(core: Path | None) -> set[str]:
    """Git transports that the topology allows; without its file, only this machine's."""
    return transports_in(core) if core and (core / "ucp.yaml").is_file() else {"file"}


def _expire(code: int) -> Callable[..., None]:
    def expire(*_: object) -> None:
        # Immediately: waiting for kustomize could take longer than the push may.
        print(f".: the check timed out after {_SECONDS} s", flush=True)  # noqa: T201 (for the hook)
        os._exit(code)

    return expire


def _words(error: Exception) -> str:
    """One line, equal for equal errors: the hook compares it with the previous commit's."""
    lines = str(error).splitlines()[:1]
    return f"{type(error).__name__}: {''.join(lines)}" if lines else type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
