"""The plans: which steps run in which order. Steps without a common `after` run in parallel."""

from __future__ import annotations

from collections.abc import Collection

from k8s_ucp.context import StartContext
from k8s_ucp.engine.pipeline import Plan, Task
from k8s_ucp.gitops.render.values.addons import leads_to_argocd
from k8s_ucp.gitops.render.values.clouds import clouds_with_accounts
from k8s_ucp.preflight.adoption import check_adopted
from k8s_ucp.preflight.collisions import check_collisions
from k8s_ucp.preflight.core import (
    check_git_reach,
    check_git_rights,
    check_image,
    check_no_components,
)
from k8s_ucp.preflight.credentials import check_backup_key, check_cloud_credentials
from k8s_ucp.preflight.fence import check_fence
from k8s_ucp.preflight.lost_repositories import check_repositories
from k8s_ucp.preflight.machine import (
    check_clusters,
    check_combination,
    check_credentials,
    check_folders,
    check_limits,
    check_memory,
    check_simulator,
    check_socket,
    check_system,
    check_tools,
    check_versions,
)
from k8s_ucp.preflight.orphans import check_orphans
from k8s_ucp.preflight.removal import check_data, check_existing_core
from k8s_ucp.steps.backup.adopt_resources import adopt_resources
from k8s_ucp.steps.backup.back_up import back_up, back_up_before_stop, restore_backup
from k8s_ucp.steps.backup.restore_external_names import restore_external_names
from k8s_ucp.steps.preparation.publish_repositories import publish_repositories
from k8s_ucp.steps.preparation.tools_and_images import (
    build_images,
    install_tools,
    load_images,
    save_images,
)
from k8s_ucp.steps.shutdown.release_fence import release_fence
from k8s_ucp.steps.shutdown.remove_from_core import remove_from_core
from k8s_ucp.steps.shutdown.stop import (
    check_stopped,
    delete_repositories,
    stop_clusters,
    stop_components,
)
from k8s_ucp.steps.startup.apply_manifests import apply_credentials, apply_foundation
from k8s_ucp.steps.startup.claim_core import claim_core
from k8s_ucp.steps.startup.clusters import make_app_clusters, start_core
from k8s_ucp.steps.startup.fence import await_fence, take_fence
from k8s_ucp.steps.startup.start_in_pods import forward_argocd, start_pods
from k8s_ucp.steps.startup.start_on_host import (
    start_argocd,
    start_cloud,
    start_crossplane,
    start_local_clusters,
    start_reconciler,
    start_rollouts,
    start_supervisor,
)
from k8s_ucp.steps.teardown.checks import check_destroyable
from k8s_ucp.steps.teardown.core import delete_core, give_up_core, note_destroyed
from k8s_ucp.steps.teardown.deletion import (
    delete_claims,
    delete_clusters,
    delete_networks,
    record_resources,
)
from k8s_ucp.steps.teardown.draining import drain_environments, pause_automation
from k8s_ucp.steps.teardown.verify_clouds import verify_clouds_empty
from k8s_ucp.steps.upgrading.checks import (
    check_declared_versions,
    check_kinds,
    check_kubernetes,
    check_programs,
    check_running,
)
from k8s_ucp.steps.upgrading.health import record_health
from k8s_ucp.steps.upgrading.parts import parts
from k8s_ucp.steps.upgrading.rehearsal.steps import Rehearsal, check_copyable
from k8s_ucp.steps.upgrading.resume import resume_part
from k8s_ucp.steps.upgrading.upgrade import install_pins, leave_others, upgrade_part
from k8s_ucp.steps.waiting.await_applications import await_applications, await_ingress
from k8s_ucp.steps.waiting.await_environments import await_environments
from k8s_ucp.topology import Topology
from k8s_ucp.topology.placement import (
    can_load_images,
    core_is_existing,
    in_pods,
    needs_git_server,
    with_rollouts,
)

Tasks = tuple[Task[StartContext], ...]

CHECKS = (
    check_combination,
    check_simulator,
    check_versions,
    check_image,
    check_git_reach,
    check_git_rights,
    check_fence,
    check_repositories,
    check_system,
    check_folders,
    check_limits,
    check_credentials,
    check_cloud_credentials,
    check_backup_key,
    check_socket,
    check_memory,
    check_clusters,
    check_no_components,
    check_adopted,
    check_collisions,
    check_tools,
)
"""The checks of a start before it changes anything, in this order."""


