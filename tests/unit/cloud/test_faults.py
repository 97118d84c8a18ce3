"""Which calls a fault applies to, and how often."""

from __future__ import annotations

import pytest

from k8s_ucp.cloud.call import ApiCall
from k8s_ucp.cloud.faults import CloudFault, as_items, read_faults, take
from k8s_ucp.errors import UsageError

CREATE = ApiCall("ec2", "eu-west-1", "CreateVpc", "KEY", "ucp")


def test_the_first_matching_fault_is_consumed() -> None:
    faults = (
        CloudFault("hang", service="rds"),
        CloudFault("throttle", operation="Create*", times=2),
        CloudFault("unavailable"),
    )

    first, left = take(faults, CREATE)
    second, left = take(left, CREATE)
    third, left = take(left, CREATE)

    assert [each and each.kind for each in (first, second, third)] == [
        "throttle",
        "throttle",
        "unavailable",
    ]
    assert [each.kind for each in left] == ["hang", "unavailable"]


@pytest.mark.parametrize(
    "fault",
    [
        CloudFault("hang", region="us-*"),
        CloudFault("hang", service="rds"),
        CloudFault("hang", operation="Delete*"),
    ],
    ids=["region", "service", "operation"],
)
def test_a_fault_for_another_call_does_not_apply(fault: CloudFault) -> None:
    assert take([fault], CREATE) == (None, (fault,))


def test_serialized_faults_are_parsed_back_unchanged() -> None:
    faults = (
        CloudFault("slow", seconds=0.5),
        CloudFault("lost", "rds", "CreateDBInstance", times=1),
    )

    assert read_faults(as_items(faults)) == faults


@pytest.mark.parametrize(
    "items",
    [
        {},
        ["hang"],
        [{"kind": "explode"}],
        [{"kind": "hang", "often": 1}],
        [{"kind": "hang", "times": -1}],
    ],
    ids=["no list", "no object", "no kind of ours", "no field of ours", "negative"],
)
def test_invalid_faults_are_refused(items: object) -> None:
    with pytest.raises(UsageError):
        read_faults(items)
