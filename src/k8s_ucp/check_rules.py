"""The rules of `ucp check`: what each finds, why it matters, how to fix it.

The only source of ids, severities and texts: ucp.yaml, the check, its output and docs/checks.md use
them from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

PAGE = "docs/checks.md"
"""The page with a section for each rule; the anchor is the rule's id."""

Severity = Literal["error", "warning"]

IgnorableIn = Literal["anywhere", "topology", "never"]
"""Where a finding may be ignored.

anywhere: in ucp.yaml and in the file. topology: in ucp.yaml and in the core repository, but not in
the app repository, since it breaks other apps. never: ignoring it would let an app exceed its
project, or hide what was not checked.
"""

RuleId = Literal[
    "action-unpinned",
    "application-missing-path",
    "application-missing-project",
    "application-name-invalid",
    "application-name-taken",
    "base-unpinned",
    "build-failed",
    "chart-unpinned",
    "check-failed",
    "cluster-kind-not-allowed",
    "environment-duplicate",
    "environment-unknown",
    "environment-unknown-source",
    "environment-unlisted",
    "field-invalid",
    "field-unknown",
    "host-path-duplicate",
    "host-taken",
    "image-invalid",
    "image-moving-tag",
    "image-untagged",
    "kind-unknown",
    "list-invalid",
    "namespace-not-allowed",
    "namespace-reserved",
    "namespace-taken",
    "no-added-capabilities",
    "no-host-access",
    "no-host-ports",
    "no-lasting-tokens",
    "no-remote-probes",
    "no-taken-hosts",
    "node-port-taken",
    "object-duplicate",
    "object-invalid",
    "object-repeated",
    "overlay-without-kustomization",
    "package-unpinned",
    "pipeline-local-repository",
    "reference-missing-account",
    "reference-missing-key",
    "reference-missing-object",
    "reference-missing-port",
    "reference-missing-service",
    "reference-missing-target",
    "required-requests",
    "route-without-gateway",
    "selector-without-pods",
    "service-account-conflict",
    "symlink-out-of-bounds",
    "topology-invalid",
    "yaml-invalid",
]

DENY_WARNINGS = "warnings"
"""In `checks.deny`: every rule with severity warning."""


@dataclass(frozen=True)
class Rule:
    """title: in a few words. what, why, fix: a sentence or two each."""

    id: RuleId
    severity: Severity
    ignorable: IgnorableIn
    title: str
    what: str
    why: str
    fix: str

    @property
    def page(self) -> str:
        return f"{PAGE}#{self.id}"


_MOVES = (
    "What runs can change without a commit: environments differ, a rollback restores something "
    "else, and nobody sees in git when it changed."
)
_DROPPED = (
    "The API server refuses the object or drops the field, so the Application does not become "
    "Synced, or it runs without what was meant."
)
_DANGLING = "The pods do not start or get no traffic until what is referenced exists."
_HIDDEN = (
    "What can't be read can't be checked: ignoring this finding would hide whatever else is wrong."
)
_ONE_PROJECT = (
    "The app's project on the core cluster isolates apps from each other; only the topology's "
    "owner can extend it."
)

_RAIL = (
    "A guard rail: checked for environments that `guardRails` of ucp.yaml names; an error if its "
    "mode there is `deny`."
)
_OFF = "Where the app needs it, name the rule in `guardRails.off`."

