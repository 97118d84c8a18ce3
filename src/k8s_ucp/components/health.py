"""What a component says of itself, and waiting until it says that it is well."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from k8s_ucp.errors import DeadlineExceeded

ADDRESS = "127.0.0.1"
PROBE_SECONDS = 1.0
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Health:
    """ready, or a message that says in words why not."""

    ready: bool
    message: str = ""


Check = Callable[[], Health]

WELL = Health(True)


def probe(port: int, path: str = "/healthz", *, timeout: float = PROBE_SECONDS) -> Health:
    """Ask a health endpoint on this machine; anything but 200 is not ready."""
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=timeout)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(300).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return Health(False, getattr(error, "strerror", None) or str(error) or "no answer")
    finally:
        connection.close()
    if answer.status == 200:
        return WELL
    return Health(False, f"{answer.status} {' '.join(body.split())}".strip())


def combine(checks: Mapping[str, Check]) -> Health:
    """Ready when all are; else what the others say, by name. Stops asking at nothing."""
    wrong = [
        f"{name}: {found.message}" for name, check in checks.items() if not (found := check()).ready
    ]
    return Health(not wrong, "; ".join(wrong))


def wait_ready(
    checks: Mapping[str, Check],
    *,
    timeout: float,
    poll: float = POLL_SECONDS,
    next: str | None = None,
) -> None:
    """Wait until all are ready. Those that were ready once are not asked again.

    Raises DeadlineExceeded with what the others said last.
    """
    until = time.monotonic() + timeout
    left = dict(checks)
    while True:
        said = {name: check() for name, check in left.items()}
        left = {name: left[name] for name, found in said.items() if not found.ready}
        if not left:
            return
        if time.monotonic() > until:
            state = "; ".join(f"{name}: {said[name].message}" for name in left)
            raise DeadlineExceeded(f"{', '.join(left)} ready", timeout, state, next=next)
        time.sleep(poll)
