"""The parts of a topology that are upgraded one at a time, with their versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from k8s_ucp.cluster_provider import UpgradingProvider
from k8s_ucp.clusters import local
from k8s_ucp.components import argo_rollouts, argocd, crossplane
from k8s_ucp.context import StartContext
from k8s_ucp.engine.journal import RunRecord
from k8s_ucp.engine.pipeline import StepState
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.steps.upgrading.interrupted import PartialUpgrade, numbers
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.kept_versions import read_kept
from k8s_ucp.tools.toolbox import Toolbox, version_of
from k8s_ucp.topology import Topology
from k8s_ucp.topology.placement import in_pods, with_rollouts

CORE = "core"
HEALTHY, AIMED, BACK = "well", "aimed", "back"
"""Keys in the journal: what was healthy before, the versions that the run aims at, and the part
that it has rolled back."""
UNFINISHED = {StepState.RUNNING, StepState.FAILED, StepState.CANCELLED}
CLUSTER_TOOLS = ("etcd", "kubernetes", "kwok")


@dataclass(frozen=True)
class UpgradePart:
    """Programs that are upgraded together."""

    name: str
    """As typed: a component, `core`, or an environment."""
    title: str
    tools: tuple[str, ...]
    cluster: str = ""
    """Name of the cluster, if the programs are its control plane."""
    provider: str = ""

    @property
    def what(self) -> str:
        """Its name in plans."""
        return f"cluster {self.cluster}" if self.cluster else f"component {self.name}"


@dataclass(frozen=True)
class Move:
    """Versions of one tool, without a leading v."""

    tool: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.tool} {self.before} to {self.after}"


def parts(topology: Topology) -> list[UpgradePart]:
    """In the order of upgrades: the core first, environments in the order of promotion."""
    if in_pods(topology):
        return []
    found = []
    if PROVIDERS[topology.spec.core.provider].pinned_version:
        found.append(_cluster(CORE, topology.core_cluster, topology.spec.core.provider))
    found += [
        UpgradePart(crossplane.NAME, "Crossplane", (crossplane.NAME,)),
        UpgradePart(argocd.NAME, "Argo CD", (argocd.NAME, "helm", "kustomize")),
    ]
    found += [
        _cluster(each.name, topology.app_cluster(each.name), each.cluster.provider)
        for each in topology.spec.environments
        if PROVIDERS[each.cluster.provider].pinned_version and each.state == "running"
    ]
    if with_rollouts(topology):
        found.append(UpgradePart(argo_rollouts.NAME, "Argo Rollouts", (argo_rollouts.NAME,)))
    return found


def chosen(context: StartContext) -> list[UpgradePart]:
    """The parts that the run is about."""
    found, names = parts(context.topology), context.upgrade.parts
    return [each for each in found if not names or each.name in names]


def _cluster(name: str, cluster: str, provider: str) -> UpgradePart:
    return UpgradePart(name, f"the cluster {cluster}", CLUSTER_TOOLS, cluster, provider)


def not_upgraded(topology: Topology) -> dict[str, str]:
    """Clusters that ucp doesn't upgrade, with what to do instead."""
    found = {}
    for each in topology.spec.environments:
        info = PROVIDERS[each.cluster.provider]
        if info.managed:
            found[each.name] = (
                "its cloud upgrades it: set cluster.version in ucp.yaml, then ucp start"
            )
        elif info.adopts:
            found[each.name] = "not created by ucp: upgrade it yourself"
        elif not info.pinned_version:
            found[each.name] = f"recreate its nodes: ucp recreate --env {each.name}"
    return found


def moves(context: StartContext, part: UpgradePart) -> list[Move]:
    """Version changes of an upgrade of a part, from what it really runs."""
    running = entries(context, part)
    found = []
    for tool in part.tools:
        if tool in running:
            before, after = version_of(tool, running[tool]), CATALOGUE[tool].version
            if numbers(before) < numbers(after):
                found.append(Move(tool, before, after))
    return found


def is_current(context: StartContext, part: UpgradePart) -> bool:
    """Whether a part runs the versions of this ucp release, and no newer ones."""
    return target_versions(part).items() >= versions(entries(context, part)).items()


def entries(context: StartContext, part: UpgradePart) -> Mapping[str, str]:
    """{tool: entry in the cache} of what a part runs."""
    if part.cluster:
        return provider_of(context, part).entries(part.cluster)
    return context.toolbox.entries


def provider_of(
    context: StartContext, part: UpgradePart, toolbox: Toolbox | None = None
) -> UpgradingProvider:
    """The provider of a part that is a cluster, with these programs."""
    made = local.make(part.provider, context.workspace, context.topology, toolbox)
    return cast(UpgradingProvider, made)


def partial_upgrade(
    context: StartContext, part: UpgradePart, run: RunRecord | None
) -> PartialUpgrade | None:
    """State that an interrupted upgrade has left of a part. run: that upgrade, if known.

    Raises UcpError.
    """
    if part.cluster:
        found = provider_of(context, part).interrupted_upgrade(part.cluster)
        if found is None:
            return None
        before, now = versions(found.before), versions(found.now)
        return PartialUpgrade(before, now, replaced=found.replaced, stays=True)
    if run is None or run.data.get(BACK) == part.name:
        return None
    states = {each.get("id"): each["state"] for each in run.steps}
    resumed = states.get(f"resume-{part.name}", StepState.DONE) != StepState.DONE
    if not resumed and states.get(f"upgrade-{part.name}") not in UNFINISHED:
        return None
    kept = versions(read_kept(context.topology, context.state))
    aimed: Mapping[str, str] = run.data.get(AIMED) or {}
    before = {tool: kept[tool] for tool in part.tools if tool in kept}
    now = {tool: aimed.get(tool, version) for tool, version in before.items()}
    return PartialUpgrade(before, now, replaced=True, stays=False)


def target_versions(part: UpgradePart) -> dict[str, str]:
    """Versions to which this ucp upgrades a part, by tool."""
    return {tool: CATALOGUE[tool].version for tool in part.tools}


def versions(entries: Mapping[str, str]) -> dict[str, str]:
    """{tool: version} from {tool: entry in the cache}."""
    return {tool: version_of(tool, entry) for tool, entry in entries.items()}
