"""Which call a fault hits, and how often."""

from __future__ import annotations

import pytest

from k8s_ucp.cloud.call import ApiCall
from k8s_ucp.cloud.faults import CloudFault, as_items, read_faults, take
from k8s_ucp.errors import UsageError

CREATE = ApiCall("ec2", "eu-west-1", "CreateVpc", "KEY", "ucp")


def test_the_first_fault_that_fits_is_used_up() -> None:
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
def test_a_fault_of_something_else_hits_nothing(fault: CloudFault) -> None:
    assert take([fault], CREATE) == (None, (fault,))


def test_faults_are_read_as_they_are_shown() -> None:
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
def test_wrong_faults_are_refused(items: object) -> None:
    with pytest.raises(UsageError):
        read_faults(items)
