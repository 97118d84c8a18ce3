"""Paths of the workspace folder, its hidden state, the user's cache and runtime folders.

Layout: `ucp.yaml`, `creds/`, `gitops/<topology>/`, `.ucp/<topology>/`. Folders with state are 0700
and their files 0600, because they contain keys and kubeconfigs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from k8s_ucp import locks
from k8s_ucp.errors import UcpError

FOLDER_MODE = 0o700
FILE_MODE = 0o600

_MACHINE_ID = Path("/etc/machine-id")
_PARENTS = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 (private 0700 folders below them)
"""Parents of folders for sockets: they exist on every machine, whoever is logged in."""


@dataclass(frozen=True)
class StateFolder:
    """`.ucp/<topology>/`: can be rebuilt from the repositories; never contains the only copy."""

    root: Path

    @property
    def journal(self) -> Path:
        return self.root / "journal.json"

    @property
    def unfinished(self) -> Path:
        """Journals of commands that concern a single object, each until it is done."""
        return self.root / "unfinished"

    def unfinished_file(self, name: str) -> Path:
        """Journal of one of these commands."""
        return self.unfinished / f"{name}.json"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def kubeconfigs(self) -> Path:
        return self.root / "kubeconfigs"

    @property
    def clusters(self) -> Path:
        """Control planes of the embedded provider, one folder each."""
        return self.root / "clusters"

    @property
    def copies(self) -> Path:
        """Throwaway copies of the core cluster, while an upgrade is rehearsed."""
        return self.root / "rehearsal"

    @property
    def ledger(self) -> Path:
        """Record of ucp's objects on an existing core cluster."""
        return self.root / "ledger.json"

    @property
    def cloud_record(self) -> Path:
        """Cloud resources that a teardown deletes, until they were verified to be gone."""
        return self.root / "cloud-resources.json"

    @property
    def abandoned(self) -> Path:
        """Cloud resources that could not be deleted and were abandoned."""
        return self.root / "abandoned.json"

    @property
    def destroyed(self) -> Path:
        """Progress of its destruction, until the next start."""
        return self.root / "destroyed.json"

    @property
    def components(self) -> Path:
        """Working files of the components that run as host processes."""
        return self.root / "components"

    @property
    def backup(self) -> Path:
        """Files of the backup controller."""
        return self.components / "backup"

    @property
    def fence(self) -> Path:
        """Settings for the fence's guard, and the guard's permit."""
        return self.components / "fence"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def versions(self) -> Path:
        """The cache entries of the programs that it runs."""
        return self.root / "versions.json"

    @property
    def identifier(self) -> str:
        """Unique identifier of this folder on this machine, which its processes carry."""
        return f"ucp-{hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]}"

    @property
    def runtime_record(self) -> Path:
        """Record of the folder for sockets."""
        return self.root / "runtime.json"

    @property
    def supervisor_config(self) -> Path:
        return self.components / "supervisord.conf"

    def kubeconfig(self, cluster: str) -> Path:
        return self.kubeconfigs / f"{cluster}.yaml"

    def make(self) -> None:
        """Create the folders, private to the user. Raises UcpError if that fails."""
        for folder in (
            self.root.parent,
            self.root,
            self.kubeconfigs,
            self.clusters,
            self.components,
            self.logs,
        ):
            make_private_folder(folder)


@dataclass(frozen=True)
class GitopsFolder:
    """`gitops/<topology>/`: working clones and, if git is local, the bare remotes."""

    root: Path

    @property
    def core(self) -> Path:
        return self.root / "core"

    @property
    def apps(self) -> Path:
        return self.root / "apps"

    @property
    def core_remote(self) -> Path:
        return self.root / "core.git"

    @property
    def apps_remote(self) -> Path:
        return self.root / "apps.git"

    def team(self, name: str) -> Path:
        """A team's working clone."""
        return self.root / f"team-{name}"

    def team_remote(self, name: str) -> Path:
        return self.root / f"team-{name}.git"


