"""Apps that users have as plain manifests or jsonnet."""

from __future__ import annotations

from tests.e2e.corpus.shape import OLD, Shape, documents, pod, service, workload

_DIGEST = "sha256:" + "1a" * 32
_NEW_DIGEST = "sha256:" + "2b" * 32

_PLAIN = Shape(
    "plain",
    "several documents in a file, a List, JSON, and a file in a folder below",
    {
        "all.yaml": "# What runs.\n---\n" + documents(workload("plain"), service("plain"), "\n"),
        "list.yml": """\
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: b}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: two}, data: {c: d}}
""",
        "config/three.json": (
            '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "three"}}\n'
        ),
        "README.md": "Apply all of it.\n",
    },
    said="plain manifests in 3 files",
)

_HOOKS = Shape(
    "hooks",
    "generateName and hooks of Argo CD before, during and after a sync, in waves",
    {
        "app.yaml": workload("hooks"),
        "jobs.yaml": documents(
            *(
                f"""\
apiVersion: batch/v1
kind: Job
metadata:
  {name}
  annotations:
    argocd.argoproj.io/hook: {when}
    argocd.argoproj.io/hook-delete-policy: {policy}
    argocd.argoproj.io/sync-wave: "{wave}"
spec:
  backoffLimit: 1
  template:
    spec: {pod(f"example.org/hooks:{OLD}", more=", restartPolicy: Never")}
"""
                for name, when, policy, wave in (
                    ("generateName: migrate-", "PreSync", "HookSucceeded", -1),
                    ("name: warm-up", "Sync", "BeforeHookCreation", 2),
                    ("generateName: report-", "PostSync", "BeforeHookCreation", 0),
                )
            )
        ),
    },
    said="as an Argo CD directory",
    quick=True,
)

_MESSY = Shape(
    "messy",
    "a byte order mark, CRLF, tabs after values, anchors, merge keys and comments",
    {
        "app.yaml": b"\xef\xbb\xbf"
        + f"""\
---\t# the only file
apiVersion: apps/v1
kind: Deployment\t
metadata:
  name: messy
  labels: &labels
    app: messy\t# as everywhere
spec:
  replicas: 1\t
  selector:
    matchLabels:
      <<: *labels
  template:
    metadata:
      labels: *labels
    spec:
      containers:
        - name: main
          image: 'example.org/messy:{OLD}'\t# promoted
          args:
            - >-
              --a
              --b
          env:
            - &mode {{name: MODE, value: "on"}}
            - {{name: LEVEL, value: "0755"}}
---

---
apiVersion: v1
kind: Service
metadata: {{name: messy, labels: {{app: messy}}}}
spec:
  selector:
    app: messy
  ports: [{{port: 80}}]
...
""".replace("\n", "\r\n").encode(),
    },
    said="plain manifests in 1 file",
)

_PINNED = Shape(
    "pinned",
    "an image held by its digest",
    {"app.yaml": workload("pinned", f"example.org/pinned@{_DIGEST}")},
    said="plain manifests",
    promoted={"digest": _NEW_DIGEST},
    images=(f"example.org/pinned@{_NEW_DIGEST}",),
    before=(f"example.org/pinned@{_DIGEST}",),
)

_BOTH_PINS = Shape(
    "pinned-tag",
    "an image with a tag and a digest, of a registry with a port",
    {"app.yaml": workload("pinned-tag", f"registry.example.org:5000/team/it:1.0@{_DIGEST}")},
    said="plain manifests",
    promoted={"digest": _NEW_DIGEST},
    images=(f"registry.example.org:5000/team/it@{_NEW_DIGEST}",),
    before=(f"registry.example.org:5000/team/it:1.0@{_DIGEST}",),
)

_DIRECTORY = Shape(
    "directory",
    "plain manifests that a person wants as a directory of Argo CD's",
    {"a/web.yaml": workload("directory"), "b/web.yaml": service("directory")},
    said="as an Argo CD directory",
    flags=("--as", "directory"),
)

_JSONNET = Shape(
    "jsonnet",
    "jsonnet with a library, and an argument for the version",
    {
        "main.jsonnet": """\
local app = import 'lib/app.libsonnet';

function(version='1.0.0') [
  app.deployment('jsonnet', 'example.org/jsonnet:' + version),
  app.service('jsonnet'),
]
""",
        "lib/app.libsonnet": """\
{
  deployment(name, image):: {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: name },
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'main', image: image }] },
      },
    },
  },
  service(name):: {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: name },
    spec: { selector: { app: name }, ports: [{ port: 80 }] },
  },
}
""",
    },
    said="jsonnet",
    committed={
        ".promotion.yaml": (
            "targets:\n  - {image: version, file: .argocd-source.yaml, "
            "path: directory.jsonnet.tlas.0.value}\n"
        ),
        **{
            f"overlays/{each}/.argocd-source.yaml": (
                f'directory: {{jsonnet: {{tlas: [{{name: version, value: "{OLD}"}}]}}}}\n'
            )
            for each in ("stage", "prod")
        },
    },
)

MANIFESTS = (_PLAIN, _HOOKS, _MESSY, _PINNED, _BOTH_PINS, _DIRECTORY, _JSONNET)
