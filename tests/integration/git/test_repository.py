"""The module that accesses git, with real repositories."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.fence.record import FENCE, FenceHolder
from k8s_ucp.fence.reference import FenceReference
from k8s_ucp.git import command, objects
from k8s_ucp.git.clones import fast_forward, make_clone, make_remote, replaceable
from k8s_ucp.git.command import run_git
from k8s_ucp.git.failures import (
    Damaged,
    Declined,
    DubiousOwnership,
    GitFailed,
    HostUnreachable,
    Rejected,
    RepositoryMissing,
    TooMuchOutput,
)
from k8s_ucp.git.repository import RENDERED, RefUpdate, Repository
from k8s_ucp.gitops.publish.target import merge_text
from tests.integration.git.damage import empty_objects
from tests.integration.gitops.conftest import commit_work_tree
from tests.raw_server import endless, server

MAIN = "refs/heads/main"


@pytest.fixture
def place(tmp_path: Path, home: Path) -> Path:
    """A folder with a space in its name."""
    folder = tmp_path / "work place"
    folder.mkdir()
    return folder


@pytest.fixture
def clone(place: Path) -> Repository:
    """An empty clone of an empty bare remote."""
    make_remote(place / "r.git")
    return make_clone(place / "clone", (place / "r.git").as_uri())


def publish(clone: Repository, files: dict[str, bytes], parent: str | None = None) -> str:
    commit = clone.write_commit("Change", files, parent=parent)
    clone.push([RefUpdate(MAIN, commit)])
    return commit


FILES = {
    "a/b": b"1",
    "a-b": b"2",
    "a.b/c": b"\x00\xff binary",
    'odd "name" \\ ü.yaml': b"3",
    "empty": b"",
}


def test_committed_files_are_read_back(clone: Repository) -> None:
    commit = publish(clone, FILES)
    assert clone.read(commit) == FILES
    assert clone.read("origin/main", "a") == {"a/b": b"1"}
    assert clone.tree_of(commit) == objects.tree_id(FILES)
    listing = clone.listing(commit)
    assert {path: entry.id for path, entry in listing.items()} == {
        path: objects.blob_id(content) for path, content in FILES.items()
    }
    assert clone.remote_refs() == {MAIN: commit}


def test_files_that_would_fill_the_memory_are_not_read(
    clone: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "MOST_BYTES", 1_000_000)
    commit = publish(clone, {"zeros": bytes(1_000_001), "small": b"1"})
    assert clone.read(commit, "small") == {"small": b"1"}
    with pytest.raises(TooMuchOutput, match=r"`git cat-file` of .* returned more than 1 MB"):
        clone.read(commit)


def test_input_is_written_however_late_git_reads_it(
    clone: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine, where a look at the output may come before the first byte is read."""
    monkeypatch.setattr(command, "_LOOK_SECONDS", 0.01)
    for content in (b"", b"1", b"2" * 5_000_000):
        written = clone.git("hash-object", "-w", "--stdin", stdin=content).decode().strip()
        assert clone.git("cat-file", "blob", written) == content


