"""Names that are part of contracts: labels, annotations, namespaces, condition types; limits."""

from __future__ import annotations

import re

GROUP = "k8s-ucp.io"

CLUSTERS_NAMESPACE = "ucp-clusters"
"""LocalClusters, their kubeconfig Secrets, the list of environments."""
ARGOCD_NAMESPACE = "argocd"
CROSSPLANE_NAMESPACE = "crossplane-system"
ROOT_APPLICATION = "root"
"""The Application that manages all others; `ucp start` applies it."""
RECONCILER = "k8s-ucp-reconciler"
"""The reconciler's ServiceAccount on the core, in the clusters' namespace."""
REGISTRATIONS = "k8s-ucp-registrations"
"""ConfigMap with the conditions of sources whose owners don't have our status; a key per source."""
ENVIRONMENTS = "k8s-ucp-environments"
"""ConfigMap whose keys are the environments that may be registered."""
FINALIZER = f"{GROUP}/local-cluster"

TRACKING_ID = "argocd.argoproj.io/tracking-id"
"""Argo CD's annotation on objects that it applies:
`<application>:<group>/<kind>:<namespace>/<name>`."""
ARGOCD_MANAGER = "argocd-controller"
"""Field manager of objects that Argo CD applies."""
REFRESH = {"argocd.argoproj.io/refresh": "normal"}
"""Annotation that makes Argo CD refresh an Application immediately; Argo CD removes it."""
REFRESH_SET = {"argocd.argoproj.io/application-set-refresh": "true"}
"""The same for an ApplicationSet."""
EXTERNAL_NAME = "crossplane.io/external-name"
"""Annotation of a managed resource: its name or id in the cloud."""
CREATION = "crossplane.io/external-create-"
"""Prefix of the annotations that a provider writes before and after it creates something."""
CREATION_PENDING = f"{CREATION}pending"
CREATION_SUCCEEDED = f"{CREATION}succeeded"
CREATION_FAILED = f"{CREATION}failed"
OWNED = f"{GROUP}/owned"
"""Annotation of a managed resource, `true`: this topology's, though its core didn't create it."""
COMPOSITE = "crossplane.io/composite"
"""Label of a composed resource: the name of its composite."""
COMPOSED_PART = "crossplane.io/composition-resource-name"
"""Annotation of a composed resource: its name in the Composition."""
PAUSED = "crossplane.io/paused"
"""Annotation of what Crossplane does not reconcile: `true`."""
CONNECTION = f"{GROUP}/connection"
"""Label of a claim's connection Secret with the claim's environment."""
MANAGED_BY = "app.kubernetes.io/managed-by"
OURS = "k8s-ucp"

APP = f"{GROUP}/app"
"""On an Application: the app that it deploys."""

# Labels of owners, copied to cluster Secrets.
ENVIRONMENT = f"{GROUP}/environment"
TOPOLOGY = f"{GROUP}/topology"
PROVIDER = f"{GROUP}/provider"
REGION = f"{GROUP}/region"
VERSION = f"{GROUP}/version"
PROTECTED = f"{GROUP}/protected"
ACCESS = f"{GROUP}/access"
HELD = f"{GROUP}/held"
"""Annotation of a resource that Crossplane deletes only after the cluster that uses it."""
DRAINING = f"{GROUP}/draining"
"""Replaces the environment label of a cluster Secret, so that ApplicationSets stop generating."""

KUBECONFIG_LABEL = f"{GROUP}/kubeconfig"
"""Set by a user on a Secret: it is a source although no known kind owns it."""
KUBECONFIG_KEY = "kubeconfig"
RAW_KUBECONFIG_KEY = "attribute.kube_config.0.raw_config"
"""Key of DigitalOcean's provider (v1.0.1): it defines no connection key of its own, so upjet
derives it from Terraform's attribute."""

GENERATE = f"{GROUP}/generate"
"""On a Secret without a password: with `password`, the reconciler generates one, once."""

RESTORED = "k8s-ucp-restored"
"""ConfigMap in CLUSTERS_NAMESPACE: the sections of the backup that were restored to this core."""

