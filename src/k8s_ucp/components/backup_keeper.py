"""Writes the backup in topologies of older versions, under supervisord.

The next `ucp start` removes the program from supervisord; then the reconciler writes the backup.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from k8s_ucp.reconciler.backup.writer import BackupWriter
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.settings import BackupSettings, Settings

NAME = "backup"
"""Name of the program."""


def main() -> None:
    """`python -m k8s_ucp.components.backup_keeper --folder FOLDER …`, until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("folder", "key", "clone", "kubeconfig"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("url", "branch"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("passwords", "sources"):
        parser.add_argument(f"--{name}", type=lambda text: tuple(text.split(",")), required=True)
    parser.add_argument("--others-too", action="store_true")
    given = vars(parser.parse_args())
    settings = Settings(
        *(given.pop("kubeconfig"), "", ""),
        source_namespaces=given.pop("sources"),
        password_namespaces=given.pop("passwords"),
        backup=BackupSettings(**given),
    )
    writer = BackupWriter(settings, Log())
    while True:
        time.sleep(settings.backup_seconds)
        writer.write()


if __name__ == "__main__":
    main()
