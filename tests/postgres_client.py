"""A Postgres as its users see it: psql, with a connection Secret like those of apps."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from k8s_ucp.components.host.postgres_programs import installed_programs


def psql(connection: Mapping[str, str], sql: str) -> str:
    """Run a statement and return psql's output.

    connection: endpoint, port, username, password, database.
    """
    environment = {
        "PGHOST": connection["endpoint"],
        "PGPORT": connection["port"],
        "PGUSER": connection["username"],
        "PGPASSWORD": connection["password"],
        "PGDATABASE": connection["database"],
    }
    words = ("--no-psqlrc", "--quiet", "-At", "--set", "ON_ERROR_STOP=1", "-c", sql)
    return run_psql(environment, *words)


def run_psql(environment: Mapping[str, str], *words: str) -> str:
    """Return psql's output. environment: all its variables. Raises ConnectionError."""
    program = installed_programs()[0].folder / "psql"
    done = subprocess.run(
        (program, *words),
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        cwd="/",
    )
    if done.returncode:
        raise ConnectionError(done.stderr)
    return done.stdout.strip()
