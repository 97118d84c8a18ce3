"""Values that an Application passes to a chart: what others wrote ends no command with a bug."""

from __future__ import annotations

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.findings import NotImportable
from k8s_ucp.gitops.imports.helm_values import merged
from k8s_ucp.gitops.manifests.yaml_text import documents, dump_all


def _nested(levels: int) -> bytes:
    return ("{a: " * levels + "1" + "}" * levels).encode()


def test_a_parameter_with_more_keys_than_helm_takes_is_refused() -> None:
    parameter = {"name": ".".join(["a"] * 1000), "value": "1"}
    with pytest.raises(NotImportable, match="is not a path that helm's --set takes"):
        merged([], {"parameters": [parameter]})


def test_a_parameter_with_as_many_keys_as_helm_takes_is_read() -> None:
    name = ".".join(["a"] * 31)
    assert documents(merged([], {"parameters": [{"name": name, "value": "1"}]}), "values.yaml")


@pytest.mark.parametrize("levels", [450, 990])
def test_values_that_are_nested_too_deeply_to_be_merged_are_refused(levels: int) -> None:
    files = [("values.yaml", _nested(levels)), ("values-prod.yaml", _nested(levels))]
    with pytest.raises(NotImportable, match="nested too deeply"):
        merged(files, {})


def test_yaml_that_is_nested_too_deeply_to_be_written_is_no_bug() -> None:
    with pytest.raises(UsageError, match="nested too deeply"):
        dump_all(documents(_nested(450), "values.yaml"))
