"""The reconciler as a separate process: `python -m ... KUBECONFIG ACCOUNT NAMESPACE`."""

from __future__ import annotations

import sys
from pathlib import Path

from k8s_ucp.aws.account import read_account
from k8s_ucp.reconciler.manager import run
from k8s_ucp.reconciler.runtime.settings import MANAGED_RESOURCES, PASSWORDS, Settings


def main(kubeconfig: str, account: str, namespace: str) -> None:
    """Run the controllers of managed resources, and of passwords in one namespace."""
    settings = Settings(
        Path(kubeconfig),
        "here",
        "demo",
        limited=False,
        password_namespaces=(namespace,),
        controllers=frozenset({MANAGED_RESOURCES, PASSWORDS}),
        aws=read_account(Path(account)),
    )
    run(settings, {})


if __name__ == "__main__":
    main(*sys.argv[1:])
