"""The GitHub action, the GitLab component and the image: their contracts, run as a CI would."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main
from ruamel.yaml import YAML

from k8s_ucp.cli.promotion.promote import app as promote_app
from tests.integration.gitops.promotion.app_repository import UCP, AppRepository, Result, Ucp

ROOT = Path(__file__).resolve().parents[4]
ACTION = ROOT / "ci" / "github" / "promote"
COMPONENT = ROOT / "ci" / "gitlab" / "promote.yml"


def load_all(path: Path) -> list[Any]:
    return list(YAML(typ="safe", pure=True).load_all(path.read_text()))


def known_variables() -> set[str]:
    command = typer.main.get_command(promote_app)
    found = {str(each.envvar) for each in command.params if each.envvar}
    return found - {"UCP_PROMOTE_OUTPUT"}


def run_action(inputs: dict[str, str], environment: dict[str, str], folder: Path) -> Result:
    """Run the step as a runner would: defaults, expressions, then bash."""
    (action,) = load_all(ACTION / "action.yml")
    values = {name: each.get("default", "") for name, each in action["inputs"].items()} | inputs
    (step,) = action["runs"]["steps"]
    variables = {
        name: values[str(text).removeprefix("${{ inputs.").removesuffix(" }}")]
        for name, text in step["env"].items()
    }
    output = folder / "output"
    output.touch()
    done = subprocess.run(
        ["bash", "-c", step["run"]],
        env={
            **environment,
            **{key: str(value) for key, value in variables.items()},
            "GITHUB_ACTION_PATH": str(ACTION),
            "GITHUB_OUTPUT": str(output),
            "RUNNER_TEMP": str(folder),
            "GITHUB_RUN_NUMBER": "17",
        },
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return Result(done.returncode, output.read_text(), done.stdout + done.stderr)


def run_component(inputs: dict[str, str], environment: dict[str, str], folder: Path) -> Result:
    """Run the job as a runner would: inputs are interpolated, then the script runs in a shell."""
    specification, jobs = load_all(COMPONENT)
    known = specification["spec"]["inputs"]
    values = {name: (each or {}).get("default", "") for name, each in known.items()} | inputs
    (job,) = jobs.values()

    def filled(text: str) -> str:
        return re.sub(r"\$\[\[ inputs\.(\S+) \]\]", lambda found: str(values[found[1]]), text)

    variables = {name: filled(str(text)) for name, text in job["variables"].items()}
    done = subprocess.run(
        ["sh", "-c", "\n".join(job["script"])],
        env={**environment, **variables, "UCP_GIT_TOKEN": "t", "CI_PIPELINE_IID": "17"},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def with_ucp(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "PATH": f"{UCP.parent}:{environment['PATH']}"}


def wanted(repository: AppRepository, **more: str) -> dict[str, str]:
    return {"app": "echo", "env": "stage", "repo": repository.url, **more}


def test_action_promotes_and_sets_its_outputs(
    repository: AppRepository, with_ucp: dict[str, str], tmp_path: Path
) -> None:
    result = run_action(wanted(repository, tag="1.0.0"), with_ucp, tmp_path)

    assert result.code == 0, result.err
    outputs = dict(line.split("=", 1) for line in result.out.splitlines())
    assert (outputs["status"], outputs["commit"], outputs["pr"]) == (
        "promoted", repository.tip, "",
    )  # fmt: skip
    assert "Ucp-Sequence: 17" in repository.message()


def test_action_fails_if_the_promotion_is_refused(
    repository: AppRepository, with_ucp: dict[str, str], tmp_path: Path
) -> None:
    result = run_action(wanted(repository, env="prod", tag="1.0.0"), with_ucp, tmp_path)

    assert result.code == 1
    assert "status=gated" in result.out


@pytest.mark.parametrize(
    "tag", ["$(touch evil)", "1; touch evil", "1\nstatus=promoted", "`touch evil`"]
)
def test_inputs_of_a_workflow_are_never_executed(
    repository: AppRepository, with_ucp: dict[str, str], tmp_path: Path, tag: str
) -> None:
    for run in (run_action, run_component):
        result = run(wanted(repository, tag=tag), with_ucp, tmp_path)
        assert result.code == 2
        assert "not a valid tag" in result.err
        assert not (tmp_path / "evil").exists()
        assert "status=" not in result.out


def test_an_output_of_the_action_can_not_set_another(
    repository: AppRepository, environment: dict[str, str], tmp_path: Path
) -> None:
    """A forge may send any text as the URL of a pull request."""
    tools = tmp_path / "tools"
    tools.mkdir()
    answer = {"status": "gated", "pr": "https://example.org/1\nstatus=promoted"}
    (tools / "answer").write_text(json.dumps(answer))
    (tools / "ucp").write_text(f"#!/bin/sh\ncat '{tools}/answer'\n")
    (tools / "ucp").chmod(0o755)
    with_tools = {**environment, "PATH": f"{tools}:{environment['PATH']}"}
    done = run_action(wanted(repository, tag="1.0.0"), with_tools, tmp_path)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[:3] == ["status=gated", "commit=", "pr=https://example.org/1 status=promoted"]
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("install", "said"), [("", "is empty"), ("https://example.org/k8s_ucp.whl", "#sha256=")]
)
def test_action_installs_nothing_without_a_hash(
    repository: AppRepository,
    environment: dict[str, str],
    tmp_path: Path,
    install: str,
    said: str,
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "git", "env"):
        found = subprocess.run(["sh", "-c", f"command -v {name}"], capture_output=True, text=True)
        (tools / name).symlink_to(found.stdout.strip())
    bare = {**environment, "PATH": str(tools)}
    result = run_action(wanted(repository, tag="1", install=install), bare, tmp_path)

    assert result.code == 2
    assert said in result.err


PYTHON = """#!/bin/sh
test "$1 $3" = "-I venv" || exec @python@ "$@"
@python@ -I -m venv --without-pip "$4"
printf '#!/bin/sh\\nexec @python@ -I -m pip --python %s "$@"\\n' "$4/bin/python" > "$4/bin/pip"
chmod +x "$4/bin/pip"
"""
"""Python whose virtual environments use this one's pip: to install it takes ten seconds each."""


