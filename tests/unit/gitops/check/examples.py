"""Objects and trees of files to check."""

from __future__ import annotations

from collections.abc import Mapping

from k8s_ucp.gitops.check.tree import Tree

OVERLAY = "apps/web/overlays/stage/kustomization.yaml"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: IMAGE
          env:
            - {name: A, valueFrom: {secretKeyRef: {name: SECRET, key: KEY}}}
"""
SERVICE = """\
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
"""
INGRESS = """\
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
    - host: a.example.org
      http:
        paths:
          - {path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}
"""
ROUTE = """\
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: traefik-gateway, namespace: traefik}]
  hostnames: [a.example.org]
  rules:
    - matches: [{path: {type: PathPrefix, value: /}}]
      backendRefs: [{name: web, port: 80}]
"""


def tree(files: Mapping[str, str]) -> Tree:
    return Tree({path: text.encode() for path, text in files.items()})
