"""The picture in the generated READMEs."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.gitops.render.readme_picture import MOST_APPS, with_picture
from k8s_ucp.topology import parse

TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: demo}}
spec:
  environments: [{{name: stage, cluster: {{provider: embedded}}}}]
  apps: [{}]
"""


def drawn(apps: int) -> str:
    each = ", ".join(f"{{name: app{n}, image: a/b, tag: '1'}}" for n in range(apps))
    topology = parse(TOPOLOGY.format(each), Path("ucp.yaml"))
    return with_picture(b"# It\n<!-- picture -->\n", topology).decode()


@pytest.mark.parametrize("apps", [0, 1, MOST_APPS])
def test_up_to_a_limit_each_app_is_drawn(apps: int) -> None:
    text = drawn(apps)
    assert text.count("    app_app") == apps
    assert text.count("```") == 2


def test_above_the_limit_only_the_number_of_apps_is_drawn() -> None:
    text = drawn(MOST_APPS + 1)
    assert f'"{MOST_APPS + 1} apps"' in text
    assert "app_app" not in text
