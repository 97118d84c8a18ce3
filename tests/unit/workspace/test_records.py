"""Records of ucp that were edited or damaged: nothing that is read from them has another type."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.components.host.supervisord import ProcessIdentity
from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import FenceFiles
from k8s_ucp.kube.kubeconfig import current_context
from k8s_ucp.workspace.records import parse_json, record_of


@dataclass(frozen=True)
class Example:
    name: str
    number: int
    seconds: float
    done: bool
    ports: Mapping[str, int]
    names: Sequence[str] = ()
    pair: tuple[str, str] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


VALID: Mapping[str, Any] = {
    "name": "a",
    "number": 1,
    "seconds": 1,
    "done": True,
    "ports": {"a": 1},
    "names": ["a"],
    "pair": None,
    "more": {"a": [None]},
}


def test_record_with_the_types_of_its_fields_is_read() -> None:
    assert record_of(Example, dict(VALID)) == Example(**VALID)
    required = {name: VALID[name] for name in ("name", "number", "seconds", "done", "ports")}
    assert record_of(Example, required) == Example(**required)


@pytest.mark.parametrize(
    "change",
    [
        {"name": 5},
        {"name": "\ud800"},
        {"number": True},
        {"number": "1"},
        {"number": 10**30},
        {"seconds": float("inf")},
        {"seconds": [1]},
        {"done": 1},
        {"ports": []},
        {"ports": {"a": "1"}},
        {"names": "ab"},
        {"names": [1]},
        {"pair": [1, 2]},
        {"more": [1]},
        {"unknown": 1},
    ],
    ids=str,
)
def test_record_with_another_type_in_a_field_is_refused(change: Mapping[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"type|unknown"):
        record_of(Example, {**VALID, **change})


@pytest.mark.parametrize("found", [None, [], 5, "x", {}, {"name": "a"}], ids=str)
def test_record_that_is_incomplete_is_refused(found: Any) -> None:
    with pytest.raises(ValueError, match=r"not an object|missing"):
        record_of(Example, found)


def test_deeply_nested_json_is_refused() -> None:
    with pytest.raises(ValueError, match="nested"):
        parse_json("[" * 100_000)


def test_process_is_identified_by_its_recorded_pid_only_if_that_is_a_number() -> None:
    found = {"pid": "1", "executable": "/bin/true", "started_at": 1.0}
    with pytest.raises(ValueError, match="pid"):
        record_of(ProcessIdentity, found)


@pytest.mark.parametrize(
    "ports", ["x", [], {"kube-apiserver": "1"}, {"kube-apiserver": 99_999_999}], ids=str
)
def test_cluster_with_invalid_ports_counts_as_one_whose_record_is_corrupt(
    ports: Any, tmp_path: Path
) -> None:
    folder = ClusterFolder(tmp_path, "demo-core")
    folder.record_file.parent.mkdir(parents=True)
    folder.record_file.write_text(json.dumps({"version": "v1.35.4", "ports": ports}))
    with pytest.raises(UcpError, match="corrupt"):
        folder.record()


def test_permit_with_another_type_in_a_field_is_none(tmp_path: Path) -> None:
    permit = {"verdict": "held", "until": [1], "boot": "b", "record": None, "confirmed": True}
    (tmp_path / "permit.json").write_text(json.dumps(permit))
    assert FenceFiles(tmp_path).permit() is None


@pytest.mark.parametrize("field", ["certificate-authority-data", "tls-server-name"])
def test_kubeconfig_with_another_type_in_a_field_is_refused(field: str) -> None:
    config = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://192.0.2.1", field: 5}}],
    }
    with pytest.raises(UcpError, match=f"{field} of the cluster is not a string"):
        current_context(config)
