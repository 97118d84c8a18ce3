"""Findings of `ucp doctor`: id, severity and next command of each kind of problem."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import FencePermit
from k8s_ucp.fence.record import FenceHolder, FenceRecord
from k8s_ucp.fence.rules import FenceVerdict
from k8s_ucp.inspect.cluster_snapshot import ComponentStatus
from k8s_ucp.inspect.doctor.advice import NEXT, of_application
from k8s_ucp.inspect.doctor.checks import findings
from k8s_ucp.inspect.doctor.examination import Examined
from k8s_ucp.inspect.teardown.destruction import Destruction
from k8s_ucp.timestamps import stamp
from k8s_ucp.topology import Topology, default
from k8s_ucp.topology.parts import CoreCluster
from tests.unit.inspect.doctor.examinations import BASE, NOW, examined
from tests.unit.inspect.snapshots import TOPOLOGY, cluster


def only(found: Examined) -> tuple[str, str, str]:
    (one,) = findings(found)
    return one.id, one.severity, one.next


def refused(reason: str, kind: str = "Registered") -> dict[str, Any]:
    condition = {"type": kind, "status": "False", "reason": reason, "message": "because"}
    return {**cluster("stage"), "status": {"conditions": [condition]}}


def registration(**annotations: str) -> dict[str, Any]:
    notes = {"k8s-ucp.io/source": "ucp-clusters/demo-stage-kubeconfig"}
    notes |= {f"k8s-ucp.io/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return {
        "metadata": {
            "name": "cluster-demo-stage",
            "uid": "1",
            "labels": {
                "app.kubernetes.io/managed-by": "k8s-ucp",
                "k8s-ucp.io/environment": "stage",
            },
            "annotations": notes,
        },
        "data": {"name": "ZGVtby1zdGFnZQ=="},
    }


def with_stopped(name: str) -> Topology:
    environments = tuple(
        each.model_copy(update={"state": "stopped"}) if each.name == name else each
        for each in TOPOLOGY.spec.environments
    )
    spec = TOPOLOGY.spec.model_copy(update={"environments": environments})
    return TOPOLOGY.model_copy(update={"spec": spec})


def test_a_program_of_the_core_that_hangs_is_repaired_by_a_start() -> None:
    seen = dataclasses.replace(BASE, core_problem="kube-scheduler: timed out")
    (finding,) = [each for each in findings(Examined(TOPOLOGY, seen, NOW)) if "core/" in each.id]
    assert finding.message == "core cluster demo-core: kube-scheduler: timed out"
    assert (finding.severity, finding.next) == ("error", "ucp start")


def test_a_destroyed_topology_is_not_reported_as_failed() -> None:
    component = ComponentStatus("argocd", "v1", False, "host", "not running")
    seen = dataclasses.replace(BASE, core_ready=False, components=[component])
    found = Examined(TOPOLOGY, seen, NOW, not_backed_up="its remote is away")
    assert len(findings(found)) == 3
    gone = dataclasses.replace(found, destruction=Destruction("2026-01-01T00:00:00Z"))
    assert only(gone) == ("destroyed/demo", "info", "ucp start creates it again")
    half = Destruction("2026-01-01T00:00:00Z", ["Postgres quotes"], ended=False)
    (finding,) = findings(dataclasses.replace(gone, destruction=half))
    assert (finding.severity, finding.next) == ("warning", "ucp destroy finishes it")
    assert (
        "partly destroyed: its clouds were verified to be empty at 2026-01-01T00:00:00Z"
        in finding.message
    )
    assert finding.message.endswith("but for what its core cluster manages: Postgres quotes")


@pytest.mark.parametrize("verdict", [FenceVerdict.LOST, FenceVerdict.SILENT])
def test_components_stopped_by_the_fence_get_no_advice_to_start_them(verdict: FenceVerdict) -> None:
    there = FenceHolder("2", "laptop", "/there", "embedded")
    permit = FencePermit(verdict, 0.0, "boot", FenceRecord(4, there, 0.0), confirmed=True)
    stopped = [
        ComponentStatus(name, "v1", False, "host", "Connection refused")
        for name in ("argocd", "crossplane")
    ]
    found = dataclasses.replace(
        examined(permit=permit, components=stopped), startable={"argocd", "crossplane"}
    )
    (finding,) = findings(found)
    assert (finding.id, finding.fix) == ("fence/demo", "")
    held = dataclasses.replace(found, snapshot=examined(components=stopped).snapshot)
    assert {each.fix for each in findings(held)} == {
        "restart the processes of argocd",
        "restart the processes of crossplane",
    }


def test_a_core_that_lost_the_fence_reports_only_that() -> None:
    there = FenceHolder("2", "laptop", "/there", "embedded")
    permit = FencePermit(FenceVerdict.LOST, 0.0, "boot", FenceRecord(4, there, 0.0), True)
    found = examined(permit=permit, clusters=[refused("Because")])
    assert only(found)[:2] == ("fence/demo", "error")
    assert len(findings(examined(clusters=[refused("Because")]))) == 1


def test_a_healthy_topology_has_no_findings() -> None:
    assert findings(examined()) == []


def test_an_unreachable_core_is_reported_as_the_only_cause() -> None:
    found = examined(core_ready=False, environments=["stage"])
    assert only(found) == ("core/demo-core", "error", "ucp start")


@pytest.mark.parametrize(
    ("message", "next"), [("not running", "ucp start"), ("no redis", "ucp logs argocd")]
)
def test_a_component_that_is_not_ready_is_reported_with_the_next_command(
    message: str, next: str
) -> None:
    broken = ComponentStatus("argocd", "v1", ready=False, placement="host", message=message)
    assert only(examined(components=[broken])) == ("component/argocd", "error", next)


def test_a_component_that_hangs_is_restarted_by_a_start() -> None:
    hung = ComponentStatus("argocd", "v1", False, "host", "timed out", silent=True)
    assert only(examined(components=[hung])) == ("component/argocd", "error", "ucp start")


def test_a_watcher_that_hangs_is_reported_beside_what_it_would_have_stopped() -> None:
    here = FenceHolder("1", "desk", "/here", "embedded")
    permit = FencePermit(FenceVerdict.EXPIRED, 0.0, "boot", FenceRecord(4, here, 0.0), True)
    broken = ComponentStatus("argocd", "v1", ready=False, placement="host", message="not running")
    found = {each.id: each.next for each in findings(examined(permit=permit, components=[broken]))}
    assert found["fence/demo"].startswith("ucp start")
    assert found["component/argocd"] == "ucp start"


def test_an_interrupted_start_is_to_be_rerun_before_logs_are_read() -> None:
    broken = ComponentStatus("argocd", "v1", ready=False, placement="host", message="refused")
    run = ("`ucp start` was interrupted", "ucp start")
    for seen in (examined(components=[broken]), examined(core_ready=False, components=[broken])):
        found = findings(dataclasses.replace(seen, interrupted=[run]))
        assert ("component/argocd", "ucp start") in {(each.id, each.next) for each in found}
        assert ("run/1", *run) in {(each.id, each.message, each.next) for each in found}
    edit = dataclasses.replace(
        examined(components=[broken]), interrupted=[("edit", "ucp env add eu")]
    )
    assert [each.next for each in findings(edit)] == ["ucp logs argocd", "ucp env add eu"]


def test_an_adopted_component_is_not_started_and_its_settings_are_reported() -> None:
    broken = ComponentStatus("argocd", "v1", False, "pods", adopted=True)
    assert only(examined(components=[broken])) == ("component/argocd", "error", "ucp logs argocd")
    seen = examined()
    wrong = dataclasses.replace(seen, unfit=[("it marks by label", "kubectl patch")])
    assert only(wrong) == ("adopted/argocd", "error", "kubectl patch")
    name, severity, next = only(dataclasses.replace(seen, lacking=["it polls seldom"]))
    assert (name, severity) == ("adopted/argocd/1", "info")
    assert "docs/cores.md" in next


@pytest.mark.parametrize("reason", sorted(NEXT))
def test_every_reason_has_a_complete_next_command(reason: str) -> None:
    name, _, next = only(examined(clusters=[refused(reason)]))
    assert name == f"cluster/demo-stage/{reason}"
    assert next
    assert "{" not in next


def test_an_unknown_reason_points_to_the_logs() -> None:
    _, severity, next = only(examined(clusters=[refused("Odd")]))
    assert (severity, next) == ("error", "ucp logs reconciler")


def test_only_the_root_cause_of_a_cluster_is_reported() -> None:
    item = refused("CreateFailed", "Ready")
    item["status"]["conditions"] += refused("Unreachable", "Reachable")["status"]["conditions"]
    assert only(examined(clusters=[item]))[0] == "cluster/demo-stage/CreateFailed"


def test_the_next_command_in_a_message_replaces_the_general_one() -> None:
    item = refused("CreateFailed", "Ready")
    error = UcpError("port 1 is in use", next="stop it: kill 7")
    item["status"]["conditions"][0]["message"] = error.in_line
    (found,) = findings(examined(clusters=[item]))
    assert found.message == "LocalCluster demo-stage: port 1 is in use"
    assert found.next == "stop it: kill 7"


def test_registration_sources_other_than_local_clusters_are_reported() -> None:
    owner = {"kind": "Secret", "namespace": "crossplane-system", "name": "eu-kubeconfig"}
    note = {"owner": owner, "environment": "eu", "status": refused("EnvironmentUnknown")["status"]}
    found = findings(examined(notes={"crossplane-system/eu-kubeconfig": note}))[0]
    assert found.id == "cluster/eu/EnvironmentUnknown"
    assert found.next.startswith("ucp env add eu --cluster PROVIDER, or ")


def test_a_forgotten_cluster_is_not_an_error() -> None:
    _, severity, next = only(examined(clusters=[refused("Forgotten")]))
    assert severity == "info"
    assert next.endswith("ucp clusters forget demo-stage --undo")


def test_an_unfinished_destroy_is_told_from_a_forgotten_cluster() -> None:
    _, severity, next = only(examined(clusters=[refused("BeingDestroyed")]))
    assert severity == "info"
    assert next == "ucp destroy continues it; to keep the topology instead: ucp start"


@pytest.mark.parametrize(
    ("age", "severity"), [(0.5, None), (0.68, None), (0.8, "warning"), (1.1, "error")]
)
def test_tokens_are_reported_when_their_renewal_is_overdue(
    age: float, severity: str | None
) -> None:
    issued = NOW - age * 86_400
    secret = registration(token_issued_at=stamp(issued), token_expires_at=stamp(issued + 86_400))
    found = findings(examined(registrations=[secret]))
    assert [each.severity for each in found] == ([severity] if severity else [])


def test_a_drain_that_takes_too_long_is_reported() -> None:
    secret = registration(draining_since=stamp(NOW - 900))
    secret["metadata"]["labels"]["k8s-ucp.io/draining"] = "stage"
    found = findings(examined(registrations=[secret]))
    assert found[0].id == "drain/demo-stage"


def test_a_lease_that_is_not_renewed_is_reported() -> None:
    lease = {
        "metadata": {"name": "k8s-ucp-registration"},
        "spec": {"renewTime": stamp(NOW - 90), "holderIdentity": "here"},
    }
    assert only(examined(leases=[lease]))[:2] == ("lease/k8s-ucp-registration", "error")
    given_back = {**lease, "spec": {**lease["spec"], "holderIdentity": ""}}
    assert findings(examined(leases=[given_back])) == [], "it ended in order, or isn't wanted"
    lease["spec"]["renewTime"] = stamp(NOW - 5)
    assert findings(examined(leases=[lease])) == []


def test_an_environment_without_a_cluster_is_reported() -> None:
    found = examined(environments=["stage", "prod"], clusters=[cluster("stage")])
    assert only(found)[:2] == ("environment/prod", "warning")
    assert findings(dataclasses.replace(found, topology=with_stopped("prod"))) == []


def test_an_out_of_sync_application_is_reported_with_its_condition() -> None:
    application = {
        "metadata": {"name": "echo-stage"},
        "status": {
            "sync": {"status": "OutOfSync"},
            "health": {"status": "Healthy"},
            "conditions": [{"message": "no such path"}],
        },
    }
    (found,) = findings(examined(applications=[application]))
    assert (found.id, found.severity) == ("application/echo-stage", "error")
    assert "no such path" in found.message


def test_a_new_application_is_reported_as_not_compared_yet() -> None:
    (found,) = findings(examined(applications=[{"metadata": {"name": "echo-stage"}}]))
    assert found.severity == "warning"
    assert found.message.endswith("Argo CD has not compared it with git yet")
    assert found.next.startswith("wait for it: ucp status --watch")


def test_objects_protected_from_pruning_are_a_warning() -> None:
    place = {"group": "", "kind": "Namespace", "namespace": "", "name": "data"}
    application = {
        "metadata": {"name": "mirrors"},
        "status": {
            "sync": {"status": "OutOfSync"},
            "health": {"status": "Healthy"},
            "resources": [{**place, "status": "OutOfSync", "requiresPruning": True}],
            "operationState": {"syncResult": {"resources": [{**place, "status": "PruneSkipped"}]}},
        },
    }
    (found,) = findings(examined(applications=[application]))
    assert (found.id, found.severity) == ("application/mirrors/kept", "warning")
    assert "Namespace data" in found.message
    assert found.next.endswith("demo-core.yaml delete namespace data")


@pytest.mark.parametrize(
    ("reason", "advice"),
    [("Refused", "ucp logs reconciler"), ("SourceMissing", "create the source on demo-core")],
)
def test_a_mirror_that_is_not_ready_is_reported(reason: str, advice: str) -> None:
    condition = {"type": "Ready", "status": "False", "reason": reason, "message": "taken"}
    syncer = {
        "metadata": {"name": "db", "namespace": "ucp-clusters"},
        "spec": {"data": []},
        "status": {"conditions": [condition]},
    }
    (found,) = findings(examined(syncers=[syncer]))
    assert (found.id, found.severity) == ("mirror/db", "error")
    assert f"{reason}: taken" in found.message
    assert advice in found.next


def test_a_mirror_that_only_lacks_stopped_environments_is_no_error() -> None:
    def mirror(values: list[str], reason: str, *targets: str) -> dict[str, Any]:
        selector = {"key": "k8s-ucp.io/environment", "operator": "In", "values": values}
        off = {"type": "Synced", "status": "False", "reason": reason, "message": "m"}
        return {
            "metadata": {"name": "db", "namespace": "ucp-clusters"},
            "spec": {"data": [{"targetSelector": {"matchExpressions": [selector]}}]},
            "status": {
                "conditions": [{**off, "type": "Ready"}],
                "targets": [{"cluster": each, "conditions": [off]} for each in targets],
            },
        }

    def found(item: dict[str, Any]) -> tuple[str, str]:
        _, severity, advice = only(
            dataclasses.replace(examined(syncers=[item]), topology=with_stopped("prod"))
        )
        return severity, advice

    recreate = ("info", "ucp recreate --env prod")
    assert found(mirror(["prod"], "NoTarget")) == recreate
    assert found(mirror(["eu"], "NoTarget"))[0] == "error"
    assert found(mirror(["prod"], "Mistaken"))[0] == "error"
    assert found(mirror([], "NotRegistered", "demo-prod")) == recreate
    assert found(mirror([], "NotRegistered", "demo-prod", "demo-eu"))[0] == "error"


def test_a_copy_of_a_workspace_is_reported_as_such() -> None:
    found = examined(core_ready=False, stopped=True, original="/w/o x")
    name, severity, advice = only(found)
    assert (name, severity) == ("core/demo", "info")
    assert "--workspace '/w/o x'" in advice


def test_credentials_readable_by_other_users_are_reported() -> None:
    found = examined(exposed=["/w/creds/gcp.json"], core_ready=False)
    assert [each.id for each in findings(found)] == [
        "core/demo-core",
        "credential//w/creds/gcp.json",
    ]


def test_the_chmod_command_for_a_readable_credential_quotes_the_path() -> None:
    (found,) = findings(examined(exposed=["/w/my creds/gcp.json"]))
    assert found.next == "chmod 600 '/w/my creds/gcp.json'"


def test_an_outdated_backup_is_reported() -> None:
    for ready in (True, False):
        found = examined(core_ready=ready)
        behind = dataclasses.replace(found, not_backed_up="the remote wants a credential")
        (one,) = [each for each in findings(behind) if each.id.startswith("backup/")]
        assert (one.id, one.severity, one.next) == ("backup/demo", "warning", "ucp start")
        assert "the remote wants a credential" in one.message


def test_findings_are_sorted_by_severity() -> None:
    found = examined(environments=["prod"], clusters=[refused("Forgotten"), refused("Odd")])
    assert [each.severity for each in findings(found)] == ["error", "warning", "info"]


REFUSED = "ClusterRole is not permitted in project applications"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            REFUSED,
            "remove the object from gitops/demo/apps/apps/web/overlays/stage, commit and push; "
            "gitops/demo/core/projects/applications.yaml lists the kinds that apps may contain",
        ),
        (
            "Deployment.apps is invalid: spec.replicas: must be greater than or equal to 0",
            "fix gitops/demo/apps/apps/web/overlays/stage, commit and push",
        ),
        (
            "admission webhook denied the request: image is not pinned",
            "change the object in gitops/demo/apps/apps/web/overlays/stage to comply",
        ),
        (
            'no matches for kind "Rollout" in version "argoproj.io/v1alpha1"',
            "set addons: {argo-rollouts: true} in ucp.yaml, then ucp start",
        ),
        (
            "The Kubernetes API could not find argoproj.io/Rollout for requested resource web/web.",
            "set addons: {argo-rollouts: true} in ucp.yaml, then ucp start",
        ),
        (
            'find x/Y for requested resource. Make sure the "Y" CRD is installed on the '
            "destination cluster.",
            "install the CRD of this kind on the cluster, or remove the object",
        ),
        (
            'no matches for kind "Certificate" in version "cert-manager.io/v1"',
            "install the CRD of this kind on the cluster, or remove the object",
        ),
        (
            'namespaces "team" not found',
            "add a Namespace with this name to gitops/demo/apps/apps/web/overlays/stage, or",
        ),
        (
            'pods "web" is forbidden: error looking up service account web/app: serviceaccount '
            '"app" not found',
            "add the ServiceAccount to gitops/demo/apps/apps/web/overlays/stage, or correct",
        ),
        ("back-off restarting", "kubectl --kubeconfig /w/demo-stage.yaml -n web get events,pods"),
    ],
)
def test_the_next_command_of_a_failed_sync_names_the_file_or_the_cluster(
    message: str, expected: str
) -> None:
    """Argo CD retries the sync forever, in the phase Running."""
    failed = {"kind": "ClusterRole", "name": "a", "status": "SyncFailed", "message": message}
    operation = {"phase": "Running", "retryCount": 2, "syncResult": {"resources": [failed]}}
    item = {
        "metadata": {"name": "web-stage", "labels": {"k8s-ucp.io/app": "web"}},
        "spec": {
            "project": "applications",
            "source": {"path": "apps/web/overlays/stage"},
            "destination": {"name": "demo-stage", "namespace": "web"},
        },
        "status": {
            "sync": {"status": "OutOfSync"},
            "health": {"status": "Missing"},
            "operationState": operation,
        },
    }
    (found,) = findings(examined(applications=[item]))
    assert (found.id, found.severity) == ("application/web-stage", "error")
    assert f"ClusterRole a: {message}" in found.message
    assert found.next.startswith(expected)
    if "argo-rollouts" in expected:
        spec = TOPOLOGY.spec
        addons = spec.addons.model_copy(update={"argo_rollouts": True})
        there = TOPOLOGY.model_copy(update={"spec": spec.model_copy(update={"addons": addons})})
        assert of_application(item, there, "/w/core.yaml") == "ucp start"


def test_the_advice_for_a_team_application_names_the_clone_of_the_team() -> None:
    item = {
        "metadata": {"name": "core-shop", "labels": {"k8s-ucp.io/team": "shop"}},
        "spec": {"source": {"path": "claims"}},
        "status": {"conditions": [{"type": "ComparisonError", "message": "helm failed"}]},
    }
    advice = of_application(item, TOPOLOGY, "/w/core.yaml")
    assert advice.startswith("fix gitops/demo/team-shop/claims, commit and push")


@pytest.mark.parametrize(
    ("cluster", "advice"),
    [
        ("demo-stage", "ucp recreate --env stage"),
        ("in-cluster", "ucp stop --delete-data, then ucp recreate"),
    ],
)
def test_damaged_objects_of_a_simulated_cluster_are_replaced_with_it(
    cluster: str, advice: str
) -> None:
    """Starting again, the advice for a cluster that Argo CD can't read, does not help."""
    message = (
        'failed to get cluster info for "https://127.0.0.1:27940": failed to load initial state of '
        "resource Deployment.apps: failed to list resources: proto: wrong wireType = 0"
    )
    item = {
        "metadata": {"name": "web-stage"},
        "spec": {"destination": {"name": cluster}},
        "status": {"conditions": [{"type": "ComparisonError", "message": message}]},
    }
    assert of_application(item, TOPOLOGY, "/w/core.yaml").endswith(f"is damaged: {advice}")
    real = default(core=CoreCluster(provider="kind"), providers={"stage": "kind"})
    assert "damaged" not in of_application(item, real, "/w/core.yaml")


