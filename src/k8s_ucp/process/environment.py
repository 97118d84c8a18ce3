"""What of the caller's environment a program gets that reads files of others. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping

PASSED_ON = (
    *("HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""Variables that find a person's files and the way to the network. All others may hold secrets, or
lead elsewhere: what git tells its hooks, cloud keys, tokens."""


def passed_on(caller: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of `caller` (None: this process) that such a program gets, in English."""
    caller = os.environ if caller is None else caller
    return {name: caller[name] for name in PASSED_ON if name in caller} | {"LC_ALL": "C"}
