"""What of kustomize's output is shown."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.manifests.kustomize import innermost

START = "Error: accumulating resources: accumulation err='accumulating resources from "


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("", ""),
        ("Error: yaml: unmarshal errors:\n  line 6: twice", "  line 6: twice"),
        (
            f"{START}'../base': '/a/base' must resolve to a file': recursed accumulation of path "
            "'/a/base': accumulating resources: accumulation err='accumulating resources from "
            "'web.yaml': evalsymlink failure on '/a/base/web.yaml' : no such file or directory': "
            "must build at directory: not a valid directory: evalsymlink failure on '/a/base'",
            "web.yaml: evalsymlink failure on '/a/base/web.yaml' : no such file or directory",
        ),
        (f"{START}'web.yaml': malformed", "web.yaml: malformed"),
    ],
)
def test_of_folders_in_folders_the_cause_is_shown(said: str, shown: str) -> None:
    assert innermost(said) == shown
