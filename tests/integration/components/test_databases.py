"""A Postgres server behind a simulated RDS instance, from its first start to its deletion."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.aws.backing import SIMULATED, BackedResource, BackingState
from k8s_ucp.clusters.ports import Ports
from k8s_ucp.components.databases import Databases, server_name
from k8s_ucp.components.host import postgres
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.postgres import PostgresRecord
from k8s_ucp.components.host.postgres_authentication import verifier
from k8s_ucp.components.host.postgres_programs import installed_programs
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.doctor.advice import of_resource
from k8s_ucp.inspect.resource_conditions import Cause, first_cause
from k8s_ucp.managed.external import CloudFailed
from tests import quote_app
from tests.control_planes import eventually
from tests.postgres_client import psql

DECLARED = {
    "engine": "postgres",
    "engineVersion": "16",
    "username": "quotes",
    "dbName": "quotes",
    "password": 'it\'s "secret" \\',
}
INSTANCE = BackedResource("eu-west-3", "demo-Quotes", DECLARED)
PROGRAM = server_name(INSTANCE.region, INSTANCE.name)


@pytest.fixture(autouse=True)
def of_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Store root's databases in a folder of the test, which other users can enter."""
    folder = Path(tempfile.mkdtemp(prefix="ucp-t"))
    folder.chmod(0o755)
    monkeypatch.setattr(postgres, "OF_ROOT", folder)
    yield
    shutil.rmtree(folder, ignore_errors=True)


def connection(databases: Databases, instance: BackedResource = INSTANCE) -> dict[str, str]:
    """Wait until the instance is ready; returns its connection details."""
    eventually(lambda: databases.bring_up(instance).ready, seconds=120)
    endpoint = databases.state(instance).overrides["Endpoint"]
    return {
        "endpoint": endpoint["Address"],
        "port": str(endpoint["Port"]),
        "username": instance.parameters["username"],
        "password": instance.parameters["password"],
        "database": instance.parameters["dbName"],
    }


@pytest.mark.timeout(600)
def test_an_instance_keeps_rows_and_port_over_restarts_and_is_deleted_completely(
    placement: HostPlacement, tmp_path: Path
) -> None:
    databases = Databases(placement, Ports(tmp_path / "ports.json"), "demo")
    placement.ensure_running()
    given = connection(databases)
    psql(given, "create table quote (text text); insert into quote values ('one')")

    for wrong in ({"password": "another"}, {"username": "rdsadmin", "password": ""}):
        with pytest.raises(ConnectionError):
            psql({**given, **wrong}, "select 1")
    with pytest.raises(ConnectionError, match="COPY"):
        psql(given, "copy quote from program 'id'")

    os.kill(placement.states()[PROGRAM].pid, signal.SIGKILL)
    eventually(lambda: databases.bring_up(INSTANCE).ready, seconds=120)
    assert psql(given, "select * from quote") == "one"

    placement.stop_all()
    state = databases.state(INSTANCE)
    assert not state.ready
    assert PROGRAM in state.why
    placement.ensure_running()
    assert connection(databases) == given
    assert psql(given, "select * from quote") == "one"

    renewed = replace(INSTANCE, parameters={**DECLARED, "password": "renewed"})
    after = connection(databases, renewed)
    assert after == {**given, "password": "renewed"}
    assert psql(after, "select * from quote") == "one"
    with pytest.raises(ConnectionError):
        psql(given, "select 1")

    for _ in ("its first pod", "the next one"):
        assert quote_app.authors(after) == quote_app.AUTHORS

    databases.remove(INSTANCE)
    assert not databases.exists(INSTANCE)
    assert PROGRAM not in placement.states()
    assert not list((placement.state.components / "databases").iterdir())
    assert Ports(tmp_path / "ports.json").owners() == []


def test_an_owner_can_not_get_access_to_programs_of_the_machine(tmp_path: Path) -> None:
    """Before Postgres 16, whoever may create roles may grant this."""
    programs = min(installed_programs(), key=lambda each: int(each.major))
    server = postgres.server_in(tmp_path / "rds-x", "demo")
    server.prepare()
    record = server.make(programs, PostgresRecord(1, "quotes", verifier("x")), "quotes")
    attempt = ("SET SESSION AUTHORIZATION quotes", "GRANT pg_execute_server_program TO quotes")

    def is_refused() -> bool:
        try:
            server._run_statements(programs, *attempt)
        except UcpError:
            return True
        return False

    assert is_refused()
    assert server.is_confined(record)
    # As earlier versions of ucp made it.
    server._run_statements(programs, "ALTER ROLE quotes CREATEROLE")
    old = replace(record, confined=False)
    if not server.is_confined(old):
        assert server.confine(programs, old) == record == server.record()
    assert is_refused()


