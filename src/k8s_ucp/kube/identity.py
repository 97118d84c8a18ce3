"""Identity of a connection: tokens that change while it is used."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from k8s_ucp.errors import UcpError
from k8s_ucp.kube.kubeconfig import current_context, read_kubeconfig

_KEPT_SECONDS = 60.0


class TokenSource(Protocol):
    """Source of a connection's token, called for every request."""

    def __call__(self, *, rejected: str | None = None) -> str:
        """The token to use now. rejected: a token that the server just rejected.

        Raises KubeError, UcpError.
        """


class TokenFile:
    """A pod's projected token, which the kubelet renews long before it expires."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = ""
        self._read_at = 0.0

    def __call__(self, *, rejected: str | None = None) -> str:
        now = time.monotonic()
        if rejected is not None or not self._text or now - self._read_at > _KEPT_SECONDS:
            try:
                self._text = self._path.read_text(encoding="ascii").strip()
            except OSError as error:
                raise UcpError(
                    f"failed to read the ServiceAccount token of the pod: {error.strerror}"
                ) from error
            self._read_at = now
        return self._text


class KubeconfigToken:
    """The token of a kubeconfig; read again when rejected, since it may be renewed there."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text

    def __call__(self, *, rejected: str | None = None) -> str:
        if rejected == self._text:
            found = current_context(read_kubeconfig(self._path))[1].get("token")
            self._text = str(found or self._text)
        return self._text
