"""What an import passes on to `ucp app add`."""

from __future__ import annotations

import pytest

from k8s_ucp.cli.editing.imports.candidates import item_keys
from k8s_ucp.gitops.imports.findings import DiscoveredApp, NotImportable


def test_a_namespace_that_is_a_variable_has_to_be_given() -> None:
    finding = DiscoveredApp("web", "kustomize", "ks.yaml:1", namespace="${NAMESPACE}")
    with pytest.raises(NotImportable, match="NAMESPACE} is not a valid name") as failed:
        item_keys(finding, {})
    assert failed.value.advice == "run the command again with --namespace web=NAME"
    assert item_keys(finding, {"namespace": {"web": ["shop"]}}) == {"namespace": "shop"}
