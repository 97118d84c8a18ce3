"""Which of what is there already stops a start."""

from __future__ import annotations

import pytest

from k8s_ucp.components.ownership.ledger import Entry
from k8s_ucp.steps.startup.claim_core import is_shared


@pytest.mark.parametrize(
    ("entry", "shared"),
    [
        (Entry("v1", "Namespace", "", "monitoring"), True),
        (Entry("v1", "Namespace", "", "team-a"), True),
        (Entry("v1", "Namespace", "", "argocd"), False),
        (Entry("v1", "Namespace", "", "crossplane-system"), False),
        (Entry("v1", "Namespace", "", "ucp-clusters"), False),
        (Entry("rbac.authorization.k8s.io/v1", "ClusterRole", "", "crossplane"), False),
        (Entry("v1", "ConfigMap", "argocd", "argocd-cm"), False),
    ],
)
def test_only_namespaces_may_be_there_and_not_those_of_components(
    entry: Entry, shared: bool
) -> None:
    assert is_shared(entry) is shared
