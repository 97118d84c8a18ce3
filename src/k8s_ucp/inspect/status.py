"""The data of `ucp status`, and why something isn't healthy, from a snapshot. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from k8s_ucp import names
from k8s_ucp.components.reconciler import NAME as RECONCILER
from k8s_ucp.fence.files import FencePermit
from k8s_ucp.inspect.applications import find_problem, is_settled, kept
from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.crossplane_objects import is_ready, references_of
from k8s_ucp.inspect.mirror_status import mirror_rows, why
from k8s_ucp.inspect.pods.problems import reason_and_pods
from k8s_ucp.inspect.resource_conditions import Cause, first_cause
from k8s_ucp.kube import Object, annotations_of, labels_of, namespaced_name
from k8s_ucp.providers import DEFAULT, cloud_providers
from k8s_ucp.reconciler.runtime.conditions import first_of, is_true
from k8s_ucp.sync_status import sync_of
from k8s_ucp.topology import Topology
from k8s_ucp.topology.placement import is_simulated
from k8s_ucp.workspace.identity import advice_for_copy

Status = dict[str, Any]


def summarize(topology: Topology, snapshot: ClusterSnapshot) -> Status:
    """The data of `ucp status -o json`."""
    return {
        "topology": topology.name,
        "core": {
            "name": topology.core_cluster,
            "provider": topology.spec.core.provider,
            "ready": snapshot.core_ready and not snapshot.core_problem,
            **({"message": snapshot.core_problem} if snapshot.core_problem else {}),
        },
        **({"stopped": True} if snapshot.stopped else {}),
        **({"copyOf": snapshot.original} if snapshot.original else {}),
        "components": [
            {
                "name": component.name,
                "version": component.version,
                "ready": component.ready,
                "placement": component.placement,
                **({"adopted": True} if component.adopted else {}),
            }
            for component in snapshot.components
        ],
        "fence": _fence(snapshot.permit),
        "environments": _environments(topology, snapshot),
        "applications": [application_fields(each) for each in _by_name(snapshot.applications)],
        "mirrors": mirror_rows(snapshot.syncers, topology),
        "claims": [
            {
                "name": claim["metadata"]["name"],
                "namespace": claim["metadata"].get("namespace"),
                "kind": claim["kind"],
                "ready": is_ready(claim),
            }
            for claim in snapshot.claims
        ],
    }


def why_stopped(topology: str, snapshot: ClusterSnapshot, start: str) -> tuple[str, str]:
    """Why nothing of a topology runs here, and what to do. start: the command that starts it."""
    if not snapshot.original:
        return f"{topology} is stopped", start
    message = f"{topology} was not started in this copy of the workspace {snapshot.original}"
    return message, advice_for_copy(snapshot.original, start)


def is_healthy(data: Status) -> bool:
    """Whether everything is ready, for `ucp status --exit-code`. data: of `summarize`."""
    clusters = [each["cluster"] for each in data["environments"] if each["state"] == "running"]
    return (
        data["core"]["ready"]
        and (data["fence"] is None or data["fence"]["state"] == "held")
        and all(each["ready"] for each in data["components"])
        and all(each["ready"] or each.get("waitsFor") for each in data["mirrors"])
        and all(each["ready"] and each["registered"] and each["reachable"] for each in clusters)
        and all(
            (each["sync"], each["health"]) == ("Synced", "Healthy")
            for each in data["applications"]
            if each["name"] not in _only_waiting(data)
        )
    )


def _only_waiting(data: Status) -> Collection[str]:
    """Applications that are not Healthy only because mirrors wait for what is stopped."""
    if not any(each.get("waitsFor") for each in data["mirrors"]):
        return ()
    synced = {each["name"] for each in data["applications"] if each["sync"] == "Synced"}
    return synced & {"mirrors", names.ROOT_APPLICATION}


def selected(data: Status, name: str) -> Status | None:
    """What of `summarize` an app, Application, environment, component or mirror has this name.

    None if nothing has. The core cluster stays, since all depends on it.
    """
    keys = {
        "components": ("name",),
        "environments": ("name",),
        "applications": ("name", "app", "environment"),
        "mirrors": ("name",),
        "claims": ("name",),
    }
    chosen = {
        what: [each for each in data[what] if name in (each[key] for key in fields)]
        for what, fields in keys.items()
    }
    return {**data, **chosen} if any(chosen.values()) else None


def _fence(permit: FencePermit | None) -> dict[str, Any] | None:
    """State of the fence for a core that was started here; None elsewhere."""
    if permit is None:
        return None
    record = permit.record
    holder = record.holder if record else None
    return {
        "state": str(permit.verdict),
        "epoch": record.epoch if record else None,
        "machine": holder and holder.machine,
        "workspace": holder and holder.workspace,
        "message": permit.why_stopped(),
    }


def _environments(topology: Topology, snapshot: ClusterSnapshot) -> list[dict[str, Any]]:
    """In promotion order; environments that only the repositories have come last."""
    declared = {each.name: each for each in topology.spec.environments}
    clusters = {environment_of(each): each for each in snapshot.clusters}
    others = sorted({*snapshot.environments, *clusters} - declared.keys() - {""})
    secrets = {each["metadata"]["name"]: each for each in snapshot.registrations}
    # If two clusters claim an environment, the registered one is last and wins.
    notes = sorted(snapshot.notes.values(), key=lambda note: is_true(note, names.REGISTERED))
    noted = {each.get("environment"): each for each in notes}
    found = []
    for name in [*declared, *others]:
        provider = declared[name].cluster.provider if name in declared else DEFAULT
        cluster = topology.app_cluster(name)
        state: str = declared[name].state if name in declared else "running"
        ready = reachable = False
        addresses: dict[str, Any] = {}
        if item := clusters.get(name):
            provider, cluster = item["spec"]["provider"], item["metadata"]["name"]
            state = "draining" if item["metadata"].get("deletionTimestamp") else "running"
            responding = cluster in snapshot.answering
            ready = responding and is_true(item, names.READY)
            reachable = responding and is_true(item, names.REACHABLE)
            addresses = dict((item.get("status") or {}).get("addresses") or {})
        elif note := noted.get(name):
            cluster = note["owner"]["name"].removesuffix("-kubeconfig")
            ready = reachable = is_true(note, names.REACHABLE) and not notes_are_old(snapshot)
        secret = secrets.get(names.cluster_secret(cluster))
        found.append(
            {
                "name": name,
                "state": state,
                "cluster": {
                    "name": cluster,
                    "provider": provider,
                    "ready": ready,
                    "registered": secret is not None and environment_of(secret) == name,
                    "reachable": reachable,
                    "tokenExpiresAt": _annotation(secret, names.TOKEN_EXPIRES),
                    "simulated": is_simulated(topology, provider),
                    "addresses": addresses,
                },
            }
        )
    return found


def application_fields(item: Object) -> dict[str, Any]:
    """An Application as `ucp status -o json` lists it."""
    labels = labels_of(item)
    status = item.get("status") or {}
    return {
        "name": item["metadata"]["name"],
        "app": labels.get(names.APP),
        "environment": labels.get(names.ENVIRONMENT),
        "sync": sync_of(item) if status.get("sync") else None,
        "health": (status.get("health") or {}).get("status"),
        "revision": (status.get("sync") or {}).get("revision"),
        "images": (status.get("summary") or {}).get("images") or [],
    }


def missing_application(app: str, environment: str) -> Status:
    """The row of an Application that Argo CD doesn't have yet, or that can't be asked for."""
    nothing = dict.fromkeys(("sync", "health", "revision"))
    named = {"name": f"{app}-{environment}", "app": app, "environment": environment}
    return {**named, **nothing, "images": []}


def reasons(snapshot: ClusterSnapshot) -> dict[str, str]:
    """Why objects are not healthy, by name, for tables and timeout messages."""
    found = {each.name: each.message for each in snapshot.components if each.message}
    for item in snapshot.clusters:
        if condition := first_of(item, names.CLUSTER_CONDITIONS, "False", "Unknown"):
            found[item["metadata"]["name"]] = f"{condition['reason']}: {condition['message']}"
    for item in snapshot.syncers:
        found[f"mirror {item['metadata']['name']}"] = why(item)
    old = notes_are_old(snapshot)
    for note in snapshot.notes.values():
        if condition := first_of(note, names.CLUSTER_CONDITIONS, "False"):
            message = f"{condition['reason']}: {condition['message']}"
        elif old:
            message = "unknown: the reconciler, which checks it, is not running"
        else:
            continue
        found[note["owner"]["name"].removesuffix("-kubeconfig")] = message
    for environment, cause in environment_causes(snapshot).items():
        found[f"environment {environment}"] = str(cause)
    found |= {f"claim {name}": problem for name, problem in claim_reasons(snapshot).items()}
    for item in snapshot.applications:
        if is_settled(item):
            retained = ", ".join(kept(item))
            problem = retained and f"removed from git, but kept: {retained}"
        else:
            problem = reason_and_pods(item, snapshot.pods)
        if problem := problem or find_problem(item):
            found[item["metadata"]["name"]] = problem
    return found


def why_environment(row: Status, why: Mapping[str, str]) -> str:
    """Why an environment of `summarize` is not ready. why: result of `reasons`."""
    reason = why.get(row["cluster"]["name"]) or why.get(f"environment {row['name']}", "")
    known = row["state"] != "running" or row["cluster"]["registered"]
    if not reason and row["state"] == "running" and known and not row["cluster"]["ready"]:
        return "its API server is not responding"
    if reason or known or row["cluster"]["provider"] not in cloud_providers():
        return reason
    return "not created on the core cluster yet: see the Application clusters"


def environment_causes(snapshot: ClusterSnapshot) -> dict[str, Cause]:
    """What environments' clusters in clouds wait for or failed at, by environment.

    If a cluster is reachable, only failures count.
    """
    up = {
        each.get("environment")
        for each in snapshot.notes.values()
        if is_true(each, names.REACHABLE)
    }
    by_environment: dict[str, list[Object]] = {}
    for each in snapshot.resources:
        if name := environment_of(each):
            by_environment.setdefault(name, []).append(each)
    causes = ((name, first_cause(items)) for name, items in sorted(by_environment.items()))
    return {name: cause for name, cause in causes if cause and (cause.failed or name not in up)}


def claim_causes(snapshot: ClusterSnapshot) -> dict[str, Cause]:
    """Why claims aren't ready, by `claim_name`; preferably from their composed resources."""
    made = {_reference_key(each, each["metadata"]): each for each in snapshot.resources}
    found = {}
    for each in snapshot.claims:
        cause = first_cause([each])
        if cause and first_of(each, ("Synced",), "False") is None:
            own = {"namespace": each["metadata"].get("namespace")}
            keys = [_reference_key(one, {**own, **one}) for one in references_of(each)]
            parts = [made[key] for key in keys if key in made]
            cause = first_cause(parts) or cause
        if cause:
            found[claim_name(each)] = cause
    return found


def claim_reasons(snapshot: ClusterSnapshot) -> dict[str, str]:
    """Why claims are not ready, as messages by claim."""
    return {
        name: cause.message if cause.resource in snapshot.claims else str(cause)
        for name, cause in claim_causes(snapshot).items()
    }


def claim_name(item: Object) -> str:
    """Kind, namespace and name."""
    return f"{item['kind']} {namespaced_name(item)}"


def _reference_key(item: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[str | None, ...]:
    named = (item["apiVersion"], item["kind"])
    return (*named, metadata.get("namespace"), metadata["name"])


def notes_are_old(snapshot: ClusterSnapshot) -> bool:
    """Whether the reconciler, which renews the notes, is not running."""
    return any(each.name == RECONCILER and not each.ready for each in snapshot.components)


def environment_of(item: Object) -> str:
    """The environment in an object's label; "" if it has none."""
    return labels_of(item).get(names.ENVIRONMENT, "")


def _annotation(item: Object | None, name: str) -> str | None:
    return annotations_of(item).get(name) if item else None


def _by_name(items: Sequence[Object]) -> list[Object]:
    return sorted(items, key=lambda item: str(item["metadata"]["name"]))
