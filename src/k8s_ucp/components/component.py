"""A component in any placement: what `ucp status`, `ucp doctor` and waits need to know of it.

A placement implements this: processes of this machine (HostComponent; host/placement.py keeps them
running) or workloads of the core cluster (pods/component.py). The core's provider determines the
placement. Starting a component is left to its steps: on a host, parts of it start before there is a
cluster; in pods, everything is an object of the core repository.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol

from k8s_ucp.loopback import ADDRESS

PROBE_SECONDS = 1.0
_SILENT = "timed out"


@dataclass(frozen=True)
class Health:
    """Ready, or a message that says why not."""

    ready: bool
    message: str = ""
    silent: bool = False
    """It accepts connections and does not respond: it hangs, or the machine is overloaded."""


Check = Callable[[], Health]

HEALTHY = Health(True)


@dataclass(frozen=True)
class Page:
    """Response of a server on this machine."""

    status: int
    body: bytes
    location: str


def get_page(
    port: int,
    path: str,
    *,
    headers: Mapping[str, str] = MappingProxyType({}),
    most: int = 300,
    timeout: float = PROBE_SECONDS,
) -> Page | str:
    """The first `most` bytes of a page, or a description of why there is none."""
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=timeout)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return Page(answer.status, answer.read(most), answer.getheader("Location", ""))
    except TimeoutError:
        return _SILENT
    except (OSError, http.client.HTTPException) as error:
        return getattr(error, "strerror", None) or str(error) or "no answer"
    finally:
        connection.close()


def probe(port: int, path: str = "/healthz", *, timeout: float = PROBE_SECONDS) -> Health:
    """Call a health endpoint on this machine; anything but 200 is not ready."""
    page = get_page(port, path, timeout=timeout)
    if isinstance(page, str):
        return Health(False, page, silent=page == _SILENT)
    if page.status == 200:
        return HEALTHY
    lines = page.body.decode("utf-8", "replace").splitlines()
    body = "; ".join(" ".join(line.split()) for line in lines if line.strip())
    return Health(False, f"{page.status} {body}".strip())


def combine(checks: Mapping[str, Check]) -> Health:
    """Ready if all are; otherwise the messages of the others, by name."""
    wrong = {name: found for name, check in checks.items() if not (found := check()).ready}
    message = "; ".join(f"{name}: {found.message}" for name, found in wrong.items())
    return Health(not wrong, message, silent=any(each.silent for each in wrong.values()))


PlacementName = Literal["host", "pods"]


class Component(Protocol):
    """Argo CD, Crossplane or the reconciler in its placement."""

    @property
    def name(self) -> str: ...

    @property
    def placement(self) -> PlacementName: ...

    def ready(self) -> Health:
        """Ready, or what it still waits for. A component that does not respond is not an error."""


@dataclass(frozen=True)
class HostComponent:
    """A component as processes of this machine. check: its own health."""

    name: str
    check: Check
    placement: PlacementName = "host"

    def ready(self) -> Health:
        return self.check()
