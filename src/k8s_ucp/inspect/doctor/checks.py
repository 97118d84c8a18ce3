"""The checks of `ucp doctor`: a function in _CHECKS for each kind of finding. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from k8s_ucp import names
from k8s_ucp.components import argocd, crossplane
from k8s_ucp.errors import NEXT_STEP, command_line
from k8s_ucp.fence.rules import FenceVerdict
from k8s_ucp.inspect import status
from k8s_ucp.inspect.applications import find_problem, health_of, is_settled, kept, reason
from k8s_ucp.inspect.doctor.advice import (
    NEXT,
    NEXT_BY_KIND,
    kubectl_on,
    of_application,
    of_kept,
    of_resource,
)
from k8s_ucp.inspect.doctor.certificates import expiring
from k8s_ucp.inspect.doctor.examination import Examined
from k8s_ucp.inspect.doctor.finding import Finding, Severity
from k8s_ucp.inspect.doctor.objects import foreign, paused, stuck
from k8s_ucp.inspect.mirror_status import lacks_source, mirror_rows, stopped_targets, why
from k8s_ucp.inspect.pods.problems import nodes_to_set, pods_of
from k8s_ucp.inspect.status import environment_of
from k8s_ucp.kube import Object
from k8s_ucp.reconciler.access.cluster_secret import Registration
from k8s_ucp.reconciler.runtime.conditions import first_of
from k8s_ucp.sync_status import sync_of
from k8s_ucp.timestamps import parse_stamp

LEASE_SECONDS = 60.0
"""A Lease that was not renewed for this long has no active holder."""
LATE = 1 / 10
"""Renewal has failed if a token is older than planned by this share of its lifetime."""
DRAIN_SECONDS = 300.0
_INTENDED = ("Forgotten", "BeingDestroyed", "Leaving", "Creating")
"""Reasons for which a cluster is not ready, although nothing is wrong."""
_WORST: Mapping[str, int] = {"error": 0, "warning": 1, "info": 2}


def findings(found: Examined) -> list[Finding]:
    """Sorted by severity, without those that follow from an unreachable core or a lost fence."""
    answer = [each for check in _CHECKS for each in check(found)]
    permit = found.snapshot.permit
    if not found.snapshot.core_ready:
        kept = _DESTROYED if found.destruction else _WITHOUT_CORE
        answer = [each for each in answer if each.id.startswith(kept)]
    elif permit and permit.verdict is FenceVerdict.LOST:
        answer = [each for each in answer if each.id.startswith(_LOST)]
    return sorted(answer, key=lambda each: (_WORST[each.severity], each.id))


_DESTROYED = ("abandoned/", "destroyed/", "credential/", "machine/", "remote/", "fence/")
"""For a topology that was destroyed."""
_WITHOUT_CORE = (
    "run/",
    "abandoned/",
    "kubeconfig/",
    "core/",
    "component/",
    "credential/",
    "backup/",
    "machine/",
    "remote/",
    "fence/",
    "topology/",
)
_LOST = tuple(each for each in _WITHOUT_CORE if each not in ("backup/", "run/"))
"""For a core that lost the fence to another: the repositories don't describe it any more."""
_WRITERS = (argocd.NAME, crossplane.NAME)
"""Components that the fence's guard stops."""


def _core(found: Examined) -> Iterator[Finding]:
    if found.snapshot.stopped:
        name = found.topology.name
        message, advice = status.why_stopped(name, found.snapshot, "ucp start")
        yield Finding(f"core/{name}", "info", message, advice)
    elif not found.snapshot.core_ready:
        name = found.topology.core_cluster
        yield Finding(
            f"core/{name}", "error", f"core cluster {name} is not responding", "ucp start"
        )
    elif found.snapshot.core_problem:
        name = found.topology.core_cluster
        message = f"core cluster {name}: {found.snapshot.core_problem}"
        yield Finding(f"core/{name}", "error", message, "ucp start")


def _cut_off(found: Examined) -> Iterator[Finding]:
    """Interrupted runs, which may be the only cause of other findings."""
    for number, (message, command) in enumerate(found.interrupted, 1):
        yield Finding(f"run/{number}", "warning", message, command)


