"""The reconciler's image: its tag depends on the content, and its Dockerfile is hardened."""

from __future__ import annotations

import re
from typing import Any

import pytest

from k8s_ucp import __version__
from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.components.pods.reconciler_image import BASE_VARIABLE, RECIPE, ReconcilerImage
from k8s_ucp.errors import CommandFailed, UcpError


def test_the_image_name_depends_on_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BASE_VARIABLE, raising=False)
    plain = ReconcilerImage.wanted()
    assert plain == ReconcilerImage.wanted(None)
    assert re.fullmatch(
        rf"docker\.io/k8s-ucp/reconciler:{re.escape(__version__)}-[0-9a-f]{{12}}", plain.name
    )
    assert ReconcilerImage.wanted("mirror.example.org").name != plain.name
    monkeypatch.setenv(BASE_VARIABLE, "mine:1")
    assert ReconcilerImage.wanted("mirror.example.org").base == "mine:1"


def test_a_base_image_that_fails_to_pull_is_reported() -> None:
    class Offline(ContainerEngine):
        def has_image(self, image: str) -> bool:
            return False

        def run(self, *words: object, timeout: float = 0, **more: Any) -> str:
            raise CommandFailed(["docker", *map(str, words)], 1, "Error: no such host\n")

    with pytest.raises(UcpError, match=r"pull some/python, .*no such host") as caught:
        ReconcilerImage("some/python").build(Offline(), "x", lambda line: None)
    assert f"{BASE_VARIABLE}=IMAGE" in (caught.value.next or "")


def test_the_dockerfile_runs_unprivileged_and_pins_dependencies_by_hash() -> None:
    text = (RECIPE / "Dockerfile").read_text()
    assert len(re.findall(r"^FROM \$\{BASE\}", text, re.M)) == 2
    last = text.rpartition("FROM ")[2]
    assert re.search(r"^USER 65532:65532$", last, re.M)
    assert "RUN" not in last
    assert "--require-hashes" in text
    lines = [
        line
        for line in (RECIPE / "requirements.txt").read_text().splitlines()
        if re.match(r"[a-z]", line)
    ]
    assert lines
    assert all("==" in line for line in lines)
