"""Apps as plain manifests, with kinds other than Deployments and Services."""

from __future__ import annotations

from tests.e2e.corpus.shape import OLD, Shape, documents, pod, service, workload

_SAID = "plain manifests"


def _crd(group: str, kind: str, plural: str, version: str, *, more: str = "") -> str:
    """A CRD whose objects accept any field. more: further lines of its metadata."""
    scope = "Cluster" if kind.endswith("Class") else "Namespaced"
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.{group}
{more}spec:
  group: {group}
  scope: {scope}
  names: {{kind: {kind}, listKind: {kind}List, plural: {plural}, singular: {kind.lower()}}}
  versions:
    - name: {version}
      served: true
      storage: true
      subresources: {{status: {{}}}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
            status: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


_OPERATOR = Shape(
    "operator",
    "kinds of its own, the operator for them with its rights, and an object of such a kind",
    {
        "crd.yaml": _crd("boats.example.org", "Ferry", "ferries", "v1"),
        "rights.yaml": documents(
            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: operator}}",
            """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ferry-operator}
rules:
  - {apiGroups: [boats.example.org], resources: ["*"], verbs: ["*"]}
  - {apiGroups: [""], resources: [configmaps, secrets], verbs: [get, list, watch]}
""",
            """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ferry-operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ferry-operator}
subjects: [{kind: ServiceAccount, name: operator, namespace: operator}]
""",
        ),
        "operator.yaml": workload("operator"),
        "ferry.yaml": """\
apiVersion: boats.example.org/v1
kind: Ferry
metadata: {name: north}
spec: {seats: 120, routes: [{from: a, to: b}]}
""",
    },
    said=_SAID,
    flags=tuple(
        word
        for kind in ("ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition")
        for word in ("--cluster-kind", kind)
    ),
)

_STATEFUL = Shape(
    "stateful",
    "a StatefulSet with volumes of its own and a headless Service",
    {
        "all.yaml": documents(
            workload(
                "stateful",
                kind="StatefulSet",
                more="""\
  serviceName: stateful
  replicas: 2
  volumeClaimTemplates:
    - metadata: {name: data}
      spec:
        accessModes: [ReadWriteOnce]
        resources: {requests: {storage: 1Gi}}
""",
            ).replace(
                'image: "example.org/stateful:1.0.0"',
                'image: "example.org/stateful:1.0.0", volumeMounts: [{name: data, mountPath: /d}], '
                "env: [{name: GOMEMLIMIT, "
                "valueFrom: {resourceFieldRef: {resource: limits.memory}}}]",
            ),
            service("stateful", more="  clusterIP: None\n"),
        )
    },
    said=_SAID,
    quick=True,
)

_DAEMON = Shape(
    "daemon",
    "a DaemonSet on every node",
    {
        "all.yaml": workload(
            "daemon", kind="DaemonSet", more="  updateStrategy: {type: RollingUpdate}\n"
        ).replace("spec: {cont", "spec: {tolerations: [{operator: Exists}], cont")
    },
    said=_SAID,
)

_CRON = Shape(
    "cron",
    "a CronJob alone",
    {
        "cron.yaml": f"""\
apiVersion: batch/v1
kind: CronJob
metadata: {{name: cron}}
spec:
  schedule: "*/5 * * * *"
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      template:
        spec: {pod(f"example.org/cron:{OLD}", more=", restartPolicy: OnFailure")}
"""
    },
    said=_SAID,
)

_JOB = Shape(
    "job",
    "a Job that is replaced on every sync, and one that is a hook",
    {
        "all.yaml": documents(
            *(
                f"""\
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  annotations: {{{annotation}}}
spec:
  template:
    spec: {pod(f"example.org/job:{OLD}", more=", restartPolicy: Never")}
"""
                for name, annotation in (
                    ("import", '"argocd.argoproj.io/sync-options": "Force=true,Replace=true"'),
                    ("migrate", '"argocd.argoproj.io/hook": PreSync'),
                )
            )
        )
    },
    said=_SAID,
)

_NAMESPACES = Shape(
    "spread",
    "an app in three namespaces, two of which it brings",
    {
        "namespaces.yaml": documents(
            *(
                f"{{apiVersion: v1, kind: Namespace, metadata: {{name: spread-{each}}}}}"
                for each in ("jobs", "edge")
            )
        ),
        "web.yaml": workload("spread"),
        **{
            f"{each}.yaml": workload("spread").replace(
                "  name: spread\n", f"  name: spread\n  namespace: spread-{each}\n", 1
            )
            for each in ("jobs", "edge")
        },
    },
    said=_SAID,
    flags=("--also-namespace", "spread-jobs", "--also-namespace", "spread-edge"),
)

_ROLLOUT = Shape(
    "rollout",
    "a Rollout with canary steps, in place of a Deployment",
    {
        "all.yaml": documents(
            workload(
                "rollout",
                kind="Rollout",
                more="""\
  replicas: 2
  strategy:
    canary:
      steps: [{setWeight: 50}, {pause: {duration: 1s}}]
""",
            ).replace("apps/v1", "argoproj.io/v1alpha1"),
            service("rollout"),
        )
    },
    said=_SAID,
)

