"""Apps that users have as kustomizations."""

from __future__ import annotations

from tests.e2e.corpus.shape import NEW, OLD, Shape, documents, pod, service, workload

_SIMPLE = "resources: [deployment.yaml, service.yaml]\n"


def _web(name: str, folder: str = "") -> dict[str, str]:
    return {
        f"{folder}deployment.yaml": workload(name),
        f"{folder}service.yaml": service(name),
    }


def _patch(name: str, replicas: int) -> str:
    return (
        "apiVersion: apps/v1\nkind: Deployment\n"
        f"metadata: {{name: {name}}}\nspec: {{replicas: {replicas}}}\n"
    )


_OVERLAYS = Shape(
    "kz-overlays",
    "a base and an overlay for each environment, with tags of their own",
    {
        **_web("kz-overlays", "base/"),
        "base/kustomization.yaml": _SIMPLE,
        **{
            f"overlays/{environment}/{path}": text
            for environment, replicas in (("stage", 1), ("prod", 3))
            for path, text in {
                "kustomization.yaml": f"""\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../base]
labels:
  - pairs: {{tier: {environment}}}
patches:
  - path: replicas.yaml
images:
  - name: example.org/kz-overlays
    newTag: "{OLD}"
""",
                "replicas.yaml": _patch("kz-overlays", replicas),
            }.items()
        },
    },
    said="kustomization with overlays for prod, stage",
)

_NESTED = Shape(
    "kz-nested",
    "bases that take in bases, one of them from beside the folder",
    {
        "deploy/kustomization.yaml": "resources: [web, ../shared, extra.yaml]\n",
        "deploy/extra.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}}\n",
        "deploy/web/kustomization.yml": "resources: [parts]\nnamePrefix: my-\n",
        "deploy/web/parts/Kustomization": _SIMPLE,
        **_web("kz-nested", "deploy/web/parts/"),
        "shared/kustomization.yaml": "resources: [settings.yaml]\n",
        "shared/settings.yaml": (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: info}}\n"
        ),
    },
    path="deploy",
)

_COMPONENTS = Shape(
    "kz-components",
    "components that add a sidecar, a ConfigMap and an image's version",
    {
        "base/deployment.yaml": workload("kz-components", "example.org/kz-components:0.9.0"),
        "base/kustomization.yaml": "resources: [deployment.yaml]\n",
        "components/metrics/kustomization.yaml": """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
configMapGenerator:
  - name: metrics
    literals: [port=9090]
patches:
  - target: {kind: Deployment}
    patch: |
      - op: add
        path: /spec/template/spec/containers/-
        value:
          name: exporter
          image: example.org/exporter:0.3.0
          envFrom: [{configMapRef: {name: metrics}}]
""",
        "components/release/kustomization.yaml": f"""\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
images:
  - {{name: example.org/kz-components, newTag: "{OLD}"}}
""",
        **{
            f"overlays/{each}/kustomization.yaml": (
                "resources: [../../base]\n"
                "components: [../../components/metrics, ../../components/release]\n"
            )
            for each in ("stage", "prod")
        },
    },
    said="overlays for prod, stage",
    promoted={"images": {"example.org/kz-components": NEW}},
    images=(f"example.org/kz-components:{NEW}", "example.org/exporter:0.3.0"),
    before=(f"example.org/kz-components:{OLD}", "example.org/exporter:0.3.0"),
)

_REMOTE = Shape(
    "kz-remote",
    "a remote base in another git repository, at a commit",
    {
        "kustomization.yaml": f"""\
resources:
  - {{REMOTE}}
nameSuffix: -eu
images:
  - name: example.org/kz-remote
    newTag: "{OLD}"
""",
    },
    quick=True,
)

REMOTE_BASE = {
    "deploy/base/kustomization.yaml": _SIMPLE,
    "deploy/base/deployment.yaml": workload("kz-remote", "example.org/kz-remote:0.1.0"),
    "deploy/base/service.yaml": service("kz-remote"),
}
"""Files of the repository that `{REMOTE}` refers to."""

_GENERATORS = Shape(
    "kz-generators",
    "generated ConfigMaps and Secrets, with hashes in their names and a suffix",
    {
        "kustomization.yaml": """\
resources: [deployment.yaml]
nameSuffix: -blue
configMapGenerator:
  - name: settings
    files: [app.properties, page.html=files/index.html]
  - name: flags
    envs: [flags.env]
secretGenerator:
  - name: login
    type: Opaque
    literals: [user=reader, password=not-secret]
generatorOptions:
  labels: {made: here}
""",
        "app.properties": "color=blue\nsize=3\n",
        "files/index.html": "<h1>Hello</h1>\n",
        "flags.env": "FAST=1\nSAFE=1\n",
        "deployment.yaml": f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: kz-generators}}
