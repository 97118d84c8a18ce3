"""Workloads of an embedded cluster: one of each kind becomes what Argo CD calls healthy.

Workloads with an annotation for a failure fail. One control plane is used for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.cluster_provider import ClusterRequest
from k8s_ucp.clusters.embedded import api_server, definition_edits
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.provider import EmbeddedProvider
from k8s_ucp.inspect.pods.problems import find_pod_problems, reason_and_pods
from k8s_ucp.kube import NODE, SERVICE_ACCOUNT, Kind, Kube, KubeError
from k8s_ucp.topology import default
from k8s_ucp.workspace import write_private_file
from tests.control_planes import eventually, quiet

pytestmark = pytest.mark.engines

Status = dict[str, Any]

OBJECTS = """
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration,
 metadata: {name: web}, webhooks: [{name: pods.example.org, failurePolicy: Fail,
   admissionReviewVersions: [v1], sideEffects: None,
   clientConfig: {service: {name: web, namespace: default}},
   rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: default},
 spec: {type: LoadBalancer, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: broken, namespace: default,
   annotations: {k8s-ucp.io/simulate: fail}},
 spec: {type: LoadBalancer, ports: [{port: 80}]}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: default},
 spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: plain, namespace: default},
 spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: classy, namespace: default},
 spec: {storageClassName: late, accessModes: [ReadWriteMany],
   resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: late},
 provisioner: example.org/disk, volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: store, namespace: default},
 spec: {replicas: 2, serviceName: web, selector: {matchLabels: {app: store}},
   template: {metadata: {labels: {app: store}},
     spec: {containers: [{name: main, image: store}]}},
   volumeClaimTemplates: [{metadata: {name: data},
     spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: default},
 spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}},
   spec: {nodeSelector: {kubernetes.io/os: linux}, containers: [{name: main, image: agent}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: migrate, namespace: default},
 spec: {template: {spec: {restartPolicy: OnFailure, containers: [{name: main, image: job}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: broken, namespace: default},
 spec: {backoffLimit: 0, template: {metadata: {annotations: {k8s-ucp.io/simulate: fail}},
   spec: {restartPolicy: Never, containers: [{name: main, image: job}]}}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: report, namespace: default},
 spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {
   restartPolicy: Never, containers: [{name: main, image: job}]}}}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: hook, namespace: default},
 spec: {restartPolicy: Never, containers: [{name: main, image: hook}]}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler,
 metadata: {name: web, namespace: default},
 spec: {minReplicas: 2, maxReplicas: 5,
   scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: good},
   metrics: [{type: Resource,
     resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: default},
 spec: {minAvailable: 1, selector: {matchLabels: {app: good}}}}
"""


def deployed(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    labels = {"app": name}
    probe = {"httpGet": {"path": "/", "port": 80}}
    # Scheduled only on nodes that report ephemeral storage and a zone.
    disk = {"requests": {"ephemeral-storage": "1Gi"}}
    spread = {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    main = {"name": "main", "image": "app", "readinessProbe": probe, "resources": disk}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "progressDeadlineSeconds": 5,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {
                    "initContainers": [
                        {"name": "first", "image": "init"},
                        {"name": "beside", "image": "sidecar", "restartPolicy": "Always"},
                    ],
                    "containers": [main],
                    "topologySpreadConstraints": [
                        {**spread, "maxSkew": 1, "labelSelector": {"matchLabels": labels}}
                    ],
                },
            },
        },
    }


def conditions(status: Status) -> dict[str, str]:
    return {each["type"]: each["status"] for each in status.get("conditions", [])}


def waits(status: Status) -> str:
    (container,) = status.get("containerStatuses") or [{}]
    return str(container.get("state", {}).get("waiting", {}).get("reason"))


SERVICES, CLAIMS = Kind("v1", "Service", "services"), Kind("v1", "PVC", "persistentvolumeclaims")
PODS = Kind("v1", "Pod", "pods")
DEPLOYMENTS = Kind("apps/v1", "Deployment", "deployments")
SETS = Kind("apps/v1", "StatefulSet", "statefulsets")
JOBS = Kind("batch/v1", "Job", "jobs")
WANTED: list[tuple[Kind, str, Callable[[Status], object]]] = [
    (SERVICES, "web", lambda it: it["loadBalancer"]["ingress"][0]["ip"].startswith("192.0.2.")),
    (
        Kind("networking.k8s.io/v1", "Ingress", "ingresses"),
        "web",
        lambda it: it["loadBalancer"].get("ingress"),
    ),
    (CLAIMS, "plain", lambda it: it["phase"] == "Bound"),
    (CLAIMS, "classy", lambda it: it["phase"] == "Bound"),
    (CLAIMS, "data-store-1", lambda it: it["phase"] == "Bound"),
    (
        SETS,
        "store",
        lambda it: it.get("readyReplicas") == 2,
    ),
    (Kind("apps/v1", "DaemonSet", "daemonsets"), "agent", lambda it: it["numberAvailable"] == 3),
    (JOBS, "migrate", lambda it: conditions(it)["Complete"] == "True"),
    (PODS, "hook", lambda it: it["phase"] == "Succeeded"),
    (
        Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        "web",
        lambda it: (
            conditions(it)["ScalingActive"] == "True"
            and it["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 40
        ),
    ),
    (
        Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        "web",
        lambda it: conditions(it)["DisruptionAllowed"] == "False" and it["currentHealthy"] == 1,
    ),
    (DEPLOYMENTS, "good", lambda it: it.get("availableReplicas") == 1),
    (DEPLOYMENTS, "late", lambda it: it.get("availableReplicas") == 1),
    # Expected failures: Argo CD calls each of these Degraded.
    (JOBS, "broken", lambda it: conditions(it)["Failed"] == "True"),
    (DEPLOYMENTS, "crash", lambda it: conditions(it)["Progressing"] == "False"),
    (DEPLOYMENTS, "unpulled", lambda it: conditions(it)["Progressing"] == "False"),
    (DEPLOYMENTS, "fading", lambda it: conditions(it)["Available"] == "False"),
    # Last, because it takes up to a minute.
    (Kind("batch/v1", "CronJob", "cronjobs"), "report", lambda it: it.get("lastSuccessfulTime")),
]


ROUTING = (
    Kind("gateway.networking.k8s.io/v1", "Gateway", "gateways"),
    Kind("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes"),
)
ROUTED = """
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway,
 metadata: {name: web, namespace: default},
 spec: {gatewayClassName: any, listeners: [{name: http, port: 80, protocol: HTTP}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute,
 metadata: {name: web, namespace: default}, spec: {parentRefs: [{name: web}]}}
"""


APART = YAML(typ="safe").load("""
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: apart, namespace: default},
 spec: {replicas: 5, serviceName: web, selector: {matchLabels: {app: apart}},
   template: {metadata: {labels: {app: apart}},
     spec: {containers: [{name: main, image: apart}],
       affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution:
         [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: apart}}}]}}}}}}
