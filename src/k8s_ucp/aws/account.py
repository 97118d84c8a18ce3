"""The account of the simulated cloud, in a file that only the user can read.

Starting the cloud writes it; the reconciler and tests read it. Port and key stay the same as long
as the topology's state exists.
"""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.errors import UcpError
from k8s_ucp.workspace import StateFolder, make_private_folder, write_private_json
from k8s_ucp.workspace.records import parse_json, record_of


def account_file(state: StateFolder) -> Path:
    """Path of the account of a topology's simulated cloud, in the reconciler's folder."""
    return state.components / "reconciler" / "aws-account.json"


def write_account(file: Path, account: AwsAccount) -> None:
    """Write the account atomically."""
    make_private_folder(file.parent)
    write_private_json(file, account)


def read_account(file: Path) -> AwsAccount | None:
    """The account; None if there is none. Raises UcpError, which does not contain the content."""
    try:
        return record_of(AwsAccount, parse_json(file.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise UcpError(
            f"{file} can't be read, or contains no AWS account", next="run `ucp start` again"
        ) from None
