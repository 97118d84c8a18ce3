"""Values that an Application passes to a chart: what others wrote ends no command with a bug."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.imports.findings import NotImportable
from k8s_ucp.gitops.imports.helm_values import check_settings, merged
from k8s_ucp.gitops.manifests.yaml_text import documents
from k8s_ucp.yaml_io import DEEPEST


def _nested(levels: int) -> bytes:
    return ("{a: " * levels + "1" + "}" * levels).encode()


def test_tests_of_a_chart_which_argo_cd_never_runs_may_be_skipped() -> None:
    check_settings({"releaseName": "web", "skipTests": True})
    with pytest.raises(NotImportable, match=r"sets helm\.skipCrds"):
        check_settings({"skipCrds": True, "skipTests": True})


def test_a_parameter_with_more_keys_than_helm_takes_is_refused() -> None:
    parameter = {"name": ".".join(["a"] * 1000), "value": "1"}
    with pytest.raises(NotImportable, match="is not a path that helm's --set takes"):
        merged([], {"parameters": [parameter]})


def test_a_parameter_with_as_many_keys_as_helm_takes_is_read() -> None:
    name = ".".join(["a"] * 31)
    assert documents(merged([], {"parameters": [{"name": name, "value": "1"}]}), "values.yaml")


def test_values_with_as_many_levels_as_are_read_are_merged_and_written() -> None:
    files = [("values.yaml", _nested(DEEPEST)), ("values-prod.yaml", _nested(DEEPEST))]
    assert documents(merged(files, {}), "values.yaml") == documents(_nested(DEEPEST), "values.yaml")


@pytest.mark.parametrize(
    "values",
    [
        _nested(DEEPEST + 1),
        b"a0: &a0 [x]\n" + b"".join(b"a%d: &a%d [*a%d]\n" % (n, n, n - 1) for n in range(1, 300)),
    ],
    ids=["brackets", "aliases"],
)
def test_values_with_more_levels_are_refused(values: bytes) -> None:
    with pytest.raises(NotImportable, match=f"more than {DEEPEST} levels"):
        merged([("values.yaml", values), ("values-prod.yaml", b"a: 1")], {})
