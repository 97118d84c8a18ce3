"""Drift: fields whose value in the cloud differs from the declared one."""

from __future__ import annotations

from typing import Any

import pytest

from k8s_ucp.managed.comparison import differences


@pytest.mark.parametrize(
    ("declared", "told", "expected"),
    [
        ({"region": "eu-west-3"}, {"region": "eu-west-3", "arn": "arn:1"}, []),
        ({"size": 3}, {"size": "3"}, []),
        ({"on": True}, {"on": "true"}, []),
        ({"ids": ["b", "a"]}, {"ids": ["a", "b"]}, []),
        ({"size": 3}, {}, []),
        ({"vpcIdRef": {"name": "demo"}}, {"vpcIdRef": {"name": "other"}}, []),
        ({"rules": [{"port": 1}]}, {"rules": [{"port": 2}]}, []),
        ({"size": 3}, {"size": 5}, ["size: declared 3, the cloud has 5"]),
        (
            {"scaling": {"minSize": 1, "maxSize": 2}},
            {"scaling": {"minSize": 1, "maxSize": 4}},
            ["scaling.maxSize: declared 2, the cloud has 4"],
        ),
        ({"ids": ["a"]}, {"ids": ["a", "b"]}, ["ids: declared a, the cloud has a, b"]),
    ],
)
def test_fields_present_on_both_sides_are_compared(
    declared: Any, told: Any, expected: list[str]
) -> None:
    item = {"spec": {"forProvider": declared}, "status": {"atProvider": told}}
    assert differences(item) == expected


def test_a_resource_that_was_never_observed_has_no_differences() -> None:
    assert differences({"spec": {"forProvider": {"size": 1}}}) == []
