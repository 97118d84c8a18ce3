"""What to type next, by the reason that a condition gives; {names} are filled in by doctor.py."""

from __future__ import annotations

import re
from pathlib import Path

from k8s_ucp import names
from k8s_ucp.inspect.applications import reason
from k8s_ucp.kube import Object
from k8s_ucp.topology import Topology

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
    names.READY: "ucp logs reconciler; ucp start starts what is down",
    names.REGISTERED: "ucp logs reconciler",
    names.REACHABLE: "ucp logs reconciler",
}


def of_application(item: Object, topology: Topology, admin: str) -> str:
    """What mends an Application that isn't Synced and Healthy: a file or a command.

    admin: file of the core's kubeconfig; those of app clusters lie beside it.
    """
    said = reason(item)
    labels = item["metadata"].get("labels") or {}
    repository = "apps" if f"{names.GROUP}/app" in labels else "core"
    path = str((_source(item)).get("path") or ".")
    words = {
        "file": f"gitops/{topology.name}/{repository}/{path}".removesuffix("/."),
        "project": f"gitops/{topology.name}/core/projects/"
        f"{(item.get('spec') or {}).get('project')}.yaml",
        "kubectl": _kubectl(item, topology, admin),
        "branch": topology.spec.git.branch,
    }
    found = next((text for pattern, text in _OF_APPLICATION if re.search(pattern, said, re.I)), "")
    return (found or "{kubectl} get events,pods").format(**words)


_OF_APPLICATION = (
    (
        r"could not read username|authentication (failed|required)|permission denied \(publickey"
        r"|repository not found|terminal prompts disabled",
        "give Argo CD a credential that reads the repository: git.readAuth or git.auth in "
        "ucp.yaml, or UCP_GIT_TOKEN; then ucp start",
    ),
    (r"unable to resolve .* to a commit", "push the branch {branch}, or correct git.branch"),
    (
        r"could not resolve host|connection refused|no route to host|i/o timeout|server misbehaving"
        r"|failed to get cluster|dial tcp|TLS handshake",
        "ucp start, if what doesn't answer runs on this machine; else restore the network to it",
    ),
    (
        r"not permitted in project",
        "take the object out of {file}, commit and push; what apps may hold is in {project}",
    ),
    (
        r"denied (the )?request|denied by|ValidatingAdmissionPolicy|violates PodSecurity",
        "change the object in {file} so that the policy admits it, or guardRails in ucp.yaml",
    ),
    (
        r"no matches for kind|could not find the requested resource"
        r"|the server could not find",
        "install what brings this kind to the cluster, or take the object out of {file}",
    ),
    (
        r"generate manifest|kustomize|target state|app path does not exist|helm|is invalid"
        r"|cannot unmarshal|unknown field|immutable|failed to apply|SyncFailed|unable to decode",
        "correct {file}, commit and push (ucp check tells what else is wrong)",
    ),
    (
        r"forbidden|unauthorized",
        "ucp logs reconciler; access: admin for the environment in ucp.yaml",
    ),
)
"""(what the reason says, what to do). The first that fits counts."""


def _source(item: Object) -> dict[str, object]:
    spec = item.get("spec") or {}
    sources = spec.get("sources") or [{}]
    return dict(spec.get("source") or sources[0])


def _kubectl(item: Object, topology: Topology, admin: str) -> str:
    """kubectl on the cluster and in the namespace that an Application goes to."""
    goes_to = (item.get("spec") or {}).get("destination") or {}
    cluster = str(goes_to.get("name") or "in-cluster")
    if not cluster.startswith(f"{topology.name}-"):
        cluster = topology.core_cluster
    file = Path(admin).with_name(f"{cluster}.yaml") if admin.endswith(".yaml") else admin
    namespace = f" -n {goes_to['namespace']}" if goes_to.get("namespace") else ""
    return f"kubectl --kubeconfig {file}{namespace}"