def test_a_project_that_was_deleted_and_is_still_used_gets_a_command_that_restores_it() -> None:
    project = {
        "kind": "AppProject",
        "namespace": "argocd",
        "name": "ucp-web",
        "status": "Synced",
        "health": {"status": "Progressing", "message": "Pending deletion"},
    }
    status = {"sync": {"status": "Synced"}, "health": {"status": "Progressing"}}
    item = {"metadata": {"name": "root"}, "status": {**status, "resources": [project]}}
    (found,) = findings(examined(applications=[item]))
    assert "-n argocd patch appproject ucp-web --type merge" in found.next


def test_an_experiment_without_duration_is_reported_with_the_field_to_set() -> None:
    running = {
        "group": "argoproj.io",
        "kind": "Experiment",
        "namespace": "web",
        "name": "canary",
        "health": {"status": "Progressing", "message": "Experiment is running"},
    }
    item = {
        "metadata": {"name": "web-stage", "labels": {"k8s-ucp.io/app": "web"}},
        "spec": {"source": {"path": "apps/web/overlays/stage"}},
        "status": {
            "sync": {"status": "Synced"},
            "health": {"status": "Progressing"},
            "resources": [running],
        },
    }
    (finding,) = findings(examined(applications=[item]))
    assert "Experiment web/canary (Experiment is running; without spec.dur" in finding.message
    assert finding.next.startswith(
        "set spec.duration of the Experiment in gitops/demo/apps/apps/web/overlays/stage, commit"
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Kustomize", " diff -k gitops/demo/apps/apps/web/overlays/stage (what differs"),
        ("Helm", " get events,pods"),
    ],
)
def test_an_application_that_stays_out_of_sync_gets_a_diff_command(
    source: str, expected: str
) -> None:
    differs = {"kind": "StatefulSet", "namespace": "web", "name": "db", "status": "OutOfSync"}
    status = {
        "sync": {"status": "OutOfSync"},
        "health": {"status": "Healthy"},
        "sourceType": source,
        "resources": [differs],
    }
    spec = {
        "source": {"path": "apps/web/overlays/stage"},
        "destination": {"name": "demo-stage", "namespace": "web"},
    }
    metadata = {"name": "web-stage", "labels": {"k8s-ucp.io/app": "web"}}
    (found,) = findings(
        examined(applications=[{"metadata": metadata, "spec": spec, "status": status}])
    )
    assert found.next.startswith("kubectl --kubeconfig /w/demo-stage.yaml -n web" + expected)


