"""Workloads from the release manifests of Argo CD and Crossplane, with ucp's changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from k8s_ucp.components.manifests import read
from k8s_ucp.components.pods import workloads
from k8s_ucp.components.pods.workloads import with_version
from k8s_ucp.errors import UcpError

INSTALL = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: applications.argoproj.io
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  labels:
    a: b
  name: argocd-server
subjects:
- kind: ServiceAccount
  name: argocd-server
  namespace: argocd
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    a: b
  name: argocd-dex-server
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  labels:
    a: b
  name: argocd-application-controller
spec:
  template:
    spec:
      containers:
      - image: quay.io/argoproj/argocd:v3.5.7
        imagePullPolicy: Always
        livenessProbe:
          httpGet:
            path: /healthz
            port: 8082
          initialDelaySeconds: 10
          periodSeconds: 10
        readinessProbe:
          httpGet:
            path: /healthz
            port: 8082
          initialDelaySeconds: 3
          periodSeconds: 30
        securityContext: {}
"""

CHART = """\
metadata:
  labels:
    helm.sh/chart: crossplane-0.0.1
    app.kubernetes.io/version: "0.0.1"
spec:
  args:
    - --health-probe=127.0.0.1:8081
    - --since=10.0.0.1
"""


def module(tmp_path: Path, text: str) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/install.yaml").write_text(text)
    return tmp_path


def test_only_workloads_and_rbac_are_taken_from_the_release(tmp_path: Path) -> None:
    found = read({"a": workloads.of_argocd(module(tmp_path, INSTALL), mirror="m.example")})
    assert [(each.kind, each.namespace, each.name) for each in found] == [
        ("ClusterRoleBinding", None, "argocd-server"),
        ("StatefulSet", "argocd", "argocd-application-controller"),
    ]
    assert "image: m.example/argoproj/argocd:v3.5.7" in found[1].text
    assert "imagePullPolicy: IfNotPresent" in found[1].text


def test_manifests_of_another_release_layout_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UcpError, match="does not contain"):
        workloads.of_argocd(module(tmp_path, "kind: Service\nmetadata:\n  name: a\n"))


def test_readiness_is_probed_often_with_an_unchanged_failure_time(tmp_path: Path) -> None:
    text = workloads.of_argocd(module(tmp_path, INSTALL)).decode()
    (item,) = [each for each in read({"w.yaml": text.encode()}) if each.kind == "StatefulSet"]
    container = YAML(typ="safe").load(item.text)["spec"]["template"]["spec"]["containers"][0]
    assert container["livenessProbe"]["periodSeconds"] == 10
    ready = container["readinessProbe"]
    assert ready["httpGet"] == {"path": "/healthz", "port": 8082}
    # The time until a pod is unready is unchanged: three times thirty seconds.
    assert ready["periodSeconds"] * ready["failureThreshold"] == 90
    assert ready["periodSeconds"] <= 2


def test_the_version_is_written_only_to_labels() -> None:
    assert with_version(CHART, "2.4.0") == CHART.replace(
        "crossplane-0.0.1", "crossplane-2.4.0"
    ).replace('"0.0.1"', '"2.4.0"')
