"""A repository is put in place complete or not at all, at whatever moment its creator is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.git.clones import fast_forward, make_clone, make_remote
from k8s_ucp.git.repository import RefUpdate, Repository

# Forks creators in folders of their own, and ends the Nth like SIGKILL before its Nth change of a
# file or start of a program, until one finishes.
KILLED = """
import os, sys
from pathlib import Path
from k8s_ucp.git.clones import make_clone, make_remote
from k8s_ucp.git.command import execute

CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.chmod", "os.rmdir", "subprocess.Popen")

def end_at(number):
    seen = 0
    def hook(event, arguments):
        nonlocal seen
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_ACCMODE
        if event in CHANGES or writes:
            if seen == number:
                os._exit(9)
            seen += 1
    sys.addaudithook(hook)

execute(["version"], timeout=60)  # what is loaded once
root, what = Path(sys.argv[1]), sys.argv[2]
for number in range(200):
    place = root / str(number)
    place.mkdir()
    if (child := os.fork()) == 0:
        try:
            end_at(number)
            if what == "remote":
                make_remote(place / "r.git")
            else:
                make_clone(place / "c", (root / "r.git").as_uri(), private=what == "private")
        except BaseException:
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 9:
        print(number, code)
        break
"""


@pytest.fixture
def place(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "work place"
    folder.mkdir()
    return folder


def push_to(remote: Repository, place: Path) -> str:
    """Push a file from a person's clone; return the commit id."""
    clone = make_clone(place / "person", remote.folder.as_uri())
    commit = clone.write_commit("Change", {"a": b"1"}, parent=None)
    clone.push([RefUpdate("refs/heads/main", commit)])
    return commit


def assert_works(remote: Repository, place: Path) -> None:
    config = str(remote.folder / "config")
    assert remote.git("config", "--file", config, "core.hooksPath") == b"hooks\n"
    assert remote.git("config", "--file", config, "gc.autoDetach") == b"false\n"
    assert push_to(remote, place) == remote.resolve("main")


def assert_follows(clone: Repository, remote: Repository) -> None:
    """Check that it has the remote's branch and its files."""
    assert clone.url() == remote.folder.as_uri()
    clone.fetch()
    assert clone.resolve("origin/main") == remote.resolve("main")
    assert fast_forward(clone) is None
    assert (clone.folder / "a").read_bytes() == b"1"


def kill_at_every_change(root: Path, what: str) -> int:
    """Kill a creator at every change; return the number of folders with remains."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(root), what],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    number, code = map(int, done.stdout.split())
    assert code == 0, done.stderr
    assert number >= 5, "it changes more than that"
    return number


def contents(folder: Path) -> dict[str, bytes | None]:
    """Files and folders, without the temporary ones in which a repository is created."""
    return {
        each.relative_to(folder).as_posix(): each.read_bytes() if each.is_file() else None
        for each in folder.rglob("*")
        if ".ucp-new-" not in str(each)
    }


@pytest.mark.parametrize("what", ["remote", "clone", "private"])
def test_repository_survives_a_kill_at_any_moment(place: Path, what: str) -> None:
    remote = make_remote(place / "r.git")

    def make(folder: Path) -> Path:
        if what == "remote":
            return make_remote(folder / "r.git").folder
        return make_clone(folder / "c", remote.folder.as_uri(), private=what == "private").folder

    whole = contents(make(place / "whole"))
    for number in range(kill_at_every_change(place, what)):
        left = place / str(number) / ("r.git" if what == "remote" else "c")
        git_folder = left if what == "remote" else left / ".git"
        if git_folder.exists():
            assert contents(left) == whole, "what is in its place is whole"
        made = make(place / str(number))
        assert contents(made) == whole
        assert what != "private" or made.stat().st_mode & 0o077 == 0


def init(folder: Path, *flags: str) -> Path:
    subprocess.run(
        ["git", "init", "-q", "--template=", "--initial-branch=main", *flags, str(folder)],
        check=True,
        timeout=60,
    )
    return folder


def without_head(git_folder: Path) -> None:
    (git_folder / "HEAD").unlink()
    (git_folder / "config").unlink()


def before_config(git_folder: Path) -> None:
    (git_folder / "config").rename(git_folder / "config.lock")
    (git_folder / "objects" / "pack").rmdir()


def at_a_probe(git_folder: Path) -> None:
    (git_folder / "tAb12Cd").symlink_to("testing")


def cut_off(git_folder: Path) -> None:
    """As by a full disk."""
    with (git_folder / "config").open("a") as stream:
        stream.write("[core]\n\thooksP" if git_folder.suffix else '[remote "origin"]\n\turl = "f')


def taken_for_finished(git_folder: Path) -> None:
    """As by a later run, which wrote the person's settings beside it."""
    (git_folder / "k8s-ucp.gitconfig").write_text("# Written by k8s-ucp.\n")


def as_git_made_it(git_folder: Path) -> None:
    assert (git_folder / "HEAD").is_file()


HALVES: list[Callable[[Path], None]] = [
    without_head, before_config, at_a_probe, cut_off, taken_for_finished, as_git_made_it,
]  # fmt: skip