def test_a_failed_mirror_is_one_finding() -> None:
    """The Applications that contain it are unhealthy only because of it."""

    def progressing(name: str, sync: str = "Synced") -> dict[str, Any]:
        status = {"sync": {"status": sync}, "health": {"status": "Progressing"}}
        return {"metadata": {"name": name}, "status": status}

    condition = {"type": "Ready", "status": "False", "reason": "Taken", "message": "m"}
    syncer = {
        "metadata": {"name": "db", "namespace": "ucp-clusters"},
        "status": {"conditions": [condition]},
    }
    applications = [progressing("root"), progressing("mirrors")]
    found = findings(examined(syncers=[syncer], applications=applications))
    assert [each.id for each in found] == ["mirror/db"]
    # Any other problem of these Applications is reported.
    applications = [progressing("root"), progressing("mirrors", "OutOfSync")]
    found = findings(examined(syncers=[syncer], applications=applications))
    assert {each.id for each in found} == {"mirror/db", "application/mirrors"}
    assert [each.id for each in findings(examined(applications=[progressing("root")]))] == [
        "application/root"
    ]


@pytest.mark.parametrize(
    ("status", "reason", "found"),
    [
        ("False", "ReconcileError", ["claim/Postgres/team-a/orders"]),
        ("False", "ReconcilePaused", []),
        ("True", "ReconcileSuccess", []),
    ],
)
def test_a_claim_that_is_not_composed_is_reported_with_crossplanes_message(
    status: str, reason: str, found: list[str]
) -> None:
    condition = {"type": "Synced", "status": status, "reason": reason, "message": "no such size"}
    claim = {
        "kind": "Postgres",
        "metadata": {"name": "orders", "namespace": "team-a"},
        "status": {"conditions": [condition]},
    }
    told = findings(examined(claims=[claim]))
    assert [each.id for each in told] == found
    assert all(
        each.message == "Postgres team-a/orders is not composed: no such size" for each in told
    )


def test_a_stopped_topology_has_no_other_finding() -> None:
    component = ComponentStatus("argocd", "v1", False, "host", "not running")
    seen = dataclasses.replace(BASE, core_ready=False, stopped=True, components=[component])
    found = findings(Examined(TOPOLOGY, seen, 0.0))
    assert [(each.severity, each.message, each.next) for each in found] == [
        ("info", "demo is stopped", "ucp start")
    ]
