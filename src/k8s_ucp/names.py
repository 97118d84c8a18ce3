"""Names that rooms and people agree on: labels, annotations, namespaces, condition types."""

from __future__ import annotations

GROUP = "k8s-ucp.io"

CLUSTERS_NAMESPACE = "ucp-clusters"
"""LocalClusters, their kubeconfig Secrets, the list of environments."""
ARGOCD_NAMESPACE = "argocd"
RECONCILER = "k8s-ucp-reconciler"
"""ServiceAccount in the clusters' namespace that the reconciler is on the core."""
REGISTRATIONS = "k8s-ucp-registrations"
"""ConfigMap with the conditions of sources whose owners have no status of ours, a key a source."""
ENVIRONMENTS = "k8s-ucp-environments"
"""ConfigMap whose keys are the environments that may be registered."""
FINALIZER = f"{GROUP}/local-cluster"

TRACKING_ID = "argocd.argoproj.io/tracking-id"
"""Annotation of Argo CD's on what it applies: `<application>:<group>/<kind>:<namespace>/<name>`."""
ARGOCD_MANAGER = "argocd-controller"
"""Field manager of what Argo CD applies."""
REFRESH = {"argocd.argoproj.io/refresh": "normal"}
"""Annotation that has Argo CD look at an Application again, at once; it takes it off."""
MANAGED_BY = "app.kubernetes.io/managed-by"
OURS = "k8s-ucp"

# Labels of owners, copied to cluster Secrets.
ENVIRONMENT = f"{GROUP}/environment"
TOPOLOGY = f"{GROUP}/topology"
PROVIDER = f"{GROUP}/provider"
REGION = f"{GROUP}/region"
VERSION = f"{GROUP}/version"
PROTECTED = f"{GROUP}/protected"
ACCESS = f"{GROUP}/access"
DRAINING = f"{GROUP}/draining"
"""Takes the place of the environment label of a cluster Secret: ApplicationSets stop generating."""

KUBECONFIG_LABEL = f"{GROUP}/kubeconfig"
"""Set by a person on a Secret: it is a source although no known kind owns it."""
KUBECONFIG_KEY = "kubeconfig"
RAW_KUBECONFIG_KEY = "attribute.kube_config.0.raw_config"
"""What DigitalOcean's provider (v1.0.1) writes instead: it has no key of its own for it, so upjet
names it after Terraform's attribute."""

GENERATE = f"{GROUP}/generate"
"""On a Secret without a password: `password` has the reconciler make one, once."""

RESTORED = "k8s-ucp-restored"
"""ConfigMap in CLUSTERS_NAMESPACE: the sections of the backup that were put back into this core."""

# Annotations.
NAMESPACES = f"{GROUP}/namespaces"
"""On an owner with scoped access: comma-separated namespaces that Argo CD may act in."""
SOURCE = f"{GROUP}/source"
"""On a cluster Secret: `<namespace>/<Secret>` that it was made from."""
OWNER = f"{GROUP}/owner"
"""On a cluster Secret: `<apiVersion>|<kind>|<namespace>|<name>|<uid>` of what declared it."""
FORGET = f"{GROUP}/forget"
"""On an owner, and on its cluster Secret: `ucp clusters forget` was used. Deregisters it, and keeps
it from being registered until the annotation is taken off the owner."""
KUBECONFIG_DIGEST = f"{GROUP}/kubeconfig-digest"
"""On a LocalCluster: digest of the kubeconfig that its controller made, but for credentials.
Whoever can change the Secret alone can't change this."""
TOKEN_EXPIRES = f"{GROUP}/token-expires-at"
TOKEN_ISSUED = f"{GROUP}/token-issued-at"
DRAINING_SINCE = f"{GROUP}/draining-since"

SYNCER_NAMESPACES = f"{GROUP}/syncer-namespaces"
"""On a source: comma-separated namespaces, or `*`, whose Syncers may copy it beside its own's."""

# On copies in app clusters.
MIRROR = f"{GROUP}/mirror"
"""Label with the topology's name: how our watches find copies. The annotations say whose it is."""
SYNCER = f"{GROUP}/syncer"
"""`<namespace>/<name>` of the Syncer."""
MIRROR_SOURCE = f"{GROUP}/mirror-source"
"""`<namespace>/<name>` of what it was made from."""
MIRROR_PLACE = f"{GROUP}/mirror-place"
"""`<cluster>/<namespace>/<name>` that it was made for; carried elsewhere, marks mean nothing."""
DELETION_POLICY = f"{GROUP}/deletion-policy"
ADOPTED = f"{GROUP}/adopted"
"""On a copy that somebody else had made: it is released at the end, never deleted."""

SYNCER_FINALIZER = f"{GROUP}/syncer"
MIRRORS_LEFT = "k8s-ucp-mirrors-left"
"""ConfigMap in the clusters' namespace: by cluster, the Syncers that were deleted while it was away
and whose copies are still to be removed there."""

SECRET_TYPE = "argocd.argoproj.io/secret-type"  # noqa: S105 (a label)
APP_FINALIZER = "resources-finalizer.argocd.argoproj.io"
"""With it the deletion of an Application deletes what it deployed, in the foreground."""

# On app clusters.
IDENTITY_NAMESPACE = "k8s-ucp"
ARGOCD_IDENTITY = "k8s-ucp-argocd"
MIRROR_IDENTITY = "k8s-ucp-mirror"

# Condition types of a LocalCluster.
READY = "Ready"
REGISTERED = "Registered"
REACHABLE = "Reachable"
CLUSTER_CONDITIONS = (READY, REGISTERED, REACHABLE)
"""Of an app cluster; each says nothing while the one before it is false."""
SYNCED = "Synced"
"""Of a Syncer's copies in one cluster."""
DRAINED = "Drained"


def kubeconfig_secret(cluster: str) -> str:
    """Name of the Secret that holds a LocalCluster's kubeconfig."""
    return f"{cluster}-kubeconfig"


def cluster_secret(cluster: str) -> str:
    """Name of the Argo CD cluster Secret."""
    return f"cluster-{cluster}"
