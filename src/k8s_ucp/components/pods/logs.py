"""Reads the logs of a component's pods."""

from __future__ import annotations

from collections.abc import Sequence

from k8s_ucp.components.pods.component import POD, WORKLOADS, Workload, pods_of
from k8s_ucp.kube import Kube, KubeError


class PodLogs:
    """The logs of some workloads' pods; each reading continues where the last one ended."""

    def __init__(self, kube: Kube, workloads: Sequence[Workload]) -> None:
        self._kube = kube
        self._workloads = workloads
        self._last: dict[str, str] = {}
        """Timestamp of the last line that was read, by pod and container."""

    def read(self, lines: int | None = None) -> dict[str, list[str]]:
        """New lines by pod; the last `lines` of a pod that is new. Raises KubeError."""
        found: dict[str, list[str]] = {}
        for each in self._workloads:
            item = self._kube.find(WORKLOADS[each.kind], each.name, each.namespace)
            for pod in pods_of(self._kube, item) if item else ():
                for container in pod["spec"]["containers"]:
                    new = self._read(each.namespace, pod["metadata"]["name"], container, lines)
                    found.setdefault(pod["metadata"]["name"], []).extend(new)
        return found

    def _read(
        self, namespace: str, pod: str, container: dict[str, object], lines: int | None
    ) -> list[str]:
        key = f"{pod}/{container['name']}"
        last = self._last.get(key, "")
        query = {"container": str(container["name"]), "timestamps": "true"}
        if last:
            # In whole seconds: the server ignores fractions.
            query["sinceTime"] = last[:19] + "Z"
        elif lines is not None:
            query["tailLines"] = str(lines)
        try:
            path = POD.path(namespace, pod) + "/log"
            answer = self._kube.request("GET", path, query=query, text=True)
        except KubeError:
            return []  # Its container has not started yet, or is terminating.
        stamped = [line.partition(" ") for line in str(answer).splitlines()]
        new = [(stamp, text) for stamp, _, text in stamped if stamp > last]
        if new:
            self._last[key] = new[-1][0]
        return [text for _, text in new]
