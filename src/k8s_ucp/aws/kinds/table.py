"""All kinds. A new one is an entry in its service's module; a new service is a line here."""

from __future__ import annotations

from collections.abc import Mapping

from k8s_ucp.aws.kind import AwsKind
from k8s_ucp.aws.kinds import ec2, eks, iam, rds, route53, s3

_SERVICES = (ec2, eks, iam, rds, route53, s3)
KINDS: Mapping[str, AwsKind] = {
    f"{each.kind.kind}.{each.kind.group}": each for service in _SERVICES for each in service.KINDS
}
"""By kind and group, as `kubectl get` takes them."""
