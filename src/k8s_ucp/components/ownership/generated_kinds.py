"""CRDs that Crossplane generates on an existing core, and which of them are deleted with ucp."""

from __future__ import annotations

from collections.abc import Collection

from k8s_ucp.components.ownership.ledger import LedgerEntry, find
from k8s_ucp.kube import CRD, Kind, Kube, Object

MAKER = LedgerEntry(
    CRD.api_version, CRD.kind, "", "compositeresourcedefinitions.apiextensions.crossplane.io"
)
"""Crossplane's own CRD: whoever installed it, installed Crossplane."""
GENERATING = ("ProviderRevision", "CompositeResourceDefinition")
"""Crossplane's kinds that own CRDs."""


class GeneratedKinds:
    """Of one cluster. entries: of the ledger. uids: of all our objects on the cluster."""

    def __init__(self, kube: Kube, entries: Collection[LedgerEntry], uids: Collection[str]) -> None:
        self._kube = kube
        self._all = MAKER in entries
        self._uids = frozenset(uids)
        self._revisions: dict[LedgerEntry, frozenset[str]] = {}
        """UIDs of the owners of revisions."""

    def go(self, crd: Object) -> bool:
        """Whether it was generated for our package or definition; all are if Crossplane is ours."""
        makers = [
            each
            for each in crd["metadata"].get("ownerReferences") or []
            if each["kind"] in GENERATING
        ]
        if self._all:
            return bool(makers)
        return any(each["uid"] in self._uids or self._owners(each) & self._uids for each in makers)

    def _owners(self, maker: Object) -> frozenset[str]:
        key = LedgerEntry(maker["apiVersion"], maker["kind"], "", maker["name"])
        if key not in self._revisions:
            about = (find(self._kube, key) or {"metadata": {}})["metadata"]
            owners = about.get("ownerReferences") or []
            self._revisions[key] = frozenset(str(each["uid"]) for each in owners)
        return self._revisions[key]


def kind_of_crd(crd: Object) -> Kind | None:
    """The kind that a CRD defines, in a served version; None if no version is served."""
    spec = crd["spec"]
    version = next((each["name"] for each in spec["versions"] if each["served"]), None)
    if version is None:
        return None
    names = spec["names"]
    return Kind(
        f"{spec['group']}/{version}",
        names["kind"],
        names["plural"],
        namespaced=spec["scope"] == "Namespaced",
    )