def _destroyed(found: Examined) -> Iterator[Finding]:
    if found.destruction:
        name = found.topology.name
        message = found.destruction.message(name)
        severity: Severity = "info" if found.destruction.ended else "warning"
        yield Finding(f"destroyed/{name}", severity, message, found.destruction.next)


def _fence(found: Examined) -> Iterator[Finding]:
    """Who holds the fence, if it isn't this core."""
    name, permit = f"fence/{found.topology.name}", found.snapshot.permit
    why = permit.why_stopped() if permit else ""
    if permit and permit.verdict is FenceVerdict.SILENT:
        yield Finding(name, "error", why, "check the network, and git.auth of ucp.yaml: ucp start")
    elif permit and permit.verdict is FenceVerdict.EXPIRED:
        yield Finding(name, "error", why, "ucp start restarts it; ucp logs watcher")
    elif permit and permit.verdict is FenceVerdict.WAITING:
        yield Finding(name, "info", why, "ucp start waits for it")
    elif permit and why:
        advice = "`ucp stop` stops this core; `ucp start --takeover` makes it the active one again"
        yield Finding(name, "error", why, advice)
    elif found.fence:
        message = f"another core acts for this topology: {found.fence}"
        advice = "work there; if it is gone for good: ucp start --takeover"
        yield Finding(name, "warning", message, advice)


def _components(found: Examined) -> Iterator[Finding]:
    if found.snapshot.stopped:
        return
    permit = found.snapshot.permit
    guarded = permit and permit.verdict is not FenceVerdict.EXPIRED and permit.why_stopped()
    held_back = _WRITERS if guarded else ()
    # An interrupted start may not have started the later components yet.
    begun = any(command.startswith("ucp start") for _, command in found.interrupted)
    for each in found.snapshot.components:
        # The guard has stopped it; starting it again would make two cores write.
        if not each.ready and each.name not in held_back:
            why = f": {each.message}" if each.message else ""
            stopped = not each.message or each.message == "not running"
            starts = begun or ((stopped or each.silent) and not each.adopted)
            yield Finding(
                f"component/{each.name}",
                "error",
                f"component {each.name} is not ready{why}",
                "ucp start" if starts else f"ucp logs {each.name}",
                f"restart the processes of {each.name}" if each.name in found.startable else "",
            )


def _adopted(found: Examined) -> Iterator[Finding]:
    """Settings of an adopted Argo CD that changed after the start, or could be better."""
    for message, command in found.unfit:
        yield Finding("adopted/argocd", "error", f"adopted Argo CD: {message}", command)
    for number, message in enumerate(found.lacking, 1):
        advice = "see docs/cores.md for the settings to change"
        yield Finding(f"adopted/argocd/{number}", "info", f"adopted Argo CD: {message}", advice)


def _credentials(found: Examined) -> Iterator[Finding]:
    for each in found.exposed:
        yield Finding(
            f"credential/{each}",
            "error",
            f"other users can read {each}",
            command_line("chmod", 600, each),
            command_line("chmod", 600, each),
        )


def _access(found: Examined) -> Iterator[Finding]:
    for each in found.without_kubeconfig:
        yield Finding(
            f"kubeconfig/{each}",
            "error",
            f"cluster {each} is running, but its kubeconfig is missing from .ucp",
            "ucp start",
            f"write the kubeconfig of {each}",
        )


def _machine(found: Examined) -> Iterator[Finding]:
    for name, error in found.machine.items():
        yield Finding(name, "warning", error.message, error.next or "ucp start")


def _objects(found: Examined) -> Iterator[Finding]:
    for cluster, objects in found.objects.items():
        kubectl = kubectl_on(cluster, found.admin)
        for check in (stuck, paused, foreign):
            yield from check(cluster, kubectl, objects, found.now)


def _certificates(found: Examined) -> Iterator[Finding]:
    yield from expiring(found.certificates, found.now)


def _abandoned(found: Examined) -> Iterator[Finding]:
    for each in found.abandoned:
        yield Finding(
            f"abandoned/{each.what.replace(' ', '/')}",
            "warning",
            f"{each.what} was abandoned at {each.since} and may still exist and be billed",
            f"delete it in its cloud, then its entry in {found.abandoned_file}",
        )


