"""The platform's own kinds on a real core, and what they compose."""

from __future__ import annotations

from contextlib import suppress

from k8s_ucp.aws.crds import crds
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.compositions.composite_kinds import composite_kind
from k8s_ucp.kube import Kind, Kube, KubeError
from tests.control_planes import eventually, namespace
from tests.unit.compositions.platform import definitions

POSTGRES = Kind("k8s-ucp.io/v1alpha1", "Postgres", "postgreses")


def serve_platform_api(kube: Kube) -> None:
    """The kinds of AWS without a provider, and the platform's own."""
    kube.apply(namespace("team-a"))
    known = definitions()
    # A start applies them before; of one Crossplane makes it here.
    early = [
        composite_kind(each)
        for each in known.definitions
        if each["spec"]["names"]["kind"] != "Postgres"
    ]
    for each in (*crds(), *early, *known.definitions, *known.compositions):
        kube.apply(dict(each))

    def served() -> bool:
        with suppress(KubeError):
            kube.list_all(POSTGRES, "team-a")
            return all(kube.list_all(each.kind, "team-a") is not None for each in KINDS.values())
        return False

    eventually(served, lambda: "not served", 60)
