"""The settings of an adopted Argo CD that ucp depends on, and access to it.

Nothing here writes: settings that have to change are reported with the command that changes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from k8s_ucp.components.argocd import NAME, NAMESPACE
from k8s_ucp.components.component import HEALTHY, Health, get_page
from k8s_ucp.gitops.render.values.permissions import PREFIX, SET_PROJECT
from k8s_ucp.kube import Object

SETTINGS, PARAMETERS = "argocd-cm", "argocd-cmd-params-cm"
"""Argo CD's ConfigMaps."""
TRACKING = "application.resourceTrackingMethod"
_BY_ANNOTATION = ("annotation", "annotation+label")
_IN_CLUSTER = "cluster.inClusterEnabled"
_POLICY = "applicationsetcontroller.policy"
_OVERRIDE = "applicationsetcontroller.enable.policy.override"
FORMER_PROJECT = "application-sets"
"""Project of the ApplicationSets in older topologies, which had them in the app repository."""
PROJECTS = ("infrastructure", "applications", FORMER_PROJECT)
"""ucp's AppProjects."""
HEALTH = tuple(
    f"resource.customizations.health.{each}"
    for each in ("argoproj.io_Application", "k8s-ucp.io_LocalCluster", "k8s-ucp.io_Syncer")
)
_POLL = "timeout.reconciliation"
DEFAULT_POLL = "120s"

Settings = Mapping[str, str]


@dataclass(frozen=True)
class Unfit:
    """A setting that is incompatible with our Applications, and the value that fixes it."""

    message: str
    config_map: str
    setting: Mapping[str, str]

    def command(self, kubectl: str) -> str:
        """The command that fixes the setting. kubectl: with the options for that cluster."""
        change = json.dumps({"data": dict(self.setting)}, separators=(",", ":"))
        restart = " (and restart its workloads)" if self.config_map == PARAMETERS else ""
        return (
            f"{kubectl} -n {NAMESPACE} patch configmap {self.config_map} --type merge "
            f"-p '{change}'{restart}"
        )


def unfit(
    settings: Settings, parameters: Settings, version: str, *, protects: bool
) -> Iterator[Unfit]:
    """Settings that are incompatible with our Applications.

    version: such as v3.5.7, or empty. protects: some environment has deletion protection.
    """
    yield from untracked(settings, version)
    if settings.get(_IN_CLUSTER) == "false":
        yield Unfit("its in-cluster access is disabled", SETTINGS, {_IN_CLUSTER: "true"})
    policy = parameters.get(_POLICY) or ""
    # Our ApplicationSets use `sync` too, except those of protected environments.
    ignored = policy and parameters.get(_OVERRIDE) != "true"
    if ignored and (policy != "sync" or protects):
        yield Unfit(
            f"its global ApplicationSet policy {policy} overrides those of "
            "ApplicationSets: removed apps would be kept, or protected ones deleted",
            PARAMETERS,
            {_OVERRIDE: "true"},
        )


def untracked(settings: Settings, version: str) -> Iterator[Unfit]:
    """Tracking by label only would make ucp's objects indistinguishable from others'."""
    default = "label" if version[:3] in ("v0.", "v1.", "v2.") else "annotation"
    method = settings.get(TRACKING) or default
    if method not in _BY_ANNOTATION:
        yield Unfit(
            f"its resource tracking method {method} does not allow `ucp stop` to "
            "identify ucp's objects",
            SETTINGS,
            {TRACKING: "annotation"},
        )


def lacking(settings: Settings, poll: str) -> list[str]:
    """Effects of missing settings that ucp can tolerate. poll: the topology's spec.git.poll."""
    found = []
    unknown = [each.rpartition("_")[2] for each in HEALTH if each not in settings]
    if unknown:
        found.append(
            f"it has no health checks for {', '.join(unknown)}, which count as Healthy "
            "as soon as they exist"
        )
    interval = settings.get(_POLL) or DEFAULT_POLL
    if interval != poll:
        found.append(f"it polls for commits every {interval}, regardless of spec.git.poll ({poll})")
    return found


def is_ours(project: str) -> bool:
    """Whether a project is from the core repository; its ApplicationSets may template the name."""
    return project in PROJECTS or project.startswith((PREFIX, SET_PROJECT))


def of_ours(items: Iterable[Object], adopt: Iterable[str]) -> list[Object]:
    """Applications or ApplicationSets that concern ucp: all, or those in our projects if adopted.

    adopt: the adopted components.
    """
    if NAME not in adopt:
        return list(items)
    return [each for each in items if is_ours(project_of(each))]


def sets_for_all_clusters(items: Iterable[Object]) -> list[str]:
    """Names of others' ApplicationSets with a cluster generator without a selector.

    They generate Applications for every registered cluster, so for ours too.
    """
    return sorted(
        str(each["metadata"]["name"])
        for each in items
        if not is_ours(project_of(each)) and _takes_all((each["spec"]).get("generators"))
    )


def _takes_all(generators: object) -> bool:
    for each in generators if isinstance(generators, list) else ():
        if not isinstance(each, dict):
            continue
        clusters = each.get("clusters")
        if isinstance(clusters, dict) and not any((clusters.get("selector") or {}).values()):
            return True
        if any(
            _takes_all((each.get(kind) or {}).get("generators")) for kind in ("matrix", "merge")
        ):
            return True
    return False


def project_of(item: Object) -> str:
    """The project of an Application, or of those that an ApplicationSet generates."""
    spec = item["spec"]
    return str(((spec.get("template") or {}).get("spec") or spec).get("project", ""))


def scheme_and_health(port: int) -> tuple[str, Health]:
    """(http or https, health) of Argo CD's server behind a port of this machine.

    It serves TLS by default, and redirects plain HTTP to it.
    """
    page = get_page(port, "/healthz")
    if isinstance(page, str):
        return "http", Health(False, page)
    if page.status == 200:
        return "http", HEALTHY
    if 300 <= page.status < 400 and page.location.startswith("https:"):
        return "https", HEALTHY
    return "http", Health(False, str(page.status))
