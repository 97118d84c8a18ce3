"""A real API server that serves every kind in the repositories, except those of clouds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from ruamel.yaml import YAML

from k8s_ucp.components import argo_rollouts, argocd, crossplane, manifests
from k8s_ucp.compositions.composite_kinds import composite_kind
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.kube import Kube, Object
from k8s_ucp.tools.catalogue import ROLLOUTS
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Topology
from tests.conftest import CACHE
from tests.control_planes import control_planes, made_with, namespace
from tests.unit.gitops.topologies import FACTS, demo, on_clouds

NAMESPACES = ("argocd", "crossplane-system", "ucp-clusters", "apps", "monitoring")


@contextmanager
def serving(folder: Path, toolbox: Toolbox, others: Iterable[Object] = ()) -> Iterator[Kube]:
    """A control plane with the CRDs of Argo CD, Argo Rollouts, Crossplane and ucp.

    others: additional CustomResourceDefinitions.
    """
    rollouts = Installer(CACHE, lambda event: None).install(ROLLOUTS)
    with control_planes(folder, toolbox) as planes:
        found = manifests.read(
            {
                "argocd": argocd.engine_manifests(toolbox.module("argocd"))["crds.yaml"],
                **crossplane.engine_manifests(toolbox.module("crossplane")),
                **argo_rollouts.engine_manifests(rollouts.module(argo_rollouts.NAME)),
                "ours": ours(demo()),
                "composites": composites(on_clouds()),
            }
        )
        found += [manifests.written(each, "others") for each in others]
        kinds = [each for each in found if each.is_crd]
        kube = made_with(planes.provider(), "demo-core", toolbox, kinds)
        for name in NAMESPACES:
            kube.apply(namespace(name))
        manifests.apply_all(kube, [each for each in found if not each.is_crd])
        yield kube
        kube.close()


def ours(topology: Topology) -> bytes:
    """The reconciler's CRDs."""
    files = render(topology, FACTS).core
    return b"---\n".join(
        text
        for path, text in sorted(files.items())
        if path.startswith("platform/reconciler/") and b"kind: CustomResourceDefinition" in text
    )


def composites(topology: Topology) -> bytes:
    """CRDs of databases and machines, which Crossplane serves once it has their definitions.

    These are the CRDs that it would create.
    """
    found = [
        composite_kind(each)
        for path, text in sorted(render(topology, FACTS).core.items())
        if path.startswith("api/") and path.endswith(".yaml")
        for each in YAML(typ="safe", pure=True).load_all(text)
        if each and each["kind"] == "CompositeResourceDefinition"
    ]
    assert found
    stream = BytesIO()
    YAML(typ="safe", pure=True).dump_all(found, stream)
    return stream.getvalue()