def _backup(found: Examined) -> Iterator[Finding]:
    if found.not_backed_up:
        yield Finding(
            f"backup/{found.topology.name}",
            "warning",
            f"the backup of passwords is out of date: {found.not_backed_up}",
            "ucp start",
        )


def _claims(found: Examined) -> Iterator[Finding]:
    """Crossplane's own messages: a missing Composition, a failed function, a field of a child."""
    for name, cause in status.claim_causes(found.snapshot).items():
        if not cause.failed:
            continue
        if cause.resource in found.snapshot.claims:
            message = f"{name} is not composed: {cause.message}"
            advice = "correct the claim or its Composition; `ucp api render CLAIM.yaml` shows both"
        else:
            message, advice = f"{name}: {cause.title}", of_resource(cause, found.admin)
        yield Finding(f"claim/{name.replace(' ', '/')}", "error", message, advice)


def _cloud_clusters(found: Examined) -> Iterator[Finding]:
    """Errors of the cloud, or of the controller that creates the cluster there."""
    for name, cause in status.environment_causes(found.snapshot).items():
        yield Finding(
            f"environment/{name}",
            "error" if cause.failed else "info",
            f"environment {name}: {cause.title}",
            of_resource(cause, found.admin),
        )


def _stale_leases(found: Examined) -> Iterator[Finding]:
    for lease in found.leases:
        name = lease["metadata"]["name"]
        spec = lease.get("spec") or {}
        renewed = parse_stamp(spec.get("renewTime"))
        # A Lease without a holder was released: its controller ended or is disabled.
        if not name.startswith("k8s-ucp-") or renewed is None or not spec.get("holderIdentity"):
            continue
        silent = found.now - renewed
        if silent > LEASE_SECONDS:
            yield Finding(
                f"lease/{name}",
                "error",
                f"controller {name.removeprefix('k8s-ucp-')} has had no leader for {silent:.0f} s",
                "ucp start; ucp logs reconciler shows why it stopped",
            )


def _clusters(found: Examined) -> Iterator[Finding]:
    for item in found.snapshot.clusters:
        name = item["metadata"]["name"]
        if item["metadata"].get("deletionTimestamp"):
            continue
        if condition := first_of(item, names.CLUSTER_CONDITIONS, "False"):
            yield _of_condition(found, name, f"LocalCluster {name}", condition)


def _other_sources(found: Examined) -> Iterator[Finding]:
    for note in found.snapshot.notes.values():
        owner = note["owner"]
        if condition := first_of(note, names.CLUSTER_CONDITIONS, "False"):
            what = f"{owner['kind']} {owner['namespace']}/{owner['name']}"
            yield _of_condition(found, owner["name"], what, condition)


def _of_condition(found: Examined, name: str, what: str, condition: Mapping[str, Any]) -> Finding:
    reason = condition["reason"]
    severity: Severity = "info" if reason in _INTENDED else "error"
    message, _, own = condition["message"].partition(NEXT_STEP)
    advice = NEXT.get(reason) or NEXT_BY_KIND[condition["type"]]
    cluster = name.removesuffix("-kubeconfig")
    values = {
        "cluster": cluster,
        "kubectl": command_line("kubectl", "--kubeconfig", found.admin),
        "environment": cluster.removeprefix(f"{found.topology.name}-"),
    }
    return Finding(
        f"cluster/{cluster}/{reason}",
        severity,
        f"{what}: {message}",
        own or advice.format(**values),
    )


def _registrations(found: Examined) -> Iterator[Finding]:
    for secret in found.snapshot.registrations:
        each = Registration.of(secret)
        if not each.ours:
            continue
        if each.draining:
            since = parse_stamp(each.draining_since)
            if since is not None and found.now - since > DRAIN_SECONDS:
                yield Finding(
                    f"drain/{each.cluster}",
                    "warning",
                    f"{each.cluster} has been draining for {(found.now - since) / 60:.0f} min",
                    "ucp status lists the remaining Applications; ucp clusters forget "
                    f"{each.cluster} ends the drain",
                )
            continue
        yield from _token(found, each)


