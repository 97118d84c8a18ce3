"""Composition functions on the host: a supervised process, and its Function in Crossplane.

With the External package runtime Crossplane calls whatever address stands in the status of a
function's active FunctionRevision. The revision is paused: Crossplane would look for a package's
image otherwise, and nothing of it is needed. Both sides have certificates of Crossplane's own
authority; the function's is signed here, at a start.

Ours listens on a port. Those of users, from the core repository, each have a UNIX socket: by that
the process knows which one is asked.
"""

from __future__ import annotations

import base64
import hashlib
import socket
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path

from k8s_ucp.components import crossplane
from k8s_ucp.components.component import ADDRESS, PROBE_SECONDS, WELL, Health
from k8s_ucp.components.host import certificates
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.program import Program
from k8s_ucp.compositions.patch_and_transform import NAME as PATCH_AND_TRANSFORM
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import FUNCTION_REVISION, SECRET, Kube
from k8s_ucp.workspace import write_private_file

NAME = "function"
PORTS = (NAME,)
_PAUSED = {"crossplane.io/paused": "true"}
_HOST = "k8s-ucp.io/runs-on"
"""Label of what is registered here."""


@dataclass(frozen=True)
class UserCode:
    """Functions of users: their names, and where the code of each comes from.

    branch: full name of a ref in the repository.
    """

    names: tuple[str, ...]
    repository: Path
    branch: str


@dataclass(frozen=True)
class CompositionFunctions:
    """Our reading of function-patch-and-transform, and those of users. `ensure_certificate` comes
    first.
    """

    host: Host
    of_users: UserCode | None = None
    python: str = sys.executable

    def ensure_certificate(self, kube: Kube) -> None:
        """Have one that Crossplane's authority signed; an authority made anew signs anew."""
        found = kube.get(SECRET, crossplane.CA_SECRET, crossplane.NAMESPACE).get("data") or {}
        try:
            authority, key = (base64.b64decode(found[each]) for each in ("tls.crt", "tls.key"))
        except KeyError as missing:
            raise UcpError(
                f"Secret {crossplane.CA_SECRET} in {crossplane.NAMESPACE} has no {missing}",
                next="delete that Secret, then: ucp start",
            ) from None
        folder = self._certificates
        if certificates.is_signed(folder / "tls.crt", authority) and (folder / "tls.key").exists():
            return
        certificate, private = certificates.sign("k8s-ucp-function", authority, key)
        write_private_file(folder / "tls.key", private)
        write_private_file(folder / "ca.crt", authority.decode())
        write_private_file(folder / "tls.crt", certificate)

    def programs(self) -> list[Program]:
        argv = [
            *(self.python, "-P", "-m", "k8s_ucp.compositions.server"),
            *("--address", self.host.address(NAME), "--certificates", str(self._certificates)),
        ]
        if code := self.of_users:
            argv += ["--repository", str(code.repository), "--branch", code.branch]
            argv += ["--code", str(self.host.folder(NAME, "code"))]
            for name in code.names:
                argv += ["--function", f"{name}={self._socket(name)}"]
        certificate = self._certificates / "tls.crt"
        # It reads its certificate when it starts.
        env = {
            "UCP_CERTIFICATE": hashlib.sha256(certificate.read_bytes()).hexdigest()[:16],
            "PYTHONUNBUFFERED": "1",
            # It would write a line for each of our probes, which have no client's certificate.
            "GRPC_VERBOSITY": "ERROR",
        }
        return [Program(NAME, tuple(argv), self.host.folder(NAME), env)]

    def register(self, kube: Kube) -> None:
        """Tell Crossplane where the functions are; safe to repeat. Those that are gone, too."""
        endpoints = {PATCH_AND_TRANSFORM: f"dns:///{self.host.address(NAME)}"}
        for name in self.of_users.names if self.of_users else ():
            endpoints[name] = f"unix:{self._socket(name)}"
        for name, endpoint in endpoints.items():
            kube.apply(
                FUNCTION_REVISION.object(
                    _revision(name),
                    labels={"pkg.crossplane.io/package": name, _HOST: "host"},
                    annotations=_PAUSED,
                    spec={"desiredState": "Active", "image": f"{NAME}:host", "revision": 1},
                )
            )
            status = {"endpoint": endpoint, "capabilities": ["composition"]}
            kube.apply(
                FUNCTION_REVISION.object(_revision(name), status=status), subresource="status"
            )
        for each in kube.list_all(FUNCTION_REVISION, labels=_HOST):
            if (name := each["metadata"]["name"]) not in map(_revision, endpoints):
                kube.delete(FUNCTION_REVISION, name)

    def ready(self) -> Health:
        """It shows Crossplane's client the certificate that is expected."""
        folder = self._certificates
        try:
            context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
            with (
                socket.create_connection(
                    (ADDRESS, self.host.ports[NAME]), timeout=PROBE_SECONDS
                ) as plain,
                context.wrap_socket(plain, server_hostname=ADDRESS),
            ):
                return WELL
        except OSError as error:
            return Health(False, error.strerror or str(error) or "no answer")

    @property
    def _certificates(self) -> Path:
        return self.host.folder(NAME, "certificates")

    def _socket(self, name: str) -> Path:
        """Short: a socket's path has about 100 bytes."""
        return self.host.runtime / f"function-{hashlib.sha256(name.encode()).hexdigest()[:12]}.sock"


def _revision(name: str) -> str:
    return f"{name}-host"
