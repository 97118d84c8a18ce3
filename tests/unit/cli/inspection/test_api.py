"""`ucp api render`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp import yaml_io
from k8s_ucp.cli import main
from tests.unit.compositions import own_kinds
from tests.unit.compositions.platform import claim


def test_claims_of_a_file_are_rendered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    file = tmp_path / "claim.yaml"
    file.write_text("---\n".join(yaml_io.dump(claim(name=each)) for each in ("one", "two")))
    line = ["--workspace", str(tmp_path), "api", "render", str(file), "-o", "json"]
    assert main.run(line) == main.OK
    found = json.loads(capsys.readouterr().out)
    assert [each["metadata"]["name"] for each in found if each["kind"] == "Instance"] == [
        "one-instance",
        "two-instance",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "contains no object"),
        ("a: [", "is not valid YAML"),
        ("- a", "is not an object"),
        (None, "failed to read"),
    ],
)
def test_a_file_without_claims_is_refused(
    text: str | None, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    file = tmp_path / "claim.yaml"
    if text is not None:
        file.write_text(text)
    assert main.run(["--workspace", str(tmp_path), "api", "render", str(file)]) == 2
    said = capsys.readouterr().err
    assert reason in said
    assert "next: " in said


def test_the_documented_example_of_own_kinds_renders_as_documented(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    own_kinds.write(tmp_path / "gitops/demo/core")
    store = tmp_path / "store.yaml"
    line = ["--workspace", str(tmp_path), "api", "render", str(store), "-o", "json"]
    text = own_kinds.files()["store.yaml"]
    store.write_text(text)
    assert main.run(line) == main.OK
    (bucket,) = json.loads(capsys.readouterr().out)
    assert bucket["metadata"]["annotations"]["crossplane.io/external-name"] == "example-photos"
    assert bucket["spec"] == {"forProvider": {"region": "eu-west-3"}}
    store.write_text(text.replace("photos", "draft-1"))
    assert main.run(line) != main.OK
    assert "step compose: draft-1: drafts get no store" in capsys.readouterr().err


def test_the_documented_function_package_composes_the_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import crossplane.function.proto.v1.run_function_pb2 as messages

    places = own_kinds.write(tmp_path)
    namespace: dict[str, Any] = {"__name__": "serve"}
    monkeypatch.syspath_prepend(places[own_kinds.MAIN].parent)
    exec(places["serve.py"].read_text(), namespace)
    request = messages.RunFunctionRequest()
    store = yaml_io.load(own_kinds.files()["store.yaml"])
    request.observed.composite.resource.update(store)
    answered = asyncio.run(namespace["Runner"]().RunFunction(request, None))
    assert list(answered.desired.resources) == ["bucket"]