def _token(found: Examined, each: Registration) -> Iterator[Finding]:
    if not each.expires_at:
        return
    late = (each.expires_at - each.renew_at) * 3 * LATE
    if found.now > each.expires_at:
        minutes = (found.now - each.expires_at) / 60
        message = f"Argo CD's token for {each.cluster} expired {minutes:.0f} min ago"
        yield Finding(f"token/{each.cluster}", "error", message, "ucp logs reconciler")
    elif found.now > each.renew_at + late:
        message = f"Argo CD's token for {each.cluster} should have been renewed by now"
        yield Finding(f"token/{each.cluster}", "warning", message, "ucp logs reconciler")


def _environments(found: Examined) -> Iterator[Finding]:
    """Environments in the core repository for which there is no cluster."""
    known = {
        environment_of(each) for each in (*found.snapshot.clusters, *found.snapshot.registrations)
    }
    known |= {str(each.get("environment")) for each in found.snapshot.notes.values()}
    known |= status.environment_causes(found.snapshot).keys()
    # Until Argo CD has synced it, the core still lists one that was stopped.
    known |= set(found.topology.stopped_environments)
    for name in sorted({*found.snapshot.environments} - known):
        yield Finding(
            f"environment/{name}",
            "warning",
            f"environment {name} has no cluster: none has been declared or created for it",
            "ucp status; if it persists: ucp logs argocd",
        )


def _applications(found: Examined) -> Iterator[Finding]:
    for each in found.snapshot.applications:
        name = each["metadata"]["name"]
        sync, health = sync_of(each), health_of(each)
        if each["metadata"].get("deletionTimestamp"):
            continue
        if is_settled(each):
            yield from _kept(each, found)
            continue
        if _only_repeats(each, found):
            continue
        bad = health == "Degraded" or bool(find_problem(each))
        pods = pods_of(each, found.snapshot.pods)
        reasons = "; ".join(filter(None, (reason(each), *map(str, pods))))
        yield Finding(
            f"application/{name}",
            "error" if bad else "warning",
            f"Application {name} is {sync} and {health}{reasons and f': {reasons}'}",
            nodes_to_set(pods) or of_application(each, found.topology, found.admin),
        )


def _only_repeats(item: Object, found: Examined) -> bool:
    """Whether it is only unhealthy because of an object that has its own finding."""
    if sync_of(item) != "Synced" or find_problem(item):
        return False
    name = item["metadata"]["name"]
    if name == "mirrors":
        return any(not row["ready"] for row in mirror_rows(found.snapshot.syncers))
    if name == names.ROOT_APPLICATION:
        others = (each for each in found.snapshot.applications if each is not item)
        return any(not is_settled(each) for each in others)
    return False


def _kept(item: Object, found: Examined) -> Iterator[Finding]:
    if objects := kept(item):
        yield Finding(
            f"application/{item['metadata']['name']}/kept",
            "warning",
            f"{', '.join(objects)}: removed from git, but kept because they contain data",
            of_kept(item, found.topology, found.admin),
        )


def _mirrors(found: Examined) -> Iterator[Finding]:
    for item in found.snapshot.syncers:
        name = item["metadata"]["name"]
        (row,) = mirror_rows([item])
        if row["ready"]:
            continue
        if stopped := stopped_targets(item, found.topology):
            message = f"mirror {name} waits for what is stopped: {', '.join(stopped)}"
            yield Finding(f"mirror/{name}", "info", message, f"ucp recreate --env {stopped[0]}")
        else:
            reason = why(item) or "not ready"
            advice = "ucp mirror list; ucp logs reconciler"
            if lacks_source(item):
                core = found.topology.core_cluster
                advice = f"create the source on {core}, or remove the mirror; ucp mirror list"
            yield Finding(f"mirror/{name}", "error", f"mirror {name}: {reason}", advice)


_CHECKS: tuple[Callable[[Examined], Iterator[Finding]], ...] = (
    _cut_off,
    _core,
    _destroyed,
    _fence,
    _components,
    _adopted,
    _credentials,
    _access,
    _machine,
    _backup,
    _abandoned,
    _stale_leases,
    _clusters,
    _other_sources,
    _registrations,
    _cloud_clusters,
    _environments,
    _applications,
    _mirrors,
    _claims,
    _objects,
    _certificates,
)
