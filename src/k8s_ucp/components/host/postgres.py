"""One Postgres server on this machine: its data, and the record of its creation.

The superuser has no password, so nobody can log in as it. The owner of the database is no
superuser, so its connection gives access to tables, but not to files and programs of the machine.
Before Postgres 16, whoever may create roles can grant that access; there, the owner may not.
"""

from __future__ import annotations

import base64
import hmac
import os
import re
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from k8s_ucp import process
from k8s_ucp.components.host.postgres_authentication import verifier
from k8s_ucp.components.host.postgres_programs import (
    RUN_SECONDS,
    PostgresPrograms,
    as_user,
    system_user,
)
from k8s_ucp.components.host.program import Program
from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.workspace import make_private_folder, write_private_file, write_private_json
from k8s_ucp.workspace.records import parse_json, record_of

SUPERUSER = "rdsadmin"
OF_ROOT = Path("/var/lib/k8s-ucp")
"""Data of servers that root starts: other users have no access to root's own folders."""
SETTINGS = (
    *("-c", f"listen_addresses={ADDRESS}", "-c", "unix_socket_directories="),
    *("-c", "shared_buffers=16MB", "-c", "max_connections=50", "-c", "jit=off"),
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_CONFINING = 16
"""The first major version in which only members of the roles for files and programs grant them."""


@dataclass(frozen=True)
class PostgresRecord:
    """A server whose creation was completed. verifier: Postgres' stored form of the password.

    confined: its owner can't grant itself access to files and programs of the machine. creator: of
    its data, if root's servers have it elsewhere; "" for data at its former place.
    """

    port: int
    username: str
    verifier: str
    confined: bool = False
    creator: str = ""

    def opens_with(self, password: str) -> bool:
        salt = base64.b64decode(self.verifier.split("$")[1].split(":")[1])
        return hmac.compare_digest(self.verifier, verifier(password, salt))


@dataclass(frozen=True)
class PostgresServer:
    """folder: private to this server. home: folder of its data; see `server_in`.

    creator: whose home it is, if it isn't the same folder. former: where earlier versions of ucp
    put that home.
    """

    folder: Path
    home: Path
    creator: str = ""
    former: Path | None = None

    @property
    def name(self) -> str:
        """Name of its program and log."""
        return self.folder.name

    @property
    def exists(self) -> bool:
        """Whether anything of it exists, complete or not."""
        return self.folder.exists() or self.home.exists()

    def record(self) -> PostgresRecord | None:
        """None before its creation was completed, or if the file is lost or corrupt.

        Also None in a copy of root's workspace: its data is only in the original.
        """
        try:
            found = record_of(PostgresRecord, parse_json(self._record.read_text("utf-8")))
        except (FileNotFoundError, ValueError):
            return None
        copied = self.creator and found.creator not in ("", self.creator)
        return None if copied else found

    @property
    def may_be_complete(self) -> bool:
        """Whether there is data that must not be deleted although there is no record."""
        return (self._data / "PG_VERSION").exists() and not self._incomplete_mark.exists()

    def restore_record(self, port: int, username: str) -> PostgresRecord:
        """Write a record for data that lost its own; it opens with no password."""
        unknown = verifier(secrets.token_urlsafe())
        return self._write(PostgresRecord(port, username, unknown, creator=self.creator))

    def is_settled(self, record: PostgresRecord) -> bool:
        """Whether its data is where this version of ucp looks for it."""
        return self.creator in ("", record.creator)

    def settle(self, record: PostgresRecord) -> PostgresRecord:
        """Take its data over from an earlier version of ucp; the server must not run."""
        if self.former and self.former.exists() and not self.home.exists():
            _make_parents(self.home)
            self.former.rename(self.home)
            _remove_empty(self.former.parent)
        return self._write(replace(record, creator=self.creator))

    def prepare(self) -> None:
        """Create its folders; deletes the remains of an interrupted creation."""
        self.remove()
        make_private_folder(self.folder.parent)
        make_private_folder(self.folder)
        write_private_file(self._incomplete_mark, "")
        _make_home(self.home)

    def make(
        self, programs: PostgresPrograms, record: PostgresRecord, database: str
    ) -> PostgresRecord:
        """Create its data, with an empty database that the user owns. Raises UcpError."""
        owner, name = _quoted(record.username), _quoted(database)
        self._run(
            *(programs.folder / "initdb", "-D", self._data),
            *(f"--username={SUPERUSER}", "--auth=reject", "--encoding=UTF8"),
            *("--locale=C", "--wal-segsize=1", "--no-instructions"),
        )
        # By its user: for root, a link that this user puts there could lead to any file.
        access = f"host all all {ADDRESS}/32 scram-sha-256\n"
        self._run("sh", "-c", 'cat > "$0"', self._data / "pg_hba.conf", stdin=access)
        self._run_statements(
            programs,
            f"CREATE ROLE {owner} LOGIN CREATEDB {_creation(programs.major)} "
            f"PASSWORD '{record.verifier}'",
            *([] if database == "postgres" else [f"CREATE DATABASE {name}"]),
            f"ALTER DATABASE {name} OWNER TO {owner}",
        )
        return self._write(replace(record, confined=True, creator=self.creator))

    def is_confined(self, record: PostgresRecord) -> bool:
        """Whether its owner has no way to files and programs; earlier versions of ucp left one."""
        return record.confined or _confines(self.major())

    def confine(self, programs: PostgresPrograms, record: PostgresRecord) -> PostgresRecord:
        """Take the creation of roles from the owner; the server must not run. Raises UcpError."""
        owner, creation = _quoted(record.username), _creation(programs.major)
        self._run_statements(programs, f"ALTER ROLE {owner} {creation}")
        return self._write(replace(record, confined=True))

    def change_password(
        self, programs: PostgresPrograms, record: PostgresRecord, password: str
    ) -> PostgresRecord:
        """Change the owner's password; the server must not run. Raises UcpError."""
        record = replace(record, verifier=verifier(password))
        self._run_statements(
            programs, f"ALTER ROLE {_quoted(record.username)} PASSWORD '{record.verifier}'"
        )
        return self._write(record)

    def change_port(self, record: PostgresRecord, port: int) -> PostgresRecord:
        """Record another port, for the next start."""
        return self._write(replace(record, port=port))

    def program(self, programs: PostgresPrograms, port: int) -> Program:
        """SIGINT is a fast shutdown: it disconnects clients and closes the data."""
        argv = (*as_user(), programs.folder / "postgres", "-D", self._data, "-p", port, *SETTINGS)
        return Program(self.name, tuple(map(str, argv)), self.home, stop_signal="INT")

    def major(self) -> str:
        """Major version of the programs that can read its data. Raises UcpError."""
        try:
            return (self._data / "PG_VERSION").read_text("ascii").strip()
        except FileNotFoundError as error:
            raise UcpError(
                f"its data is not in {self._data}",
                next="move it there, or start with an empty database: "
                + command_line("rm", self._record),
            ) from error

    def remove_stale_pid_file(self) -> None:
        """Remove a PID file that names no process of this server and would prevent a start.

        The PID may be in use after a reboot, or be that of the original in a copy of its data.
        """
        file = self._data / "postmaster.pid"
        with suppress(OSError, ValueError, IndexError):
            pid = int(file.read_text("ascii").splitlines()[0])
            found = process.identify(pid)
            if (
                found is None
                or Path(found.executable).name != "postgres"
                or process.works_in(pid, self._data) is False
            ):
                file.unlink()

    def remove(self) -> None:
        """Delete it with its data; it must not run."""
        with suppress(UcpError):  # A full disk takes no record.
            if (record := self.record()) and not self.is_settled(record):
                self.settle(record)
        # What an interruption leaves counts as incomplete: the record becomes the mark, since a
        # full disk has no space for another file, and the mark is deleted after the data.
        if self._record.exists():
            self._record.replace(self._incomplete_mark)
        elif self.folder.exists():
            with suppress(OSError):
                write_private_file(self._incomplete_mark, "")
        shutil.rmtree(self._data, ignore_errors=True)
        for each in dict.fromkeys((self.home, self.folder)):
            if each.exists():
                shutil.rmtree(each)
        if OF_ROOT in self.home.parents:
            _remove_empty(self.home.parent)

    def _run_statements(self, programs: PostgresPrograms, *statements: str) -> None:
        """Run statements on its data in single-user mode, as superuser."""
        self._run(
            *(programs.folder / "postgres", "--single", "-D", self._data),
            *("-c", "exit_on_error=on", "-c", "log_checkpoints=off", "postgres"),
            stdin="".join(f"{each};\n" for each in statements),
        )

    def _run(self, *arguments: str | Path, stdin: str = "") -> None:
        argv: list[str | Path] = [*as_user(), *arguments]
        environment = process.passed_on()
        process.run(argv, timeout=RUN_SECONDS, cwd=self.home, env=environment, stdin=stdin)

    def _write(self, record: PostgresRecord) -> PostgresRecord:
        write_private_json(self._record, record)
        self._incomplete_mark.unlink(missing_ok=True)
        return record

    @property
    def _data(self) -> Path:
        return self.home / "data"

    @property
    def _record(self) -> Path:
        return self.folder / "server.json"

    @property
    def _incomplete_mark(self) -> Path:
        """Exists while the server is created or deleted, so that a lost record proves neither."""
        return self.folder / "incomplete"


def _creation(major: str) -> str:
    """Whether an owner may create roles, as an attribute of its role."""
    return "CREATEROLE" if _confines(major) else "NOCREATEROLE"


def _confines(major: str) -> bool:
    """Whether Postgres itself keeps who may create roles from files and programs."""
    return int(major) >= _CONFINING


def server_in(folder: Path, creator: str, former: str = "") -> PostgresServer:
    """The server of a folder; root's have their data elsewhere.

    creator: one word that distinguishes a topology from others, also after its workspace was moved
    and another one was created in its place. former: the word of earlier versions of ucp.
    """
    if os.geteuid() != 0:
        return PostgresServer(folder, folder)
    before = OF_ROOT / former / folder.name if former else None
    return PostgresServer(folder, OF_ROOT / creator / folder.name, creator, before)


def _make_home(home: Path) -> None:
    if OF_ROOT not in home.parents:
        make_private_folder(home)
        return
    _make_parents(home)
    home.mkdir(mode=0o700)
    user = system_user()
    os.chown(home, user.pw_uid, user.pw_gid)


def _make_parents(home: Path) -> None:
    """Folders of root that other users can enter."""
    for each in (OF_ROOT, home.parent):
        each.mkdir(exist_ok=True)
        each.chmod(0o755)


def _remove_empty(parent: Path) -> None:
    with suppress(OSError):
        parent.rmdir()
        OF_ROOT.rmdir()


def _quoted(name: str) -> str:
    """A quoted identifier; RDS allows only these characters. Raises UcpError."""
    if not _NAME.fullmatch(name):
        raise UcpError(f"{name!r} is not a valid name of a database or its user")
    return f'"{name}"'
