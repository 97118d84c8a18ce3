"""The Postgres behind an RDS instance: its version, its name, and how its password is stored."""

from __future__ import annotations

import base64
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from k8s_ucp.aws.backing import BackedResource
from k8s_ucp.clusters.ports import Ports
from k8s_ucp.components.component import ADDRESS
from k8s_ucp.components.databases import Databases, choose, server_name
from k8s_ucp.components.host import postgres
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.postgres import PostgresPrograms, PostgresRecord, verifier
from k8s_ucp.components.host.program import Program
from k8s_ucp.components.host.supervisor_client import ProgramState
from k8s_ucp.workspace import StateFolder

INSTALLED = [PostgresPrograms(Path(f"/pg/{major}"), major) for major in ("15", "17", "16")]


@pytest.mark.parametrize(
    ("asked", "major"), [("16", "16"), ("17.2", "17"), ("9.6", "15"), ("", "15")]
)
def test_the_requested_major_version_is_chosen_or_else_the_first(asked: str, major: str) -> None:
    found = choose(INSTALLED, asked)

    assert found and found.major == major
    assert choose([], asked) is None


def test_instances_of_the_same_name_in_two_regions_have_different_servers() -> None:
    names = {server_name(region, "Demo_" + "x" * 90) for region in ("eu-west-3", "us-east-1")}

    assert len(names) == 2
    assert all(re.fullmatch(r"rds-demo-[-a-z0-9]{1,55}", each) for each in names)


def test_a_password_is_stored_as_the_scram_verifier_of_rfc_7677() -> None:
    """The example of RFC 7677, in the format in which Postgres stores verifiers."""
    kept = verifier("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))

    assert kept == (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
        ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )


def test_a_server_accepts_only_its_own_password() -> None:
    record = PostgresRecord(5432, "quotes", verifier("one"))

    assert record.opens_with("one")
    assert not record.opens_with("two")
    assert verifier("one") != verifier("one")


@dataclass
class Placement:
    """A topology without a supervisord: its programs don't run until they are started."""

    state: StateFolder
    started: list[Program] = field(default_factory=list)

    def states(self) -> dict[str, ProgramState]:
        return {each.name: ProgramState(each.name, "RUNNING", 1, "") for each in self.started}

    def start(self, programs: Sequence[Program]) -> list[str]:
        self.started += programs
        return [each.name for each in programs]


@contextmanager
def listening() -> Iterator[int]:
    """The port of a server that asks everyone for a password, as Postgres does."""
    with socket.create_server((ADDRESS, 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(1024)
                        connection.sendall(b"R")

        threading.Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1]


def test_a_copy_of_a_workspace_does_not_use_the_databases_of_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have the same users and passwords, and the record in the copy names the port."""
    monkeypatch.setattr(postgres, "OF_ROOT", tmp_path / "root")
    ports = Ports(tmp_path / "ports.json")
    resource = BackedResource("eu-west-3", "quotes", {"username": "quotes", "password": "one"})
    servers = {}
    for name in ("original", "copy"):
        state = StateFolder(tmp_path / name / ".ucp" / "demo")
        folder = state.components / "databases" / server_name(resource.region, resource.name)
        servers[name] = server = postgres.server_in(folder, state.identifier)
        for each in (folder, server.home / "data"):
            each.mkdir(parents=True)
        (server.home / "data" / "PG_VERSION").write_text("16\n")
    with listening() as port:
        for each in servers.values():
            each._write(PostgresRecord(port, "quotes", verifier("one"), confined=True))
        ports.claim(str(servers["original"].folder), {"databases": port})
        placement = Placement(StateFolder(tmp_path / "copy" / ".ucp" / "demo"))
        databases = Databases(cast(HostPlacement, placement), ports, lambda: INSTALLED)

        assert not databases.state(resource).ready
        state = databases.bring_up(resource)

    own = state.overrides["Endpoint"]["Port"]
    assert own != port
    assert not state.ready
    assert [each.argv[-1 - len(postgres.SETTINGS)] for each in placement.started] == [str(own)]
    record = servers["copy"].record()
    assert record and record.port == own
    assert databases.bring_up(resource).overrides["Endpoint"]["Port"] == own


def test_the_pid_file_of_the_originals_server_prevents_no_start_of_a_copy(tmp_path: Path) -> None:
    program = shutil.copy(shutil.which("sleep") or "", tmp_path / "postgres")
    original, copy = (postgres.PostgresServer(tmp_path, tmp_path / each) for each in "ab")
    files = [each.home / "data" / "postmaster.pid" for each in (original, copy)]
    for each in files:
        each.parent.mkdir(parents=True)
    with subprocess.Popen([program, "60"], cwd=files[0].parent) as running:
        for server, file in zip((original, copy), files, strict=True):
            file.write_text(f"{running.pid}\n")
            server.forget_stranger()
        running.kill()

    assert [each.exists() for each in files] == [True, False]
