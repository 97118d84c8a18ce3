"""Generated passwords of a topology, on its core and in its repository's backup."""

from __future__ import annotations

import base64
from pathlib import Path

from k8s_ucp.git.repository import Repository
from k8s_ucp.kube import SECRET
from k8s_ucp.reconciler.backup.backup_file import BackupFile
from k8s_ucp.reconciler.backup.backup_key import load_key
from k8s_ucp.reconciler.backup_content import Backup
from tests.e2e.world import Workbench

BY_HAND = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "byhand",
        "namespace": "ucp-clusters",
        "labels": {"k8s-ucp.io/generate": "password"},
    },
}


def password(world: Workbench, name: str) -> str:
    kube = world.kube("core")
    try:
        data = (kube.find(SECRET, name, "ucp-clusters") or {}).get("data") or {}
        return base64.b64decode(data.get("password", "")).decode()
    finally:
        kube.close()


def key_file(world: Workbench) -> Path:
    return world.workspace / "creds" / "backup.key"


def kept(world: Workbench) -> dict[str, str]:
    """Passwords in the repository's backup, by Secret."""
    key = load_key(key_file(world))
    assert key
    remote = Repository(world.gitops / "core.git")
    backup: Backup = BackupFile(remote, "main").read(remote.resolve("main"), key)
    return {
        name.removeprefix("ucp-clusters/"): base64.b64decode(each["password"]).decode()
        for name, each in backup.passwords.items()
    }
