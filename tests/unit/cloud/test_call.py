"""The API call that a signed request makes, in each of AWS's protocols."""

from __future__ import annotations

import json

import pytest

from k8s_ucp.cloud.call import HttpRequest, read_call


def signed(service: str, method: str, path: str, **more: str) -> HttpRequest:
    scope = (
        f"AWS4-HMAC-SHA256 Credential=KEY/20260101/eu-west-1/{service}/aws4_request, Signature=0"
    )
    headers = {"authorization": scope, "user-agent": "ucp/demo"}
    if kind := more.pop("kind", ""):
        headers["content-type"] = kind
    if target := more.pop("target", ""):
        headers["x-amz-target"] = target
    return HttpRequest(method, path, more.get("query", ""), headers, more.get("body", "").encode())


@pytest.mark.parametrize(
    ("request_", "operation", "parameters", "changes"),
    [
        (
            signed("ec2", "POST", "/", body="Action=CreateVpc&CidrBlock=10.0.0.0%2F16"),
            "CreateVpc",
            {"CidrBlock": "10.0.0.0/16"},
            True,
        ),
        (signed("ec2", "POST", "/", body="Action=DescribeVpcs"), "DescribeVpcs", {}, False),
        (
            signed("rds", "POST", "/", body="Action=DeleteDBInstance&DBInstanceIdentifier=a"),
            "DeleteDBInstance",
            {"DBInstanceIdentifier": "a"},
            True,
        ),
        (
            signed(
                "eks", "POST", "/clusters", kind="application/json", body=json.dumps({"name": "a"})
            ),
            "CreateCluster",
            {"name": "a"},
            True,
        ),
        (signed("eks", "DELETE", "/clusters/a"), "DeleteCluster", {"name": "a"}, True),
        (
            signed("eks", "GET", "/clusters/a/node-groups/b"),
            "DescribeNodegroup",
            {"name": "a", "nodegroupName": "b"},
            False,
        ),
        (
            signed("route53", "DELETE", "/2013-04-01/hostedzone/Z1"),
            "DeleteHostedZone",
            {"Id": "Z1"},
            True,
        ),
        (signed("s3", "PUT", "/some-bucket"), "CreateBucket", {"Bucket": "some-bucket"}, True),
        (
            signed("s3", "PUT", "/b/a/key", query="tagging"),
            "PutObjectTagging",
            {"Bucket": "b", "Key": "a/key", "tagging": ""},
            True,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_operation_parameters_region_and_caller_are_parsed(
    request_: HttpRequest, operation: str, parameters: dict[str, str], changes: bool
) -> None:
    call = read_call(request_)

    assert call is not None
    assert (call.operation, dict(call.parameters)) == (operation, parameters)
    assert (call.region, call.access_key, call.caller) == ("eu-west-1", "KEY", "ucp/demo")
    assert call.changes is changes


@pytest.mark.parametrize(
    "request_",
    [
        HttpRequest("POST", "/", body=b"Action=CreateVpc"),
        HttpRequest("POST", "/", headers={"authorization": "Bearer AWS4"}),
        signed("ec2", "POST", "/", body="Action=CreateNonsense"),
        signed("nonsense", "POST", "/"),
        signed("eks", "POST", "/nonsense"),
    ],
    ids=["unsigned", "another scheme", "no operation", "no service", "no path"],
)
def test_a_request_that_is_not_an_aws_operation_is_parsed_as_none(request_: HttpRequest) -> None:
    assert read_call(request_) is None
