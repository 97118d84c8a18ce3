"""Apps that users have as Helm charts: in folders, git, chart repositories and registries."""

from __future__ import annotations

from tests.e2e.corpus.shape import NEW, OLD, Shape

_HELPERS = """\
{{- define "chart.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}
"""


def chart(name: str, version: str = "0.1.0", *, more: str = "") -> str:
    return f"apiVersion: v2\nname: {name}\nversion: {version}\n{more}"


def template(image: str, *, name: str = "{{ .Release.Name }}", replicas: str = "1") -> str:
    """A template of a Deployment. image: how the template composes its image."""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  labels: {{{{- include "chart.labels" . | nindent 4 }}}}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: {name}}}
  template:
    metadata:
      labels: {{app: {name}}}
    spec:
      containers:
        - name: main
          image: "{image}"
"""


_PARTS = "{{ .Values.image.repository }}:{{ .Values.image.tag }}"


def _values(name: str) -> str:
    return f'image:\n  repository: example.org/{name}\n  tag: "{OLD}"\n'


def _hook(name: str, when: str, image: str) -> str:
    return f"""\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{{{ .Release.Name }}}}-{name}
  annotations:
    "helm.sh/hook": {when}
    "helm.sh/hook-weight": "-5"
    "helm.sh/hook-delete-policy": before-hook-creation
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - {{name: {name}, image: "{image}"}}
"""


_FOLDER = Shape(
    "chart-folder",
    "a chart with values for each environment, notes, a test and what helm leaves out",
    {
        "Chart.yaml": chart("shop", "1.2.3", more="appVersion: '7'\ntype: application\n"),
        "values.yaml": "# What counts everywhere.\nreplicas: 1\n" + _values("chart-folder"),
        "values-stage.yaml": "replicas: 2\n",
        "values-prod.yaml": "replicas: 3\nservice: {enabled: true}\n",
        ".helmignore": "*.md\n",
        "README.md": "{{ not a template }}\n",
        "templates/_helpers.tpl": _HELPERS,
        "templates/NOTES.txt": "It runs as {{ .Release.Name }}.\n",
        "templates/web.yaml": template(_PARTS, replicas="{{ .Values.replicas }}"),
        "templates/service.yaml": """\
{{- if (.Values.service).enabled }}
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
spec:
  selector: {app: {{ .Release.Name }}}
  ports: [{port: 80}]
{{- end }}
""",
        "templates/tests/answer.yaml": """\
apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-test
  annotations: {"helm.sh/hook": test}
spec:
  restartPolicy: Never
  containers: [{name: test, image: "example.org/curl:8.0"}]
""",
        "values.schema.json": (
            '{"type": "object", "required": ["image"], '
            '"properties": {"replicas": {"type": "integer"}}}\n'
        ),
    },
    said="Helm chart shop, version 1.2.3",
)

_PARENT = Shape(
    "chart-parent",
    "a chart with a chart in charts/, a lock, a library, and hooks before and after",
    {
        "Chart.yaml": chart(
            "parent",
            more="""\
dependencies:
  - {name: cache, version: 0.2.0, repository: "https://charts.example.org", condition: cache.on}
  - {name: shared, version: 0.1.0, repository: ""}
""",
        ),
        "Chart.lock": """\
dependencies:
- name: cache
  repository: https://charts.example.org
  version: 0.2.0
- name: shared
  repository: ""
  version: 0.1.0
digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
generated: "2026-01-01T00:00:00Z"
""",
        "values.yaml": _values("chart-parent") + "cache: {on: true, size: 2}\n",
        "templates/web.yaml": template(_PARTS),
        "templates/prepare.yaml": _hook("prepare", "pre-install", _PARTS),
        "templates/migrate.yaml": _hook("migrate", "post-install,post-upgrade", _PARTS),
        "charts/shared/Chart.yaml": chart("shared", more="type: library\n"),
        "charts/shared/templates/_labels.tpl": _HELPERS,
        "charts/cache/Chart.yaml": chart("cache", "0.2.0"),
        "charts/cache/values.yaml": "size: 1\n",
        "charts/cache/templates/cache.yaml": """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Release.Name }}-cache"}
spec:
  replicas: {{ .Values.size }}
  serviceName: cache
  selector: {matchLabels: {app: cache}}
  template:
    metadata: {labels: {app: cache}}
    spec: {containers: [{name: cache, image: "example.org/cache:5.0"}]}
