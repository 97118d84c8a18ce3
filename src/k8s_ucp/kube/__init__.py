"""The only way to Kubernetes API servers: plain dicts in and out, every request bounded.

Errors of libraries are translated here. They contain method, path and the server's message, never a
header or a body.
"""

from k8s_ucp.kube.client import FIELD_MANAGER, Kube, kinds_in
from k8s_ucp.kube.connection import LARGEST_OF_OTHERS
from k8s_ucp.kube.errors import (
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    Unauthorized,
    Unreachable,
)
from k8s_ucp.kube.identity import TokenSource
from k8s_ucp.kube.kinds import (
    APP_PROJECT,
    APPLICATION,
    APPLICATION_SET,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CRD,
    DEPLOYMENT,
    EVENT,
    FUNCTION_REVISION,
    LEASE,
    LOCAL_CLUSTER,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    SYNCER,
    Kind,
    Object,
    controller_reference,
    versions_in,
)
from k8s_ucp.kube.kubeconfig import current_context, read_kubeconfig

__all__ = [
    "APPLICATION",
    "APPLICATION_SET",
    "APP_PROJECT",
    "CLUSTER_ROLE_BINDING",
    "CONFIG_MAP",
    "CRD",
    "DEPLOYMENT",
    "EVENT",
    "FIELD_MANAGER",
    "FUNCTION_REVISION",
    "LARGEST_OF_OTHERS",
    "LEASE",
    "LOCAL_CLUSTER",
    "NAMESPACE",
    "NODE",
    "PERSISTENT_VOLUME",
    "ROLE",
    "ROLE_BINDING",
    "SECRET",
    "SERVICE",
    "SERVICE_ACCOUNT",
    "SYNCER",
    "Conflict",
    "Expired",
    "Forbidden",
    "Invalid",
    "Kind",
    "Kube",
    "KubeError",
    "NotFound",
    "Object",
    "TokenSource",
    "Unauthorized",
    "Unreachable",
    "controller_reference",
    "current_context",
    "kinds_in",
    "read_kubeconfig",
    "versions_in",
]