spec:
  selector: {{matchLabels: {{app: kz-generators}}}}
  template:
    metadata: {{labels: {{app: kz-generators}}}}
    spec:
      containers:
        - name: main
          image: example.org/kz-generators:{OLD}
          envFrom:
            - configMapRef: {{name: flags}}
          env:
            - name: PASSWORD
              valueFrom: {{secretKeyRef: {{name: login, key: password}}}}
          volumeMounts:
            - {{name: settings, mountPath: /settings}}
      volumes:
        - name: settings
          configMap: {{name: settings, items: [{{key: page.html, path: index.html}}]}}
""",
    },
)

_IMAGES = Shape(
    "kz-images",
    "images under several names, one of them renamed",
    {
        "kustomization.yaml": f"""\
resources: [all.yaml]
images:
  - name: front
    newName: example.org/front
    newTag: "{OLD}"
  - {{name: example.org/back, newTag: "{OLD}"}}
""",
        "all.yaml": documents(
            workload("front", "front:dev"),
            workload("back", "example.org/back:0.9"),
            workload("cache", f"example.org/cache:{OLD}"),
        ),
    },
    promoted={"images": {f"example.org/{each}": NEW for each in ("front", "back", "cache")}},
    images=tuple(f"example.org/{each}:{NEW}" for each in ("front", "back", "cache")),
    before=tuple(f"example.org/{each}:{OLD}" for each in ("front", "back", "cache")),
)

_PATCHES = Shape(
    "kz-patches",
    "replicas, patches of three kinds and replacements",
    {
        "kustomization.yaml": """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [deployment.yaml, service.yaml]
replicas:
  - {name: kz-patches, count: 2}
patches:
  - path: strategic.yaml
  - target: {kind: Service, name: kz-patches}
    path: port.yaml
  - target: {labelSelector: app=kz-patches}
    patch: |-
      - op: add
        path: /metadata/annotations
        value: {example.org/patched: "true"}
replacements:
  - source: {kind: Service, name: kz-patches, fieldPath: metadata.name}
    targets:
      - select: {kind: Deployment}
        fieldPaths: ["spec.template.spec.containers.[name=main].env.[name=PEER].value"]
""",
        "strategic.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: kz-patches}
spec:
  template:
    spec:
      containers:
        - name: main
          env: [{name: PEER, value: unset}]
          resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
""",
        "port.yaml": "- {op: replace, path: /spec/ports/0/port, value: 8000}\n",
        **_web("kz-patches"),
    },
)

_NAMESPACE = Shape(
    "kz-namespace",
    "a kustomization that sets a namespace of another name",
    {
        "kustomization.yaml": "namespace: kz-elsewhere\n" + _SIMPLE,
        **_web("kz-namespace"),
    },
    flags=("--namespace", "kz-elsewhere"),
)

_REPOSITORY = Shape(
    "kz-git",
    "a kustomization in a folder of a git repository, taken at a tag",
    {
        "README.md": "Not a manifest.\n",
        "k8s/kustomization.yaml": "resources: [web.yaml, cron.yaml]\n",
        "k8s/web.yaml": workload("kz-git"),
        "k8s/cron.yaml": f"""\
apiVersion: batch/v1
kind: CronJob
metadata: {{name: clean}}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec: {pod(f"example.org/kz-git:{OLD}", more=", restartPolicy: OnFailure")}
""",
    },
    source="git",
    path="k8s",
    flags=("--ref", "v1.0"),
)

KUSTOMIZATIONS = (
    Shape("kz-yaml", "kustomization.yaml", {"kustomization.yaml": _SIMPLE, **_web("kz-yaml")}),
    Shape(
        "kz-yml",
        "kustomization.yml",
        {"kustomization.yml": _SIMPLE, **_web("kz-yml")},
    ),
    Shape("kz-bare", "Kustomization", {"Kustomization": _SIMPLE, **_web("kz-bare")}),
    _OVERLAYS,
    _NESTED,
    _COMPONENTS,
    _REMOTE,
    _GENERATORS,
    _IMAGES,
    _PATCHES,
    _NAMESPACE,
    _REPOSITORY,
)
