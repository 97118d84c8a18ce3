"""What teams may do: the kinds in their repositories, and their namespaces. Pure.

Two mechanisms enforce the same rules: AppProjects, and an admission policy on every cluster, which
recognizes a team's objects by Argo CD's tracking annotation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from k8s_ucp.names import GROUP, TRACKING_ID

if TYPE_CHECKING:
    from k8s_ucp.topology import Team, Topology

CLAIMS = {"Postgres": "postgreses", "Compute": "computes"}
"""Kinds of claims with their plurals; other kinds of that group are the platform's."""

APP_KINDS = (
    ("", ("ConfigMap", "PersistentVolumeClaim", "Service", "ServiceAccount")),
    ("apps", ("Deployment", "StatefulSet")),
    ("argoproj.io", ("Rollout",)),
    ("autoscaling", ("HorizontalPodAutoscaler",)),
    ("batch", ("CronJob", "Job")),
    ("gateway.networking.k8s.io", ("HTTPRoute",)),
    ("networking.k8s.io", ("Ingress", "NetworkPolicy")),
    ("policy", ("PodDisruptionBudget",)),
)
"""(API group, kinds) that teams may use for apps: no RBAC, quotas, Secrets or bare Pods."""


def team_paths(path: str, topology: Topology) -> Iterator[tuple[str, dict[str, Any]]]:
    """Files of the core repository's folder `teams`, each with its values."""
    if "{team}" not in path:
        if topology.spec.teams:
            yield path, {"teams": topology.spec.teams}
        return
    for team in topology.spec.teams:
        yield path.replace("{team}", team.name), team_values(topology, team)


def team_values(topology: Topology, team: Team) -> dict[str, Any]:
    """Template values for the files of one team."""
    domain = topology.spec.domain.replace(".", "\\.")
    return {
        "team": team,
        "claims": CLAIMS,
        "claim_group": GROUP,
        "claim_kinds": _list(f"{GROUP}/{each}" for each in CLAIMS),
        "app_group_kinds": APP_KINDS,
        "app_kinds": _list(f"{group}/{kind}" for group, kinds in APP_KINDS for kind in kinds),
        "team_condition": _condition(team.namespace),
        "hosts": rf"^[a-z0-9-]+\.{team.name}\.[a-z0-9-]+\.{domain}$",
    }


def _list(words: Iterable[str]) -> str:
    """A list as a CEL expression."""
    return json.dumps(list(words))


def _condition(namespace: str) -> str:
    """CEL condition: Argo CD applies an object for the team, or a member of the team does.

    Argo CD's tracking annotation contains Application, group/kind and namespace/name. Controllers
    copy a Deployment's annotation to its ReplicaSets and a Service's to its EndpointSlices, where
    it names another kind than the object's.
    """
    mark = f"object.metadata.annotations['{TRACKING_ID}']"
    return (
        "(has(object.metadata) && has(object.metadata.annotations) "
        f"&& '{TRACKING_ID}' in object.metadata.annotations "
        f"&& {mark}.startsWith('{namespace}.') "
        f"&& {mark}.split(':')[1] == request.kind.group + '/' + request.kind.kind) "
        f"|| (has(request.userInfo.groups) && '{namespace}' in request.userInfo.groups)"
    )
