"""`ucp doctor --bundle FILE`: writes the support bundle, without secrets."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from k8s_ucp import __version__
from k8s_ucp.cli.inspection.logs import all_logs, tail
from k8s_ucp.cli.topology_selection import STARTED
from k8s_ucp.components.pods import pod_components
from k8s_ucp.components.pods.logs import PodLogs
from k8s_ucp.context import TopologyView
from k8s_ucp.credentials import all_files
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect import status
from k8s_ucp.inspect.bundle import Bundle, outline
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.doctor.examination import Examined
from k8s_ucp.inspect.doctor.finding import Finding
from k8s_ucp.inspect.events import event_line, newest
from k8s_ucp.kube import APPLICATION_SET, EVENT, SECRET, Kube, KubeError, Object
from k8s_ucp.redaction import Redaction, secret_values, values_of
from k8s_ucp.timestamps import stamp

LINES = 500
"""Lines from the end of each log."""
EVENTS = 500


def write_bundle(
    context: TopologyView, examined: Examined, findings: Sequence[Finding], file: Path
) -> list[str]:
    """Write the archive; returns the paths in it. Raises UcpError if FILE can't be written.

    If the core cluster doesn't respond, the archive contains everything else.
    """
    snapshot = examined.snapshot
    kube = context.kube if snapshot.core_ready else None
    of_core: list[str] = []
    if kube:
        try:
            of_core = list(_of_core(kube))
        except KubeError:
            # If the values to redact are unknown, nothing of the core is included.
            kube, snapshot = None, ClusterSnapshot(core_ready=False, components=snapshot.components)
    redaction = Redaction([*_of_files(context), *of_core])
    bundle = Bundle(f"ucp-{context.topology.name}", redaction)
    bundle.data("about.json", _about(context, snapshot, kube))
    bundle.data("findings.json", [each.data() for each in findings])
    bundle.data("status.json", status.summarize(context.topology, snapshot))
    _objects(bundle, snapshot)
    for path in (context.state.root / STARTED, context.state.journal):
        bundle.attempt(path.name, partial(_file, bundle, path))
    for name, path in all_logs(context.state).items():
        bundle.attempt(f"log {name}", partial(_log, bundle, name, path))
    if kube:
        bundle.attempt("events", partial(_events, bundle, kube))
        bundle.attempt("ApplicationSets", partial(_application_sets, bundle, kube))
        if context.in_pods:
            bundle.attempt("logs of pods", partial(_pod_logs, bundle, context, kube))
    bundle.write(file)
    return bundle.paths


def _about(
    context: TopologyView, snapshot: ClusterSnapshot, kube: Kube | None
) -> Mapping[str, Any]:
    def version() -> str:
        try:
            return kube.version() if kube else "not responding"
        except UcpError as error:
            return error.message

    return {
        "ucp": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "topology": context.topology.name,
        "written": stamp(time.time()),
        "core": version(),
        "components": {each.name: each.version for each in snapshot.components},
    }


def _objects(bundle: Bundle, snapshot: ClusterSnapshot) -> None:
    found: Mapping[str, Sequence[Object]] = {
        "localclusters": snapshot.clusters,
        "syncers": snapshot.syncers,
        "applications": snapshot.applications,
    }
    for name, items in found.items():
        bundle.data(f"objects/{name}.json", [outline(each, "spec", "status") for each in items])
    # Secrets are reduced to this.
    bundle.data("objects/registrations.json", [outline(each) for each in snapshot.registrations])
    bundle.data("objects/other-sources.json", snapshot.notes)


def _events(bundle: Bundle, kube: Kube) -> None:
    found = newest(kube.list_all(EVENT), EVENTS)
    bundle.data("events.json", [event_line(each) for each in reversed(found)])


def _application_sets(bundle: Bundle, kube: Kube) -> None:
    found = kube.list_all(APPLICATION_SET)
    bundle.data("objects/applicationsets.json", [outline(each, "status") for each in found])


def _file(bundle: Bundle, path: Path) -> None:
    bundle.text(path.name, path.read_text("utf-8"))


def _log(bundle: Bundle, name: str, path: Path) -> None:
    bundle.text(f"logs/{name}.log", tail(path, LINES)[0])


def _pod_logs(bundle: Bundle, context: TopologyView, kube: Kube) -> None:
    for component in pod_components.ENTRIES:
        workloads = pod_components.workloads(component, context.topology)
        for pod, lines in PodLogs(kube, workloads).read(LINES).items():
            bundle.text(f"logs/{pod}.log", "\n".join(lines))


def _of_core(kube: Kube) -> Iterator[str]:
    """Values of all Secrets of the core cluster. Raises KubeError."""
    for each in kube.list_all(SECRET):
        yield from secret_values(each.get("data") or {})


def _of_files(context: TopologyView) -> Iterator[str]:
    """Values of kubeconfigs, and of credentials in files and variables."""
    for path in context.state.kubeconfigs.glob("*.yaml"):
        yield from values_of("kubeconfig", path.read_text("utf-8", "replace"))
    for path in all_files(context.topology, context.workspace):
        text = path.read_text("utf-8", "replace")
        yield from values_of("credential", text)
        for line in text.splitlines():
            yield from values_of("credential", line.partition("=")[2].strip())
    for _, source in context.topology.spec.credentials:
        if source is not None and source.env:
            yield from values_of("credential", os.environ.get(source.env, ""))
