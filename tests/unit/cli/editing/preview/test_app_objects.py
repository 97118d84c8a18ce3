"""Charts that generate passwords or certificates anew each time."""

from __future__ import annotations

import gzip

from k8s_ucp.cli.editing.preview.app_objects import changing_objects, may_change


def test_functions_with_another_result_each_time_are_found_in_packed_charts_too() -> None:
    random = b"password: {{ randAlphaNum 16 }}\n"
    for path, content in (
        ("web/templates/a.yaml", random),
        ("web/charts/db-1.0.0.tgz", gzip.compress(random)),
        ("web/charts/db/templates/_a.tpl", b"{{- $ca := genCA .name 365 }}"),
    ):
        assert may_change({path: content}, "web/")
        assert not may_change({path: content}, "other/")
    fixed = {"web/values.yaml": b"random: a\n", "web/charts/a-1.tgz": b"no archive"}
    assert not may_change(fixed, "web/")


def test_only_objects_that_differ_are_listed() -> None:
    same, first, second = (
        {"kind": "Secret", "metadata": {"name": name}, "data": {"a": value}}
        for name, value in (("same", "1"), ("new", "2"), ("new", "3"))
    )
    assert changing_objects([same, first], lambda values: [same, second]) == ["Secret/new"]
