"""The fence on app clusters: keeps apps out of the platform's namespaces. Pure.

Argo CD is admin of an app cluster for platform and apps alike, and its projects can't express this
(decision 9). In a platform namespace, an app's Pod could use a ServiceAccount of the platform, and
with it control the cluster. The API server recognizes an object's Application by the tracking
annotation that Argo CD itself writes.

A deletion doesn't name the Application that it is for: a hook, or an object with the sync options
`Force` and `Replace`, makes Argo CD delete the object of that name first. So Argo CD may delete
there only what it created, and what controllers made of that.
"""

from __future__ import annotations

import json

from k8s_ucp import names
from k8s_ucp.kube import Object
from k8s_ucp.topology.rules.names import PLATFORM_APPLICATIONS, PLATFORM_NAMESPACES

NAME = "k8s-ucp-apps"
"""Name of the policy and of its binding."""
API = "admissionregistration.k8s.io/v1"
_ARGOCD = f"system:serviceaccount:{names.IDENTITY_NAMESPACE}:{names.ARGOCD_IDENTITY}"

# Argo CD creates an Application's namespace without the annotation, so that is allowed; an existing
# namespace can't be changed in this way.
_ITEM = "variables.item"
_PLACE = (
    f"{_ITEM}.kind == 'Namespace' && has({_ITEM}.metadata.name) ? {_ITEM}.metadata.name : "
    f"(has({_ITEM}.metadata.namespace) ? {_ITEM}.metadata.namespace : '')"
)
_APPLICATION = (
    f"has({_ITEM}.metadata.annotations) && '{names.TRACKING_ID}' in {_ITEM}.metadata.annotations ? "
    f"{_ITEM}.metadata.annotations['{names.TRACKING_ID}'].split(':')[0] : ''"
)
_OWNER, _NAMESPACE = "variables.application", "variables.place"
_DELETES = "request.operation == 'DELETE'"


def fence(environment: str) -> list[Object]:
    """The policy and its binding for the cluster of an environment.

    Applications of apps are named `<app>-<environment>`; the platform's of that form are listed.
    """
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["*"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": ["*"],
                }
            ]
        },
        "matchConditions": [
            {"name": "argocd", "expression": f"request.userInfo.username == '{_ARGOCD}'"}
        ],
        "variables": [
            {"name": name, "expression": expression}
            for name, expression in _variables(environment).items()
        ],
        "validations": [
            {
                "expression": f"{_DELETES} || !variables.platform || !variables.foreign",
                "messageExpression": (
                    f"'namespace ' + {_NAMESPACE} + ' is reserved for the platform: the "
                    f"Application \"' + {_OWNER} + '\" may not create objects in it'"
                ),
                "reason": "Forbidden",
            },
            {
                "expression": f"!({_DELETES}) || !variables.platform || variables.made",
                "messageExpression": (
                    f"'namespace ' + {_NAMESPACE} + ' is reserved for the platform: Argo CD may "
                    "not delete objects in it that it did not create'"
                ),
                "reason": "Forbidden",
            },
        ],
    }
    binding = {"policyName": NAME, "validationActions": ["Deny"]}
    return [
        _described("ValidatingAdmissionPolicy", policy),
        _described("ValidatingAdmissionPolicyBinding", binding),
    ]


def _variables(environment: str) -> dict[str, str]:
    """The policy's variables, in CEL; each may use those before it."""
    namespaces = json.dumps(sorted(PLATFORM_NAMESPACES))
    ours = json.dumps([f"{each}-{environment}" for each in sorted(PLATFORM_APPLICATIONS)])
    ending = json.dumps(f"-{environment}")
    return {
        "item": f"{_DELETES} ? oldObject : object",
        "place": _PLACE,
        "application": _APPLICATION,
        "platform": f"{_NAMESPACE} in {namespaces} || {_NAMESPACE}.startsWith('kube-')",
        "foreign": (
            f"{_OWNER} == '' ? {_ITEM}.kind != 'Namespace' : "
            f"{_OWNER}.endsWith({ending}) && !({_OWNER} in {ours})"
        ),
        "made": (
            f"{_OWNER} != '' || has({_ITEM}.metadata.ownerReferences)"
            f" || {_ITEM}.kind == 'Namespace'"
        ),
    }


def _described(kind: str, spec: Object) -> Object:
    metadata = {"name": NAME, "labels": {names.MANAGED_BY: names.OURS}}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}