""",
    },
    said="Helm chart parent, version 0.1.0",
    images=(f"example.org/chart-parent:{NEW}", "example.org/cache:5.0"),
    before=(f"example.org/chart-parent:{OLD}", "example.org/cache:5.0"),
    quick=True,
)


def _remote(name: str) -> dict[str, str]:
    return {
        "Chart.yaml": chart(name, OLD),
        "values.yaml": f"image: {{repository: example.org/{name}, tag: ''}}\nextra: []\n",
        "templates/_helpers.tpl": _HELPERS,
        "templates/web.yaml": template(
            "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.Version }}"
        ),
    }


_HTTP = Shape(
    "chart-http",
    "a chart of a chart repository, whose version is promoted",
    _remote("chart-http"),
    said=f"Helm chart chart-http, version {OLD}",
    source="http",
    promoted={"chartVersion": NEW},
    newer={"Chart.yaml": chart("chart-http", NEW)},
)

_OCI = Shape(
    "chart-oci",
    "a chart of an OCI registry, whose version is promoted",
    _remote("chart-oci"),
    said=f"Helm chart chart-oci, version {OLD}",
    source="oci",
    promoted={"chartVersion": NEW},
    newer={
        "Chart.yaml": chart("chart-oci", NEW),
        "templates/more.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}\n",
    },
)

_GIT = Shape(
    "chart-git",
    "a chart in a folder of a git repository, beside another",
    {
        "charts/web/Chart.yaml": chart("web", more='appVersion: "1.0.0"\n'),
        "charts/web/values.yaml": "image: {repository: example.org/chart-git, tag: ''}\n",
        "charts/web/templates/_helpers.tpl": _HELPERS,
        "charts/web/templates/web.yaml": template(
            "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        ),
        "charts/other/Chart.yaml": chart("other"),
    },
    said="Helm chart web, version 0.1.0",
    source="git",
    path="charts/web",
)

_REGISTRY = Shape(
    "chart-registry",
    "a chart whose image has a registry, a repository, a tag and a digest",
    {
        "Chart.yaml": chart("registry"),
        "values.yaml": (
            "global: {imageRegistry: ''}\n"
            "image:\n  registry: example.org\n  repository: chart-registry\n"
            f"  tag: {OLD}\n  digest: ''\n  pullPolicy: IfNotPresent\n  pullSecrets: []\n"
        ),
        "templates/_helpers.tpl": _HELPERS,
        "templates/web.yaml": template(
            "{{ .Values.global.imageRegistry | default .Values.image.registry }}/"
            "{{ .Values.image.repository }}"
            "{{ if .Values.image.digest }}@{{ .Values.image.digest }}"
            "{{ else }}:{{ .Values.image.tag }}{{ end }}"
        ),
    },
    said="Helm chart registry",
)

_FLAT = Shape(
    "chart-flat",
    "a chart whose image is one text, and another whose tag stands beside it",
    {
        "Chart.yaml": chart("flat"),
        "values.yaml": (
            f'image: "example.org/chart-flat:{OLD}"\n'
            f"worker:\n  image: example.org/worker\n  imageTag: {OLD}\n"
        ),
        "templates/_helpers.tpl": _HELPERS,
        "templates/web.yaml": template("{{ .Values.image }}"),
        "templates/worker.yaml": template(
            "{{ .Values.worker.image }}:{{ .Values.worker.imageTag }}",
            name="{{ .Release.Name }}-worker",
        ),
    },
    said="Helm chart flat",
    promoted={"images": {"example.org/chart-flat": NEW, "example.org/worker": NEW}},
    images=(f"example.org/chart-flat:{NEW}", f"example.org/worker:{NEW}"),
    before=(f"example.org/chart-flat:{OLD}", f"example.org/worker:{OLD}"),
)

_DEEP = Shape(
    "chart-deep",
    "a chart with images deep in its values, and its own kinds in crds/",
    {
        "Chart.yaml": chart("deep"),
        "values.yaml": f"""\
web:
  image: {{repository: example.org/chart-deep, tag: "{OLD}"}}
jobs:
  worker:
    image:
      repository: example.org/deep-worker
      tag: "{OLD}"
""",
        "crds/trip.yaml": """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trips.deep.example.org}
spec:
  group: deep.example.org
  scope: Namespaced
  names: {kind: Trip, listKind: TripList, plural: trips, singular: trip}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
""",
        "templates/_helpers.tpl": _HELPERS,
        "templates/web.yaml": template(
            "{{ .Values.web.image.repository }}:{{ .Values.web.image.tag }}"
        ),
        "templates/worker.yaml": template(
            "{{ with .Values.jobs.worker.image }}{{ .repository }}:{{ .tag }}{{ end }}",
            name="{{ .Release.Name }}-worker",
        ),
        "templates/trip.yaml": (
            "{apiVersion: deep.example.org/v1, kind: Trip, metadata: {name: first}, far: true}\n"
        ),
    },
    said="Helm chart deep",
    flags=("--cluster-kind", "CustomResourceDefinition"),
    promoted={"images": {"web.image.tag": NEW, "example.org/deep-worker": NEW}},
    images=(f"example.org/chart-deep:{NEW}", f"example.org/deep-worker:{NEW}"),
    before=(f"example.org/chart-deep:{OLD}", f"example.org/deep-worker:{OLD}"),
)

CHARTS = (_FOLDER, _PARENT, _HTTP, _OCI, _GIT, _REGISTRY, _FLAT, _DEEP)