_ALL = (
    Rule(
        "action-unpinned",
        "warning",
        "anywhere",
        "Action without a commit hash",
        "A GitHub workflow uses an action by tag or branch.",
        "Whoever can move the tag runs code in your pipeline, with its tokens.",
        "Use `owner/action@<commit hash>` and keep the version in a comment behind it.",
    ),
    Rule(
        "application-missing-path",
        "error",
        "topology",
        "Application with a path that does not exist",
        "An Application of the core repository reads a path that its repository does not have.",
        "Argo CD can't render the Application; what it manages is no longer updated.",
        "Correct `spec.source.path`, or commit the folder.",
    ),
    Rule(
        "application-missing-project",
        "error",
        "topology",
        "Application with a project that does not exist",
        "An Application of the core repository references an AppProject that does not exist.",
        "Argo CD refuses the Application.",
        "Correct `spec.project`, or add the AppProject to `projects/`.",
    ),
    Rule(
        "application-name-invalid",
        "error",
        "topology",
        "App with a name that Kubernetes refuses",
        "The folder of an app, which names its Application, is not a lowercase RFC 1123 name, or "
        "has more than 63 characters.",
        "The ApplicationSets exclude the folder: Argo CD does not deploy the app.",
        "Rename the folder.",
    ),
    Rule(
        "application-name-taken",
        "error",
        "topology",
        "Two Applications with one name",
        "Two pairs of app and environment join to the same `<app>-<environment>`.",
        "Argo CD generates neither of them, so the other app stops being deployed too.",
        "Rename one of the apps or environments.",
    ),
    Rule(
        "base-unpinned",
        "warning",
        "anywhere",
        "Remote base without a fixed version",
        "A kustomization uses a remote base without `?ref=`, or with a branch.",
        _MOVES,
        "Add `?ref=` with a tag or a commit.",
    ),
    Rule(
        "build-failed",
        "error",
        "never",
        "Overlay or chart that can't be built",
        "kustomize or helm can't render the folder.",
        f"Argo CD can't render it either. {_HIDDEN}",
        "Correct what the message says; `kustomize build FOLDER` or `helm template FOLDER` repeats "
        "it.",
    ),
    Rule(
        "chart-unpinned",
        "warning",
        "anywhere",
        "Chart without an exact version",
        "A Helm chart is named without a version or with a range of versions.",
        _MOVES,
        "Name the exact version, such as `1.2.3`.",
    ),
    Rule(
        "check-failed",
        "error",
        "never",
        "Check that could not finish",
        "A rule failed on a file of unexpected structure, or timed out.",
        _HIDDEN,
        "Correct the file that the message names. If it is valid, report a bug.",
    ),
    Rule(
        "cluster-kind-not-allowed",
        "error",
        "never",
        "Cluster-scoped kind that the app may not create",
        "An app contains a cluster-scoped object, such as a ClusterRole, that its AppProject "
        "rejects.",
        f"Argo CD refuses the whole sync. {_ONE_PROJECT}",
        "Add the kind to `clusterKinds` of the app in ucp.yaml, or remove the object.",
    ),
    Rule(
        "environment-duplicate",
        "error",
        "topology",
        "Environment listed twice",
        "`environments.yaml` has two entries with one name.",
        "Promotion of every app reads this list and can't tell which entry counts.",
        "Remove one of the entries.",
    ),
    Rule(
        "environment-unknown",
        "error",
        "anywhere",
        "Overlay of an environment that does not exist",
        "An app has an overlay of an environment that `environments.yaml` does not list, or "
        "`clusters/` one that is not in the list of its `kustomization.yaml`.",
        "The app is never deployed, the cluster never registered.",
        "Correct the name, or add the environment to the list (`ucp env add` does all of it).",
    ),
    Rule(
        "environment-unknown-source",
        "error",
        "topology",
        "Promotion from an environment that does not exist",
        "`promotesFrom` in `environments.yaml` names no environment of the list.",
        "Nothing can be promoted to that environment.",
        "Correct `promotesFrom`.",
    ),
    Rule(
        "environment-unlisted",
        "warning",
        "anywhere",
        "Cluster of an environment that is in no list",
        "`clusters/` of the core repository has an overlay that its `kustomization.yaml` lists "
        "neither under `resources` nor among the environments.",
        "The cluster is never created.",
        "Add the overlay to both lists, or delete it.",
    ),
    Rule(
        "field-invalid",
        "error",
        "anywhere",
        "Field with a wrong value",
        "A required field is missing, a value has another type or is not one of those allowed, or "
        "a name, a label or an amount of data is invalid.",
        _DROPPED,
        "Correct the field as the message says; `kubectl explain KIND.FIELD` describes it.",
    ),
    Rule(
        "field-unknown",
        "error",
        "anywhere",
        "Unknown field",
        "An object has a field that its kind does not have in the Kubernetes version in use.",
        _DROPPED,
        "Correct the spelling or the indentation, or remove the field.",
    ),
    Rule(
        "host-path-duplicate",
        "error",
        "topology",
        "Duplicate host and path",
        "Two Ingresses or routes of an environment claim the same host and path, and may get it "
        "from the same ingress class, Gateway listener or entry point.",
        "Which of them gets the traffic depends on the ingress controller.",
        "Change the host or the path of one of them.",
    ),
    Rule(
        "host-taken",
        "error",
        "topology",
        "Host of another app",
        "An app claims a host that another app on the environment already claims.",
        "It takes over traffic of the other app.",
        "Choose another host. Where two apps share a host on purpose, ignore it in ucp.yaml.",
    ),
    Rule(
        "image-invalid",
        "error",
        "anywhere",
        "Image whose name is not valid",
        "A container's image is not a valid reference: mostly it has a placeholder such as "
        "`${TAG}`, which Argo CD does not replace.",
        "The API server accepts it, but the kubelet never starts the container "
        "(`InvalidImageName`).",
        "Write the image's name in lower case with its tag, `example.org/team/web:1.2.3`.",
    ),
    Rule(
        "image-moving-tag",
        "warning",
        "anywhere",
        "Image with a tag that moves",
        "A container's image has a tag such as `latest`, `main` or `stable`.",
        _MOVES,
        "Use the tag of a version or a digest (`@sha256:…`), and `ucp promote` to change it.",
    ),
    Rule(
        "image-untagged",
        "warning",
        "anywhere",
        "Image without a tag",
        "A container's image has neither tag nor digest, which means `latest`.",
        _MOVES,
        "Add the tag of a version or a digest (`@sha256:…`).",
    ),
    Rule(
        "kind-unknown",
        "error",
        "anywhere",
        "Kind that does not exist",
        "An object of one of Kubernetes' own API groups has a version or kind that does not exist "
        "in the Kubernetes version in use.",
        "The API server refuses the object.",
        "Correct `apiVersion` and `kind`; `kubectl api-resources` lists them.",
    ),
    Rule(
        "list-invalid",
        "error",
        "never",
        "Value that must be a list",
        "A kustomization or `environments.yaml` has something else where a list belongs.",
        _HIDDEN,
        "Write the entries as a list (lines that begin with `- `).",
    ),
    Rule(
        "namespace-not-allowed",
        "error",
        "never",
        "Namespace that the app may not write to",
        "An app contains an object in a namespace that its AppProject does not allow.",
        f"Argo CD refuses the whole sync. {_ONE_PROJECT}",
        "Add the namespace to `namespaces` of the app in ucp.yaml, let the app run there "
        "(`namespace`), or remove `metadata.namespace`.",
    ),
    Rule(
        "namespace-reserved",
        "error",
        "never",
        "App name reserved by the platform",
        "An app's name is a namespace of Kubernetes or of the platform.",
        "The app would write where guard rails and other apps' rights do not apply.",
        "Rename the app.",
    ),
    Rule(
        "namespace-taken",
        "error",
        "never",
        "Namespace of another app",
        "An app that is not in ucp.yaml writes to a namespace of an app that is.",
        f"It could read and overwrite the other app's objects. {_ONE_PROJECT}",
        "Use a namespace of its own, or add the app to ucp.yaml with `namespaces`.",
    ),
    Rule(
        "no-added-capabilities",
        "warning",
        "anywhere",
        "Capability beyond the baseline",
        "A container adds a capability that the Pod Security Standards' baseline does not have. "
        f"{_RAIL}",
        "With some of them a container can take over its node.",
        f"Remove it from `securityContext.capabilities.add`. {_OFF}",
    ),
    Rule(
        "no-host-access",
        "warning",
        "anywhere",
        "Pod with access to its node",
        f"A container is privileged, or a pod has its node's network, processes or files. {_RAIL}",
        "Whoever compromises the pod controls the node.",
        f"Remove the field that the message names. {_OFF}",
    ),
    Rule(
        "no-host-ports",
        "warning",
        "anywhere",
        "Port of the node",
        f"A container has a `hostPort`. {_RAIL}",
        "It bypasses Services, and only one pod per node can use it.",
        f"Remove `hostPort` and use a Service. {_OFF}",
    ),
    Rule(
        "no-lasting-tokens",
        "warning",
        "anywhere",
        "Token that never expires",
        f"A Secret requests a ServiceAccount token that does not expire. {_RAIL}",
        "Whoever reads it keeps its permissions forever.",
        "Use `kubectl create token` or a projected volume.",
    ),
    Rule(
        "no-remote-probes",
        "warning",
        "anywhere",
        "Probe that depends on another host",
        "A probe has a `host` that is not its own pod, or runs a command with the URL of another "
        f"host. {_RAIL}",
        "When that host fails, Kubernetes takes this app down as well.",
        "Remove `host`, and let the probe target its own container only.",
    ),
    Rule(
        "no-taken-hosts",
        "warning",
        "anywhere",
        "Host that ucp.yaml gives to another app",
        "A route has a host of another app of ucp.yaml, or an Ingress has a host and path twice. "
        f"{_RAIL}",
        "Which of them gets the traffic depends on the ingress controller.",
        "Change the host. Where two apps share one on purpose, ignore `host-taken` of this app "
        "in ucp.yaml.",
    ),
    Rule(
        "node-port-taken",
        "error",
        "topology",
        "Node port of another Service",
        "Two Services of an environment have the same `nodePort` and protocol.",
        "The API server refuses the second one, so its Application does not become Synced.",
        "Change the `nodePort` of one of them, or remove it: the API server then allocates one.",
    ),
    Rule(
        "object-duplicate",
        "error",
        "anywhere",
        "Object twice",
        "An overlay has two objects of one kind, name and namespace, other than equal CRDs.",
        "Argo CD applies one of them, and which one is not defined.",
        "Remove or rename one of them.",
    ),
    Rule(
        "object-invalid",
        "error",
        "never",
        "Malformed object",
        "`metadata`, labels or annotations are not mappings, or kind and apiVersion are not text.",
        _HIDDEN,
        "Correct the object as the message says.",
    ),
    Rule(
        "object-repeated",
        "warning",
        "anywhere",
        "Object twice in a directory",
        "A folder that Argo CD reads without kustomize has two objects of one kind, name and "
        "namespace, such as variants of one manifest.",
        "Argo CD applies one of them, and which one is not defined.",
        "Remove or rename one of them, or put each variant into a folder of its own.",
    ),
    Rule(
        "overlay-without-kustomization",
        "error",
        "anywhere",
        "Overlay that does not include its base",
        "An overlay has files, but no `kustomization.yaml`, although its app has a base.",
        "Argo CD applies the files as they are: it deletes what the base creates, and takes "
        "patches for whole objects.",
        "Restore the `kustomization.yaml`, or delete the base if no overlay uses it any more.",
    ),
    Rule(
        "package-unpinned",
        "warning",
        "anywhere",
        "Crossplane package without a fixed version",
        "A Crossplane package has no tag, or one that moves.",
        _MOVES,
        "Add the tag of a version or a digest (`@sha256:…`).",
    ),
    Rule(
        "pipeline-local-repository",
        "warning",
        "anywhere",
        "Pipeline that promotes to a repository on one machine",
        "A release pipeline (`ci` in `ucp.yaml`) promotes to a `file://` repository.",
        "Only a runner on the machine of the workspace reaches it; elsewhere the job fails.",
        "Use repositories on a git host: `git: {provider: url}` with `core` and `apps`.",
    ),
    Rule(
        "reference-missing-account",
        "warning",
        "anywhere",
        "ServiceAccount that does not exist",
        "A pod uses a ServiceAccount that neither the overlay nor another app has.",
        "Kubernetes creates no pod until the account exists.",
        "Correct the name, or add the ServiceAccount. Ignore it if something else, such as eksctl, "
        "creates the account.",
    ),
    Rule(
        "reference-missing-key",
        "error",
        "anywhere",
        "Key that a Secret or ConfigMap does not have",
        "A container reads a key of a Secret or ConfigMap that has other keys.",
        _DANGLING,
        "Correct the key, or add it to the object or the mirror.",
    ),
    Rule(
        "reference-missing-object",
        "error",
        "anywhere",
        "Secret or ConfigMap that does not exist",
        "A pod reads a Secret or ConfigMap that neither the overlay nor a mirror provides.",
        _DANGLING,
        "Add it, mirror it (`ucp mirror add`), or say that something else creates it: by "
        "`fromOutside: [Secret/NAME]` of the app in ucp.yaml, or the annotation "
        "`k8s-ucp.io/from-outside: Secret/NAME` of the workload.",
    ),
    Rule(
        "reference-missing-port",
        "error",
        "anywhere",
        "Port that a Service does not have",
        "An Ingress or route references a port that the Service does not have.",
        _DANGLING,
        "Correct the port in the route, or add it to the Service.",
    ),
    Rule(
        "reference-missing-service",
        "error",
        "anywhere",
        "Service that does not exist",
        "An Ingress or route references a Service that neither the overlay nor another app in the "
        "namespace has.",
        _DANGLING,
        "Correct the name, or add the Service.",
    ),
    Rule(
        "reference-missing-target",
        "error",
        "anywhere",
        "Autoscaler without a target",
        "A HorizontalPodAutoscaler names a workload that neither the overlay nor another app in "
        "the namespace has.",
        "Nothing is scaled.",
        "Correct `spec.scaleTargetRef`.",
    ),
    Rule(
        "required-requests",
        "warning",
        "anywhere",
        "Container without requests",
        f"A container or sidecar has no request and no limit of cpu or of memory. {_RAIL}",
        "It is scheduled as if it needed nothing, and is the first to be killed when memory runs "
        "out.",
        "Set `resources.requests` of cpu and memory.",
    ),
    Rule(
        "route-without-gateway",
        "error",
        "anywhere",
        "Route without a Gateway",
        "A route of the Gateway API has no `parentRefs`.",
        "No Gateway serves it, so it gets no traffic.",
        "Add `spec.parentRefs`.",
    ),
    Rule(
        "selector-without-pods",
        "error",
        "anywhere",
        "Service that selects no pod",
        "A Service selects labels that no workload of the overlay, or of another app in the "
        "namespace, gives its pods.",
        "The Service has no endpoints.",
        "Correct the selector or the labels. An overlay with a role that may create pods has an "
        "operator, and is left alone.",
    ),
    Rule(
        "service-account-conflict",
        "error",
        "anywhere",
        "Two names for the ServiceAccount of a pod",
        "A pod has different names in `serviceAccountName` and in the deprecated `serviceAccount`.",
        "Kubernetes uses the first for both, so the object always differs from git: Argo CD "
        "reports it "
        "as OutOfSync forever.",
        "Remove `serviceAccount`.",
    ),
    Rule(
        "symlink-out-of-bounds",
        "error",
        "topology",
        "Symbolic link that points outside of the repository",
        "A symbolic link, in any folder, has an absolute target or one outside of the repository.",
        "Argo CD renders no folder of a repository with such a link: no app gets new commits.",
        "Delete the link, or commit a copy of the file.",
    ),
    Rule(
        "topology-invalid",
        "error",
        "never",
        "ucp.yaml that is not valid",
        "The ucp.yaml of the core repository is not a valid topology.",
        "`ucp start` refuses it, and what it allows apps is unknown to the check.",
        "Correct it as the message says.",
    ),
    Rule(
        "yaml-invalid",
        "error",
        "never",
        "File that is not valid YAML",
        "A YAML file can't be read.",
        _HIDDEN,
        "Correct the file. A template that is not YAML needs another extension than `.yaml`.",
    ),
)

RULES: Mapping[str, Rule] = {each.id: each for each in _ALL}
