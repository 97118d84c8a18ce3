"""The engines' workloads as their releases write them, with what differs here."""

from __future__ import annotations

from k8s_ucp.components.workloads import with_version

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


def test_the_version_goes_into_labels_and_nowhere_else() -> None:
    assert with_version(CHART, "2.4.0") == CHART.replace(
        "crossplane-0.0.1", "crossplane-2.4.0"
    ).replace('"0.0.1"', '"2.4.0"')