def test_names_that_would_fill_the_memory_are_not_read(
    clone: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree of a few bytes can contain itself ten times, and that one ten times, and so on."""
    tree = "040000 tree " + clone.tree_of(publish(clone, {"a": b""}))  # type: ignore[operator]
    for _ in range(20):
        entries = "".join(f"{tree}\t{name}\n" for name in "abcdefghij")
        tree = "040000 tree " + clone.git("mktree", stdin=entries.encode()).decode().strip()
    monkeypatch.setattr(command, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(command, "MOST_NAMES", 1_000_000)
    with pytest.raises(TooMuchOutput, match=r"`git ls-tree` of .* returned more than 1 MB"):
        clone.listing(tree.removeprefix("040000 tree "))


def test_an_answer_without_end_does_not_fill_the_memory(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git reads the refs of a host as a whole, and the deadline leaves it two minutes for that."""
    monkeypatch.setattr(command, "MOST_MEMORY", 150_000_000)
    with server(endless(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 65536)) as (url, heard):
        with pytest.raises(TooMuchOutput, match=r"[Oo]ut of memory"):
            run_git(["ls-remote", f"{url}/a.git"], where=url)
        with pytest.raises(TooMuchOutput, match=r"[Oo]ut of memory"):
            run_git(["clone", "-q", f"{url}/a.git", str(place / "a")], where=url)
    assert len(heard) == 2


def packets(*lines: bytes) -> bytes:
    return b"".join(b"%04x%s" % (len(line) + 4, line) for line in lines)


@pytest.mark.parametrize("ends", [False, True])
def test_messages_of_a_host_fill_neither_the_memory_nor_the_error(
    place: Path, monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    """Git prints what the host says while it prepares a pack, as long as it says something."""
    monkeypatch.setattr(command, "MOST_MESSAGES", 10_000_000)
    message = packets(b"\x02" + b"x" * 60_000 + b"\n")

    def speak(connection: socket.socket) -> None:
        head = b"1" * 40
        connection.sendall(packets(head + b" HEAD\0side-band-64k\n", head + b" " + MAIN.encode()))
        connection.sendall(b"0000")
        connection.recv(65536)
        connection.sendall(packets(b"NAK\n"))
        if ends:
            connection.sendall(message * 40)
        else:
            endless(b"", message)(connection)

    with server(speak) as (url, _), pytest.raises(GitFailed) as caught:
        url = url.replace("http:", "git:")
        run_git(["clone", "-q", "--", url + "/a.git", str(place / "a")], where=url, timeout=60)
    assert ends or isinstance(caught.value, TooMuchOutput)
    assert len(caught.value.message) < 110_000


def test_object_ids_match_in_a_sha256_repository(place: Path) -> None:
    run_git(["init", "-q", "--object-format=sha256", str(place / "x")], where="x")
    repository = Repository(place / "x")
    commit = repository.write_commit("Change", FILES, parent=None)
    assert repository.tree_of(commit) == objects.tree_id(FILES, length=64)


@pytest.mark.parametrize("name", ["a\u2028b".encode(), "a\x85b".encode(), b"a\xffb"])
def test_branches_of_any_name_are_listed(clone: Repository, name: bytes) -> None:
    """Whoever may push a branch could stop each start and backup of the topology."""
    commit = publish(clone, {"a": b"1"})
    target = b"%s:refs/heads/%s" % (commit.encode(), name)
    subprocess.run(["git", "push", "-q", "origin", target], cwd=clone.folder, check=True)
    clone.fetch()
    assert clone.remote_refs()[MAIN] == clone.refs()["refs/remotes/origin/main"] == commit
    assert len(clone.remote_refs()) == len(clone.refs()) == 2


def test_commit_changes_only_the_named_files(clone: Repository) -> None:
    first = publish(clone, FILES | {"run": b"#!/bin/sh\n"})
    script = objects.NewCommit("x", {"run": b"#!/bin/sh\ntrue\n"}, (first,), {"run": "100755"})
    second = clone.write_commits([script])[0]
    third = clone.write_commit("y", {"a/b": None, "a-b": b"new"}, parent=second)
    assert clone.listing(third)["run"].mode == "100755"
    expected = FILES | {"run": b"#!/bin/sh\ntrue\n", "a-b": b"new"}
    del expected["a/b"]
    assert clone.read(third) == expected


def test_file_becomes_a_folder_and_a_file_again(clone: Repository) -> None:
    first = clone.write_commit("x", {"a": b"1"}, parent=None)
    second = clone.write_commit("x", {"a/b": b"2", "a": None}, parent=first)
    assert clone.read(second) == {"a/b": b"2"}
    third = clone.write_commit("x", {"a": b"3", "a/b": None}, parent=second)
    assert clone.read(third) == {"a": b"3"}


def test_commits_without_parents_do_not_follow_each_other(clone: Repository) -> None:
    one, two = clone.write_commits(
        [objects.NewCommit("1", {"a": b"1"}), objects.NewCommit("2", {"b": b"2"})]
    )
    assert clone.read(two) == {"b": b"2"}
    assert clone.history(two)[0].parents == ()
    assert clone.read(one) == {"a": b"1"}


def test_commits_are_possible_without_an_identity(
    clone: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = publish(clone, FILES)
    assert clone.history(commit)[0].author == objects.Author("ucp", "ucp@localhost")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Eve <x>")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "eve@example.org")
    other = clone.write_commit("x", {"z": b""}, parent=commit)
    assert clone.history(other)[0].author == objects.Author("Eve x", "eve@example.org")


def test_users_identity_is_used(clone: Repository, home: Path) -> None:
    (home / ".gitconfig").write_text("[user]\nname = Ann\nemail = ann@example.org\n")
    commit = publish(clone, FILES)
    assert clone.history(commit)[0].author == objects.Author("Ann", "ann@example.org")


def test_push_never_overwrites(clone: Repository, place: Path) -> None:
    base = publish(clone, FILES)
    other = make_clone(place / "other", (place / "r.git").as_uri())
    other.fetch()
    theirs = publish(other, {"theirs": b""}, base)
    mine = clone.write_commit("mine", {"mine": b""}, parent=base)
    with pytest.raises(Rejected):
        clone.push([RefUpdate(MAIN, mine), RefUpdate(RENDERED, mine, expect="")])
    assert clone.remote_refs() == {MAIN: theirs}, "all or none"
    clone.fetch()
    assert clone.resolve("origin/main") == theirs


def test_push_compares_the_expected_old_value(clone: Repository) -> None:
    first = publish(clone, FILES)
    clone.push([RefUpdate(RENDERED, first, expect="")])
    unrelated = clone.write_commit("x", {"x": b""}, parent=None)
    with pytest.raises(Rejected):
        clone.push([RefUpdate(RENDERED, unrelated, expect=unrelated)])
    clone.push([RefUpdate(RENDERED, unrelated, expect=first)])
    assert clone.remote_refs()[RENDERED] == unrelated


def test_declining_hook_is_reported(clone: Repository, place: Path) -> None:
    hook = place / "r.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho two hosts are the same >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(Declined, match="two hosts are the same"):
        publish(clone, FILES)


def test_hooks_of_the_clone_do_not_run(clone: Repository) -> None:
    hook = clone.folder / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    publish(clone, FILES)


def test_variables_of_a_calling_hook_are_ignored(
    clone: Repository, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_remote(place / "stranger.git")
    monkeypatch.setenv("GIT_DIR", str(place / "stranger.git"))
    monkeypatch.setenv("GIT_INDEX_FILE", "nowhere")
    publish(clone, FILES)
    assert fast_forward(clone) is None
    monkeypatch.delenv("GIT_DIR")
    assert Repository(place / "stranger.git").refs() == {}


def test_fast_forward_updates_the_files(clone: Repository) -> None:
    publish(clone, FILES)
    assert fast_forward(clone) is None
    assert (clone.folder / "a" / "b").read_bytes() == b"1"
    assert clone.git("status", "--porcelain") == b""


def test_uncommitted_edits_of_the_user_are_kept(clone: Repository) -> None:
    first = publish(clone, FILES)
    fast_forward(clone)
    (clone.folder / "a-b").write_text("my work")
    (clone.folder / "new").write_text("my new file")
    second = publish(clone, {"a/b": b"remote"}, first)
    assert fast_forward(clone) is None, "another file is no obstacle"
    assert (clone.folder / "a" / "b").read_text() == "remote"
    publish(clone, {"a-b": b"remote"}, second)
    assert "local commits or edits and was not updated (edited: a-b)" in (fast_forward(clone) or "")
    assert (clone.folder / "a-b").read_text() == "my work"
    assert (clone.folder / "new").read_text() == "my new file"


def test_commits_of_the_user_are_kept(clone: Repository) -> None:
    first = publish(clone, FILES)
    fast_forward(clone)
    (clone.folder / "mine").write_text("x")
    own = commit_work_tree(clone)
    publish(clone, {"theirs": b""}, first)
    assert fast_forward(clone) is not None
    assert clone.resolve("HEAD") == own


def test_another_branch_is_left_alone(clone: Repository) -> None:
    publish(clone, FILES)
    clone.git("checkout", "-q", "-b", "work", "origin/main")
    assert "not on branch main" in (fast_forward(clone) or "")


def test_nonempty_folder_is_not_taken_for_a_clone(place: Path) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "file").write_text("")
    with pytest.raises(UcpError, match="neither empty nor a git clone"):
        make_clone(place / "mine", "file:///nowhere")


def test_clone_gets_a_new_url(clone: Repository, place: Path) -> None:
    again = make_clone(clone.folder, "file:///elsewhere")
    assert again.url() == "file:///elsewhere"
    with pytest.raises(RepositoryMissing):
        again.fetch()


def test_passwords_are_neither_written_nor_shown(place: Path) -> None:
    clone = make_clone(place / "c", "https://user:s3cr3t@127.0.0.1:9/x.git")
    with pytest.raises(HostUnreachable) as caught:
        clone.fetch(timeout=20)
    assert "s3cr3t" not in str(caught.value)
    assert "s3cr3t" not in (clone.folder / ".git" / "config").read_text()
    assert clone.credential is not None
    assert "s3cr3t" not in repr(clone.credential)


def test_call_ends_at_its_deadline_with_its_children(clone: Repository, place: Path) -> None:
    hook = place / "r.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho $$ > '{place}/pid'\nexec sleep 60\n")
    hook.chmod(0o755)
    commit = clone.write_commit("x", FILES, parent=None)
    with pytest.raises(DeadlineExceeded, match="git push"):
        clone.push([RefUpdate(MAIN, commit)], timeout=1)
    pid = int((place / "pid").read_text())
    until = time.monotonic() + 60
    while _runs(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return "sleep" in Path(f"/proc/{pid}/cmdline").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder to another user needs root")
def test_folder_of_another_user_is_reported_with_the_fix(clone: Repository) -> None:
    publish(clone, FILES)
    for path in [clone.folder, *clone.folder.rglob("*")]:
        os.chown(path, 12345, 12345)
    with pytest.raises(DubiousOwnership, match=r"safe\.directory"):
        clone.refs()


def test_missing_object_is_an_error(clone: Repository) -> None:
    with pytest.raises(GitFailed, match="no object"):
        clone.contents(["1" * 40])


def test_texts_are_merged_with_labeled_conflicts() -> None:
    base = b"a\nb\nc\nd\n"
    assert merge_text(base, b"a\nB\nc\nd\n", b"a\nb\nc\nD\n") == (b"a\nB\nc\nD\n", True)
    text, clean = merge_text(b"a\n", b"b\n", b"c\n")
    assert not clean
    assert b"<<<<<<< repository\nb\n=======\nc\n>>>>>>> new render\n" in text
    assert merge_text(b"\0a", b"\0b", b"\0c")[1] is False


def test_private_clone_is_closed_to_other_users(place: Path) -> None:
    url = make_remote(place / "r.git").folder.as_uri()
    before = os.umask(0o022)
    try:
        clones = [make_clone(place / name, url, private=True) for name in ("one", "two")]
        writer, reader = map(FenceReference, clones)
        holder = FenceHolder("1", "desk", "/home/user/here", "embedded")
        _, record = writer.claim(holder, lambda: 10.0)
        assert reader.read() == record
    finally:
        os.umask(before)
    files = [path for each in clones for path in (each.folder, *each.folder.rglob("*"))]
    assert len(files) > 20
    assert [str(path) for path in files if path.stat().st_mode & 0o077] == []


def test_a_branch_that_is_called_like_the_fence_is_not_taken_for_it(clone: Repository) -> None:
    fence = FenceReference(clone)
    claimed, record = fence.claim(FenceHolder("x", "m", "/w", "kind"), time.time)
    branch = f"refs/heads/{FENCE}"
    clone.push([RefUpdate(branch, publish(clone, {"a": b"1"}))])
    assert branch in clone.remote_refs(only=FENCE)
    assert fence.commit() == claimed
    assert fence.read() == record
    with pytest.raises(GitFailed, match="matches more than one") as caught:
        fence.release("x", time.time)
    assert (caught.value.next or "").startswith("delete the branch")


def test_earlier_holders_of_the_fence_are_not_fetched(place: Path) -> None:
    remote = make_remote(place / "r.git")
    clones = [make_clone(place / name, remote.folder.as_uri()) for name in ("one", "two")]
    writer, reader = map(FenceReference, clones)
    holder = FenceHolder("1", "desk", "/home/user/here", "embedded")
    for _ in range(4):
        _, record = writer.claim(holder, lambda: 10.0)
        assert writer.release(holder.id, lambda: 20.0)
    assert reader.read() != record
    _, record = reader.claim(holder, lambda: 30.0)
    assert writer.read() == record
    history = ["rev-list", "--count", FENCE]
    assert int(remote.git(*history)) == 9, "the remote keeps it"
    assert int(reader.clone.git(*history)) == 2


def test_a_damaged_clone_of_our_own_is_replaced(place: Path, clone: Repository) -> None:
    holder = FenceHolder("a" * 16, "machine", "/workspace", "embedded")

    def claim() -> str:
        url = (place / "r.git").as_uri()
        reference = FenceReference(make_clone(place / "own", url, private=True))
        with replaceable(reference.clone):
            return reference.claim(holder, time.time)[0]

    first = claim()
    empty_objects(place / "own/.git")
    with pytest.raises(UcpError, match="was damaged, and has been deleted"):
        claim()
    assert claim() == first


def test_a_clone_whose_remote_is_damaged_is_kept(place: Path, clone: Repository) -> None:
    publish(clone, {"a": b"1"})
    empty_objects(place / "r.git")
    own = make_clone(place / "own", (place / "r.git").as_uri())
    with pytest.raises(Damaged), replaceable(own):
        own.fetch()
    assert own.folder.is_dir()


@pytest.mark.parametrize(("earlier", "files"), [(False, 1), (True, 1), (False, 40)])
def test_what_is_pushed_to_our_remote_is_on_the_disk(
    place: Path, clone: Repository, *, earlier: bool, files: int
) -> None:
    """It may be the only complete repository; git's own default syncs no single objects."""
    if earlier:
        Repository(place / "r.git").git("config", "--remove-section", "core")
        Repository(place / "r.git").git("config", "core.bare", "true")
        make_remote(place / "r.git")
    commit = clone.write_commit("Change", {str(n): b"%d" % n for n in range(files)}, parent=None)
    traces = place / "traces"
    traces.mkdir()
    subprocess.run(
        ["git", "push", "--quiet", "origin", f"{commit}:{MAIN}"],
        cwd=clone.folder,
        env={**os.environ, "GIT_TRACE2_EVENT": str(traces)},
        check=True,
    )
    logs = [each.read_text("utf-8") for each in traces.iterdir()]
    events = [json.loads(line) for log in logs for line in log.splitlines()]
    flushes = [each for each in events if each.get("key") == "fsync/hardware-flush"]
    assert sum(int(each["value"]) for each in flushes) >= 2, "of objects, and of the branch"


@pytest.mark.parametrize(("files", "packs"), [(10, 0), (40, 1)])
def test_a_large_commit_is_written_and_pushed_as_one_pack(
    place: Path, clone: Repository, *, files: int, packs: int
) -> None:
    """Single objects would be compressed again by the push, and by each fetch."""
    commit = publish(clone, {f"{number}.yaml": b"%d" % number for number in range(files)})
    for folder in (clone.folder / ".git", place / "r.git"):
        assert len([*(folder / "objects" / "pack").glob("*.pack")]) == packs, folder
    assert len(Repository(place / "r.git").listing(commit)) == files
