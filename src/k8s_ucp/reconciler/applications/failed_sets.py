"""ApplicationSets with an error: finding those that a refresh may help. Pure.

One commit brings the AppProject of a new app and the ApplicationSet that refers to it, and two
Applications deploy them. If the set is first, its controller rejects the new Applications
("references project … which does not exist") and doesn't watch AppProjects: it tries again with its
next look at git, up to half a minute later, or minutes with a remote repository.

After a reboot of the core, Argo CD's repo-server or the git server may start later than the
controller of the ApplicationSets, which tries again after three minutes.
"""

from __future__ import annotations

import re

from k8s_ucp import names
from k8s_ucp.kube import Object, labels_of
from k8s_ucp.reconciler.runtime.conditions import first_of
from k8s_ucp.timestamps import parse_stamp

APPLICATION = "applications"
"""The Application that deploys the ApplicationSets; it is Degraded while one has an error."""
SETS = ("applications", "applications-protected")
_REJECTED = "ApplicationValidationError"
_NOT_GENERATED = "ApplicationGenerationFromParamsError"
_REASONS = {_REJECTED: (30.0, 1.0), _NOT_GENERATED: (600.0, 5.0)}
"""How long after an error, in seconds, refreshes may help, and the pause between two of them: the
AppProject is synced meanwhile, a server starts."""
_NO_RESPONSE = re.compile(
    r"code\s=\s(?:Unavailable|DeadlineExceeded)|connection\sre(?:fused|set)|no\ssuch\shost|i/o\stimeout"
)


def only_degraded(application: Object) -> Object | None:
    """For the informer: the identity of a degraded Application, or nothing."""
    health = (application.get("status") or {}).get("health") or {}
    return {"metadata": application["metadata"]} if health.get("status") == "Degraded" else None


def refresh_pause(application_set: Object, topology: str, now: float) -> float | None:
    """Seconds until the next look at this topology's set, if a refresh may help it; else None.

    now: epoch seconds.
    """
    if labels_of(application_set["spec"]["template"]).get(names.TOPOLOGY) != topology:
        return None
    error = first_of(application_set, ("ErrorOccurred",), "True") or {}
    reason, message = error.get("reason") or "", error.get("message") or ""
    if reason == _NOT_GENERATED and not _NO_RESPONSE.search(message):
        return None
    recent, pause = _REASONS.get(reason, (0.0, 0.0))
    since = parse_stamp(error.get("lastTransitionTime")) or 0.0
    return pause if now - since < recent else None
