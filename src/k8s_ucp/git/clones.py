"""Creates bare repositories and clones on this machine if they are missing, and updates clones."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.git.atomic_creation import create_repository_at
from k8s_ucp.git.command import keep_settings, run_git
from k8s_ucp.git.environment import Credential, split_credential
from k8s_ucp.git.failures import Damaged, GitFailed, RepositoryMissing
from k8s_ucp.git.leftovers import UNFINISHED, sweep_repository, sweep_unfinished
from k8s_ucp.git.repository import UNPACKED_OBJECTS, Repository

# Background maintenance would outlive `ucp stop`, and the user's global core.hooksPath would
# disable the hook that notifies Argo CD of pushes.
_REMOTE_CONFIG = f"""[core]
	hooksPath = hooks
[gc]
	autoDetach = false
[maintenance]
	autoDetach = false
[receive]
	unpackLimit = {UNPACKED_OBJECTS}
"""
_SYNCED = """[core]
	fsync = loose-object,reference
	fsyncMethod = batch
"""
"""Git syncs neither single objects nor refs by default, since other clones usually have them. After
a power failure, a push could be empty files here, in what may be the only complete repository.
"""
_OVERWRITTEN = re.compile(r"overwritten by merge:((?:\n  (?!Please ).*)+)")
"""The files that a merge would overwrite, in git's message."""

_FETCHED = ("+refs/heads/*:refs/remotes/origin/*", "+refs/ucp/*:refs/ucp/*")


def make_remote(folder: Path, *, branch: str = "main") -> Repository:
    """Create a bare repository as a push target, or return the existing one.

    Raises UcpError if `folder` contains something else.
    """
    try:
        resolved = folder.resolve()
    except RuntimeError as error:
        raise UcpError(
            f"failed to create a git repository in {folder}: symbolic links lead in a circle",
            next="ls -l, and delete the link",
        ) from error
    _make_folder(resolved.parent)

    def make(made: Path) -> Path:
        _init(made, branch, "--bare")
        _add_settings(made, _REMOTE_CONFIG + _SYNCED)
        return made

    if not create_repository_at(resolved, make, lambda made: keep_settings(made, local=True)):
        _sync_pushes(folder)
        keep_settings(folder, local=True)
    sweep_repository(folder)
    sweep_unfinished(resolved.parent)
    return Repository(folder)


def make_clone(
    folder: Path,
    url: str,
    *,
    branch: str = "main",
    credential: Credential | None = None,
    private: bool = False,
) -> Repository:
    """Create a working clone of `url` without fetching, or point the existing one at `url`.

    private: no other user can read the clone, whatever the umask. A password in the URL becomes the
    credential and isn't stored. Raises UcpError if `folder` contains something else.
    """
    address, found = split_credential(url)
    git_folder, local = folder / ".git", address.startswith("file://")
    if not git_folder.exists():
        _refuse_full(folder)
        _make_folder(folder, mode=0o700 if private else 0o777)

    def make(made: Path) -> Path:
        _init(made, branch, *(("--shared=0600",) if private else ()))
        _add_settings(made / ".git", _clone_config(address, branch))
        return made / ".git"

    repository = Repository(folder, credential=credential or found)
    if not create_repository_at(git_folder, make, lambda made: keep_settings(made, local=local)):
        _lead_to(repository, address)
        keep_settings(folder, local=local)
    sweep_repository(git_folder)
    sweep_unfinished(folder)
    return repository


@contextlib.contextmanager
def replaceable(clone: Repository, what: str = "") -> Iterator[None]:
    """Delete a clone that a power failure damaged, if only ucp uses it: the next use makes another.

    Raises UcpError then, about `what`. A remote that is damaged or missing doesn't count.
    """
    try:
        yield
    except (Damaged, RepositoryMissing) as error:
        try:
            clone.git("fsck")
        except GitFailed:
            shutil.rmtree(clone.folder, ignore_errors=True)
            raise UcpError(
                f"{what or f'the clone {clone.folder}'} was damaged, and has been deleted",
                next="run the command again, which makes a new one",
            ) from error
        raise


