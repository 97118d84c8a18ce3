"""Apply what Argo CD can't bring itself: namespaces, kinds, its own settings, its projects.

They come from the tip of the core repository, people's commits included. What was applied is noted
in the core cluster, by a digest: a rerun with nothing new writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from k8s_ucp.components import argocd, crossplane
from k8s_ucp.components.manifests import Manifest, apply_all, digest, only_yaml, read, wait_served
from k8s_ucp.components.ownership.tracking import keepers, tracked
from k8s_ucp.components.pods import argocd_pods
from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.errors import DeadlineExceeded
from k8s_ucp.gitops.publish.repositories import read_addresses
from k8s_ucp.kube import CONFIG_MAP, Kube
from k8s_ucp.names import CLUSTERS_NAMESPACE

APPLIED = "k8s-ucp-applied"
"""ConfigMap in the clusters' namespace: which manifests were applied last, by step."""


@dataclass(frozen=True)
class ApplyFoundation:
    """Everything that Argo CD and the reconciler need to begin."""

    id: str = "apply-foundation"
    title: str = "Apply namespaces, CRDs and settings"

    def run(self, context: Context, report: Report) -> None:
        files = {
            path: text
            for path, text in context.published.core.read("platform").items()
            if "workloads" not in path
        }
        projects = read(only_yaml(context.published.core.read("projects")))
        # Crossplane's kinds too: each one that came later would make Argo CD's controller fetch and
        # parse the schema of the whole API again.
        kinds = read_marked(
            context,
            _only(
                files,
                "platform/reconciler/",
                f"platform/{argocd.NAME}/engine/crds.yaml",
                f"platform/{crossplane.NAME}/engine/",
            ),
        )
        settings = read_marked(
            context,
            _only(
                files,
                f"platform/{argocd.NAME}/config/",
                f"platform/{argocd.NAME}/engine/config.yaml",
                f"platform/{crossplane.NAME}/config/",
            ),
        )
        known = digest([*kinds, *settings, *projects])
        if is_applied(context.kube, self.id, known, kinds):
            return
        report("kinds")
        everything = [*kinds, *settings]
        apply_all(context.kube, [each for each in everything if each.kind == "Namespace"])
        apply_all(context.kube, [each for each in everything if each.kind != "Namespace"])
        if context.adopts(argocd.NAME):
            pass  # Theirs has what it wants.
        elif context.in_pods:
            argocd_pods.prepare(context.kube)
        else:
            context.argocd.prepare(context.kube)
        wait_served(context.kube, kinds)
        report("projects")
        apply_all(context.kube, projects)
        note_applied(context.kube, self.id, known)


def read_marked(context: Context, files: Mapping[str, bytes]) -> list[Manifest]:
    """The objects of files of the core repository, as the Applications that keep them mark them."""
    repository = context.published.core
    bootstrap = f"bootstrap/{context.topology.spec.core.provider}"
    around = repository.read(bootstrap) | repository.read("platform")
    url = read_addresses(context.topology, context.gitops).core
    return tracked(read(files), keepers(around, bootstrap, url))


def is_applied(kube: Kube, step: str, known: str, kinds: Sequence[Manifest]) -> bool:
    """These very manifests were applied, and the kinds among them are there."""
    noted = kube.find(CONFIG_MAP, APPLIED, CLUSTERS_NAMESPACE)
    if noted is None or (noted.get("data") or {}).get(step) != known:
        return False
    try:
        wait_served(kube, kinds, timeout=0)
    except DeadlineExceeded:
        return False
    return True


def note_applied(kube: Kube, step: str, known: str) -> None:
    """Each step has a field manager of its own, so that one does not take another's note away."""
    kube.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": APPLIED, "namespace": CLUSTERS_NAMESPACE},
            "data": {step: known},
        },
        manager=f"k8s-ucp-{step}",
    )


def _only(files: Mapping[str, bytes], *prefixes: str) -> dict[str, bytes]:
    return only_yaml({path: text for path, text in files.items() if path.startswith(prefixes)})
