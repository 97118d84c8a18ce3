"""The next command for each reason of a condition; checks.py fills in the {names}."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k8s_ucp import names
from k8s_ucp.errors import command_line
from k8s_ucp.inspect.applications import ENDLESS, NOT_COMPARED, kept_resources, reason
from k8s_ucp.inspect.resource_conditions import Cause, kubectl_words
from k8s_ucp.kube import Object, labels_of
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology import Topology

MOST_KEPT = 3
"""Commands that one advice shows; the next run of `ucp doctor` shows more."""

NEXT = {
    "EnvironmentUnknown": (
        "ucp env add {environment} --cluster PROVIDER, or add the literal {environment}= to "
        "clusters/kustomization.yaml of the core repository"
    ),
    "EnvironmentMissing": "add the label k8s-ucp.io/environment to its owner",
    "EnvironmentTaken": (
        "assign another environment to one of the two clusters, or deregister one: ucp "
        "clusters forget NAME"
    ),
    "NameTaken": (
        "if the Secret is no longer needed: {kubectl} -n argocd delete secret cluster-{cluster}"
    ),
    "ClusterTaken": (
        "use a separate cluster for each topology; if the other topology no longer exists, "
        "on that cluster: kubectl delete namespace k8s-ucp"
    ),
    "IdentityTaken": "delete or rename the object on that cluster, if it is no longer needed",
    "NamespacesMissing": "list the namespaces in the annotation k8s-ucp.io/namespaces of its owner",
    "KubeconfigMissing": "wait until its provider writes the Secret; ucp logs reconciler",
    "KubeconfigInvalid": (
        "write a kubeconfig to the Secret with one context, an https URL, and a token or a "
        "client certificate"
    ),
    "NotNamedByOwner": (
        "delete the Secret; or, to use it, remove its ownerReferences and add the label "
        "k8s-ucp.io/kubeconfig"
    ),
    "SourceDiffers": (
        "find out who changed the Secret named in the message, then delete it: its owner "
        "recreates it"
    ),
    "SourceUnproven": "wait until the owner's status has the endpoint; ucp logs reconciler",
    "NameReserved": "rename the kubeconfig Secret to <topology>-<environment>",
    "AddressReserved": "delete the kubeconfig Secret: it refers to the core cluster",
    "CredentialsMissing": "write the credential to creds/, then ucp start",
    "CredentialsInvalid": "write a complete credential to creds/, then ucp start",
    "AuthenticatorMissing": "add a token or a client certificate to the kubeconfig",
    "ClusterUnknown": (
        "add the label k8s-ucp.io/region and the annotation crossplane.io/external-name to "
        "the owner"
    ),
    "TokenRefused": "renew the cloud credential in creds/, then ucp start",
    "AccessDenied": (
        "grant the kubeconfig's user the right to create ServiceAccounts and roles, or "
        "write another kubeconfig to the Secret"
    ),
    "OwnerUnreadable": "allow the Role k8s-ucp-reconciler-sources to get its kind",
    "BeingDestroyed": "ucp destroy continues it; to keep the topology instead: ucp start",
    "Forgotten": "to register it again: ucp clusters forget {cluster} --undo",
    "SecretTaken": (
        "if the Secret is no longer needed: {kubectl} -n ucp-clusters delete secret "
        "{cluster}-kubeconfig"
    ),
    "Unreachable": (
        "if it runs on this machine: ucp start; if it is permanently unreachable: ucp "
        "clusters forget {cluster}"
    ),
}
NEXT_BY_KIND = {
    names.READY: "ucp logs reconciler; ucp start starts stopped components",
    names.REGISTERED: "ucp logs reconciler",
    names.REACHABLE: "ucp logs reconciler",
}


def of_application(item: Object, topology: Topology, admin: str) -> str:
    """The file or command that fixes an Application that isn't Synced and Healthy.

    admin: the core's kubeconfig file; those of app clusters are beside it.
    """
    problem = reason(item)
    labels = labels_of(item)
    team = labels.get(f"{names.GROUP}/team")
    repository = "apps" if f"{names.GROUP}/app" in labels else "core"
    repository = f"team-{team}" if team else repository
    path = str((_source(item)).get("path") or ".")
    words = {
        "file": f"gitops/{topology.name}/{repository}/{path}".removesuffix("/."),
        "project": f"gitops/{topology.name}/core/projects/"
        f"{(item.get('spec') or {}).get('project')}.yaml",
        "kubectl": _kubectl(item, topology, admin),
        "branch": topology.spec.git.branch,
        # A new environment's simulated cluster gets its controller with the next start.
        "rollouts": "ucp start"
        if topology.spec.addons.argo_rollouts
        else "set addons: {argo-rollouts: true} in ucp.yaml, then ucp start",
    }
    if _DAMAGED.search(problem) and (replaces := _replacement(item, topology)):
        return f"the stored data of the cluster is damaged: {replaces}"
    if held := _HELD_PROJECT.search(problem):
        patch = """--type merge -p '{"metadata":{"finalizers":null}}'"""
        kubectl = f"{kubectl_on(_cluster({}, topology), admin)} -n {held[1]}"
        return (
            "someone deleted it, and its Applications keep it; Argo CD creates it again from git "
            f"after: {kubectl} patch appproject {held[2]} {patch}"
        )
    found = next(
        (text for pattern, text in _OF_APPLICATION if re.search(pattern, problem, re.I)), ""
    )
    if not found and problem.startswith("out of sync with git") and _is_kustomized(item):
        found = "{kubectl} diff -k {file} (what differs, where that folder is up to date)"
    return (found or "{kubectl} get events,pods").format(**words)


_DAMAGED = re.compile(r"failed to list resources: (proto: |.*unable to decode)")
"""The API server can't read an object from etcd."""
_HELD_PROJECT = re.compile(r"AppProject ([^\s/]+)/(\S+) \(Pending deletion\)")
_OF_APPLICATION = (
    (re.escape(NOT_COMPARED), "wait for it: ucp status --watch; if it persists: ucp logs argocd"),
    (
        r"could not read username|authentication (failed|required)|permission denied \(publickey"
        r"|repository not found|terminal prompts disabled",
        (
            "set a credential with read access to the repository: git.readAuth or git.auth "
            "in ucp.yaml, or UCP_GIT_TOKEN; then ucp start"
        ),
    ),
    (r"unable to resolve .* to a commit", "push the branch {branch}, or change git.branch"),
    (
        r"could not resolve host|connection refused|no route to host|i/o timeout|server misbehaving"
        r"|failed to get cluster|dial tcp|TLS handshake",
        (
            "if the unreachable server runs on this machine: ucp start; otherwise restore "
            "the network connection to it"
        ),
    ),
    (
        r"not permitted in project",
        (
            "remove the object from {file}, commit and push; {project} lists the kinds "
            "that apps may contain"
        ),
    ),
    (
        r"denied (the )?request|denied by|ValidatingAdmissionPolicy|violates PodSecurity",
        ("change the object in {file} to comply with the policy, or change guardRails in ucp.yaml"),
    ),
    (
        r'(no matches for kind "?|could not find argoproj\.io/)'
        r"(Rollout|Experiment|(Cluster)?Analysis(Template|Run))\b",
        "{rollouts}",
    ),
    (
        re.escape(ENDLESS),
        "set spec.duration of the Experiment in {file}, commit and push; or wait until it ends",
    ),
    (
        r'namespaces "[^"]+" not found',
        "add a Namespace with this name to {file}, or have its objects go to the app's own "
        "namespace; commit and push",
    ),
    (
        r"no matches for kind|could not find the requested resource"
        r"|the server could not find|CRD is installed on the destination cluster",
        "install the CRD of this kind on the cluster, or remove the object from {file}",
    ),
    (
        r"generate manifest|kustomize|target state|app path does not exist|helm|is invalid"
        r"|cannot unmarshal|unknown field|immutable|failed to apply|SyncFailed|unable to decode",
        "fix {file}, commit and push (ucp check finds further problems)",
    ),
    (
        r'serviceaccount "[^"]+" not found',
        "add the ServiceAccount to {file}, or correct serviceAccountName there; commit and push",
    ),
    (
        r"forbidden|unauthorized",
        "ucp logs reconciler; or set access: admin for the environment in ucp.yaml",
    ),
)
"""(pattern of the reason, advice). The first match is used."""


