"""The Postgres behind an RDS instance: its version, its name, and how its password is stored."""

from __future__ import annotations

import base64
import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, cast

import pytest

from k8s_ucp.aws.backing import BackedResource
from k8s_ucp.clusters.ports import Ports
from k8s_ucp.components.databases import Databases, choose, server_name
from k8s_ucp.components.host import postgres, postgres_programs
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.postgres import PostgresRecord, PostgresServer
from k8s_ucp.components.host.postgres_authentication import verifier
from k8s_ucp.components.host.postgres_programs import PostgresPrograms, installed_programs
from k8s_ucp.components.host.program import Program
from k8s_ucp.components.host.supervisor_client import ProgramState
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.managed.external import CloudFailed
from k8s_ucp.workspace import StateFolder

INSTALLED = [PostgresPrograms(Path(f"/pg/{major}"), major) for major in ("15", "17", "16")]


@pytest.mark.parametrize(
    ("asked", "major"), [("16", "16"), ("17.2", "17"), ("9.6", "15"), ("", "15")]
)
def test_the_requested_major_version_is_chosen_or_else_the_first(asked: str, major: str) -> None:
    found = choose(INSTALLED, asked)

    assert found and found.major == major
    assert choose([], asked) is None


def test_installed_programs_are_listed_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = {"9.6": "9.6.24", "17": "17.2 (Debian 17.2-1)", "18": "18devel", "19": "", "old": "8"}
    for name, version in outputs.items():
        folder = tmp_path / name / "bin"
        folder.mkdir(parents=True)
        (folder / "initdb").touch()
        said = f"postgres (PostgreSQL) {version}" if version else "another program"
        (folder / "postgres").write_text(f"#!/bin/sh\necho '{said}'\n")
        (folder / "postgres").chmod(0o755)
    monkeypatch.setattr(postgres_programs, "DEBIAN", tmp_path)
    monkeypatch.setattr(postgres_programs, "WHEEL", "no_such_wheel")
    monkeypatch.setattr(postgres_programs, "as_user", lambda: ())
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    found = [each.major for each in installed_programs() if each.folder.is_relative_to(tmp_path)]
    assert found == ["18", "17", "9"]


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

    def remove(self, names: Sequence[str]) -> None:
        self.started = [each for each in self.started if each.name not in names]

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
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    ports = Ports(tmp_path / "ports.json")
    resource = BackedResource("eu-west-3", "quotes", {"username": "quotes", "password": "one"})
    servers = {}
    for name in ("original", "copy"):
        state = StateFolder(tmp_path / name / ".ucp" / "demo")
        folder = state.components / "databases" / server_name(resource.region, resource.name)
        servers[name] = server = postgres.server_in(folder, name)
        for each in (folder, server.home / "data"):
            each.mkdir(parents=True)
        (server.home / "data" / "PG_VERSION").write_text("16\n")
    with listening() as port:
        for each in servers.values():
            each._write(PostgresRecord(port, "quotes", verifier("one"), confined=True))
        ports.claim(str(servers["original"].folder), {"databases": port})
        placement = Placement(StateFolder(tmp_path / "copy" / ".ucp" / "demo"))
        databases = Databases(cast(HostPlacement, placement), ports, "copy", lambda: INSTALLED)

        assert not databases.state(resource).ready
        state = databases.bring_up(resource)

    own = state.overrides["Endpoint"]["Port"]
    assert own != port
    assert not state.ready
    assert [each.argv[-1 - len(postgres.SETTINGS)] for each in placement.started] == [str(own)]
    record = servers["copy"].record()
    assert record and record.port == own
    assert databases.bring_up(resource).overrides["Endpoint"]["Port"] == own


@pytest.mark.parametrize("left", [None, "{"])
def test_a_database_without_a_record_keeps_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str | None
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    statements: list[str] = []
    monkeypatch.setattr(
        PostgresServer, "_run_statements", lambda _, __, *each: statements.extend(each)
    )
    state = StateFolder(tmp_path / ".ucp" / "demo")
    resource = BackedResource("eu-west-3", "quotes", {"username": "quotes", "password": "one"})
    folder = state.components / "databases" / server_name(resource.region, resource.name)
    data = folder / "data" / "PG_VERSION"
    data.parent.mkdir(parents=True)
    data.write_text("16\n")
    if left is not None:
        (folder / "server.json").write_text(left)
    ports = Ports(tmp_path / "ports.json")
    placement = cast(HostPlacement, Placement(state))
    databases = Databases(placement, ports, "mine", lambda: INSTALLED)

    databases.bring_up(resource)

    assert data.exists()
    server = postgres.server_in(folder, "mine")
    record = server.record()
    assert record and record.opens_with("one")
    assert "ALTER ROLE" in statements[0]
    server.prepare()
    data.parent.mkdir()
    data.write_text("16\n")
    assert not server.may_be_complete, "a creation that was interrupted"


