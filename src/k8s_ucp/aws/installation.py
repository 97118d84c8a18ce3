"""What a core needs so that AWS resources are created in the simulated cloud.

The provider has its own ServiceAccount, like providers from packages: it reads passwords and writes
connection Secrets in every namespace, which the reconciler may not do.
"""

from __future__ import annotations

from k8s_ucp.aws.crds import CLUSTER_PROVIDER_CONFIG, USAGE, crds
from k8s_ucp.aws.kind import GROUP
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.kube import CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT, Kind, Object
from k8s_ucp.names import CROSSPLANE_NAMESPACE

NAMESPACE, NAME = CROSSPLANE_NAMESPACE, "provider-aws-local"
_CLUSTER_ROLE = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False
)


def manifests() -> list[Object]:
    """CRDs, and the provider's ServiceAccount with its RBAC."""
    return [*crds(), *_access()]


def configuration() -> Object:
    """The default configuration for objects that name none; its CRD must be served."""
    return CLUSTER_PROVIDER_CONFIG.object("default", spec={"credentials": {"source": "None"}})


def _access() -> list[Object]:
    groups = sorted({GROUP, *(each.kind.group for each in KINDS.values())})
    rules = [
        {"apiGroups": groups, "resources": ["*"], "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": [GROUP], "resources": [USAGE.plural], "verbs": ["create", "delete"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    return [
        SERVICE_ACCOUNT.object(NAME, NAMESPACE, automountServiceAccountToken=False),
        _CLUSTER_ROLE.object(NAME, rules=rules),
        CLUSTER_ROLE_BINDING.object(NAME, roleRef=role, subjects=[subject]),
    ]