def write_wheel(folder: Path, name: str, files: dict[str, str], requires: str = "") -> Path:
    """Write a wheel of version 1.0 that pip installs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    about = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
        "entry_points.txt": "[console_scripts]\nucp = k8s_ucp:main\n" if requires else "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in files.items():
            archive.writestr(each, text)
        for each, text in about.items():
            archive.writestr(f"{name}-1.0.dist-info/{each}", text)
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def without_ucp(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The environment of a CI job with Python; pip finds packages in `index` only."""
    tools, index, temporary = (tmp_path / each for each in ("tools", "index", "temporary"))
    tools.mkdir()
    temporary.mkdir()
    python = tools / "python3"
    python.write_text(PYTHON.replace("@python@", sys.executable))
    python.chmod(0o755)
    return {
        **environment,
        "PATH": f"{tools}:/usr/bin:/bin",
        "TMPDIR": str(temporary),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PIP_CONFIG_FILE": "/dev/null",
    }


@pytest.fixture
def to_install(tmp_path: Path) -> dict[str, str]:
    """Inputs: the URL of a wheel that lists the hash of its dependency in the index."""
    part = write_wheel(tmp_path / "index", "part", {"part.py": "NAME = 'the part'"})
    prints = "import part\ndef main(): print('{\"status\": \"' + part.NAME + '\"}')"
    listed = f"part==1.0 --hash=sha256:{digest(part)}\n"
    files = {"k8s_ucp/__init__.py": prints, "k8s_ucp/requirements.txt": listed}
    wheel = write_wheel(tmp_path / "dist", "k8s_ucp", files, "Requires-Dist: part\n")
    return {"repo": "r", "install": f"{wheel.as_uri()}#sha256={digest(wheel)}"}


