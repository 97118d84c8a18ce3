"""Argo Rollouts for embedded environments: its kinds on the app cluster, its controller here."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.components import argo_rollouts
from k8s_ucp.components.argo_rollouts import ArgoRollouts
from k8s_ucp.components.manifests import apply_all, read, wait_served
from k8s_ucp.context import Context, await_ready
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.kube import Kube
from k8s_ucp.providers import PROVIDERS
from k8s_ucp.topology import Topology


@dataclass(frozen=True)
class StartRollouts:
    id: str = "start-rollouts"
    title: str = "Start Argo Rollouts"

    def run(self, context: Context, report: Report) -> None:
        for environment in with_rollouts(context.topology):
            report(environment)
            kubeconfig = context.state.kubeconfig(context.topology.app_cluster(environment))
            kinds = read(argo_rollouts.engine_manifests(context.toolbox.module(argo_rollouts.NAME)))
            kube = Kube.from_file(kubeconfig)
            try:
                apply_all(kube, kinds)
                wait_served(kube, kinds)
            finally:
                kube.close()
            rollouts = ArgoRollouts(context.host, environment, kubeconfig)
            context.placement.start(rollouts.programs())
            await_ready(context, rollouts.name, rollouts.ready)


def with_rollouts(topology: Topology) -> list[str]:
    """Running environments whose clusters play their pods, where the add-on is on."""
    if not topology.spec.addons.argo_rollouts:
        return []
    return [
        each.name
        for each in topology.spec.environments
        if PROVIDERS[each.cluster.provider].simulated and each.state == "running"
    ]
