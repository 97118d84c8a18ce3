"""Repositories over HTTP, read by the real git: everything can be fetched, nothing pushed."""

from __future__ import annotations

import gzip
import http.client
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from k8s_ucp.bounded_server import BoundedConnections
from k8s_ucp.gitops.serve import LARGEST_REQUEST, serve


@dataclass(frozen=True)
class Place:
    """A served folder with the repository core.git."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/core.git"

    def status(self, path: str, method: str = "GET", unpacked: bytes = b"") -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        kind = {"Content-Type": "application/x-git-upload-pack-request", "Content-Encoding": "gzip"}
        body = gzip.compress(unpacked) if unpacked else None
        try:
            connection.request(method, path, body, kind if unpacked else {})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()


def git(folder: Path, *words: str, fails: bool = False) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *words], capture_output=True, text=True, timeout=30
    )
    assert (done.returncode != 0) is fails, done.stderr
    return done.stdout.strip() if not fails else done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "git"
    folder.mkdir()
    git(folder, "init", "-q", "--bare", "-b", "main", "core.git")
    git(tmp_path, "init", "-q", "-b", "main", "work")
    server = serve(folder, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield Place(folder, server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def push(place: Place, text: str) -> str:
    work = place.folder.parent / "work"
    (work / "a.txt").write_text(text)
    git(work, "add", "a.txt")
    git(work, "commit", "-qm", text[:20])
    git(work, "push", "-q", str(place.folder / "core.git"), "HEAD:main")
    return git(work, "rev-parse", "HEAD")


def test_pushed_commits_can_be_fetched(place: Place, tmp_path: Path) -> None:
    push(place, "one")
    git(tmp_path, "clone", "-q", place.url, "clone")
    clone = tmp_path / "clone"
    assert (clone / "a.txt").read_text() == "one"
    # A large one, after the repository was repacked.
    second = push(place, "two\n" * 100_000)
    git(place.folder / "core.git", "gc", "-q")
    git(clone, "fetch", "-q", "--tags", "--force", "--prune", "origin", "main")
    assert git(clone, "rev-parse", "FETCH_HEAD") == second
    git(tmp_path, "clone", "-q", "--depth", "1", place.url, "shallow")
    assert git(tmp_path / "shallow", "rev-list", "--count", "HEAD") == "1"
    assert second in git(tmp_path, "ls-remote", place.url, "refs/heads/main")


def test_concurrent_fetches_succeed(place: Place, tmp_path: Path) -> None:
    tip = push(place, "one")
    found: list[str] = []

    def fetch(number: int) -> None:
        git(tmp_path, "clone", "-q", place.url, f"clone{number}")
        found.append(git(tmp_path / f"clone{number}", "rev-parse", "HEAD"))

    threads = [threading.Thread(target=fetch, args=(each,)) for each in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [tip] * 12


def test_pushes_are_refused(place: Place, tmp_path: Path) -> None:
    tip = push(place, "one")
    git(tmp_path, "clone", "-q", place.url, "clone")
    (tmp_path / "clone/b.txt").write_text("mine")
    git(tmp_path / "clone", "add", "b.txt")
    git(tmp_path / "clone", "commit", "-qm", "mine")
    assert "403" in git(tmp_path / "clone", "push", "origin", "main", fails=True)
    assert git(place.folder / "core.git", "rev-parse", "main") == tip
    assert place.status("/core.git/git-receive-pack", "POST") in (403, 404, 405)


def test_files_beside_the_repositories_are_not_served(place: Place) -> None:
    push(place, "one")
    (place.folder / "secret").mkdir()
    git(place.folder.parent, "init", "-q", "--bare", "outside.git")
    query = "info/refs?service=git-upload-pack"
    assert place.status("/healthz") == 200
    assert place.status(f"/core.git/{query}") == 200
    for path in ("secret", "none.git", "../outside.git", "%2e%2e/outside.git", "core.git/../x.git"):
        assert place.status(f"/{path}/{query}") == 404, path


def test_clones_with_many_branches_succeed(place: Place, tmp_path: Path) -> None:
    """Git zips requests of more than a kilobyte."""
    push(place, "one")
    work = tmp_path / "work"
    for number in range(40):
        commit = git(work, "commit-tree", "-m", str(number), "HEAD^{tree}")
        git(work, "update-ref", f"refs/heads/b{number}", commit)
    git(work, "push", "-q", str(place.folder / "core.git"), "--all")
    git(tmp_path, "clone", "-q", place.url, "clone")


def test_requests_are_refused_that_unpack_to_more_than_any_fetch_needs(place: Place) -> None:
    head = push(place, "one").encode()
    want, done = b"0032want %s\n" % head, b"00000009done\n"
    first = b"0054want %s side-band-64k thin-pack ofs-delta\n" % head

    assert place.status("/core.git/git-upload-pack", "POST", first + 1000 * want + done) == 200
    bomb = first + (LARGEST_REQUEST // len(want) + 1) * want + done
    assert place.status("/core.git/git-upload-pack", "POST", bomb) == 500


def test_connections_without_a_request_make_room_for_argo_cd(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any pod of the cluster can open them."""
    monkeypatch.setattr(BoundedConnections, "most_connections", 4)
    with ExitStack() as stack:
        address = ("127.0.0.1", place.port)
        idle = [stack.enter_context(socket.create_connection(address, 5)) for _ in range(6)]

        assert place.status("/healthz") == 200
        assert [each.recv(1) for each in idle[:2]] == [b"", b""]