@dataclass(frozen=True)
class WorkspaceIdentity:
    """Distinguishes a workspace from all others, and from its own copies.

    id: random. root, machine: where it was used last; a folder elsewhere with the same id is a copy
    as long as the original exists. former: by topology, ids created by versions without this file.
    """

    id: str
    root: str
    machine: str
    former: Mapping[str, str]


@dataclass(frozen=True)
class Workspace:
    """The folder that a user works in; `root` is absolute."""

    root: Path

    @classmethod
    def at(cls, folder: Path) -> Workspace:
        return cls(folder.expanduser().resolve())

    @property
    def topology_file(self) -> Path:
        return self.root / "ucp.yaml"

    @property
    def credentials(self) -> Path:
        return self.root / "creds"

    @property
    def backup_key(self) -> Path:
        """Decrypts the backups in the core repositories of this workspace's topologies."""
        return self.credentials / "backup.key"

    @property
    def states(self) -> Path:
        """The folder of all topologies' state."""
        return self.root / ".ucp"

    def state(self, topology: str) -> StateFolder:
        return StateFolder(self.states / topology)

    def gitops(self, topology: str) -> GitopsFolder:
        return GitopsFolder(self.root / "gitops" / topology)

    def topologies(self) -> list[str]:
        """Sorted names of the topologies with state here."""
        if not self.states.is_dir():
            return []
        return sorted(each.name for each in self.states.iterdir() if each.is_dir())

    def runtime_folder(self, topology: str) -> Path:
        """A short private folder for sockets (paths are limited to 107 bytes). Creates nothing.

        It depends on the topology, not on the caller: a command from cron, under sudo or in another
        login finds the sockets of the first start. Before that start, it is the folder that will be
        used.
        """
        return _recorded_runtime(self.state(topology)) or self._default_runtime(topology, _PARENTS)

    def settle_runtime_folder(self, topology: str) -> Path:
        """Create and record the folder for sockets. Raises UcpError if none can be created.

        Never below a login's folder: /run/user/UID is deleted with the last session, and the
        sockets with it, while the processes keep running. A path that another user took first is
        skipped.
        """
        state = self.state(topology)
        recorded = _read_runtime_record(state)
        candidates = [recorded] if recorded else []
        candidates += [self._default_runtime(topology, (each,)) for each in _PARENTS]
        for folder in candidates:
            try:
                make_socket_folder(folder)
            except UcpError:
                continue
            break
        else:
            try:
                parent = Path(tempfile.mkdtemp(prefix=f"ucp-{os.getuid()}-", dir=_PARENTS[0]))
            except OSError as error:
                raise UcpError(
                    f"failed to create a folder for sockets in {_PARENTS[0]}: {error.strerror}",
                    next=f"make {_PARENTS[0]} writable for every user (mode 1777)",
                ) from error
            folder = self._default_runtime(topology, (parent,), own=False)
            make_socket_folder(folder)
        if folder != recorded:
            make_private_folder(state.root)
            note = {"state": state.identifier, "folder": str(folder)}
            write_private_file(state.runtime_record, json.dumps(note) + "\n")
        return folder

    def _default_runtime(
        self, topology: str, parents: tuple[Path, ...], *, own: bool = True
    ) -> Path:
        parent = parents[0] / f"ucp-{os.getuid()}" if own else parents[0]
        # Different workspaces get different folders.
        digest = hashlib.sha256(f"{self.root}\0{topology}".encode()).hexdigest()[:12]
        return parent / digest

    def machine_id(self, topology: str) -> str:
        """Identifies the creator of clusters: stable for this workspace, even if it is moved.

        A LocalCluster has it in `spec.machine`, a kind cluster in its owner's mark; controllers
        elsewhere never touch these clusters. Writes nothing: before the first start it is the id of
        versions without `settle_identity`.
        """
        identity = self._identity()
        if identity is None:
            return self._former_machine_id(topology)
        if topology in identity.former:
            return identity.former[topology]
        return hashlib.sha256(f"{identity.id}\0{topology}".encode()).hexdigest()[:16]

    def settle_identity(self) -> None:
        """Give this workspace a random identity, once; a workspace that was moved keeps its own.

        Machine id, user and path are the same for two jobs in containers of one image, so that each
        would consider the other's kind clusters its own. The file is outside `.ucp`, so that
        deleting that folder doesn't orphan clusters. Topologies that were started without it keep
        the id that their clusters are marked with.
        """
        folder = self._identity_file.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with locks.folder_locked(folder):
                identity = self._identity()
                if identity is None:
                    former = {each: self._former_machine_id(each) for each in self._begun()}
                    identity = WorkspaceIdentity(secrets.token_hex(16), "", "", former)
                    if self._identity_file.exists():
                        # In a copy of a workspace, the former ids belong to the original's
                        # clusters.
                        identity = replace(identity, former={})
                settled = replace(
                    identity, root=str(self.root), machine=_machine() or identity.machine
                )
                if settled != identity:
                    text = json.dumps(asdict(settled), indent=1) + "\n"
                    write_private_file(self._identity_file, text)
        except OSError as error:
            raise UcpError(
                f"failed to write {self._identity_file}: {error.strerror}",
                next="make the workspace writable, or choose another one with --workspace DIR",
            ) from error

    @property
    def _identity_file(self) -> Path:
        return self.root / "gitops" / ".workspace.json"

    def _identity(self) -> WorkspaceIdentity | None:
        """None if there is none yet, or the folder is a copy of another workspace."""
        identity = _read_identity(self._identity_file)
        if identity is None:
            return None
        if _machine() and identity.machine and _machine() != identity.machine:
            return None
        if identity.root != str(self.root):
            original_file = Path(identity.root) / self._identity_file.relative_to(self.root)
            original = _read_identity(original_file)
            if (
                original
                and original.id == identity.id
                and not _is_same(original_file, self._identity_file)
            ):
                return None
        return identity

    def _begun(self) -> list[str]:
        """Topologies that have repositories or a journal."""
        bare = self.root.glob("gitops/*/core.git")
        found = [*self.root.glob("gitops/*/core"), *bare, *self.root.glob(".ucp/*/journal.json")]
        return sorted({each.parent.name for each in found})

    def _former_machine_id(self, topology: str) -> str:
        """The id of versions without an identity; must not change: clusters are marked with it."""
        try:
            machine = _MACHINE_ID.read_text(encoding="ascii").strip()
        except OSError:
            machine = os.uname().nodename
        # The folder's owner, also under sudo.
        owner = self.states.stat().st_uid if self.states.is_dir() else os.getuid()
        text = f"{machine}\0{owner}\0{self.root}\0{topology}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _machine() -> str:
    """A digest of this machine's id; empty if it has none, as in containers and fresh images."""
    try:
        found = _MACHINE_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return "" if found in ("", "uninitialized") else hashlib.sha256(found.encode()).hexdigest()[:16]


