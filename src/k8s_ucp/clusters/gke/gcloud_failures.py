"""Explains gcloud's errors and what to type: one message per cause. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from k8s_ucp.errors import CommandFailed, UcpError, UsageError


class NotThere(UcpError):
    """The object does not exist."""


class Busy(UcpError):
    """Another operation on the cluster is in progress."""


class OutOfReach(UcpError):
    """Google did not respond or had an internal error: worth a retry while waiting."""


SILENT_ZONES = re.compile(r"zones? did not respond: (.+?)\. List results may be incomplete")
"""gcloud's warning about a list of clusters that lacks those of some zones."""

_NOT_FOUND = ("code=404", "was not found", "Not found: projects/", "HttpError 404")
_BUSY = ("incompatible operation", "Please wait and try again once it is done")
_CREDENTIAL = (
    "invalid_grant",
    "Invalid JWT",
    "problem refreshing",
    "do not currently have an active account",
    "does not have any valid credentials",
    "Could not read json file",
    "Failed to load credential file",
    "account not found",
)
_UNREACHABLE = (
    "Unable to find the server",
    "Failed to establish a new connection",
    "Network is unreachable",
    "Temporary failure in name resolution",
    "Connection refused",
    "Connection reset",
    "timed out",
    "UNAVAILABLE:",
    "INTERNAL:",
)
_OUT_OF_ORDER = re.compile(r"code=(?:500|502|503|429)\b")
_NO_PLACE = re.compile(r'Location "([^"]*)" does not exist')
_DISABLED = re.compile(r"\[?([a-z]+\.googleapis\.com)\]?")
_API_NAMES = {
    "Kubernetes Engine API": "container.googleapis.com",
    "Compute Engine API": "compute.googleapis.com",
    "Cloud Resource Manager API": "cloudresourcemanager.googleapis.com",
}
_DISABLED_SIGNS = ("SERVICE_DISABLED", "not enabled on project", "or it is disabled")
_FORBIDDEN = ("PERMISSION_DENIED", "does not have permission", "code=403", "HttpError 403")
_QUOTA = re.compile(r"[Ii]nsufficient \w+ quota.*|Quota '.*' exceeded.*|.*QUOTA_EXCEEDED.*")


def explain(error: CommandFailed, arguments: Sequence[str], project: str, email: str) -> UcpError:
    """The explained error. arguments: of the call, without the flags of every call."""
    text = error.output
    line = _error_line(text)
    if any(sign in text for sign in _BUSY):
        return Busy(
            f"another operation is in progress on Google Cloud: {line}",
            next="wait a minute, then try again",
        )
    if any(sign in text for sign in _DISABLED_SIGNS):
        return _disabled(text, project)
    if found := _QUOTA.search(text):
        return UcpError(
            f"insufficient quota in project {project}: {found[0].strip()}",
            next=(
                "request more quota at "
                f"https://console.cloud.google.com/iam-admin/quotas?project={project}, or "
                "set a smaller size or another region"
            ),
        )
    if any(sign in text for sign in _CREDENTIAL):
        return UcpError(
            f"Google Cloud rejected the gcp credential ({email}): {line}",
            next=(
                "gcloud iam service-accounts keys create creds/gcp.json --iam-account "
                f"{email} (the old key may have been deleted)"
            ),
        )
    if "billing" in text.lower():
        return UcpError(
            f"project {project} has no billing account: {line}",
            next=f"gcloud billing projects link {project} --billing-account ACCOUNT",
        )
    if tuple(arguments[:2]) == ("projects", "describe") and any(
        sign in text for sign in _FORBIDDEN
    ):
        return UcpError(
            f"the project {project} does not exist, or {email} has no access to it",
            next=f"gcloud projects list; then {_grant(project, email, 'roles/container.admin')}",
        )
    if any(sign in text for sign in _NOT_FOUND):
        return NotThere(line)
    if any(sign in text for sign in _FORBIDDEN):
        return UcpError(
            f"{email} lacks a permission in project {project}: {line}",
            next=f"{_grant(project, email, _role(arguments))}",
        )
    if found := _NO_PLACE.search(text):
        return UsageError(
            f"zone or region {found[1]} does not exist for project {project}",
            next="gcloud compute zones list",
        )
    if any(sign in text for sign in _UNREACHABLE) or _OUT_OF_ORDER.search(text):
        return OutOfReach(
            f"failed to reach Google Cloud: {line}",
            next="check the network (HTTPS_PROXY sets a proxy), then run the command again",
        )
    return UcpError(
        f"`gcloud {' '.join(arguments)}` failed: {line}",
        next="update gcloud: gcloud components update",
    )


def incomplete_list(zones: str, project: str) -> OutOfReach:
    """Why it is not known which clusters exist."""
    return OutOfReach(
        f"failed to list the clusters of project {project}: Google Cloud's zones {zones} did not "
        "respond",
        next="wait a few minutes, then run the command again",
    )


def _disabled(text: str, project: str) -> UcpError:
    named = next((api for name, api in _API_NAMES.items() if name in text), None)
    found = _DISABLED.search(text)
    api = named or (found[1] if found else "container.googleapis.com")
    return UcpError(
        f"the API {api} is not enabled in project {project}",
        next=f"gcloud services enable {api} --project {project}",
    )


def _grant(project: str, email: str, role: str) -> str:
    return (
        f"gcloud projects add-iam-policy-binding {project} "
        f"--member serviceAccount:{email} --role {role}"
    )


def _role(arguments: Sequence[str]) -> str:
    return "roles/compute.viewer" if arguments[0] == "compute" else "roles/container.admin"


def _error_line(text: str) -> str:
    """gcloud's ERROR line without the account suffix; the last line if there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    begin = next((index for index, line in enumerate(lines) if line.startswith("ERROR:")), None)
    if begin is None:
        return lines[-1] if lines else "no output"
    message = " ".join(lines[begin : begin + 4]).partition(" This command is authenticated as")[0]
    return re.sub(r"^ERROR: (\(gcloud\.[\w.-]+\) )?", "", message)[:500]
