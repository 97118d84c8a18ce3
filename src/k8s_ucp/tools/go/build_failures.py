"""Explains why a build failed, and what to do, from the output of `go`."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.errors import CommandFailed, UcpError
from k8s_ucp.tools.catalogue import Tool
from k8s_ucp.tools.go.compiler import ModuleSource

_TAIL = 12
"""Lines of output in an error; the log has all of them."""

_NO_ROOM = ("no space left on device", "disk quota exceeded", "file too large")

_CHANGED = ("checksum mismatch", "SECURITY ERROR", "missing go.sum entry")

_NO_NETWORK = (
    "module lookup disabled by GOPROXY=off",
    "dial tcp",
    "no such host",
    "connection refused",
    "connection reset",
    "i/o timeout",
    "network is unreachable",
    "proxyconnect",
    "TLS handshake",
    "x509:",
    "tls: ",
    "403 Forbidden",
    "404 Not Found",
    "407 Proxy",
    "410 Gone",
    "502 Bad Gateway",
    "503 Service",
    "504 Gateway",
    "unrecognized import path",
    "reading http",
    "no such file or directory",
    "EOF",
)


def no_room(message: str) -> UcpError:
    """An error with the advice to free disk space."""
    return UcpError(
        message, next="free disk space, or set UCP_CACHE_DIR to a folder on another disk"
    )


def explain(error: CommandFailed, tool: Tool, source: ModuleSource, log: Path) -> UcpError:
    """The explained error. `source` hides the proxy's address in quoted output."""
    lines = [line for line in source.hide(error.output).splitlines() if line.strip()]
    messages = [line for line in lines if not line.startswith("go: downloading ")]
    output = "\n".join(messages)
    tail = "\n".join(f"  {line}" for line in messages[-_TAIL:])
    what = f"{tool.name} {tool.version}"

    def mentions(signs: tuple[str, ...]) -> bool:
        return any(sign in output for sign in signs)

    if mentions(_NO_ROOM):
        return no_room(f"disk full while building {what}:\n{tail}")
    if mentions(_CHANGED):
        return UcpError(
            f"checksum mismatch for a Go module of {what} (go.sum):\n{tail}",
            next=f"do not use it; find out who changed it (modules come from {source.setting})",
        )
    compiling = any(line.startswith("# ") for line in messages)
    if mentions(_NO_NETWORK) and not compiling:
        return UcpError(
            f"failed to download the Go modules of {what} from {source.setting}:\n{tail}",
            next="check the network and GOPROXY, then run the command again",
        )
    if error.code < 0 and not messages:
        return UcpError(
            f"the compiler was killed (signal {-error.code}) while building {what}",
            next="check for lack of memory (dmesg), then run the command again",
        )
    return UcpError(f"failed to build {what}; last lines of the output:\n{tail}", next=f"see {log}")