def of_resource(cause: Cause, admin: str) -> str:
    """How to fix a cloud resource. admin: the core's kubeconfig file."""
    item, message = cause.resource, cause.message
    if cause.next:
        return cause.next
    if not cause.failed:
        return "wait until it is created; ucp status shows what it waits for"
    if found := next((text for pattern, text in _OF_RESOURCE if re.search(pattern, message)), ""):
        return found
    return f"{command_line('kubectl', '--kubeconfig', admin)} {kubectl_words('describe', item)}"


def of_kept(item: Object, topology: Topology, admin: str) -> str:
    """How to delete the first objects of an Application that are kept without git."""
    goes_to = (item.get("spec") or {}).get("destination") or {}
    kubectl = kubectl_on(_cluster(goes_to, topology), admin)
    commands = [
        f"{kubectl} {kubectl_words('delete', _as_object(each))}"
        for each in kept_resources(item)[:MOST_KEPT]
    ]
    return f"when they are no longer needed: {'; '.join(commands)}"


def _as_object(resource: dict[str, Any]) -> Object:
    """An entry of Argo CD's list of resources as the object that it is about."""
    version = "/".join(filter(None, (resource.get("group"), resource.get("version"))))
    metadata = {key: resource[key] for key in ("namespace", "name") if resource.get(key)}
    return {"apiVersion": version, "kind": resource["kind"], "metadata": metadata}


