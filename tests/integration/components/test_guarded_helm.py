"""The helm in front of the real one, for Argo CD's programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from k8s_ucp.components.host.guarded_programs import write_helm, write_kustomize
from k8s_ucp.tools.toolbox import Toolbox
from tests.raw_server import server

Completed = subprocess.CompletedProcess[str]


@pytest.fixture
def guarded(tmp_path: Path, toolbox: Toolbox) -> Path:
    folder = tmp_path / "a guard"
    folder.mkdir(mode=0o700)
    return write_helm(folder, toolbox.path("helm"))


def run(guarded: Path, *words: str | Path) -> Completed:
    environment = {"PATH": os.environ["PATH"], "HOME": str(guarded)}
    argv = [guarded / "helm", "template", *words]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)


def test_a_values_file_with_a_comma_in_its_name_is_one_file(tmp_path: Path, guarded: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("word: s3cret\n")
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: x, version: 1.0.0}")
    (chart / "templates/x.yaml").write_text("word: {{ .Values.word }}\n")
    (chart / "values.yaml").write_text("word: default\n")
    named = chart / f"x,{secret}"

    def render(*words: str | Path) -> Completed:
        return run(guarded, "x", chart, *words)

    (chart / "x").write_text("other: 1\n")
    assert "s3cret" not in render("--values", named).stdout
    named.parent.mkdir(parents=True)
    named.write_text("word: own\n")
    for words in (("--values", named), ("--set", "word=own"), ("--set", "a={1,2},word=own")):
        done = render(*words)
        assert "word: own" in done.stdout, done.stderr
    done = render("--values", f'x"{named}')
    assert "a quote in the name" in done.stderr


def test_a_file_parameter_brings_no_other_file(tmp_path: Path, guarded: Path) -> None:
    """Argo CD writes the name of a parameter in front of the path as it is."""
    secret, own = tmp_path / "secret", tmp_path / "own"
    secret.write_text("s3cret")
    own.write_text("mine")
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: x, version: 1.0.0}")
    (tmp_path / "templates/x.yaml").write_text("word: {{ .Values.word }}\n")
    assert "word: mine" in run(guarded, "x", tmp_path, "--set-file", f"word={own}").stdout
    for name in (f"word={secret},x", f"word={{{secret}}},x", f"word={{{secret}}}"):
        done = run(guarded, "x", tmp_path, "--set-file", f"{name}={own}")
        assert (done.returncode, done.stdout) == (1, "")
        assert "a comma or a brace in the file parameter" in done.stderr


def test_a_release_name_shows_no_variable(tmp_path: Path, guarded: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: x, version: 1.0.0}")
    (tmp_path / "templates/x.yaml").write_text("name: {{ .Release.Name }}\n")

    def render(name: str) -> Completed:
        return run(guarded, tmp_path, "--name-template", name)

    refused = render('{{ env "HOME" | sha256sum | trunc 9 }}')
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "a template as the name" in refused.stderr
    assert "name: shop-web" in render("shop-web").stdout


def test_a_schema_of_values_shows_no_file_of_the_machine(tmp_path: Path, guarded: Path) -> None:
    (tmp_path / "secret.json").write_text('{"const": "s3cret"}')
    chart, sub = tmp_path / "chart", tmp_path / "hidden/sub"
    for folder in (chart, sub):
        folder.mkdir(parents=True)
        (folder / "Chart.yaml").write_text("{apiVersion: v2, name: x, version: 1.0.0}")
        (folder / "values.yaml").write_text("word: own\n")
    outside = f'{{"properties": {{"word": {{"$ref": "file://{tmp_path}/secret.json"}}}}}}'

    def render() -> Completed:
        argv = ["/bin/sh", guarded / "helm", "template", "."]
        environment = {"PATH": os.environ["PATH"], "HOME": str(guarded)}
        return subprocess.run(
            argv, cwd=chart, env=environment, capture_output=True, text=True, check=False
        )

    (chart / "values.schema.json").write_text('{"type": "object"}')
    assert render().returncode == 0, render().stderr
    # helm follows links to folders, too.
    (chart / "charts").symlink_to(sub.parent)
    (sub / "values.schema.json").write_text(outside)
    refused = render()
    assert refused.returncode == 1 and "s3cret" not in refused.stderr
    assert "refused: charts/sub/values.schema.json refers to file:" in refused.stderr


def test_values_are_not_loaded_over_plain_http(tmp_path: Path, guarded: Path) -> None:
    """Such as an address that only this machine can reach."""
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: x, version: 1.0.0}")
    with server(lambda connection: connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n{}")) as (
        url,
        requests,
    ):
        done = run(guarded, "x", tmp_path, "--values", f"{url}/values.yaml")
    assert done.returncode == 1 and "refusing to use HTTP_PROXY" in done.stderr
    assert not requests


def test_the_memory_of_the_programs_is_limited(tmp_path: Path) -> None:
    """Aliases in a kustomization, or a template, can ask for all that the machine has."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nulimit -v\n")
    program.chmod(0o700)
    for write in (write_helm, lambda folder, path: write_kustomize(folder, path, "https")):
        (guard := tmp_path / f"guard {write.__name__}").mkdir(mode=0o700)
        script = next(write(guard, program).iterdir())
        done = subprocess.run([script], capture_output=True, text=True, check=True)
        assert 4_000_000 < int(done.stdout) < 8_000_000


def test_the_script_is_written_once(guarded: Path, toolbox: Toolbox) -> None:
    before = {each.name: each.stat().st_ino for each in guarded.iterdir()}
    write_helm(guarded, toolbox.path("helm"))
    assert {each.name: each.stat().st_ino for each in guarded.iterdir()} == before


def test_a_dependency_is_no_chart_outside_of_the_repository(tmp_path: Path, guarded: Path) -> None:
    repository = tmp_path / "checkouts/one"
    chart = repository / "apps/web"
    for folder in (tmp_path / "lib", repository / "lib", chart):
        (folder / "templates").mkdir(parents=True)
        (folder / "Chart.yaml").write_text("{apiVersion: v2, name: lib, version: 1.0.0}")
        (folder / "values.yaml").write_text(f"word: of {folder.parent.name}\n")
    (repository / ".git").mkdir()
    (chart / "templates/x.yaml").write_text("word: {{ .Values.lib.word }}\n")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(guarded),
        "TMPDIR": str(tmp_path / "checkouts"),
    }

    def build(path: str) -> Completed:
        (chart / "Chart.yaml").write_text(
            "{apiVersion: v2, name: web, version: 1.0.0, dependencies: "
            f"[{{name: lib, version: 1.0.0, repository: 'file://{path}'}}]}}"
        )
        argv = [guarded / "helm", "dependency", "build"]
        return subprocess.run(
            argv, cwd=chart, env=environment, capture_output=True, text=True, check=False
        )

    for path in ("../../../../lib", str(tmp_path / "lib")):
        done = build(path)
        assert done.returncode == 1
        assert f"the dependency file://{path} is outside" in done.stderr
        assert not (chart / "charts").exists()
    done = build("../../lib")
    assert done.returncode == 0, done.stderr
    assert "word: of one" in run(guarded, "web", chart).stdout
