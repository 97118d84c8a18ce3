"""The image for pipelines: built from its Dockerfile, and used for a promotion."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.components.pods.image_wheels import fetch_wheels
from tests import kind_images
from tests.integration.gitops.promotion.app_repository import AppRepository, plain_environment

pytestmark = [pytest.mark.kind, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[4]
GIT_BASE = "k8s-ucp-test/python-git:1"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Built as the Dockerfile's first lines say, on a locally built base if none can be pulled."""
    engine = ContainerEngine()
    context = tmp_path_factory.mktemp("image")
    for each in ("ci/image/Dockerfile", "requirements/promote.txt"):
        (context / each).parent.mkdir(parents=True)
        shutil.copyfile(ROOT / each, context / each)
    dist = context / "dist"
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", dist, ROOT],
        check=True,
        capture_output=True,
    )
    arguments = []
    if kind_images.PYTHON:
        kind_images.make_python(engine, GIT_BASE, "python3-venv", "git", "openssh-client")
        assert fetch_wheels(engine, GIT_BASE, context / "requirements/promote.txt", dist)
        arguments = [f"BASE={GIT_BASE}", "PIP_ARGS=--no-index"]
    name = f"k8s-ucp-test/promote:{os.getpid()}"
    words = [word for each in arguments for word in ("--build-arg", each)]
    file = context / "ci/image/Dockerfile"
    engine.run("build", *words, "--file", str(file), "--tag", name, str(context), timeout=600)
    yield name
    engine.run("rmi", name)


def test_image_runs_as_an_ordinary_user_and_shows_its_help(image: str) -> None:
    engine = ContainerEngine()
    assert engine.run("run", "--rm", "--network", "none", image, "id", "-u").strip() == "10001"
    told = engine.run("run", "--rm", "--network", "none", image)
    assert "--require-healthy" in told


def test_promotion_runs_in_a_container(image: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    apps = AppRepository(tmp_path / "apps.git", plain_environment(home))
    # git accepts only repositories of the user that runs it.
    told = ContainerEngine().run(
        *("run", "--rm", "--network", "none", "--user", f"{os.getuid()}:{os.getgid()}"),
        *("--env", "HOME=/tmp", "--volume", f"{apps.folder}:/apps.git", image),
        *("ucp", "promote", "echo", "--env", "stage", "--tag", "0.9.3"),
        *("--repo", "file:///apps.git", "-o", "json"),
        timeout=120,
    )
    answer = json.loads(told)
    assert (answer["status"], answer["from"], answer["to"]) == ("promoted", "0.9.2", "0.9.3")
    assert apps.tag("echo", "stage") == "0.9.3"
    assert answer["commit"] == apps.tip
    apps.prove_sound()
