"""What to type next, by the reason that a condition gives; {names} are filled in by doctor.py."""

from __future__ import annotations

from k8s_ucp.reconciler import marks

NEXT = {
    "EnvironmentUnknown": "declare {environment} in spec.environments of ucp.yaml, then ucp start",
    "EnvironmentMissing": "give its owner the label k8s-ucp.io/environment",
    "EnvironmentTaken": "give one of the two another environment, or let the other one go: "
    "ucp clusters forget NAME",
    "NameTaken": "{kubectl} -n argocd delete secret cluster-{cluster}, if it is yours to delete",
    "ClusterTaken": "give each topology a cluster of its own; where the other one is gone for "
    "good, on that cluster: kubectl delete namespace k8s-ucp",
    "IdentityTaken": "remove or rename it on that cluster, if it is yours to remove",
    "NamespacesMissing": "name them in the annotation k8s-ucp.io/namespaces of its owner",
    "KubeconfigMissing": "wait for its provider to write it; ucp logs reconciler",
    "KubeconfigInvalid": "write a kubeconfig into the Secret with one context, https, and a token "
    "or a client certificate",
    "NotNamedByOwner": "delete the Secret; where it is yours, take its ownerReferences off and "
    "label it k8s-ucp.io/kubeconfig",
    "SourceDiffers": "find out who changed the Secret that it names, and delete it: its owner "
    "writes it anew",
    "SourceUnproven": "wait until the owner's status tells the cluster's address; ucp logs "
    "reconciler",
    "NameReserved": "give the kubeconfig Secret another name, <topology>-<environment>",
    "AddressReserved": "delete the kubeconfig Secret: it leads to the core cluster",
    "CredentialsMissing": "put the credential into creds/, then ucp start",
    "CredentialsInvalid": "put a credential that is whole into creds/, then ucp start",
    "AuthenticatorMissing": "put a token or a client certificate into the kubeconfig",
    "ClusterUnknown": "let the owner tell: label k8s-ucp.io/region, annotation "
    "crossplane.io/external-name",
    "TokenRefused": "renew the cloud's credential in creds/, then ucp start",
    "AccessDenied": "give the kubeconfig's identity the right to make ServiceAccounts and roles, "
    "or write another one into the Secret",
    "OwnerUnreadable": "let the Role k8s-ucp-reconciler-sources read its kind",
    "Forgotten": "ucp clusters forget {cluster} --undo, to have it back",
    "SecretTaken": "{kubectl} -n ucp-clusters delete secret {cluster}-kubeconfig, if it is yours "
    "to delete",
    "Unreachable": "ucp start, if it runs on this machine; if it will never answer again: "
    "ucp clusters forget {cluster}",
}
NEXT_BY_KIND = {
    marks.READY: "ucp logs reconciler; ucp start starts what is down",
    marks.REGISTERED: "ucp logs reconciler",
    marks.REACHABLE: "ucp logs reconciler",
}