def _read_identity(path: Path) -> WorkspaceIdentity | None:
    try:
        found = WorkspaceIdentity(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.id and isinstance(found.former, dict) else None


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def home_folder(instead: str) -> Path:
    """The user's home. instead: alternative variables. Raises UcpError if there is none.

    There is none in a container that runs as an unknown user, for example.
    """
    try:
        return Path.home()
    except RuntimeError as error:
        raise UcpError(
            f"user {os.getuid()} has no home folder",
            next=f"set HOME or {instead} to a writable folder",
        ) from error


def cache_folder() -> Path:
    """The user's cache, shared by all workspaces: $UCP_CACHE_DIR, or else the XDG cache folder.

    Raises UcpError if neither is known.
    """
    named = os.environ.get("UCP_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else home_folder("UCP_CACHE_DIR") / ".cache") / "k8s-ucp"


def advise_writable(path: Path) -> str:
    """Advice for a file or folder of ours that isn't writable; it may be in the cache."""
    with contextlib.suppress(UcpError):
        if path.is_relative_to(cache_folder()):
            return "set UCP_CACHE_DIR to a writable folder"
    return "make the workspace writable, or choose another one with --workspace DIR"


def make_private_folder(folder: Path) -> None:
    """Create `folder` and its parents; the folder itself becomes 0700. Raises UcpError."""
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        # Commands that only look work where nothing can be written, as on a disk with errors.
        if stat.S_IMODE(folder.stat().st_mode) != FOLDER_MODE:
            folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise UcpError(
            f"failed to create the folder {folder}: {error.strerror}",
            next=advise_writable(folder),
        ) from error


def make_socket_folder(folder: Path) -> None:
    """Create a folder for sockets and its parent, both 0700 and owned by the user.

    Raises UcpError if that fails: in /tmp, any user may have created either of them first.
    """
    for each in (folder.parent, folder):
        try:
            with contextlib.suppress(FileExistsError):
                each.mkdir(mode=FOLDER_MODE)
            found = each.lstat()
            # Checked before any change: a link may lead to another user's folder.
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                raise UcpError(
                    f"{each}, needed for sockets, is not a folder owned by this user",
                    next=(
                        f"have it removed (ls -ld {each} shows the owner), then run the "
                        "command again"
                    ),
                )
            if stat.S_IMODE(found.st_mode) != FOLDER_MODE:
                each.chmod(FOLDER_MODE)
        except OSError as error:
            raise UcpError(
                f"failed to create the folder {each} for sockets: {error.strerror}",
                next=f"check owner and mode: ls -ld {each.parent}",
            ) from error


def _recorded_runtime(state: StateFolder) -> Path | None:
    return _read_runtime_record(state) or socket_folder_of_config(state)


def _read_runtime_record(state: StateFolder) -> Path | None:
    """The folder that a start recorded; None if there is none, or the state was moved or copied."""
    try:
        note = json.loads(state.runtime_record.read_text("utf-8"))
        if note["state"] != state.identifier:
            return None
        folder = Path(note["folder"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return folder if folder.is_absolute() else None


def socket_folder_of_config(state: StateFolder) -> Path | None:
    """Folder of the socket in this state folder's supervisord configuration.

    Versions that wrote no record used the folder of the caller's login.
    """
    try:
        text = state.supervisor_config.read_text("utf-8")
    except (OSError, ValueError):
        return None
    found = re.search(r"^file=(/.+)/supervisor\.sock$", text, re.MULTILINE)
    ours = f"\nidentifier={state.identifier}\n" in text
    return Path(found[1].replace("%%", "%")) if found and ours else None


def write_private_file(path: Path, text: str, *, replace: bool = True) -> None:
    """Write a file that only the user can read, atomically, even if power is lost.

    replace: overwrite an existing file; otherwise it stays unchanged.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write_through(temporary, text, os.O_TRUNC)
        if replace:
            temporary.replace(path)
        else:
            _link_new(temporary, path, text)
            temporary.unlink()
    except BaseException as error:
        if isinstance(error, OSError) and not error.filename:
            error.filename = str(path)  # Errors of writes, such as a full disk, have no file name.
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _write_through(path: Path, text: str, flag: int) -> None:
    """Write and sync to disk: a file renamed without sync can be empty after a power loss."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flag, FILE_MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def _link_new(temporary: Path, path: Path, text: str) -> None:
    """Create `path` unless it exists."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return
    except OSError:
        # A file system without hard links, such as FAT or a network share: not atomic, but never
        # overwrites an existing file.
        try:
            _write_through(path, text, os.O_EXCL)
        except FileExistsError:
            return
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _sync_folder(folder: Path) -> None:
    """Sync the new name too, if the file system supports it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def replace_file(path: Path, text: str) -> None:
    """Replace a user's file atomically; keeps its mode, and a link to it."""
    place = path.resolve()
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        # Line endings are kept: the file may have been written on another system.
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(stat.S_IMODE(place.stat().st_mode))
        temporary.replace(place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
