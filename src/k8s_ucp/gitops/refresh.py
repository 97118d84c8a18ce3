"""Notifies Argo CD of a push to a local repository: a git hook and the program it starts.

The hook never fails and never delays a push: it records the changed paths and starts this module in
the background, one instance at a time. If that isn't possible (the core cluster is down, the hook's
Python has moved), Argo CD detects the push by polling a little later. Remote repositories use a
webhook or polling.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import posixpath
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp import locks
from k8s_ucp.errors import UcpError
from k8s_ucp.git.clones import write_hook
from k8s_ucp.names import ARGOCD_NAMESPACE, REFRESH, REFRESH_SET

if TYPE_CHECKING:
    from k8s_ucp.kube import Kind, Kube

EVERYTHING = "*"
"""Path that stands for all paths, if the changed ones are unknown."""

PATIENCE = 15.0
_SECONDS = 50
"""The program terminates after this time in any case."""
_MARK = "# Written by k8s-ucp:"
"""Identifies the hooks of all versions."""
_GENERATE_PATHS = "argocd.argoproj.io/manifest-generate-paths"

_MOST, _LARGEST = 50, 65_536
"""Maximum number of waiting records, and their maximum size in bytes."""
_STALE = 3600.0

_HOOK = """#!/bin/sh
{mark} notifies Argo CD of pushes.
# It runs after a push was accepted and can neither reject nor delay it.
python={python}
kubeconfig={kubeconfig}
notes="$PWD/ucp-refresh"
pushed=
while read -r old new ref; do
  test "$ref" = {ref} || continue
  mkdir -p "$notes" && note=$(mktemp "$notes/new.XXXXXX") || exit 0
  git diff-tree -r --name-only --no-renames "$old" "$new" >"$note" 2>/dev/null || echo '*' >"$note"
  # Limit the records in case nothing reads them for a long time: "*" stands for all paths.
  test "$(wc -c <"$note")" -le {largest} || echo '*' >"$note"
  set -- "$notes"/changed.*
  if test "$#" -ge {most}; then
    rm -f "$@"
    echo '*' >"$note"
  fi
  # Rename atomically, so that a reader never sees part of a record.
  mv "$note" "$notes/changed.${{note##*.}}" || exit 0
  pushed=1
done
test -n "$pushed" && test -x "$python" && test -f "$kubeconfig" || exit 0
# A process that has not read the records yet will also read this one.
if ! mkdir "$notes/waiting" 2>/dev/null; then
  test -n "$(find "$notes/waiting" -prune -mmin +1 2>/dev/null)" || exit 0
fi
("$python" -P -m k8s_ucp.gitops.refresh --kubeconfig "$kubeconfig" --url {url} \\
  --notes "$notes" </dev/null >"$notes/log" 2>&1 &)
