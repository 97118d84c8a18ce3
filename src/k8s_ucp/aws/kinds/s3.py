"""S3: buckets."""

from __future__ import annotations

from k8s_ucp.aws.kind import AwsKind, Describe, Parameters, by_name, kind_of
from k8s_ucp.managed.external import Declared

HOME = "us-east-1"
"""The region for which S3 requires the absence of a location constraint."""


def _location(declared: Declared) -> Parameters:
    region = declared.parameters.get("region", HOME)
    return {} if region == HOME else {"CreateBucketConfiguration": {"LocationConstraint": region}}


BUCKET = AwsKind(
    kind_of("s3", "Bucket", "buckets"),
    "s3",
    create="CreateBucket",
    describe=Describe("HeadBucket", by_name("Bucket"), ""),
    delete="DeleteBucket",
    delete_ask=by_name("Bucket"),
    fields={},
    more=lambda declared: {"Bucket": declared.name, **_location(declared)},
)

KINDS = (BUCKET,)