@pytest.mark.parametrize("half", HALVES)
def test_half_created_remote_is_created_anew(place: Path, half: Callable[[Path], None]) -> None:
    half(init(place / "r.git", "--bare"))
    assert_works(make_remote(place / "r.git"), place)
    assert sorted(each.name for each in place.iterdir()) == ["person", "r.git"]


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("private", [False, True])
def test_half_created_clone_is_created_anew(
    place: Path, half: Callable[[Path], None], private: bool
) -> None:
    remote = make_remote(place / "r.git")
    push_to(remote, place)
    half(init(place / "c", *(["--shared=0600"] if private else [])) / ".git")
    assert_follows(make_clone(place / "c", remote.folder.as_uri(), private=private), remote)
    assert sorted(each.name for each in (place / "c").iterdir()) == [".git", "a"]


def test_clone_without_a_fetch_refspec_gets_it_back(place: Path) -> None:
    remote = make_remote(place / "r.git")
    push_to(remote, place)
    clone = Repository(init(place / "c"))
    clone.git("config", "remote.origin.url", remote.folder.as_uri())
    clone.git("fetch", "--quiet", "origin")
    assert clone.resolve("origin/main") is None, "it can't be of use"
    assert_follows(make_clone(place / "c", remote.folder.as_uri()), remote)


def test_full_disk_leaves_nothing_behind(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = make_remote(place / "r.git")
    push_to(remote, place)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("k8s_ucp.git.clones.keep_settings", fail)
        with pytest.raises(OSError, match="No space"):
            make_remote(place / "other.git")
        with pytest.raises(OSError, match="No space"):
            make_clone(place / "c", remote.folder.as_uri())
    assert not (place / "other.git").exists()
    assert list((place / "c").iterdir()) == []
    assert not [each for each in place.iterdir() if each.name.startswith(".")]
    assert_follows(make_clone(place / "c", remote.folder.as_uri()), remote)


def test_foreign_repositories_are_kept(place: Path) -> None:
    """Empty ones, with content that ucp never writes."""
    writes: dict[str, Callable[[Path], object]] = {
        "settings.git": lambda folder: (folder / "config").write_text("[core]\n\tbare = true\n"),
        "hook.git": lambda folder: (folder / "hooks").mkdir(),
        "branch.git": lambda folder: (folder / "HEAD").write_text("ref: refs/heads/trunk\n"),
    }
    for name, write in writes.items():
        folder = init(place / name, "--bare")
        write(folder)
        before = {each: each.stat().st_ino for each in folder.rglob("*")}
        make_remote(folder)
        assert before.items() <= {each: each.stat().st_ino for each in folder.rglob("*")}.items()


def test_repository_with_commits_is_kept(place: Path) -> None:
    remote = Repository(init(place / "r.git", "--bare"))
    commit = remote.write_commit("Mine", {"a": b"1"}, parent=None)
    assert make_remote(place / "r.git").git("cat-file", "-t", commit) == b"commit\n"


def test_folder_that_is_not_a_repository_is_refused(place: Path) -> None:
    """git would use the repository of a parent folder instead."""
    init(place)
    (place / "r.git").mkdir()
    (place / "r.git" / "file").write_text("mine")
    (place / "c" / ".git").mkdir(parents=True)
    (place / "c" / ".git" / "file").write_text("mine")
    with pytest.raises(UcpError, match="neither empty nor a git repository"):
        make_remote(place / "r.git")
    with pytest.raises(UcpError, match="neither empty nor a git repository"):
        make_clone(place / "c", "file:///nowhere")
    assert "nowhere" not in (place / ".git" / "config").read_text()
    assert (place / "r.git" / "file").read_text() == "mine"
    assert (place / "c" / ".git" / "file").read_text() == "mine"


def test_empty_folder_of_a_person_keeps_its_inode_and_mode(place: Path) -> None:
    remote = make_remote(place / "r.git")
    push_to(remote, place)
    (place / "real").mkdir(mode=0o750)
    (place / "link").symlink_to("real")
    before = (place / "real").stat()
    assert_follows(make_clone(place / "link", remote.folder.as_uri()), remote)
    after = (place / "real").stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert (place / "link").is_symlink()


def test_remote_behind_a_symbolic_link_is_created_at_its_target(place: Path) -> None:
    (place / "real").mkdir()
    (place / "r.git").symlink_to("real")
    assert_works(make_remote(place / "r.git"), place)
    assert (place / "r.git").is_symlink()
    assert (place / "real" / "HEAD").is_file()


def test_remains_of_a_killed_creator_are_removed(place: Path) -> None:
    remote = make_remote(place / "r.git")
    clone = make_clone(place / "c", remote.folder.as_uri())
    then = time.time() - 2 * 3600
    for folder in (place, place / "c"):
        for name in (".ucp-new-old", ".ucp-new-fresh", "ucp-new-mine"):
            init(folder / name / "made")
        old = folder / ".ucp-new-old"
        for each in [*old.rglob("*"), old]:
            os.utime(each, (then, then))
    make_remote(remote.folder)
    make_clone(clone.folder, remote.folder.as_uri())
    for folder in (place, place / "c"):
        assert {each.name for each in folder.glob("*ucp-new-*")} == {
            ".ucp-new-fresh",
            "ucp-new-mine",
        }


def test_repositories_being_created_are_kept_if_a_file_server_has_another_clock(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(place / ".ucp-new-fresh" / "made")
    here = time.time() + 2 * 3600
    monkeypatch.setattr(time, "time", lambda: here)
    make_remote(place / "r.git")
    assert (place / ".ucp-new-fresh" / "made").is_dir()


def test_links_that_lead_in_a_circle_are_reported(tmp_path: Path) -> None:
    (tmp_path / "gitops").symlink_to("gitops")
    with pytest.raises(UcpError, match="symbolic links"):
        make_remote(tmp_path / "gitops" / "demo" / "core.git")