def test_dependencies_that_the_wheel_lists_are_installed(
    to_install: dict[str, str], without_ucp: dict[str, str], tmp_path: Path
) -> None:
    result = run_action(to_install, without_ucp, tmp_path)
    assert result.code == 0, result.err
    assert "status=the part" in result.out


@pytest.mark.parametrize("run", [run_action, pytest.param(run_component, marks=pytest.mark.slow)])
def test_modules_in_the_folder_of_the_job_are_not_executed(
    run: Callable[..., Result],
    to_install: dict[str, str],
    without_ucp: dict[str, str],
    tmp_path: Path,
) -> None:
    """It may have the files of a pull request, while the job has a token that pushes."""
    for name in ("json", "venv", "zipfile"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('executed')\n")
    result = run(to_install, without_ucp, tmp_path)
    assert result.code == 0, result.err
    assert "executed" not in result.err


@pytest.mark.parametrize("run", [pytest.param(run_action, marks=pytest.mark.slow), run_component])
def test_dependencies_with_another_hash_are_not_installed(
    run: Callable[..., Result],
    to_install: dict[str, str],
    without_ucp: dict[str, str],
    tmp_path: Path,
) -> None:
    write_wheel(tmp_path / "index", "part", {"part.py": "NAME = 'another part'"})
    result = run(to_install, without_ucp, tmp_path)
    assert result.code != 0
    assert "DO NOT MATCH THE HASHES" in result.err
    assert "another part" not in result.out


def test_component_writes_the_tag_and_the_result(
    repository: AppRepository, with_ucp: dict[str, str], tmp_path: Path
) -> None:
    result = run_component(wanted(repository, tag="1.0.0"), with_ucp, tmp_path)

    assert result.code == 0, result.err
    assert repository.tag("echo", "stage") == "1.0.0"
    assert '"promoted"' in (tmp_path / "promotion.json").read_text()


def test_refused_promotion_fails_the_components_job(
    repository: AppRepository, with_ucp: dict[str, str], tmp_path: Path
) -> None:
    result = run_component(wanted(repository, env="prod", tag="1.0.0"), with_ucp, tmp_path)

    assert result.code == 1
    assert '"gated"' in (tmp_path / "promotion.json").read_text()


def test_action_and_component_pass_on_every_option(ucp: Ucp) -> None:
    (action,) = load_all(ACTION / "action.yml")
    (job,) = load_all(COMPONENT)[1].values()
    for variables in (action["runs"]["steps"][0]["env"], job["variables"]):
        assert {name for name in variables if name.startswith("UCP_PROMOTE_")} == known_variables()


def test_every_input_is_used() -> None:
    (action,) = load_all(ACTION / "action.yml")
    text = (ACTION / "action.yml").read_text()
    for name in action["inputs"]:
        assert f"inputs.{name} }}}}" in text
    specification, _ = load_all(COMPONENT)
    for name in specification["spec"]["inputs"]:
        assert f"$[[ inputs.{name} ]]" in COMPONENT.read_text()


def test_files_that_the_image_copies_exist() -> None:
    text = (ROOT / "ci" / "image" / "Dockerfile").read_text()
    for path in re.findall(r"requirements/\S+\.txt", text):
        assert (ROOT / path).is_file()
    assert "--require-hashes" in text


def test_dry_run_of_the_wrappers_pushes_nothing(
    repository: AppRepository, with_ucp: dict[str, str], tmp_path: Path
) -> None:
    inputs = wanted(repository, tag="1.0.0", **{"dry-run": "true"})
    action = run_action(inputs, with_ucp, tmp_path)
    component = run_component(inputs, with_ucp, tmp_path)

    assert (action.code, component.code) == (0, 0), action.err + component.err
    outputs = dict(line.split("=", 1) for line in action.out.splitlines())
    assert '+    newTag: "1.0.0"' in json.loads(outputs["result"])["diff"]
    assert json.loads(component.out)["dryRun"] is True
    assert repository.tip == repository.first
