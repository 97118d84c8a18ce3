"""What happens in which order. Steps without a common `after` run side by side."""

from __future__ import annotations

from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Plan, Task
from k8s_ucp.gitops.render.values.addons import leads_to_argocd
from k8s_ucp.gitops.render.values.clouds import clouds
from k8s_ucp.preflight.adoption import check_adopted
from k8s_ucp.preflight.backup_key import check_backup_key
from k8s_ucp.preflight.cloud_credentials import check_cloud_credentials
from k8s_ucp.preflight.collisions import check_collisions
from k8s_ucp.preflight.core import (
    check_git_reach,
    check_git_rights,
    check_image,
    check_nothing_there,
)
from k8s_ucp.preflight.machine import (
    check_clusters,
    check_combination,
    check_credentials,
    check_folders,
    check_limits,
    check_memory,
    check_socket,
    check_system,
    check_tools,
)
from k8s_ucp.preflight.orphans import check_orphans
from k8s_ucp.preflight.removal import check_existing_core
from k8s_ucp.preflight.versions import check_versions
from k8s_ucp.steps.backup.back_up import BackUp, BackUpBeforeStop, RestoreBackup
from k8s_ucp.steps.backup.restore_external_names import RestoreExternalNames
from k8s_ucp.steps.preparation.install_tools import InstallTools
from k8s_ucp.steps.preparation.load_images import BuildImages, LoadImages, SaveImages
from k8s_ucp.steps.preparation.publish_repositories import PublishRepositories
from k8s_ucp.steps.shutdown.remove_from_core import RemoveFromCore
from k8s_ucp.steps.shutdown.stop_clusters import StopClusters
from k8s_ucp.steps.shutdown.stop_components import CheckStopped, StopComponents
from k8s_ucp.steps.startup.apply_manifests import ApplyFoundation
from k8s_ucp.steps.startup.claim_core import ClaimCore
from k8s_ucp.steps.startup.cloud_credentials import ApplyCredentials
from k8s_ucp.steps.startup.forward_argocd import ForwardArgoCD
from k8s_ucp.steps.startup.make_app_clusters import MakeAppClusters
from k8s_ucp.steps.startup.start_argocd import StartArgoCD
from k8s_ucp.steps.startup.start_core import StartCore
from k8s_ucp.steps.startup.start_crossplane import StartCrossplane
from k8s_ucp.steps.startup.start_pods import StartPods
from k8s_ucp.steps.startup.start_reconciler import StartLocalClusters, StartReconciler
from k8s_ucp.steps.startup.start_rollouts import StartRollouts, with_rollouts
from k8s_ucp.steps.startup.start_supervisor import StartSupervisor
from k8s_ucp.steps.waiting.await_applications import AwaitApplications
from k8s_ucp.steps.waiting.await_environments import AwaitEnvironments
from k8s_ucp.steps.waiting.await_ingress import AwaitIngress
from k8s_ucp.topology import Topology
from k8s_ucp.topology.placement import can_load_images, core_is_existing, in_pods, needs_git_server

CHECKS = (
    check_combination,
    check_versions,
    check_image,
    check_git_reach,
    check_git_rights,
    check_system,
    check_folders,
    check_limits,
    check_credentials,
    check_cloud_credentials,
    check_backup_key,
    check_socket,
    check_memory,
    check_clusters,
    check_nothing_there,
    check_adopted,
    check_collisions,
    check_tools,
)
"""What a start checks before it changes anything, in this order."""


def start(topology: Topology) -> Plan[Context]:
    """From nothing, from anything half done, or from a finished start: to all apps healthy.

    We make the core cluster and push the repositories; app clusters and apps follow from git.
    """
    return start_in_pods(topology) if in_pods(topology) else start_on_host(topology)