exit 0
"""


def ensure_hook(
    bare: Path, *, python: Path, kubeconfig: Path, branch: str = "main", url: str | None = None
) -> str | None:
    """Create or update the post-receive hook of a local remote.

    url: the address that Argo CD reads from, if it isn't the folder's.

    Returns a message for the user if there is a hook that ucp did not write, else None.
    """
    text = _HOOK.format(
        mark=_MARK,
        python=shlex.quote(str(python)),
        kubeconfig=shlex.quote(str(kubeconfig)),
        ref=shlex.quote(f"refs/heads/{branch}"),
        url=shlex.quote(url or bare.as_uri()),
        most=_MOST,
        largest=_LARGEST,
    )
    if write_hook(bare, "post-receive", text, mark=_MARK):
        return None
    hook = bare / "hooks" / "post-receive"
    return f"{hook} was not created by ucp: Argo CD notices pushes only by polling"


def refresh(kube: Kube, url: str, changed: Iterable[str] = (EVERYTHING,)) -> list[str]:
    """Have Argo CD refresh the ApplicationSets and Applications that the changed paths affect.

    A refresh that is still in progress may have read the repository before the push, and its end
    would also clear a new request. So wait for it, up to PATIENCE seconds. Returns the refreshed
    objects as `<kind>/<name>`. Raises KubeError.
    """
    from k8s_ucp.kube import APPLICATION, APPLICATION_SET

    paths = frozenset(changed)
    # ApplicationSets first: only they create new Applications.
    wanted = [
        (APPLICATION_SET, each, REFRESH_SET)
        for each in kube.list_all(APPLICATION_SET, ARGOCD_NAMESPACE)
        if _mentions(each.get("spec", {}).get("generators"), url)
    ] + [
        (APPLICATION, each, REFRESH)
        for each in kube.list_all(APPLICATION, ARGOCD_NAMESPACE)
        if is_touched(each, url, paths)
    ]
    until = time.monotonic() + PATIENCE

    def ask(entry: tuple[Kind, Mapping[str, Any], dict[str, str]]) -> str:
        kind, item, annotations = entry
        name = item["metadata"]["name"]
        while _is_asked(item, annotations) and time.monotonic() < until:
            time.sleep(0.1)
            found = kube.find(kind, name, ARGOCD_NAMESPACE)
            if found is None:
                return ""
            item = found
        kube.patch(kind, name, ARGOCD_NAMESPACE, {"metadata": {"annotations": annotations}})
        return f"{kind.kind}/{name}"

    with ThreadPoolExecutor(max_workers=4) as pool:
        free = [each for each in wanted if not _is_asked(each[1], each[2])]
        busy = [each for each in wanted if _is_asked(each[1], each[2])]
        return [name for name in pool.map(ask, [*free, *busy]) if name]


def _is_asked(item: Mapping[str, Any], annotations: Mapping[str, str]) -> bool:
    return bool(annotations.keys() & (item["metadata"].get("annotations") or {}).keys())


def is_touched(application: Mapping[str, Any], url: str, paths: frozenset[str]) -> bool:
    """The Application reads this repository, from a path that contains one of the changed ones.

    The annotation manifest-generate-paths lists these paths; without it, any path counts.
    """
    spec = application.get("spec", {})
    annotations = application.get("metadata", {}).get("annotations") or {}
    for source in [spec.get("source") or {}, *(spec.get("sources") or [])]:
        if not same_repository(source.get("repoURL", ""), url):
            continue
        if EVERYTHING in paths or not source.get("path") or _GENERATE_PATHS not in annotations:
            return True
        folders = _folders(source["path"], annotations[_GENERATE_PATHS])
        if any(_below(path, folder) for path in paths for folder in folders):
            return True
    return False


def same_repository(one: str, other: str) -> bool:
    """Two URLs of the same repository: a trailing `.git` or slash is ignored."""

    def plain(url: str) -> str:
        return url.strip().rstrip("/").removesuffix(".git").rstrip("/")

    return plain(one) == plain(other)


def _folders(path: str, annotation: str) -> list[str]:
    """Folders that affect an Application, from its annotation as Argo CD interprets it."""
    parts = [each.strip() for each in annotation.split(";") if each.strip()]
    return [
        posixpath.normpath(each.lstrip("/") if each.startswith("/") else f"{path}/{each}")
        for each in parts or ["."]
    ]


def _below(path: str, folder: str) -> bool:
    return folder == "." or path == folder or path.startswith(folder + "/")


def _mentions(value: Any, url: str) -> bool:
    """A generator reads this repository."""
    if isinstance(value, dict):
        address = value.get("repoURL")
        if isinstance(address, str) and same_repository(address, url):
            return True
        return any(_mentions(each, url) for each in value.values())
    return isinstance(value, list) and any(_mentions(each, url) for each in value)


def _take_notes(notes: Path) -> Iterator[str]:
    """Paths recorded by hooks since the last call; a later push starts another process."""
    with contextlib.suppress(OSError):
        (notes / "waiting").rmdir()
    for each in notes.glob("new.*"):
        # From a hook that was killed.
        with contextlib.suppress(OSError):
            if time.time() - each.stat().st_mtime > _STALE:
                each.unlink()
    # Hooks of older versions write `paths`.
    for each in [notes / "paths", *sorted(notes.glob("changed.*"))]:
        mine = notes / f"taken.{os.getpid()}"
        try:
            each.replace(mine)
        except OSError:
            continue
        try:
            lines = mine.read_text("utf-8", "replace").splitlines()
        except OSError:
            # The file belongs to another user who pushed.
            lines = [EVERYTHING]
        mine.unlink()
        for line in lines:
            # Git quotes paths with unusual characters: refresh everything then.
            yield EVERYTHING if line.startswith('"') else line


def main(arguments: list[str] | None = None) -> int:
    """The program that the hook starts. Exit code 1 if notifying Argo CD failed."""
    parser = argparse.ArgumentParser(prog="k8s_ucp.gitops.refresh", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--url", required=True, help="the repository's address")
    parser.add_argument("--notes", type=Path, required=True, help="folder of the changed paths")
    wanted = parser.parse_args(arguments)
    signal.alarm(_SECONDS)
    from k8s_ucp.kube import Kube

    with (wanted.notes / "lock").open("w") as lock:
        locks.wait(lock.fileno())
        paths = frozenset(_take_notes(wanted.notes))
        if not paths:
            return 0
        try:
            refresh(Kube.from_file(wanted.kubeconfig), wanted.url, paths)
        except UcpError as error:
            print(error, file=sys.stderr)  # noqa: T201 (the hook's log)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
