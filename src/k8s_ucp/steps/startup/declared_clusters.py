"""The clusters that the core repository declares, applied before Argo CD reads it.

On a core's first start the reconciler would wait for Argo CD's first sync, with both processors at
rest for a while. What is applied is what that sync would apply, with its mark: Argo CD finds it as
it should be.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from k8s_ucp.components.manifests import Manifest, written
from k8s_ucp.components.ownership.tracking import TrackingApp
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.git.repository import RENDERED
from k8s_ucp.gitops.check.repositories import transports
from k8s_ucp.gitops.manifests.chart_source import write_files
from k8s_ucp.gitops.manifests.kustomize import build
from k8s_ucp.gitops.manifests.yaml_text import documents
from k8s_ucp.kube import CONFIG_MAP, LOCAL_CLUSTER, Object
from k8s_ucp.names import CLUSTERS_NAMESPACE, TRACKING_ID

FOLDER = "clusters"
"""Of the core repository."""
SECONDS = 10.0
_KINDS = (LOCAL_CLUSTER.kind, CONFIG_MAP.kind)
_KEEPER = TrackingApp("clusters", FOLDER, deep=True, namespace=CLUSTERS_NAMESPACE)
"""The Application that keeps the folder."""


def declared_clusters(context: StartContext) -> list[Manifest]:
    """LocalClusters and the list of environments, as Argo CD would apply them.

    None where people changed the Application, or the folder can't be built: Argo CD says why.
    """
    core, kustomize = context.published.core, context.toolbox.path("kustomize")
    application = f"bootstrap/{context.topology.spec.core.provider}/{_KEEPER.name}.yaml"
    if core.read(application) != core.clone.read(RENDERED, application):
        return []
    try:
        with tempfile.TemporaryDirectory(prefix="ucp-clusters-") as name:
            write_files(Path(name), core.read(FOLDER))
            also = transports(context.topology)
            built = build(kustomize, Path(name, FOLDER), timeout=SECONDS, also=also)
        return [_marked(each) for each in documents(built.encode(), FOLDER) if _is_meant(each)]
    except UcpError:
        return []


def _is_meant(item: Object) -> bool:
    return item["kind"] in _KINDS and item["metadata"].get("namespace") == CLUSTERS_NAMESPACE


def _marked(item: Object) -> Manifest:
    found = written(item, FOLDER)
    annotations = {**item["metadata"].get("annotations", {}), TRACKING_ID: _KEEPER.mark(found)}
    return written({**item, "metadata": {**item["metadata"], "annotations": annotations}}, FOLDER)