""")
APPLICATION = {
    "metadata": {"name": "apart-one"},
    "spec": {"destination": {"name": "demo-one", "namespace": "default"}},
    "status": {"sync": {"status": "Synced"}},
}


def definition(kind: Kind) -> dict[str, Any]:
    """A minimal CRD for a kind of the Gateway API, whose objects can have a status."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "kind": kind.kind,
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "listKind": f"{kind.kind}List",
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": anything, "status": anything},
                        }
                    },
                }
            ],
        },
    }


def accepted(status: Status) -> bool:
    """By Argo CD's rules: all conditions of a Gateway, those of the parents for a route."""
    found = [status, *status.get("parents", []), *status.get("listeners", [])]
    states = [value for each in found for value in conditions(each).values()]
    return bool(states) and set(states) == {"True"}


def applied(kube: Kube, item: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return kube.apply(item)
    except KubeError:
        return None


def ready(kube: Kube) -> int:
    return sum(conditions(node["status"]).get("Ready") == "True" for node in kube.list_all(NODE))


def test_objects_of_every_common_kind_become_healthy_or_fail_as_annotated(
    provider: EmbeddedProvider, folder: ClusterFolder, tmp_path: Path
) -> None:
    provider.create(ClusterRequest("one", parameters={"nodes": "3"}), quiet)
    kube = Kube(provider.kubeconfig("one"))
    eventually(lambda: ready(kube) == 3, lambda: ready(kube))
    # A Pod in a namespace without its default ServiceAccount is rejected.
    eventually(lambda: kube.find(SERVICE_ACCOUNT, "default", "default") is not None)
    for item in YAML(typ="safe").load_all(OBJECTS):
        kube.apply(item)
    how, late = "k8s-ucp.io/simulate", "k8s-ucp.io/simulate-delay"
    for name, marks in {
        "good": {},
        "late": {how: "slow", late: "2s"},
        "crash": {how: "crash-loop"},
        "unpulled": {how: "image-pull-error"},
        "fading": {how: "crash-loop", late: "2s"},
    }.items():
        kube.apply(deployed(name, marks))

    def state(kind: Kind, name: str) -> Status:
        found = kube.find(kind, name, "default")
        return dict(found.get("status") or {}) if found else {}

    def done(kind: Kind, name: str, well: Callable[[Status], object]) -> bool:
        try:
            return bool(well(state(kind, name)))
        except (KeyError, IndexError):
            return False

    for kind, name, well in WANTED:
        eventually(
            lambda kind=kind, name=name, well=well: done(kind, name, well),
            lambda kind=kind, name=name: (kind.plural, name, state(kind, name)),
        )
    waiting = {
        each["metadata"]["labels"]["app"]: waits(each["status"])
        for each in kube.list_all(PODS, "default")
        if "app" in each["metadata"].get("labels", {})
    }
    assert waiting["crash"] == waiting["fading"] == "CrashLoopBackOff"
    assert waiting["unpulled"] == "ImagePullBackOff"
    assert "ingress" not in state(SERVICES, "broken")["loadBalancer"]

    # A volume is deleted with its claim.
    volumes = Kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
    before = len(kube.list_all(volumes))
    kube.delete(CLAIMS, "plain", "default")
    eventually(lambda: len(kube.list_all(volumes)) == before - 1, lambda: kube.list_all(volumes))

    # CRDs of the Gateway API that are installed later are noticed and simulated from then on.
    assert not provider.state("one").outdated
    for kind in ROUTING:
        kube.apply(definition(kind))
    eventually(lambda: len(api_server.gateway_kinds(kube) or ()) == 2)
    assert provider.state("one").outdated
    provider.create(ClusterRequest("one", parameters={"nodes": "3"}), quiet)
    for item in YAML(typ="safe").load_all(ROUTED):
        # A new CRD is served a moment later.
        eventually(lambda item=item: bool(applied(kube, item)))
    for kind in ROUTING:
        eventually(
            lambda kind=kind: done(kind, "web", accepted),
            lambda kind=kind: (kind.plural, state(kind, "web")),
        )

    # Pods with anti-affinity need a node each, and the scheduler's message is reported.
    kube.apply(APART)
    file = tmp_path / "one.yaml"
    write_private_file(file, json.dumps(provider.kubeconfig("one")))

    def told() -> str:
        found = find_pod_problems(default("demo", ["one"]), [APPLICATION], {"demo-one": file})
        return reason_and_pods(APPLICATION, found)

    eventually(lambda: "match pod anti-affinity rules" in told(), told)
    assert "set nodes: 5 for the cluster of environment one" in told()

    # A rerun finds nothing to change; then nodes are added.
    assert not provider.state("one").outdated
    assert definition_edits.update(folder, None) == []
    provider.create(ClusterRequest("one", parameters={"nodes": "5"}), quiet)
    eventually(lambda: ready(kube) == 5, lambda: ready(kube))
    eventually(
        lambda: done(SETS, "apart", lambda status: status["readyReplicas"] == 5),
        lambda: state(SETS, "apart"),
    )
    assert not told()
