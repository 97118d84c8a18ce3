"""Credentials of the simulated cloud: an access key for AWS's API, a token for its own API.

Generated once per topology, in a file that only the user can read.
"""

from __future__ import annotations

import secrets
import string
from dataclasses import dataclass, field
from pathlib import Path

from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.workspace import make_private_folder, write_private_json
from k8s_ucp.workspace.records import parse_json, record_of

_LETTERS = string.ascii_uppercase + "234567"


@dataclass(frozen=True)
class CloudKeys:
    """Credentials of one cloud."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(repr=False)


def settle_keys(folder: Path) -> CloudKeys:
    """The credentials in a cloud's folder; generated if there are none."""
    make_private_folder(folder)
    access_key = "AKIA" + "".join(secrets.choice(_LETTERS) for _ in range(16))
    new = CloudKeys(access_key, secrets.token_urlsafe(30), secrets.token_urlsafe(32))
    write_private_json(_file(folder), new, replace=False)
    return read_keys(folder)


def read_keys(folder: Path) -> CloudKeys:
    """Raises UcpError, which does not contain the content."""
    try:
        return record_of(CloudKeys, parse_json(_file(folder).read_text("utf-8")))
    except OSError:
        raise UcpError(
            f"the keys of the simulated cloud in {_file(folder)} can't be read",
            next="run `ucp start` again",
        ) from None
    except ValueError:
        # The running cloud and the core have the lost ones.
        raise UcpError(
            f"the keys of the simulated cloud in {_file(folder)} are corrupt",
            next=command_line("rm", _file(folder))
            + "; ucp stop; ucp start, which creates new ones",
        ) from None


def _file(folder: Path) -> Path:
    return folder / "keys.json"
