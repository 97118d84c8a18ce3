"""IAM: roles and their policies."""

from __future__ import annotations

import json
from typing import Any

from k8s_ucp.aws.kind import AwsKind, Describe, by_name, kind_of


def _same_policy(declared: Any, found: Any) -> bool:
    """Whether they are equal as JSON, regardless of formatting."""
    try:
        return bool(json.loads(declared) == found)
    except (TypeError, ValueError):
        # The cloud reports what is wrong with it at its creation.
        return True


ROLE = AwsKind(
    kind_of("iam", "Role", "roles"),
    "iam",
    create="CreateRole",
    describe=Describe("GetRole", by_name("RoleName"), "Role"),
    delete="DeleteRole",
    delete_ask=by_name("RoleName"),
    fields={"assumeRolePolicy": "AssumeRolePolicyDocument", "description": "Description"},
    more=by_name("RoleName"),
    differs=lambda declared, found: (
        not _same_policy(
            declared.parameters.get("assumeRolePolicy"), found.get("AssumeRolePolicyDocument")
        )
    ),
    update="UpdateAssumeRolePolicy",
    update_ask=lambda declared: {
        "RoleName": declared.name,
        "PolicyDocument": declared.parameters.get("assumeRolePolicy"),
    },
    at_provider={"arn": "Arn"},
    tag_list="Tags",
)
ROLE_POLICY_ATTACHMENT = AwsKind(
    kind_of("iam", "RolePolicyAttachment", "rolepolicyattachments"),
    "iam",
    create="AttachRolePolicy",
    describe=Describe(
        "ListAttachedRolePolicies",
        lambda declared: {"RoleName": declared.parameters.get("role")},
        "AttachedPolicies",
        lambda declared, found: found.get("PolicyArn") == declared.parameters.get("policyArn"),
    ),
    delete="DetachRolePolicy",
    delete_ask=lambda declared: {
        "RoleName": declared.parameters.get("role"),
        "PolicyArn": declared.parameters.get("policyArn"),
    },
    fields={"role": "RoleName", "policyArn": "PolicyArn"},
    references={"role": "Role"},
)

KINDS = (
    ROLE,
    ROLE_POLICY_ATTACHMENT,
)
