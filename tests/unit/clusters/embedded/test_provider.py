"""What the embedded provider says of a cluster that can't be created or started."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.clusters.embedded import provider as module
from k8s_ucp.clusters.embedded.control_plane import ControlPlaneLifecycle
from k8s_ucp.clusters.embedded.folder import ClusterFolder, Record
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.clusters.ports import Ports
from k8s_ucp.errors import UcpError


@pytest.mark.parametrize("exists", [True, False])
def test_a_full_disk_is_named_whether_the_cluster_exists_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    """The disk of the cache, for example, which is not that of the workspace."""

    def fail(*_: Any) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/cache/ports.json")

    record = Record("1.35.4", {}) if exists else None
    monkeypatch.setattr(ClusterFolder, "record", lambda _: record)
    monkeypatch.setattr(module, "repair", lambda _: None)
    monkeypatch.setattr(ControlPlaneLifecycle, "start" if exists else "create", fail)
    made = EmbeddedProvider(tmp_path, None, ports=Ports(tmp_path / "ports.json"))
    with pytest.raises(UcpError) as failed:
        made.create(ClusterRequest("demo-stage"), lambda _: None)
    assert "demo-stage: /cache/ports.json: No space left on device" in failed.value.message
    assert failed.value.next == "free disk space (df -h), or inodes (df -i)"