def start_on_host(topology: Topology) -> Plan[Context]:
    """The components are processes of this machine."""
    credentials: tuple[Task[Context], ...] = ()
    rollouts: tuple[Task[Context], ...] = ()
    if clouds(topology):
        credentials = (Task(ApplyCredentials(), after=("apply-foundation",)),)
    if with_rollouts(topology):
        rollouts = (Task(StartRollouts(), after=("await-environments",)),)
    return Plan(
        "start",
        checks=CHECKS,
        tasks=(
            Task(InstallTools()),
            Task(StartCore(), after=("install-tools",)),
            Task(PublishRepositories(), after=("install-tools",)),
            Task(StartSupervisor(), after=("install-tools",)),
            Task(ApplyFoundation(), after=("start-core", "publish-repositories")),
            *credentials,
            Task(RestoreBackup(), after=("apply-foundation",)),
            Task(StartArgoCD(), after=("apply-foundation", "start-supervisor")),
            Task(StartReconciler(), after=("restore-backup", "start-supervisor")),
            Task(StartCrossplane(), after=("apply-foundation", "start-supervisor")),
            Task(AwaitEnvironments(), after=("start-reconciler",)),
            *rollouts,
            Task(AwaitApplications(), after=("await-environments", "start-argocd")),
            Task(BackUp(), after=("await-applications",)),
        ),
    )


def start_in_pods(topology: Topology) -> Plan[Context]:
    """The components are pods of the core cluster; its nodes are given images, or pull them."""
    adopt = topology.spec.core.adopt
    images: tuple[Task[Context], ...] = ()
    claim: tuple[Task[Context], ...] = ()
    if can_load_images(topology):
        images = (
            Task(BuildImages(), after=("install-tools",)),
            Task(SaveImages(), after=("build-images", "publish-repositories")),
            Task(LoadImages(), after=("start-core", "save-images")),
        )
    if core_is_existing(topology):
        claim = (Task(ClaimCore(), after=("start-core", "publish-repositories")),)
    # Argo CD brings the reconciler too: what it would make anew has to be back before.
    ready_for_pods = ("restore-backup", *(each.step.id for each in images[2:]))
    server = (
        (Task(StartPods("git-server"), after=ready_for_pods),) if needs_git_server(topology) else ()
    )
    way_in = AwaitIngress() if leads_to_argocd(topology) else ForwardArgoCD()
    return Plan(
        "start",
        checks=CHECKS,
        tasks=(
            Task(InstallTools()),
            Task(StartCore(), after=("install-tools",)),
            Task(MakeAppClusters(), after=("install-tools",)),
            Task(PublishRepositories(), after=("install-tools",)),
            *images,
            *claim,
            Task(
                ApplyFoundation(),
                after=("start-core", "publish-repositories", *(each.step.id for each in claim)),
            ),
            Task(RestoreBackup(), after=("apply-foundation",)),
            Task(StartLocalClusters(), after=("apply-foundation",)),
            *server,
            Task(StartPods("argocd", "argocd" in adopt), after=ready_for_pods),
            # Without a credential no provider makes anything: names that it had come first.
            Task(RestoreExternalNames(), after=("start-argocd",)),
            Task(ApplyCredentials(), after=("restore-external-names",)),
            Task(StartPods("reconciler"), after=ready_for_pods),
            Task(StartPods("crossplane", "crossplane" in adopt), after=ready_for_pods),
            Task(way_in, after=("start-argocd", "start-local-clusters")),
            Task(
                AwaitEnvironments(), after=("start-argocd", "start-reconciler", "make-app-clusters")
            ),
            Task(AwaitApplications(), after=("await-environments",)),
            Task(BackUp(), after=("await-applications",)),
        ),
    )


def publish() -> Plan[Context]:
    """What changed in ucp.yaml reaches the repositories; from there Argo CD takes it."""
    return Plan(
        "publish",
        tasks=(
            Task(InstallTools()),
            Task(PublishRepositories(), after=("install-tools",)),
        ),
        whole=True,
    )


def stop() -> Plan[Context]:
    """Everything ends: no drain, since all of it goes and comes together.

    What git and the data folders hold stays; kind's clusters are made anew from it. From a core
    that others made everything of ours is taken away, and comes back from git as well.
    """
    return Plan(
        "stop",
        checks=(check_orphans, check_existing_core),
        tasks=(
            Task(BackUpBeforeStop()),
            Task(StopComponents(), after=("back-up",)),
            Task(RemoveFromCore(), after=("stop-components",)),
            Task(StopClusters(), after=("remove-from-core",)),
            Task(CheckStopped(), after=("stop-clusters",)),
        ),
    )
