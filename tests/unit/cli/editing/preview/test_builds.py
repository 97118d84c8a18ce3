"""Previews of what apps render."""

from __future__ import annotations

import pytest

from k8s_ucp.cli.editing.preview.builds import chart_advice


@pytest.mark.parametrize(
    ("why", "advice"),
    [
        (
            "chart requires kubeVersion: >=1.50.0 which is incompatible with Kubernetes v1.35.0",
            "use a version of the chart",
        ),
        ("found in Chart.yaml, but missing in charts/ directory: redis", "helm dependency build"),
        ('no template "lib.cm" associated with template "gotpl"', "helm dependency build"),
        ("execution error at (web/templates/a.yaml:4:13): please set host", "--values FILE"),
    ],
)
def test_the_advice_for_a_chart_depends_on_why_helm_can_not_render_it(
    why: str, advice: str
) -> None:
    assert advice in chart_advice(why)
