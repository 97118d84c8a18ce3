"""ApplicationSets whose Applications Argo CD refused: finding those that a refresh may help. Pure.

One commit brings the AppProject of a new app and the ApplicationSet that refers to it, and two
Applications deploy them. If the set is first, its controller rejects the new Applications
("references project … which does not exist") and doesn't watch AppProjects: it tries again with its
next look at git, up to half a minute later, or minutes with a remote repository.
"""

from __future__ import annotations

from k8s_ucp import names
from k8s_ucp.kube import Object, conditions_of, labels_of
from k8s_ucp.timestamps import parse_stamp

APPLICATION = "applications"
"""The Application that deploys the ApplicationSets; it is Degraded while one has an error."""
SETS = ("applications", "applications-protected")
RECENT = 30.0
"""How long after an error, in seconds, refreshes may help: the AppProject is synced meanwhile."""
_REASON = "ApplicationValidationError"


def only_degraded(application: Object) -> Object | None:
    """For the informer: the identity of a degraded Application, or nothing."""
    health = (application.get("status") or {}).get("health") or {}
    return {"metadata": application["metadata"]} if health.get("status") == "Degraded" else None


def needs_refresh(application_set: Object, topology: str, now: float) -> bool:
    """Whether this topology's set has rejected an Application a moment ago. now: epoch seconds."""
    labels = labels_of(application_set["spec"]["template"])
    return labels.get(names.TOPOLOGY) == topology and any(
        each.get("type") == "ErrorOccurred"
        and each.get("status") == "True"
        and each.get("reason") == _REASON
        and now - (parse_stamp(each.get("lastTransitionTime")) or 0.0) < RECENT
        for each in conditions_of(application_set)
    )
