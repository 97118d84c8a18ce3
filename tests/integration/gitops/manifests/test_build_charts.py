"""Charts of the app repository are rendered as Argo CD renders them, and can read nothing else."""

from __future__ import annotations

import io
import json
import socket
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.cli.editing.imports.source import renderer
from k8s_ucp.gitops.manifests import helm
from k8s_ucp.gitops.manifests.build_charts import NO_HELM, build_charts
from k8s_ucp.gitops.manifests.helm import call
from k8s_ucp.gitops.render.app_manifests import folder_tree_of
from k8s_ucp.tools.toolbox import Toolbox
from tests.chart_servers import web_files

FOLDER = "apps/web/overlays/stage"
SETTINGS = "helm: {releaseName: shop, valueFiles: [values-stage.yaml]}\n"
CHART = "apiVersion: v2\nname: sub\nversion: 1.0.0\n"
DRAFT = "http://json-schema.org/draft-04/schema#"
TEST = "kind: Pod\nmetadata: {name: x, annotations: {helm.sh/hook: test}}\n"


def chart(root: Path, **more: str) -> Path:
    files = {
        **web_files("1.0.0"),
        ".argocd-source.yaml": SETTINGS,
        "values-stage.yaml": "replicas: 5\n",
        "templates/test.yaml": TEST,
        **more,
    }
    for path, text in files.items():
        file = root / FOLDER / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root / FOLDER


def test_settings_beside_the_chart_are_used(tmp_path: Path, toolbox: Toolbox) -> None:
    chart(tmp_path)
    built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {FOLDER: "far"})
    assert built.failures == {}
    [deployment] = built.objects[FOLDER]
    assert deployment["metadata"]["name"] == "shop"
    assert deployment["metadata"]["namespace"] == "far"
    assert deployment["spec"]["replicas"] == 5


def test_a_chart_that_asks_for_a_kind_of_kubernetes_finds_it(
    tmp_path: Path, toolbox: Toolbox
) -> None:
    """Argo CD passes the kinds of the cluster; with none, charts choose what was removed."""
    job = (
        "kind: CronJob\nmetadata: {name: x}\napiVersion: batch/v1"
        '{{ if not (.Capabilities.APIVersions.Has "batch/v1/CronJob") }}beta1{{ end }}\n'
    )
    chart(tmp_path, **{"templates/job.yaml": job})
    built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {})
    assert "batch/v1" in [each["apiVersion"] for each in built.objects[FOLDER]]


@pytest.mark.parametrize(
    ("values", "replicas"),
    [
        ("valuesObject: {replicas: 6}, values: 'replicas: 8'", 6),
        ("values: 'replicas: 7'", 7),
        ("values: 'replicas: 7', parameters: [{name: replicas, value: '8'}]", 8),
        ("parameters: [{name: other, value: '1,replicas=9'}]", 5),
    ],
)
def test_values_in_the_settings_are_used(
    values: str, replicas: int, tmp_path: Path, toolbox: Toolbox
) -> None:
    settings = SETTINGS.replace("{", f"{{{values}, ", 1)
    chart(tmp_path, **{".argocd-source.yaml": settings})
    built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {})
    assert built.failures == {}
    assert [each["spec"]["replicas"] for each in built.objects[FOLDER]] == [replicas]


