"""The rendered pipelines, run as a runner would: variables filled in, then the shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.gitops.check import Checkout, check
from k8s_ucp.gitops.clones import make_clone
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Environment
from k8s_ucp.topology.parts import Ci
from tests.integration.gitops.conftest import World

INSTALL = f"https://example.org/k8s_ucp-0.1.0-py3-none-any.whl#sha256={'0' * 64}"
BIN = Path(sys.executable).parent
ENVIRONMENTS = tuple(
    Environment.model_validate(each)
    for each in (
        {"name": "stage"},
        {"name": "qa", "promotesFrom": "stage"},
        {"name": "prod", "promotesFrom": "qa"},
    )
)


def started(world: World, provider: str) -> dict[str, Any]:
    """{path: documents} of the pipelines of a pushed app repository."""
    ci = Ci.model_validate({"provider": provider, "install": INSTALL})
    world.start(ci=ci, environments=ENVIRONMENTS)
    return {
        path: list(YAML(typ="safe", pure=True).load_all(text.decode()))
        for path, text in world.files("apps").items()
        if path.startswith((".git", "ci/"))
    }


def run(script: str, variables: dict[str, str], folder: Path, toolbox: Toolbox) -> str:
    for text in variables.values():
        assert "${{" not in text and "$[[" not in text, text
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        env={
            "HOME": str(folder),
            "PATH": f"{BIN}:{toolbox.path('kustomize').parent}:{os.environ['PATH']}",
            "UCP_CACHE_DIR": str(folder),
            "UCP_GIT_TOKEN": "t",
            **variables,
        },
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def tags(world: World) -> list[str]:
    texts = [
        world.files("apps")[f"apps/echo/overlays/{each.name}/kustomization.yaml"].decode()
        for each in ENVIRONMENTS
    ]
    return [re.findall(r"newTag: \"?([^\s\"]+)", text)[0] for text in texts]


def test_github(world: World, toolbox: Toolbox, tmp_path: Path) -> None:
    files = started(world, "github")
    assert sorted(files) == [".github/workflows/check.yml", ".github/workflows/release.yml"]
    jobs = files[".github/workflows/release.yml"][0]["jobs"]
    assert list(jobs) == ["build", "to-stage", "to-qa", "to-prod"]
    assert jobs["to-stage"]["needs"] == ["build"]
    assert jobs["to-prod"]["needs"] == ["to-qa"]
    given = {
        "inputs.app": "echo",
        "inputs.image": "ealen/echo-server",
        "secrets.apps-token": "t",
        "github.event.pull_request.head.sha": "3f2a91c",
    }

    def filled(text: object) -> str:
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: given[found[1]], str(text))

    for name in ("to-stage", "to-qa", "to-prod"):
        step = jobs[name]["steps"][-1]
        variables = {key: filled(value) for key, value in step["env"].items()}
        run(step["run"], variables, tmp_path, toolbox)
        if name == "to-stage":
            assert tags(world) == ["3f2a91c", "0.9.2", "0.9.2"]
    assert tags(world) == ["3f2a91c"] * 3


def test_gitlab(world: World, toolbox: Toolbox, tmp_path: Path) -> None:
    files = started(world, "gitlab")
    assert sorted(files) == [".gitlab-ci.yml", "ci/release.yml"]
    inputs, jobs = files["ci/release.yml"]
    assert list(inputs["spec"]["inputs"]) == ["app", "image", "context"]
    given = {"app": "echo", "image": "ealen/echo-server"}
    for name in ("to-stage", "to-qa", "to-prod"):
        variables = {
            key: re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: given[found[1]], str(value))
            for key, value in jobs[name]["variables"].items()
        }
        variables = {
            key: value.replace("$CI_COMMIT_SHA", "3f2a91c") for key, value in variables.items()
        }
        run(jobs[name]["script"][0], variables, tmp_path, toolbox)
    assert tags(world) == ["3f2a91c"] * 3
    for job in (*jobs.values(), *files[".gitlab-ci.yml"][0].values()):
        assert re.search(r"@sha256:[0-9a-f]{64}$", job["image"])


@pytest.mark.parametrize("provider", ["github", "gitlab"])
def test_the_check_passes_on_what_is_rendered(
    world: World, toolbox: Toolbox, tmp_path: Path, provider: str
) -> None:
    files = started(world, provider)
    clone = make_clone(tmp_path / "clone", world.folder.apps_remote.as_uri())
    clone.fetch()
    clone.git("checkout", "--quiet", "origin/main")
    assert not check(toolbox.path("kustomize"), Checkout(apps=clone.folder))
    if provider == "github":
        steps = files[".github/workflows/check.yml"][0]["jobs"]["check"]["steps"]
        script = "\n".join(each["run"] for each in steps if "run" in each)
    else:
        script = files[".gitlab-ci.yml"][0]["check"]["script"][0]
    assert "nothing is wrong" in run(script, {}, clone.folder, toolbox)
