"""Deprecated APIs in use and stored CRD versions, as reported by an API server."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.inspect.api_usage import (
    KindVersions,
    deprecated_uses,
    minor_of,
    one_way,
    unknown_storage,
)

NAME = "apiserver_requested_deprecated_apis"
METRICS = f"""# TYPE {NAME} gauge
{NAME}{{group="",removed_release="",resource="endpoints",version="v1"}} 1
{NAME}{{group="flow.io",removed_release="1.35",resource="schemas",version="v1beta3"}} 1
apiserver_request_total{{code="200",group="flow.io",version="v1"}} 7
"""


def test_deprecated_apis_are_read_with_the_release_that_removes_them() -> None:
    endpoints, schemas = deprecated_uses(METRICS)
    assert (endpoints.name, endpoints.removed_in) == ("endpoints.v1", "")
    assert schemas.name == "schemas.v1beta3.flow.io"
    assert not endpoints.is_removed_in("1.35.4")
    assert [schemas.is_removed_in(each) for each in ("1.34.4", "v1.35.0", "1.40.1")] == [
        *(False, True, True)
    ]
    assert deprecated_uses("") == []


@pytest.mark.parametrize("text", ["v1.35.4", "1.35", "1.35+", "1.35.4-gke.100"])
def test_minor_versions_are_parsed_as_numbers(text: str) -> None:
    assert minor_of(text) == (1, 35)


def crd(versions: list[str], stored: str, *, kept: list[str]) -> dict[str, Any]:
    spec = {"versions": [{"name": each, "storage": each == stored} for each in versions]}
    name = {"name": "apps.example.org"}
    return {"metadata": name, "spec": spec, "status": {"storedVersions": kept}}


def test_a_stored_version_missing_from_the_newer_crd_is_reported() -> None:
    item = crd(["v1alpha1", "v1"], "v1", kept=["v1alpha1", "v1"])
    newer = {"apps.example.org": KindVersions.of(crd(["v1"], "v1", kept=[])["spec"])}
    assert [each.split(":")[0] for each in unknown_storage([item], newer)] == ["apps.example.org"]
    assert list(unknown_storage([item], {})) == []


def test_a_new_storage_version_missing_from_the_older_crd_rules_out_a_rollback() -> None:
    item = crd(["v1"], "v1", kept=["v1"])
    same = {"apps.example.org": KindVersions(frozenset({"v1", "v2"}), "v1")}
    newer = {"apps.example.org": KindVersions(frozenset({"v1", "v2"}), "v2")}
    assert list(one_way([item], same)) == []
    assert len(list(one_way([item], newer))) == 1
