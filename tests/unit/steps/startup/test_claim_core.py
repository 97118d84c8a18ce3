"""Which existing objects on a core cluster make a start fail."""

from __future__ import annotations

import pytest

from k8s_ucp.components.ownership.ledger import LedgerEntry
from k8s_ucp.steps.startup.claim_core import is_shared


@pytest.mark.parametrize(
    ("entry", "shared"),
    [
        (LedgerEntry("v1", "Namespace", "", "monitoring"), True),
        (LedgerEntry("v1", "Namespace", "", "team-a"), True),
        (LedgerEntry("v1", "Namespace", "", "argocd"), False),
        (LedgerEntry("v1", "Namespace", "", "crossplane-system"), False),
        (LedgerEntry("v1", "Namespace", "", "ucp-clusters"), False),
        (LedgerEntry("rbac.authorization.k8s.io/v1", "ClusterRole", "", "crossplane"), False),
        (LedgerEntry("v1", "ConfigMap", "argocd", "argocd-cm"), False),
    ],
)
def test_only_namespaces_that_no_component_uses_may_already_exist(
    entry: LedgerEntry, shared: bool
) -> None:
    assert is_shared(entry) is shared
