"""What `ucp doctor` finds in a workspace itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.cli.inspection.doctor import _check_file
from k8s_ucp.cli.topology_selection import remember
from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UsageError
from k8s_ucp.topology import default
from k8s_ucp.topology.text import topology_text
from k8s_ucp.workspace import Workspace


def test_a_topology_file_that_was_deleted_after_the_start_is_missed(tmp_path: Path) -> None:
    view = TopologyView(workspace=Workspace.at(tmp_path), topology=default("demo"))
    _check_file(view)
    remember(view.workspace, "demo", topology_text(view.topology))
    with pytest.raises(UsageError, match="but the topology demo was started here") as caught:
        _check_file(view)
    assert (caught.value.next or "").startswith("restore it: cp ")
    view.workspace.topology_file.write_text(topology_text(view.topology))
    _check_file(view)


def test_a_topology_file_that_the_next_start_would_refuse_is_reported(tmp_path: Path) -> None:
    view = TopologyView(workspace=Workspace.at(tmp_path), topology=default("demo"))
    view.workspace.topology_file.write_text("kind: Topology\nkind")
    with pytest.raises(UsageError, match="not valid YAML"):
        _check_file(view)
