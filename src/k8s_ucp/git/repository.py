"""A git repository: reads, commits without a work tree, and pushes without overwriting.

clones.py creates clones and remotes; command.py runs git.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.git.command import LOCAL_SECONDS, NETWORK_SECONDS, remote_url, run_git
from k8s_ucp.git.environment import Credential, identity_of
from k8s_ucp.git.failures import Damaged, GitFailed
from k8s_ucp.git.objects import (
    COMMIT_FORMAT,
    Change,
    Commit,
    CommitIdentity,
    NewCommit,
    TreeEntry,
    commit_of,
    import_stream,
)
from k8s_ucp.git.ssh_connection import SshConnection

RENDERED = "refs/ucp/rendered"
"""The last render of a repository: the base of three-way merges."""
UNPACKED_OBJECTS = 30
"""Git writes more objects than this as one pack, which a push and each fetch send as it is. By
default that is 100, and the first commit of a core repository was compressed four times. A pack for
each push would be too many packs."""


@dataclass(frozen=True)
class RefUpdate:
    """One ref to change in a push.

    ref: full name, `refs/heads/main`. commit: the new id, "" deletes the ref. expect: the id that
    the ref must have now ("": it must not exist), else the push is Rejected; None: the new commit
    must contain the old one, as in any push without force.
    """

    ref: str
    commit: str
    expect: str | None = None


class Repository:
    """A repository on this machine, a working clone or a bare one. The folder isn't checked."""

    def __init__(
        self,
        folder: Path,
        *,
        credential: Credential | None = None,
        connection: SshConnection | None = None,
    ) -> None:
        """connection: to the remotes' host, if one is shared by several calls."""
        self.folder = folder
        self.credential = credential
        self._connection = connection

    def git(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        timeout: float = LOCAL_SECONDS,
        codes: Sequence[int] = (0,),
    ) -> bytes:
        """Run git in the repository: its stdout. Raises GitFailed or one of its subclasses."""
        return run_git(
            arguments,
            where=str(self.folder),
            folder=self.folder,
            stdin=stdin,
            timeout=timeout,
            codes=codes,
            credential=self.credential,
            connection=self._connection,
        )

    def url(self, remote: str = "origin") -> str:
        """The URL of a remote; "" if it isn't configured."""
        return remote_url(self.folder, remote)

    # Reading

    def fetch(self, *, timeout: float = NETWORK_SECONDS) -> None:
        """Fetch the remote's branches (to `refs/remotes/origin/*`) and `refs/ucp/*`."""
        self.git(
            "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "origin", timeout=timeout
        )

    def remote_refs(
        self, remote: str = "origin", *, only: str = "", timeout: float = NETWORK_SECONDS
    ) -> dict[str, str]:
        """Current refs of a remote or URL: {full name: id}. only: those that end with a name."""
        named = (only,) if only else ()
        return read_refs(self.git("ls-remote", "--refs", remote, *named, timeout=timeout))

    def refs(self) -> dict[str, str]:
        """Refs of this repository: {full name: id}."""
        return read_refs(self.git("for-each-ref", "--format=%(objectname)%09%(refname)"))

    def resolve(self, name: str) -> str | None:
        """The commit id of a ref or revision; None if it doesn't exist."""
        return self._parse(f"{name}^{{commit}}")

    def tree_of(self, name: str) -> str | None:
        """The tree id of a commit; None if it doesn't exist."""
        return self._parse(f"{name}^{{tree}}")

    def _parse(self, name: str) -> str | None:
        arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        return self.git(*arguments, codes=(0, 1)).decode().split("\n")[0] or None

    def listing(self, name: str, *under: str, recursive: bool = True) -> dict[str, TreeEntry]:
        """All files of a commit, or those below some of its folders: {path: entry}."""
        flags = ("-r",) if recursive else ()
        found = {}
        raw = self.git("ls-tree", *flags, "-z", "--full-tree", name, "--", *under)
        for line in raw.split(b"\0"):
            if line:
                head, path = line.split(b"\t", 1)
                mode, _, id = head.decode().split(" ")
                found[path.decode("utf-8", "surrogateescape")] = TreeEntry(mode, id)
        return found

    def contents(self, ids: Iterable[str]) -> dict[str, bytes]:
        """Contents of files by object id, in one call. Raises GitFailed if one is missing."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        raw = self.git("cat-file", "--batch", stdin="".join(f"{id}\n" for id in wanted).encode())
        found, offset = {}, 0
        for id in wanted:
            end = raw.index(b"\n", offset)
            head = raw[offset:end].split(b" ")
            if len(head) != 3:
                raise Damaged(f"{self.folder} has no object {id}", next="git fsck")
            size = int(head[2])
            found[id] = raw[end + 1 : end + 1 + size]
            offset = end + 1 + size + 1
        return found

    def contains(self, name: str, commit: str) -> bool:
        """`commit` is `name` or one of its ancestors."""
        return not self.git("rev-list", "--max-count=1", commit, "--not", name).strip()

    def read(self, name: str, *under: str) -> dict[str, bytes]:
        """Regular files of a commit with their contents: {path: bytes}."""
        listing = {
            path: entry
            for path, entry in self.listing(name, *under).items()
            if entry.mode.startswith("100")
        }
        contents = self.contents(entry.id for entry in listing.values())
        return {path: contents[entry.id] for path, entry in listing.items()}

    def history(self, name: str, path: str = "", *, limit: int = 100) -> list[Commit]:
        """Commits reachable from a ref that touch a path, newest first."""
        raw = self.git(
            "log", "-z", f"--max-count={limit}", "--no-show-signature", "--no-color",
            f"--format={COMMIT_FORMAT}", "--end-of-options", name, "--",
            *([path] if path else []),
        )  # fmt: skip
        return [commit_of(each) for each in raw.decode("utf-8", "replace").split("\0") if each]

    # Writing

    def identity(self) -> CommitIdentity:
        """Author and committer from git's settings or environment, else `ucp <ucp@localhost>`."""
        return identity_of(self.settings(r"^user\.(name|email)$"))

    def settings(self, pattern: str) -> dict[str, str]:
        """git's settings for this repository whose names match the pattern."""
        raw = self.git("config", "--null", "--get-regexp", pattern, codes=(0, 1))
        pairs = (each.partition("\n") for each in raw.decode("utf-8", "replace").split("\0"))
        return {name: value for name, _, value in pairs if value}

    def write_commits(
        self, commits: Sequence[NewCommit], *, identity: CommitIdentity | None = None
    ) -> list[str]:
        """Write commits in one git process, without changing a ref or the work tree: their ids."""
        settings = self.settings(r"^(user\.(name|email)|extensions\.objectformat)$")
        stream = import_stream(
            commits,
            identity=identity or identity_of(settings),
            time=int(time.time()),
            ref=f"refs/ucp-pending/{uuid.uuid4().hex}",
            length=64 if settings.get("extensions.objectformat") == "sha256" else 40,
        )
        limit = f"fastimport.unpackLimit={UNPACKED_OBJECTS}"
        written = self.git("-c", limit, "fast-import", "--quiet", "--done", stdin=stream)
        return written.decode().split()

    def write_commit(
        self, message: str, changes: Mapping[str, Change], *, parent: str | None
    ) -> str:
        """Write one commit, `changes` on top of `parent` (None: a root commit): its id."""
        commit = NewCommit(message, changes, (parent,) if parent else ())
        return self.write_commits([commit])[0]

    def signs_commits(self) -> bool:
        """commit.gpgSign is set for this repository; fast-import can't sign commits."""
        found = self.git("config", "--type=bool", "--get", "commit.gpgSign", codes=(0, 1))
        return found.strip() == b"true"

    def write_commit_of(
        self,
        source: str,
        message: str,
        parents: tuple[str, ...],
        identity: CommitIdentity,
        *,
        sign: bool,
    ) -> str:
        """Write a commit with the files of `source`, and sign it if `sign` is set: its id.

        Signing follows the user's configuration: OpenPGP, SSH or X.509. Raises GitFailed with the
        signing program's message.
        """
        who = [
            f"{role}.{part}={value}"
            for role, person in (("author", identity.author), ("committer", identity.committer))
            for part, value in (("name", person.name), ("email", person.email))
        ]
        written = self.git(
            *(word for each in who for word in ("-c", each)),
            "commit-tree", *(["-S"] if sign else []),
            *(word for each in parents for word in ("-p", each)), f"{source}^{{tree}}",
            stdin=message.encode(),
        )  # fmt: skip
        return written.decode().strip()

    def push(
        self,
        updates: Sequence[RefUpdate],
        *,
        remote: str = "origin",
        timeout: float = NETWORK_SECONDS,
    ) -> None:
        """Push refs, atomically if the remote supports that, else in the given order.

        Raises Rejected if a ref has moved on the remote, Declined if the remote rejects the push by
        policy.
        """
        try:
            self._push(remote, updates, "--atomic", timeout=timeout)
        except GitFailed as error:
            if "does not support --atomic" not in error.message:
                raise
            for update in updates:
                self._push(remote, [update], timeout=timeout)

    def _push(self, remote: str, updates: Sequence[RefUpdate], *flags: str, timeout: float) -> None:
        leases = [
            f"--force-with-lease={each.ref}:{each.expect}"
            for each in updates
            if each.expect is not None
        ]
        self.git(
            "push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed",
            "--recurse-submodules=no", *flags, *leases, remote,
            *(f"{each.commit}:{each.ref}" for each in updates),
            timeout=timeout,
        )  # fmt: skip


def read_refs(listed: bytes) -> dict[str, str]:
    """{full name: id} from lines `<id> TAB <name>`.

    Names may be in any encoding, and contain characters at which Unicode breaks lines.
    """
    lines = listed.decode("utf-8", "replace").split("\n")
    pairs = (line.partition("\t") for line in lines if line)
    return {name: id for id, _, name in pairs}
