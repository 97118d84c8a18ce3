"""Client of the simulated cloud's own API: ledger, faults, reset."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp.cloud.faults import CloudFault, as_items, read_faults
from k8s_ucp.cloud.ledger import CloudLedgerEntry
from k8s_ucp.errors import UcpError
from k8s_ucp.loopback import ADDRESS

RESTART_SECONDS = 60.0
SECONDS = 30.0
"""Long, because a reset waits for the call in progress."""


@dataclass(frozen=True)
class CloudAdmin:
    """The simulated cloud on a port of this machine. Every method raises UcpError."""

    port: int
    token: str = field(repr=False)

    def ledger(self, since: int = 0) -> list[CloudLedgerEntry]:
        """Entries with a higher number, oldest first."""
        entries = [CloudLedgerEntry(**each) for each in self._call("GET", "ledger")]
        return [each for each in entries if each.number > since]

    def faults(self) -> tuple[CloudFault, ...]:
        """The current faults, in the order in which they apply."""
        return read_faults(self._call("GET", "faults"))

    def add_fault(self, fault: CloudFault) -> None:
        """Append a fault to the current ones."""
        self._call("POST", "faults", as_items([fault]))

    def clear_faults(self) -> None:
        """Remove all faults."""
        self._call("PUT", "faults", [])

    def reset(self) -> None:
        """Empty the cloud, and wait until it responds again; the ledger records it and is kept."""
        self._call("POST", "reset")
        until = time.monotonic() + RESTART_SECONDS
        while True:
            try:
                self._call("GET", "health")
                return
            except UcpError:
                if time.monotonic() > until:
                    raise
            time.sleep(0.1)

    def _call(self, method: str, what: str, content: Any = None) -> Any:
        connection = http.client.HTTPConnection(ADDRESS, self.port, timeout=SECONDS)
        body = None if content is None else json.dumps(content)
        try:
            headers = {"Authorization": f"Bearer {self.token}"}
            connection.request(method, f"/_ucp/{what}", body, headers)
            answer = connection.getresponse()
            read = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise UcpError(
                f"the simulated cloud does not respond on {ADDRESS}:{self.port}: {why}",
                next="see `ucp status` and `ucp logs cloud`",
            ) from error
        finally:
            connection.close()
        if answer.status != 200:
            why = read.get("error", answer.status) if isinstance(read, dict) else answer.status
            raise UcpError(f"the simulated cloud refused: {why}", next="ucp start")
        return read