_OF_RESOURCE = (
    (r"(?i)could not connect to the endpoint|connection refused", "ucp start; ucp logs cloud"),
    (
        r"(?i)access ?denied|not authorized|unauthorized|permission|credential"
        r"|InvalidClientTokenId|ExpiredToken|SignatureDoesNotMatch",
        "write a credential with the permissions that the message names to creds/, then ucp start",
    ),
    (
        r"(?i)quota|limit ?exceeded",
        "ask the cloud for a higher limit, or use fewer or smaller resources in ucp.yaml",
    ),
    (r"ProviderConfig", "ucp start"),
)
"""(pattern of the message, advice). The first match is used."""


def _source(item: Object) -> dict[str, object]:
    spec = item.get("spec") or {}
    sources = spec.get("sources") or [{}]
    return dict(spec.get("source") or sources[0])


def _is_kustomized(item: Object) -> bool:
    return (item.get("status") or {}).get("sourceType") == "Kustomize"


def _kubectl(item: Object, topology: Topology, admin: str) -> str:
    """kubectl on the cluster and in the namespace that an Application deploys to."""
    goes_to = (item.get("spec") or {}).get("destination") or {}
    namespace = f" -n {goes_to['namespace']}" if goes_to.get("namespace") else ""
    return f"{kubectl_on(_cluster(goes_to, topology), admin)}{namespace}"


def _replacement(item: Object, topology: Topology) -> str:
    """What replaces the simulated cluster that an Application deploys to; empty for others."""
    spec = topology.spec
    cluster = _cluster((item.get("spec") or {}).get("destination") or {}, topology)
    if cluster == topology.core_cluster:
        simulated = PROVIDERS[spec.core.provider].simulated
        return "ucp stop --delete-data, then ucp recreate" if simulated else ""
    for each in spec.environments:
        simulated = PROVIDERS[each.cluster.provider].simulated
        if simulated and topology.app_cluster(each.name) == cluster:
            return f"ucp recreate --env {each.name}"
    return ""


def _cluster(destination: Mapping[str, Any], topology: Topology) -> str:
    """The cluster that an Application deploys to."""
    name = str(destination.get("name") or "in-cluster")
    return name if name.startswith(f"{topology.name}-") else topology.core_cluster


def kubectl_on(cluster: str, admin: str) -> str:
    """kubectl as the admin of a cluster."""
    file = Path(admin).with_name(f"{cluster}.yaml") if admin.endswith(".yaml") else admin
    return command_line("kubectl", "--kubeconfig", file)
