"""Kubeconfigs with short-lived tokens are renewed in time, and connections use the new token."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, cast

from k8s_ucp.cluster_provider import ClusterProvider, ProviderInfo
from k8s_ucp.clusters.admin_kubeconfigs import renew_access, write_access
from k8s_ucp.kube.identity import KubeconfigToken

LIFETIME = 3600.0


class Provider:
    """Issues a new token each time."""

    def __init__(self, lifetime: float | None) -> None:
        self.info = ProviderInfo("far", simulated=False, access_seconds=lifetime)
        self.given = 0

    def kubeconfig(self, name: str) -> dict[str, Any]:
        self.given += 1
        return {
            "clusters": [{"name": name, "cluster": {"server": "https://192.0.2.1"}}],
            "users": [{"name": name, "user": {"token": f"token-{self.given}"}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }


def token(path: Path) -> str:
    return str(json.loads(path.read_text())["users"][0]["user"]["token"])


def aged(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_kubeconfig_is_renewed_after_half_of_its_lifetime(tmp_path: Path) -> None:
    path, google = tmp_path / "core.yaml", Provider(LIFETIME)
    provider = cast(ClusterProvider, google)
    renew_access(provider, "core", path)
    assert not path.exists(), "there is nothing to renew"
    write_access(provider, "core", path)
    assert path.stat().st_mode & 0o077 == 0
    aged(path, LIFETIME / 2 - 60)
    renew_access(provider, "core", path)
    assert token(path) == "token-1"
    aged(path, LIFETIME / 2 + 60)
    renew_access(provider, "core", path)
    assert token(path) == "token-2"


def test_a_kubeconfig_is_renewed_after_the_clock_was_set_back(tmp_path: Path) -> None:
    path, google = tmp_path / "core.yaml", Provider(LIFETIME)
    provider = cast(ClusterProvider, google)
    write_access(provider, "core", path)
    aged(path, -10 * LIFETIME)
    renew_access(provider, "core", path)
    assert token(path) == "token-2"


def test_a_kubeconfig_that_does_not_expire_is_not_renewed(tmp_path: Path) -> None:
    path, here = tmp_path / "core.yaml", Provider(None)
    provider = cast(ClusterProvider, here)
    write_access(provider, "core", path)
    aged(path, 10 * LIFETIME)
    renew_access(provider, "core", path)
    assert here.given == 1


def test_a_rejected_token_is_read_from_the_file_again(tmp_path: Path) -> None:
    path, google = tmp_path / "core.yaml", Provider(LIFETIME)
    write_access(cast(ClusterProvider, google), "core", path)
    source = KubeconfigToken(path, "token-1")
    write_access(cast(ClusterProvider, google), "core", path)
    assert source() == "token-1", "nobody has turned it down"
    assert source(rejected="token-1") == "token-2"
    assert source(rejected="token-1") == "token-2", "another thread was late"
    assert source() == "token-2"
