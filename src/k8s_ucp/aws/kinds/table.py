"""The table of all kinds. Add a kind to its service's module; add a service here."""

from __future__ import annotations

from collections.abc import Mapping

from k8s_ucp.aws.kind import AwsKind
from k8s_ucp.aws.kinds import ec2, eks, iam, rds, route53, s3

_SERVICES = (ec2, eks, iam, rds, route53, s3)
KINDS: Mapping[str, AwsKind] = {
    f"{each.kind.kind}.{each.kind.group}": each for service in _SERVICES for each in service.KINDS
}
"""Keys: KIND.GROUP, as in `kubectl get`."""