def test_files_outside_of_the_chart_are_not_read(tmp_path: Path, toolbox: Toolbox) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    folder = chart(tmp_path / "repo")
    (folder / "link").symlink_to(secret)
    built = build_charts(toolbox.path("helm"), tmp_path / "repo", [FOLDER], {})
    assert "link is a symlink that points outside of it" in built.failures[FOLDER]
    (folder / "link").unlink()
    settings = SETTINGS.replace("values-stage.yaml", "../../../../../secret")
    (folder / ".argocd-source.yaml").write_text(settings)
    built = build_charts(toolbox.path("helm"), tmp_path / "repo", [FOLDER], {})
    assert "outside of the app's folder" in built.failures[FOLDER]
    assert "s3cret" not in str(built)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"replicas": {"$ref": "file:{}"}}},
        {"properties": {"replicas": {"$ref": "{}"}}},
        {"$id": "{}", "allOf": [{"$ref": "secret.json"}]},
        {"$id": "https://example.org/a", "allOf": [{"$id": "FILE:///", "$ref": "{}"}]},
        {"$id": "https://example.org/a", "$schema": DRAFT, "allOf": [{"$ref": "{}"}]},
        {"$id": "https://example.org/a", "$ref": "{}"},
    ],
)
def test_no_schema_of_values_reads_a_file_of_the_machine(
    schema: dict[str, Any], tmp_path: Path, toolbox: Toolbox
) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"const": "s3cret"}')
    text = json.dumps(schema).replace("{}", str(secret))
    chart(tmp_path / "repo", **{"values.schema.json": text})
    built = build_charts(toolbox.path("helm"), tmp_path / "repo", [FOLDER], {})
    assert "which helm would read from this machine" in built.failures[FOLDER]
    assert "s3cret" not in str(built)


def test_the_schemas_of_packed_charts_are_looked_at_too(tmp_path: Path, toolbox: Toolbox) -> None:
    folder = chart(tmp_path)
    (folder / "charts").mkdir()
    schema = b'{"$ref": "file:///etc/hostname"}'
    with tarfile.open(folder / "charts" / "sub-1.0.0.tgz", "w:gz") as packed:
        for name, content in (("Chart.yaml", CHART.encode()), ("values.schema.json", schema)):
            entry = tarfile.TarInfo(f"sub/{name}")
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {})
    assert "charts/sub-1.0.0.tgz/values.schema.json refers to file:" in built.failures[FOLDER]


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": DRAFT, "properties": {"id": {"type": "string"}}, "default": {"id": "web"}},
        {"$ref": "#/definitions/all", "definitions": {"all": {"type": "object"}}},
        {
            "$id": "https://example.org/a",
            "allOf": [{"$ref": "/all"}],
            "$defs": {"all": {"$id": "/all", "type": "object"}},
        },
    ],
)
def test_schemas_of_values_may_refer_to_themselves(
    schema: dict[str, Any], tmp_path: Path, toolbox: Toolbox
) -> None:
    chart(tmp_path, **{"values.schema.json": json.dumps(schema)})
    assert build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {}).failures == {}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"replicas": {"$ref": "{}/replicas.json"}}},
        {"$id": "{}/all.json", "properties": {"replicas": {"$ref": "replicas.json"}}},
        {"$schema": "{}/own.json", "type": "object"},
    ],
)
def test_no_host_that_a_schema_of_values_names_is_contacted(
    schema: dict[str, Any], tmp_path: Path, toolbox: Toolbox
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        folder = chart(tmp_path, **{"values.schema.json": json.dumps(schema).replace("{}", url)})
        built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {})
        assert built.failures == {}
        tree = folder_tree_of(folder.parent)
        assert "replicas: 1" in renderer(tree, lambda: toolbox.path("helm"))("stage", None)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_values_that_their_schema_forbids_are_refused(tmp_path: Path, toolbox: Toolbox) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"replicas": {"$ref": "#/$defs/few"}},
        "$defs": {"few": {"maximum": 4}},
    }
    chart(tmp_path, **{"values.schema.json": json.dumps(schema)})
    built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {})
    assert "maximum" in built.failures[FOLDER]


def test_a_link_to_itself_is_reported_as_any_other_fault(tmp_path: Path, toolbox: Toolbox) -> None:
    (chart(tmp_path) / "templates" / "loop.yaml").symlink_to("loop.yaml")
    built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {})
    assert "loop.yaml" in built.failures[FOLDER]


def test_a_chart_takes_limited_memory_and_prints_a_limited_text(
    tmp_path: Path, toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    much = 'kind: X\na: {{ repeat 1500000000 "x" | len }}\n'
    chart(tmp_path, **{"templates/much.yaml": much})
    built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {})
    if sys.platform == "linux":
        assert "it needs more than 1000 MB of memory" in built.failures[FOLDER]
    monkeypatch.setattr(helm, "OUTPUT", 2000)
    chart(tmp_path, **{"templates/much.yaml": "kind: X\na: {{ repeat 3000 (nindent 1 `x`) }}\n"})
    built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {})
    assert "it printed more than 2000 characters" in built.failures[FOLDER]


