"""A connection Secret, its Syncer, and its copies."""

from __future__ import annotations

import base64

from k8s_ucp.kube import SECRET, Object
from tests.e2e.world import Workbench

SYNCER = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Syncer
metadata:
  name: db
  namespace: ucp-clusters
  annotations:
    argocd.argoproj.io/sync-options: SkipDryRunOnMissingResource=true
spec:
  data:
    - sourceName: quotes-conn
      sourceNamespace: crossplane-system
      kinds: secret
      targetSelector: {}
      targetNamespace: quote
"""


def connection(password: str) -> Object:
    """A Secret as Crossplane writes it."""
    data = {"endpoint": "10.0.0.1", "username": "quotes", "password": password, "port": "5432"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "quotes-conn", "namespace": "crossplane-system"},
        "type": "connection.crossplane.io/v1alpha1",
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in data.items()},
    }


def password(world: Workbench, environment: str) -> str | None:
    found = world.kube(environment).find(SECRET, "quotes-conn", "quote")
    return base64.b64decode(found["data"]["password"]).decode() if found else None