def start(topology: Topology) -> Plan[StartContext]:
    """From any state (nothing, an interrupted start, a running topology) to all apps healthy.

    The steps create the core cluster and push the repositories; app clusters and apps follow from
    git. Components are processes on this machine, or pods of the core cluster.
    """
    return Plan(
        "start",
        checks=CHECKS,
        tasks=(
            *_clusters_and_repositories(topology),
            *_images(topology),
            *_foundation(topology),
            *_components(topology),
            *_environments_and_apps(topology),
        ),
    )


def _clusters_and_repositories(topology: Topology) -> Tasks:
    pods, first = in_pods(topology), ("install-tools", "take-fence")
    return (
        Task(install_tools),
        Task(take_fence),
        Task(start_core, after=first),
        Task(make_app_clusters, after=first, when=pods),
        Task(publish_repositories, after=first),
        Task(start_supervisor, after=first, when=not pods),
        # Components that the fence had stopped are restarted by the running supervisord.
        Task(await_fence, after=("take-fence", "start-supervisor")),
        Task(start_cloud, after=("start-supervisor",), when=bool(topology.spec.clouds.simulated)),
    )


def _images(topology: Topology) -> Tasks:
    loads = can_load_images(topology)
    return (
        Task(build_images, after=("install-tools",), when=loads),
        Task(save_images, after=("build-images", "publish-repositories"), when=loads),
        Task(load_images, after=("start-core", "save-images"), when=loads),
    )


def _foundation(topology: Topology) -> Tasks:
    published = ("start-core", "publish-repositories")
    return (
        Task(claim_core, after=published, when=core_is_existing(topology)),
        Task(apply_foundation, after=(*published, "claim-core")),
        Task(restore_backup, after=("apply-foundation",)),
        Task(
            start_local_clusters,
            after=("apply-foundation", "await-fence"),
            when=in_pods(topology),
        ),
        Task(
            start_pods("git-server"),
            after=_before_components(topology),
            when=needs_git_server(topology),
        ),
    )


def _components(topology: Topology) -> Tasks:
    pods, adopted = in_pods(topology), topology.spec.core.adopt
    manages = pods or bool(topology.spec.clouds.simulated)
    # Components that write to clouds and app clusters wait until the previous core has stopped.
    writing = (*_before_components(topology), "await-fence")
    argocd, crossplane, reconciler = start_argocd, start_crossplane, start_reconciler
    if pods:
        argocd = start_pods("argocd", adopted="argocd" in adopted)
        crossplane = start_pods("crossplane", adopted="crossplane" in adopted)
        reconciler = start_pods("reconciler")
    return (
        Task(argocd, after=writing),
        # Names are restored first: without credentials no provider creates anything.
        Task(restore_external_names, after=("start-argocd",), when=manages),
        Task(
            apply_credentials,
            after=("apply-foundation", "restore-external-names"),
            when=manages or bool(clouds_with_accounts(topology)),
        ),
        Task(reconciler, after=(*writing, "restore-backup", "start-cloud")),
        Task(crossplane, after=writing),
        Task(
            adopt_resources,
            after=("apply-credentials", "start-reconciler", "start-crossplane"),
            when=manages,
        ),
    )


def _environments_and_apps(topology: Topology) -> Tasks:
    pods, ingress = in_pods(topology), leads_to_argocd(topology)
    reachable = ("start-argocd", "start-local-clusters")
    created = ("start-reconciler", "make-app-clusters", *(("start-argocd",) if pods else ()))
    return (
        Task(await_ingress, after=reachable, when=ingress),
        Task(forward_argocd, after=reachable, when=pods and not ingress),
        Task(await_environments, after=created),
        Task(start_rollouts, after=("await-environments",), when=bool(with_rollouts(topology))),
        Task(await_applications, after=("await-environments", "start-argocd", "adopt-resources")),
        Task(back_up, after=("await-applications",)),
    )


def _before_components(topology: Topology) -> tuple[str, str]:
    # Argo CD in pods deploys the reconciler too: what it would generate is restored before.
    if in_pods(topology):
        return "restore-backup", "load-images"
    return "apply-foundation", "start-supervisor"


def publish() -> Plan[StartContext]:
    """Render changes of ucp.yaml to the repositories, from where Argo CD applies them."""
    return Plan(
        "publish",
        checks=(check_repositories,),
        tasks=(Task(install_tools), Task(publish_repositories, after=("install-tools",))),
        whole=True,
    )


def bring_back(topology: Topology) -> Plan[StartContext]:
    """Recreate stopped environments: commit them, and wait until the core has created them."""
    return Plan(
        "recreate",
        tasks=(
            Task(install_tools),
            Task(publish_repositories, after=("install-tools",)),
            Task(await_environments, after=("publish-repositories",)),
            Task(start_rollouts, after=("await-environments",), when=bool(with_rollouts(topology))),
            Task(await_applications, after=("await-environments",)),
        ),
    )


