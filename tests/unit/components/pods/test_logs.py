"""Logs of pods: each read continues where the previous one ended."""

from __future__ import annotations

from typing import Any

from k8s_ucp.components.pods.component import Workload
from k8s_ucp.components.pods.logs import PodLogs


class Server:
    """An API server with one Deployment, one pod and its log."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def find(self, kind: Any, name: str, namespace: str) -> Any:
        labels = {"app": name}
        return {"metadata": {"namespace": namespace}, "spec": {"selector": {"matchLabels": labels}}}

    def list_all(self, kind: Any, namespace: str, *, labels: str) -> list[Any]:
        assert labels == "app=it"
        return [{"metadata": {"name": "it-1"}, "spec": {"containers": [{"name": "c"}]}}]

    def request(self, method: str, path: str, *, query: dict[str, str], text: bool) -> str:
        assert path == "/api/v1/namespaces/there/pods/it-1/log"
        since = query.get("sinceTime", "")
        found = [line for line in self.lines if line >= since[:19]]
        return "\n".join(found[-int(query.get("tailLines", 1000)) :])


def test_each_read_returns_only_new_lines() -> None:
    server = Server()
    logs = PodLogs(server, [Workload("Deployment", "it", "there")])  # type: ignore[arg-type]
    server.lines = [f"2026-01-01T00:00:0{number}.5Z line {number}" for number in range(5)]
    assert logs.read(2) == {"it-1": ["line 3", "line 4"]}
    assert logs.read(2) == {"it-1": []}
    server.lines += ["2026-01-01T00:00:04.9Z again", "2026-01-01T00:00:05Z more and more"]
    assert logs.read(2) == {"it-1": ["again", "more and more"]}
