"""The part of kustomize's output that is shown."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from k8s_ucp.gitops.manifests.kustomize import LoadsFromOutside, innermost

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
            "web.yaml: /a/base/web.yaml does not exist",
        ),
        (
            f"{START}'../base': '/a/base' must resolve to a file': recursed accumulation of path "
            "'/a/base': loading KV pairs: file sources: [s3.conf]: evalsymlink failure on "
            "'/a/base/s3.conf' : lstat /a/base/s3.conf: no such file or directory",
            "loading KV pairs: file sources: [s3.conf]: /a/base/s3.conf does not exist",
        ),
        (
            f"{START}'../base': '/a/base' must resolve to a file': recursed accumulation of path "
            "'/a/base': nothing selected by ConfigMap.[noVer].[noGrp]/nope.[noNs]",
            "/a/base: nothing selected by ConfigMap.[noVer].[noGrp]/nope.[noNs]",
        ),
        (
            f"{START}'../base': '/a/base' must resolve to a file': couldn't make target for path "
            "'/a/base': invalid Kustomization: json: unknown field \"image\"",
            '/a/base: invalid Kustomization: json: unknown field "image"',
        ),
        (f"{START}'web.yaml': malformed", "web.yaml: malformed"),
        (
            START + "'a.yaml': missing kind in object {{ } {{a } map[] map[]}}': must build at "
            "directory: not a valid directory",
            "a.yaml: kind is missing; each item of a list needs its own",
        ),
    ],
)
def test_the_innermost_cause_of_a_nested_error_is_shown(said: str, shown: str) -> None:
    assert innermost(said) == shown


def test_a_quoted_patch_before_the_message_is_left_out() -> None:
    said = (
        "Error: trouble configuring builtin PatchTransformer with config: `\npath: nope.yaml\n"
        "`: failed to get the patch file from path(nope.yaml): no such file or directory\n"
    )
    assert innermost(said).startswith("failed to get the patch file from path(nope.yaml)")


def test_the_cause_of_an_error_with_a_very_long_name_is_found_at_once() -> None:
    """A pull request may name a file of any length."""
    name = "x" * 100_000
    began = time.process_time()
    assert name in innermost(f"{START}'{name}': open /a/{name}: file name too long")
    assert time.process_time() - began < 5


def test_a_file_outside_of_a_kustomization_is_reported_with_both_paths() -> None:
    said = (
        "Error: accumulating resources: loading KV pairs: file sources: [../values/a.yaml]: "
        "security; file '/a/values/a.yaml' is not in or below '/a/app'\n"
    )
    told = LoadsFromOutside.parse(Path("/a/overlay"), said)
    assert told is not None
    assert "the kustomization in /a/app loads /a/values/a.yaml, which is outside" in told.message
    assert str(told.next).startswith("copy a.yaml into that folder")
    assert LoadsFromOutside.parse(Path("/a"), "Error: no such file") is None