# Annotations.
NAMESPACES = f"{GROUP}/namespaces"
"""On an owner with scoped access: comma-separated namespaces that Argo CD may write to."""
TEAM_NAMESPACES = f"{GROUP}/team-namespaces"
"""On such an owner: those of them that are teams', where no pod may get access to its node."""
SOURCE = f"{GROUP}/source"
"""On a cluster Secret: `<namespace>/<Secret>` of its source."""
OWNER = f"{GROUP}/owner"
"""On a cluster Secret: `<apiVersion>|<kind>|<namespace>|<name>|<uid>` of its owner."""
FORGET = f"{GROUP}/forget"
"""On an owner, and on its cluster Secret: set by `ucp clusters forget`. Deregisters the cluster,
and prevents its registration until the annotation is removed from the owner."""
KUBECONFIG_DIGEST = f"{GROUP}/kubeconfig-digest"
"""On a LocalCluster: digest of its controller's kubeconfig without credentials. A user who can only
change the Secret can't change this."""
TOKEN_EXPIRES = f"{GROUP}/token-expires-at"
TOKEN_ISSUED = f"{GROUP}/token-issued-at"
DRAINING_SINCE = f"{GROUP}/draining-since"

SYNCER_NAMESPACES = f"{GROUP}/syncer-namespaces"
"""On a source: comma-separated namespaces, or `*`, whose Syncers may copy it, in addition to its
own namespace's."""

# On copies in app clusters.
MIRROR = f"{GROUP}/mirror"
"""Label with the topology's name, by which we watch copies. Annotations identify the Syncer."""
SYNCER = f"{GROUP}/syncer"
"""`<namespace>/<name>` of the Syncer."""
MIRROR_SOURCE = f"{GROUP}/mirror-source"
"""`<namespace>/<name>` of its source."""
MIRROR_PLACE = f"{GROUP}/mirror-place"
"""`<cluster>/<namespace>/<name>` that it was created for; elsewhere our annotations don't count."""
DELETION_POLICY = f"{GROUP}/deletion-policy"
ADOPTED = f"{GROUP}/adopted"
"""On a copy that others created: it is released in the end, never deleted."""

SYNCER_FINALIZER = f"{GROUP}/syncer"
MIRRORS_LEFT = "k8s-ucp-mirrors-left"
"""ConfigMap in the clusters' namespace: by cluster, Syncers that were deleted while the cluster was
unreachable, and whose copies must still be removed there."""

SECRET_TYPE = "argocd.argoproj.io/secret-type"  # noqa: S105 (a label)
APP_FINALIZER = "resources-finalizer.argocd.argoproj.io"
"""With it, deleting an Application also deletes what it deployed, in the foreground."""

# On app clusters.
IDENTITY_NAMESPACE = "k8s-ucp"
ARGOCD_IDENTITY = "k8s-ucp-argocd"
MIRROR_IDENTITY = "k8s-ucp-mirror"

# Condition types of a LocalCluster.
READY = "Ready"
REGISTERED = "Registered"
REACHABLE = "Reachable"
CLUSTER_CONDITIONS = (READY, REGISTERED, REACHABLE)
"""Of an app cluster; each is only meaningful if the one before it is true."""
SYNCED = "Synced"
"""Of a Syncer's copies in one cluster."""
DRAINED = "Drained"


DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""Names of namespaces and Services (RFC 1123)."""
MOST_DATA = 1_048_576
"""Bytes of content that Kubernetes accepts in one Secret or ConfigMap."""


def is_closed_to_copies(namespace: str) -> bool:
    """Namespaces of Kubernetes, and of our identities: access to their Secrets is access to all."""
    return namespace.startswith("kube-") or namespace == IDENTITY_NAMESPACE


def kubeconfig_secret(cluster: str) -> str:
    """Name of the Secret with a LocalCluster's kubeconfig."""
    return f"{cluster}-kubeconfig"


def cluster_secret(cluster: str) -> str:
    """Name of the Argo CD cluster Secret."""
    return f"cluster-{cluster}"