def test_a_release_name_is_not_taken_for_an_option_that_runs_a_program(
    tmp_path: Path, toolbox: Toolbox
) -> None:
    """`--post-renderer` would have run what the chart prints."""
    made = tmp_path / "made"
    folder = chart(tmp_path, **{"templates/x.yaml": f"kind: X\nmetadata:\n  a: |\n    >{made}\n"})
    (folder / ".argocd-source.yaml").write_text("helm: {releaseName: --post-renderer=/bin/sh}\n")
    built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {})
    assert "invalid release name" in built.failures[FOLDER]
    assert not made.exists()


def test_a_values_file_with_a_comma_in_its_name_is_one_file(
    tmp_path: Path, toolbox: Toolbox
) -> None:
    """helm would have read each part, such as a file outside of the repository."""
    secret = tmp_path / "secret"
    secret.write_text("replicas: 13\n")
    folder = chart(tmp_path / "re,po")
    settings = SETTINGS.replace("values-stage.yaml", f'values-stage.yaml, "x,{secret}"')
    (folder / ".argocd-source.yaml").write_text(settings)
    built = build_charts(toolbox.path("helm"), tmp_path / "re,po", [FOLDER], {})
    assert "no such file" in built.failures[FOLDER]
    file = folder / f"x,{secret}"
    file.parent.mkdir(parents=True)
    file.write_text("replicas: 7\n")
    built = build_charts(toolbox.path("helm"), tmp_path / "re,po", [FOLDER], {})
    assert built.objects[FOLDER][0]["spec"]["replicas"] == 7


def test_chart_that_can_not_be_rendered_is_reported(tmp_path: Path, toolbox: Toolbox) -> None:
    chart(tmp_path, **{"templates/bad.yaml": "{{ .Values.a.b.c }}"})
    built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {})
    assert "nil pointer" in built.failures[FOLDER]
    assert build_charts(None, tmp_path, [FOLDER], {}).failures == {FOLDER: NO_HELM}


@pytest.mark.parametrize(
    "settings",
    [
        r'releaseName: "a\0b"',
        r'valueFiles: ["a\0b"]',
        r'parameters: [{name: a, value: "a\0b"}]',
        f"parameters: [{{name: a, value: {'a' * 200_000}}}]",
    ],
)
def test_settings_that_no_program_can_be_given_are_reported(
    settings: str, tmp_path: Path, toolbox: Toolbox
) -> None:
    chart(tmp_path, **{".argocd-source.yaml": f"helm: {{{settings}}}\n"})
    built = build_charts(toolbox.path("helm"), tmp_path, [FOLDER], {})
    assert list(built.failures) == [FOLDER]


def test_helm_gets_the_proxy_settings_but_no_credential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = {
        "HTTPS_PROXY": "http://proxy.example.org:3128",
        "no_proxy": "localhost",
        "SSL_CERT_FILE": "/etc/company.pem",
        "SSL_CERT_DIR": "/etc/company",
    }
    secret = ("UCP_GIT_TOKEN", "AWS_SECRET_ACCESS_KEY", "HELM_PLUGINS", "KUBECONFIG")
    for name, value in [*way.items(), *((each, "canary") for each in secret)]:
        monkeypatch.setenv(name, value)
    program = tmp_path / "helm"
    program.write_text("#!/bin/sh\nexec env\n")
    program.chmod(0o700)
    said = call(program, [], home=tmp_path, timeout=30)
    seen = dict(line.partition("=")[::2] for line in said.splitlines())
    assert {name: seen.get(name) for name in way} == way
    assert "canary" not in said
    assert {seen[f"HELM_{each}_HOME"] for each in ("CACHE", "CONFIG", "DATA")} <= {
        str(tmp_path / each) for each in ("CACHE", "CONFIG", "DATA")
    }
