"""Composition functions on the host: a supervised process, and its Function in Crossplane.

With the External package runtime, Crossplane calls the address in the status of a function's active
FunctionRevision. The revision is paused, because Crossplane would otherwise look for the package's
image, which is not needed. Both sides have certificates of Crossplane's CA; the function's is
signed here at every start that needs one.

Our function listens on a port. Functions of users, from the core repository, each have their own
UNIX socket, which tells the process which function is called.
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
from k8s_ucp.components.component import HEALTHY, PROBE_SECONDS, Health
from k8s_ucp.components.host import certificates
from k8s_ucp.components.host.machine import Host
from k8s_ucp.components.host.program import Program
from k8s_ucp.compositions.patch_and_transform import NAME as PATCH_AND_TRANSFORM
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import FUNCTION_REVISION, SECRET, Kube
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.names import PAUSED
from k8s_ucp.workspace import write_private_file

NAME = "function"
PORTS = (NAME,)
_PAUSED = {PAUSED: "true"}
_HOST = "k8s-ucp.io/runs-on"
"""Label of the FunctionRevisions that are registered here."""


@dataclass(frozen=True)
class UserCode:
    """Functions of users: their names, and the source of their code.

    branch: full name of a ref in the repository.
    """

    names: tuple[str, ...]
    repository: Path
    branch: str


@dataclass(frozen=True)
class CompositionFunctions:
    """Our implementation of function-patch-and-transform, and functions of users.

    Call `ensure_certificate` first.
    """

    host: Host
    of_users: UserCode | None = None

    def ensure_certificate(self, kube: Kube) -> None:
        """Ensure a certificate signed by Crossplane's CA; a new CA requires a new certificate.

        Raises UcpError.
        """
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
            *(sys.executable, "-P", "-m", "k8s_ucp.compositions.server"),
            *("--address", self.host.address(NAME), "--certificates", str(self._certificates)),
        ]
        if code := self.of_users:
            argv += ["--repository", str(code.repository), "--branch", code.branch]
            argv += ["--code", str(self.host.folder(NAME, "code"))]
            for name in code.names:
                argv += ["--function", f"{name}={self._socket(name)}"]
        certificate = self._certificates / "tls.crt"
        # It reads its certificate only at start, so a new one must restart it.
        env = {
            "UCP_CERTIFICATE": hashlib.sha256(certificate.read_bytes()).hexdigest()[:16],
            "PYTHONUNBUFFERED": "1",
            # It would log a line for each of our probes, which have no client certificate.
            "GRPC_VERBOSITY": "ERROR",
        }
        return [Program(NAME, tuple(argv), self.host.folder(NAME), env)]

    def register(self, kube: Kube) -> None:
        """Register the functions' addresses with Crossplane, delete stale ones. Can be repeated."""
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
        """Ready if its TLS certificate is valid for Crossplane's client."""
        folder = self._certificates
        try:
            context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
            with (
                socket.create_connection(
                    (ADDRESS, self.host.ports[NAME]), timeout=PROBE_SECONDS
                ) as plain,
                context.wrap_socket(plain, server_hostname=ADDRESS),
            ):
                return HEALTHY
        except OSError as error:
            silent = isinstance(error, TimeoutError)
            return Health(False, error.strerror or str(error) or "no answer", silent=silent)

    @property
    def _certificates(self) -> Path:
        return self.host.folder(NAME, "certificates")

    def _socket(self, name: str) -> Path:
        """Short, because a socket's path is limited to about 100 bytes."""
        return self.host.runtime / f"function-{hashlib.sha256(name.encode()).hexdigest()[:12]}.sock"


def _revision(name: str) -> str:
    return f"{name}-host"