def _refuse_full(folder: Path) -> None:
    if folder.is_dir() and any(not each.name.startswith(UNFINISHED) for each in folder.iterdir()):
        raise UcpError(
            f"{folder} exists and is neither empty nor a git clone",
            next=f"move {folder} away and run the command again",
        )


def _lead_to(clone: Repository, address: str) -> None:
    """Set the remote's URL, and the default fetch refspecs if there are none."""
    known = clone.settings(r"^remote\.origin\.(url|fetch)$")
    if known.get("remote.origin.url") != address:
        clone.git("config", "--replace-all", "remote.origin.url", address)
    if "remote.origin.fetch" not in known:
        for each in _FETCHED:
            clone.git("config", "--add", "remote.origin.fetch", each)


def fast_forward(clone: Repository, *, branch: str = "main") -> str | None:
    """Fast-forward a clone's work tree to the remote branch: None, or why it was not updated.

    Nothing of the user's is lost: with own commits, another branch or conflicting edits, the clone
    stays as it is.
    """
    head = clone.git("symbolic-ref", "--quiet", "HEAD", codes=(0, 1)).decode().strip()
    if head != f"refs/heads/{branch}":
        return f"{clone.folder} is not on branch {branch} and was not updated"
    try:
        clone.git(
            "merge", "--quiet", "--ff-only", "--no-autostash", "--no-stat",
            f"refs/remotes/origin/{branch}",
        )  # fmt: skip
    except GitFailed as error:
        reason = error.message.splitlines()[-1].strip()
        if found := _OVERWRITTEN.search(error.message):  # the last line is only "Aborting"
            reason = "edited: " + ", ".join(found[1].split("\n  ")[1:])
        return (
            f"{clone.folder} has local commits or edits and was not updated ({reason}); "
            "commit the edits, then run `git pull --rebase` there"
        )
    return None


def _init(folder: Path, branch: str, *flags: str) -> None:
    run_git(
        ["init", "--quiet", *flags, "--template=", f"--initial-branch={branch}", "--", str(folder)],
        where=str(folder),
    )


def _sync_pushes(remote: Path) -> None:
    """Add the setting to a remote of an earlier version, unless its disk is full."""
    with contextlib.suppress(OSError):
        if _SYNCED not in (remote / "config").read_text("utf-8", "surrogateescape"):
            _add_settings(remote, _SYNCED)


def _add_settings(git_folder: Path, text: str) -> None:
    with (git_folder / "config").open("a", encoding="utf-8") as stream:
        stream.write(text)


def _clone_config(url: str, branch: str) -> str:
    escaped = url.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "")
    return (
        f'[remote "origin"]\n\turl = "{escaped}"\n'
        + "".join(f"\tfetch = {each}\n" for each in _FETCHED)
        + f'[branch "{branch}"]\n\tremote = origin\n\tmerge = refs/heads/{branch}\n'
    )


def _make_folder(folder: Path, *, mode: int = 0o777) -> None:
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
    except OSError as error:
        raise UcpError(
            f"failed to create the folder {folder}: {error.strerror}",
            next="make the workspace writable, or choose another one with --workspace DIR",
        ) from error


def write_hook(bare: Path, name: str, text: str, *, mark: str) -> bool:
    """Create or update a hook; mark: the line that identifies a hook as written by ucp.

    Returns False if there is a hook without that line. Raises UcpError.
    """
    hook = bare / "hooks" / name
    try:
        existing = hook.read_text("utf-8") if hook.exists() else ""
        if existing == text:
            return True
        if existing and mark not in existing:
            return False
        hook.parent.mkdir(exist_ok=True)
        temporary = hook.with_name(f".{name}.new")
        temporary.write_text(text, "utf-8")
        temporary.chmod(0o755)
        temporary.replace(hook)
    except OSError as error:
        raise UcpError(f"failed to write the git hook {hook}: {error.strerror}") from error
    return True