def upgrade(topology: Topology, names: Collection[str] = ()) -> Plan[StartContext]:
    """Upgrade to the versions of this ucp release, one part at a time.

    A part that does not become as healthy as before is rolled back, and the upgrade ends. names: of
    the parts; empty: all. Changed renders are published first, with the versions that are running.
    """
    tasks: list[Task[StartContext]] = [
        Task(install_tools),
        Task(install_pins, after=("install-tools",)),
        Task(publish_repositories, after=("install-tools",)),
        Task(apply_foundation, after=("publish-repositories",)),
        Task(record_health, after=("install-pins", "apply-foundation")),
    ]
    for part in parts(topology):
        if not names or part.name in names:
            tasks.append(Task(upgrade_part(part), after=(tasks[-1].step.id,)))
    tasks += [
        Task(leave_others, after=(tasks[-1].step.id,)),
        Task(start_reconciler, after=("leave-others",)),
    ]
    checks = (check_running, check_fence, check_declared_versions, check_kubernetes, check_kinds)
    return Plan("upgrade", checks=checks, tasks=tuple(tasks))


def resume_upgrade(topology: Topology, names: Collection[str]) -> Plan[StartContext]:
    """Finish or roll back the parts that an interrupted upgrade left half upgraded.

    This comes before all other checks: a core in that state may not respond.
    """
    tasks: list[Task[StartContext]] = [
        Task(install_tools),
        Task(install_pins, after=("install-tools",)),
    ]
    for part in parts(topology):
        if part.name in names:
            tasks.append(Task(resume_part(part), after=(tasks[-1].step.id,)))
    return Plan("upgrade", checks=(check_programs, check_fence), tasks=tuple(tasks))


def rehearse(rehearsal: Rehearsal) -> Plan[StartContext]:
    """Upgrade a throwaway copy of the core; the topology is not changed."""
    tasks: list[Task[StartContext]] = [
        Task(install_tools),
        Task(install_pins, after=("install-tools",)),
    ]
    for step in rehearsal.steps():
        tasks.append(Task(step, after=(tasks[-1].step.id,)))
    checks = (check_copyable, check_running, check_declared_versions)
    return Plan("rehearse", checks=checks, tasks=tuple(tasks), whole=True)


def stop(*, delete_repos: bool = False) -> Plan[StartContext]:
    """Stop everything, without a drain, since all of it stops and starts together.

    Repositories and data folders are kept unless a flag deletes them; kind clusters are recreated
    from the repositories. From an existing core cluster, all objects of ucp are removed; a start
    restores them from git.
    """
    return Plan(
        "stop",
        checks=(check_orphans, check_data, check_existing_core),
        tasks=(
            Task(back_up_before_stop),
            Task(stop_components, after=("back-up",)),
            Task(remove_from_core, after=("stop-components",)),
            Task(stop_clusters, after=("remove-from-core",)),
            Task(check_stopped, after=("stop-clusters",)),
            Task(release_fence, after=("check-stopped",)),
            Task(delete_repositories, after=("release-fence",), when=delete_repos),
        ),
    )


def destroy(*, core_responds: bool = True, verified: bool = False) -> Plan[StartContext]:
    """Delete everything except the repositories, dependents first.

    Only the core knows what is in the clouds, so it is deleted last, after they were verified to be
    empty. core_responds: False if the core is abandoned. verified: an interrupted run has already
    verified the clouds, and may have deleted the core.
    """
    asked = core_responds and not verified
    return Plan(
        "destroy",
        checks=(
            (check_fence,) if verified else (check_fence, check_destroyable, check_existing_core)
        ),
        tasks=(
            Task(record_resources, when=asked),
            Task(pause_automation, after=("record-resources",), when=asked),
            Task(drain_environments, after=("pause-automation",), when=asked),
            Task(delete_claims, after=("drain-environments",), when=asked),
            Task(delete_clusters, after=("delete-claims",), when=asked),
            Task(delete_networks, after=("delete-clusters",), when=asked),
            Task(verify_clouds_empty, after=("delete-networks",), when=asked),
            Task(give_up_core, when=not core_responds),
            Task(back_up_before_stop, after=("verify-clouds-empty", "give-up-core")),
            Task(stop_components, after=("back-up",)),
            Task(remove_from_core, after=("stop-components",)),
            Task(stop_clusters, after=("remove-from-core",)),
            Task(check_stopped, after=("stop-clusters",)),
            Task(delete_core, after=("check-stopped",)),
            Task(release_fence, after=("delete-core",)),
            Task(note_destroyed, after=("release-fence",)),
        ),
    )