@dataclass
class RootsDatabase:
    """A database of root in a workspace, with data at its former place or the present one."""

    workspace: Path
    creator: str
    ports: Ports
    resource: ClassVar = BackedResource(
        "eu-west-3", "quotes", {"username": "quotes", "password": "one"}
    )

    @property
    def state(self) -> StateFolder:
        return StateFolder(self.workspace / ".ucp" / "demo")

    @property
    def server(self) -> postgres.PostgresServer:
        name = server_name(self.resource.region, self.resource.name)
        folder = self.state.components / "databases" / name
        return postgres.server_in(folder, f"ucp-{self.creator}", self.state.identifier)

    @property
    def former(self) -> Path:
        assert self.server.former
        return self.server.former

    @property
    def databases(self) -> Databases:
        placement = cast(HostPlacement, Placement(self.state))
        return Databases(placement, self.ports, self.creator, lambda: INSTALLED)

    def store(self, home: Path, creator: str = "") -> None:
        for each in (self.server.folder, home / "data"):
            each.mkdir(parents=True)
        (home / "data" / "PG_VERSION").write_text("16\n")
        self.server._write(PostgresRecord(5432, "quotes", verifier("one"), True, creator))


@pytest.fixture
def of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RootsDatabase]:
    monkeypatch.setattr(postgres, "OF_ROOT", tmp_path / "root")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda *_: None)
    yield RootsDatabase(tmp_path / "workspace", "a", Ports(tmp_path / "ports.json"))


def test_roots_databases_are_found_after_the_workspace_was_moved(of_root: RootsDatabase) -> None:
    of_root.store(of_root.server.home, of_root.server.creator)
    of_root.workspace = of_root.workspace.rename(of_root.workspace.with_name("moved"))

    of_root.databases.bring_up(of_root.resource)

    assert of_root.server.major() == "16"


def test_a_new_workspace_at_the_place_of_a_moved_one_does_not_delete_its_databases(
    of_root: RootsDatabase,
) -> None:
    of_root.store(of_root.former)
    former, kept = of_root.former, of_root.server.home
    of_root.workspace.rename(of_root.workspace.with_name("moved"))
    new = RootsDatabase(of_root.workspace, "b", of_root.ports)

    new.server.prepare()
    new.databases.remove(new.resource)

    assert (former / "data" / "PG_VERSION").exists()
    assert not new.server.home.exists()
    assert new.server.home != kept


def test_databases_of_an_earlier_ucp_are_taken_over_with_their_data(of_root: RootsDatabase) -> None:
    of_root.store(of_root.former)

    of_root.databases.bring_up(of_root.resource)

    assert of_root.server.major() == "16"
    assert not of_root.former.parent.exists()
    record = of_root.server.record()
    assert record and record.creator == "ucp-a"


def test_databases_of_an_earlier_ucp_are_deleted_with_their_data(of_root: RootsDatabase) -> None:
    of_root.store(of_root.former)

    of_root.databases.remove(of_root.resource)

    assert not of_root.databases.exists(of_root.resource)
    assert not postgres.OF_ROOT.exists()


def test_a_copy_of_roots_workspace_starts_with_an_empty_database(of_root: RootsDatabase) -> None:
    """The data is not in the workspace, so the copy has none; the record that it has is stale."""
    of_root.store(of_root.server.home, of_root.server.creator)
    shutil.copytree(of_root.workspace, of_root.workspace.with_name("copy"))
    copy = RootsDatabase(of_root.workspace.with_name("copy"), "b", of_root.ports)

    assert copy.server.record() is None
    copy.databases.remove(copy.resource)
    assert of_root.server.major() == "16"


def test_a_database_without_its_data_says_where_it_should_be(of_root: RootsDatabase) -> None:
    of_root.store(of_root.former)
    of_root.workspace = of_root.workspace.rename(of_root.workspace.with_name("moved"))

    place = re.escape(f"its data is not in {postgres.OF_ROOT / 'ucp-a' / 'rds-quotes-'}")
    with pytest.raises(CloudFailed, match=place):
        of_root.databases.bring_up(of_root.resource)


def test_an_interrupted_deletion_of_a_database_without_a_record_leaves_no_partial_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = postgres.PostgresServer(tmp_path, tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "PG_VERSION").write_text("17")
    assert server.may_be_complete
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        server.remove()
    assert not server.may_be_complete


def test_the_pid_file_of_the_originals_server_prevents_no_start_of_a_copy(tmp_path: Path) -> None:
    program = shutil.copy(shutil.which("sleep") or "", tmp_path / "postgres")
    original, copy = (postgres.PostgresServer(tmp_path, tmp_path / each) for each in "ab")
    files = [each.home / "data" / "postmaster.pid" for each in (original, copy)]
    for each in files:
        each.parent.mkdir(parents=True)
    with subprocess.Popen([program, "60"], cwd=files[0].parent) as running:
        for server, file in zip((original, copy), files, strict=True):
            file.write_text(f"{running.pid}\n")
            server.remove_stale_pid_file()
        running.kill()

    assert [each.exists() for each in files] == [True, False]
