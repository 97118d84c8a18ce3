"""`checks` of the topology: which rules can be denied and ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.topology import parse

TEXT = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  checks: CHECKS
"""


@pytest.mark.parametrize(
    "checks",
    [
        "{}",
        "{deny: [warnings]}",
        "{deny: [image-untagged, chart-unpinned]}",
        "{ignore: [{rule: host-taken, app: web, reason: shared}]}",
        "{ignore: [{rule: action-unpinned, file: .github/workflows/*, reason: ours}]}",
        "{ignore: [{rule: field-unknown, app: web, object: Deployment/web, reason: newer}]}",
    ],
)
def test_valid_checks_are_accepted(checks: str) -> None:
    parse(TEXT.replace("CHECKS", checks), Path("ucp.yaml"))


@pytest.mark.parametrize(
    ("checks", "words"),
    [
        ("{deny: [image-untaged]}", "did you mean 'image-untagged'?"),
        ("{ignore: [{rule: host-takn, app: web, reason: r}]}", "did you mean 'host-taken'?"),
        ("{ignore: [{rule: host-taken, app: web}]}", "requires the key 'reason'"),
        ("{ignore: [{rule: host-taken, app: web, reason: ''}]}", "is not a single line of text"),
        ("{ignore: [{rule: host-taken, reason: r}]}", "requires the key 'app' or 'file'"),
        ("{ignore: [{rule: namespace-taken, app: web, reason: r}]}", "can't be ignored"),
        ("{ignore: [{rule: host-taken, app: web, object: web, reason: r}]}", "Kind/name"),
    ],
)
def test_invalid_checks_are_refused_with_their_line(checks: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(TEXT.replace("CHECKS", checks), Path("ucp.yaml"))
    assert words in caught.value.message
    assert caught.value.message.startswith("ucp.yaml:5: ")
