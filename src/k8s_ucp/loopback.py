"""The loopback interface: what listens there is not accessible from other machines."""

from __future__ import annotations

import ipaddress

ADDRESS = "127.0.0.1"
"""Address on which everything listens that ucp starts on this machine."""


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's loopback."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
