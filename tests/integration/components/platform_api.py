"""The platform's own kinds on a real core cluster, and the kinds that they compose."""

from __future__ import annotations

from contextlib import suppress

from k8s_ucp.aws.crds import crds
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.compositions.composite_kinds import composite_kind
from k8s_ucp.kube import Kind, Kube, KubeError, Object
from tests.control_planes import eventually, namespace
from tests.unit.compositions.platform import definitions

POSTGRES = Kind("k8s-ucp.io/v1alpha1", "Postgres", "postgreses")


def early_kinds() -> list[Object]:
    """CRDs of AWS resources, which no provider installs, and of the platform's kinds but Postgres.

    `ucp start` applies CRDs before their definitions; Crossplane generates the CRD of Postgres.
    """
    found = (e for e in definitions().definitions if e["spec"]["names"]["kind"] != "Postgres")
    return [*crds(), *map(composite_kind, found)]


def serve_platform_api(kube: Kube) -> None:
    """Apply the CRDs of AWS resources, and the platform's own kinds."""
    for each in early_kinds():
        kube.apply(dict(each))
    define_platform(kube)


def define_platform(kube: Kube) -> None:
    """Apply the platform's own kinds; the CRDs of `early_kinds` must be served already."""
    kube.apply(namespace("team-a"))
    known = definitions()
    for each in (*known.definitions, *known.compositions):
        kube.apply(dict(each))

    def served() -> bool:
        with suppress(KubeError):
            kube.list_all(POSTGRES, "team-a")
            return all(kube.list_all(each.kind, "team-a") is not None for each in KINDS.values())
        return False

    eventually(served, lambda: "not served")