@pytest.mark.timeout(600)
def test_a_crash_loop_is_reported_until_the_server_recovers(
    placement: HostPlacement, tmp_path: Path
) -> None:
    databases = Databases(placement, Ports(tmp_path / "ports.json"), "demo")
    placement.ensure_running()
    given = connection(databases)
    psql(given, "create table quote (text text); insert into quote values ('one')")
    homes = (postgres.OF_ROOT, placement.state.root)
    (control,) = [each for home in homes for each in home.rglob("pg_control")]
    aside = control.rename(control.with_name("aside"))
    os.kill(placement.states()[PROGRAM].pid, signal.SIGKILL)

    eventually(lambda: "crashed" in databases.bring_up(INSTANCE).why, seconds=120)

    cause = claim_of(databases.state(INSTANCE))
    assert cause.failed
    assert "Postgres crashed and is being started again" in str(cause), "as `ucp status` has it"
    assert of_resource(cause, "admin.yaml") == f"ucp logs {PROGRAM}", "what `ucp doctor` advises"

    aside.rename(control)

    def is_back() -> bool:
        placement.restart_given_up()  # As the watcher does.
        return databases.bring_up(INSTANCE).ready

    eventually(is_back, seconds=120)
    assert psql(given, "select * from quote") == "one"
    databases.remove(INSTANCE)


def claim_of(state: BackingState) -> Cause:
    """Why a claim with this database isn't ready."""
    condition = {"type": "Ready", "status": "False", "reason": "Unavailable", "message": state.why}
    synced = {"type": "Synced", "status": "True", "reason": "ReconcileSuccess"}
    metadata = {"name": "orders-instance", "namespace": "team-a"}
    head = {"apiVersion": "rds.aws.m.upbound.io/v1beta1", "kind": "Instance", "metadata": metadata}
    cause = first_cause([{**head, "status": {"conditions": [condition, synced]}}])
    assert cause is not None
    return cause


def test_an_instance_that_cannot_be_run_reports_why_nothing_answers(
    placement: HostPlacement, tmp_path: Path
) -> None:
    databases = Databases(placement, Ports(tmp_path / "ports.json"), "demo", installed=list)
    full = Databases(placement, Ports(tmp_path / "ports.json"), "demo", most=0)
    assert "no more than 0" in full.bring_up(INSTANCE).overrides[SIMULATED]
    for parameters, why in (
        (DECLARED, "Postgres is not installed"),
        ({**DECLARED, "engine": "mysql"}, "no mysql is run"),
        ({**DECLARED, "password": ""}, "no username and password"),
    ):
        state = databases.bring_up(replace(INSTANCE, parameters=parameters))
        assert state.ready
        assert "nothing answers at this endpoint" in state.overrides[SIMULATED]
        assert why in state.overrides[SIMULATED]
    assert not databases.exists(INSTANCE)


def test_names_that_are_unsafe_in_sql_are_refused(placement: HostPlacement, tmp_path: Path) -> None:
    databases = Databases(placement, Ports(tmp_path / "ports.json"), "demo")
    instance = replace(INSTANCE, parameters={**DECLARED, "username": 'a"\ncreate role b'})
    with pytest.raises(CloudFailed, match="not a valid name"):
        databases.bring_up(instance)
    assert not any(placement.state.components.rglob("PG_VERSION"))
    assert not placement.states()


def test_root_writes_no_file_for_the_user_of_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user could put a link in its folder, through which root would write any other file."""
    programs = min(installed_programs(), key=lambda each: int(each.major))
    server = postgres.server_in(tmp_path / "rds-x", "demo")
    server.prepare()
    real = Path.open

    def watched(path: Path, mode: str = "r", *more: Any, **options: Any) -> Any:
        assert mode == "r" or server.home not in path.parents
        return real(path, mode, *more, **options)

    monkeypatch.setattr(Path, "open", watched)
    server.make(programs, PostgresRecord(1, "quotes", verifier("x")), "quotes")

    assert (server.home / "data" / "pg_hba.conf").read_text().startswith("host all all 127.0.0.1")