_APPROVED = "  annotations: {api-approved.kubernetes.io: unapproved}\n"
_GATEWAY = Shape(
    "gateway",
    "a Gateway with a route, and the kinds that they are of",
    {
        "crds/all.yaml": documents(
            *(
                _crd("gateway.networking.k8s.io", kind, plural, "v1", more=_APPROVED)
                for kind, plural in (
                    ("GatewayClass", "gatewayclasses"),
                    ("Gateway", "gateways"),
                    ("HTTPRoute", "httproutes"),
                )
            )
        ),
        "gateway.yaml": documents(
            """\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: front}
spec: {controllerName: example.org/gateway}
""",
            """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front}
spec:
  gatewayClassName: front
  listeners: [{name: http, port: 80, protocol: HTTP}]
""",
            """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: gateway}
spec:
  parentRefs: [{name: front}]
  hostnames: [gateway.example.org]
  rules:
    - backendRefs: [{name: gateway, port: 80}]
""",
        ),
        "app.yaml": documents(workload("gateway"), service("gateway")),
    },
    said=_SAID,
    flags=("--cluster-kind", "CustomResourceDefinition", "--cluster-kind", "GatewayClass"),
)

_INGRESS = Shape(
    "ingress",
    "an Ingress with TLS from a Secret",
    {
        "all.yaml": documents(
            workload("ingress"),
            service("ingress"),
            """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ingress, annotations: {example.org/issuer: internal}}
spec:
  ingressClassName: front
  tls: [{hosts: [corpus.example.org], secretName: corpus-tls}]
  rules:
    - host: corpus.example.org
      http:
        paths:
          - {path: /, pathType: Prefix, backend: {service: {name: ingress, port: {name: http}}}}
          - {path: /api, pathType: Exact, backend: {service: {name: ingress, port: {number: 80}}}}
""",
        )
    },
    said=_SAID,
)

_BALANCER = Shape(
    "balancer",
    "a Service of type LoadBalancer, and one that is only a name",
    {
        "all.yaml": documents(
            workload("balancer"),
            service("balancer", more="  type: LoadBalancer\n  externalTrafficPolicy: Local\n"),
            """\
apiVersion: v1
kind: Service
metadata: {name: upstream}
spec: {type: ExternalName, externalName: upstream.example.org}
""",
        )
    },
    said=_SAID,
)

_SCALED = Shape(
    "scaled",
    "a HorizontalPodAutoscaler of version 2, which owns the number of replicas",
    {
        "all.yaml": documents(
            workload("scaled"),
            """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaled}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}
  minReplicas: 2
  maxReplicas: 5
  metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}
    - type: Resource
      resource: {name: memory, target: {type: AverageValue, averageValue: 64Mi}}
  behavior: {scaleDown: {stabilizationWindowSeconds: 60}}
""",
        )
    },
    said=_SAID,
)

_GUARDED = Shape(
    "guarded",
    "a disruption budget, network policies, quotas, a ServiceAccount and its rights",
    {
        "all.yaml": documents(
            workload("guarded").replace("spec: {cont", "spec: {serviceAccountName: guarded, cont"),
            """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guarded}
spec: {minAvailable: 1, selector: {matchLabels: {app: guarded}}}
""",
            """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: guarded}
spec:
  podSelector: {matchLabels: {app: guarded}}
  policyTypes: [Ingress, Egress]
  ingress: [{from: [{namespaceSelector: {}}], ports: [{port: 8080}]}]
  egress: [{}]
""",
            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: guarded}}",
            """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: guarded}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
""",
            """\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: guarded}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: guarded}
subjects: [{kind: ServiceAccount, name: guarded}]
""",
            """\
apiVersion: v1
kind: LimitRange
metadata: {name: guarded}
spec: {limits: [{type: Container, default: {memory: 64Mi}, defaultRequest: {cpu: 100m}}]}
""",
            """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: guarded}
spec: {hard: {pods: "20"}}
""",
        )
    },
    said=_SAID,
)

_VOLUMES = Shape(
    "volumes",
    "a claim that several pods share",
    {
        "all.yaml": documents(
            """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: shared-files
  resources: {requests: {storage: 5Gi}}
""",
            workload("volumes", more="  replicas: 3\n").replace(
                "spec: {cont",
                "spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: shared}}], cont",
            ),
        )
    },
    said=_SAID,
)

_SIDECARS = Shape(
    "sidecars",
    "init containers, one of which stays as a sidecar, and a container beside",
    {
        "all.yaml": f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: sidecars}}
spec:
  selector: {{matchLabels: {{app: sidecars}}}}
  template:
    metadata: {{labels: {{app: sidecars}}}}
    spec:
      initContainers:
        - {{name: migrate, image: "example.org/sidecars:{OLD}", args: [migrate]}}
        - {{name: proxy, image: "example.org/proxy:{OLD}", restartPolicy: Always}}
      containers:
        - {{name: main, image: "example.org/sidecars:{OLD}"}}
        - {{name: logs, image: "example.org/logs:{OLD}"}}
"""
    },
    said=_SAID,
    promoted={"images": {"example.org/sidecars": "2.0.0", "example.org/logs": "2.0.0"}},
    images=("example.org/sidecars:2.0.0", "example.org/proxy:1.0.0", "example.org/logs:2.0.0"),
    before=("example.org/sidecars:1.0.0", "example.org/proxy:1.0.0", "example.org/logs:1.0.0"),
)

_POD = Shape(
    "bare-pod",
    "a Pod without a controller",
    {
        "pod.yaml": f"""\
apiVersion: v1
kind: Pod
metadata: {{name: bare-pod}}
spec: {pod(f"example.org/bare-pod:{OLD}")}
"""
    },
    said=_SAID,
)

WORKLOADS = (
    *(_OPERATOR, _STATEFUL, _DAEMON, _CRON, _JOB, _NAMESPACES, _ROLLOUT, _GATEWAY, _INGRESS),
    *(_BALANCER, _SCALED, _GUARDED, _VOLUMES, _SIDECARS, _POD),
)
