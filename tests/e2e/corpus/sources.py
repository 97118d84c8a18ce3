"""Serves shapes for `ucp app add`: folders, git over HTTP, a chart repository, a registry."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.chart_servers import Charts, chart_servers, pack
from tests.e2e.corpus.kustomizations import REMOTE_BASE
from tests.e2e.corpus.shape import NEW, OLD, Files, Shape
from tests.integration.gitops.promotion.git_servers import HttpGit, http_git

_THEN = "2026-01-01T00:00:00Z"
_ME = ("-c", "user.name=Me", "-c", "user.email=me@example.org")


@dataclass(frozen=True)
class Sources:
    """The addresses at which the shapes are served."""

    folder: Path
    git: HttpGit
    charts: Charts

    def words(self, shape: Shape) -> list[str]:
        """Arguments with which `ucp app add` finds the shape."""
        if shape.source == "folder":
            return ["--path", str(self.folder / shape.name / shape.path)]
        if shape.source == "git":
            url = self.git.url(self.folder / shape.name / ".git")
            return ["--repo", url, "--path", shape.path]
        if shape.source == "http":
            return ["--chart", shape.name, "--repo", self.charts.http, "--version", OLD]
        return ["--chart", f"{self.charts.oci}/{shape.name}", "--version", OLD]


@contextlib.contextmanager
def sources(folder: Path, shapes: Iterable[Shape]) -> Iterator[Sources]:
    """Write the shapes to a folder and serve them until the end of the block."""
    base = folder / "remote-base"
    commit = _repository(_write(base, REMOTE_BASE, {}))
    remote = f"{base.as_uri()}//deploy/base?ref={commit}"
    packed: dict[tuple[str, str], bytes] = {}
    for shape in shapes:
        if shape.source in ("http", "oci"):
            packed[shape.name, OLD] = pack(shape.name, _texts(shape.files))
            packed[shape.name, NEW] = pack(shape.name, _texts({**shape.files, **shape.newer}))
            continue
        _write(folder / shape.name, shape.files, {"{REMOTE}": remote})
        if shape.source == "git":
            _repository(folder / shape.name)
    with http_git(folder, dict(os.environ), auth=False) as git, chart_servers(packed) as charts:
        yield Sources(folder, git, charts)


def _texts(files: Files) -> dict[str, str]:
    return {path: text for path, text in files.items() if isinstance(text, str)}


def _write(folder: Path, files: Files, named: dict[str, str]) -> Path:
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            for word, meaning in named.items():
                content = content.replace(word, meaning)
            content = content.encode()
        target.write_bytes(content)
    return folder


def _repository(folder: Path) -> str:
    """Turn a folder into a git repository with the tag v1.0; return the reproducible commit."""
    environment = {**os.environ, "GIT_AUTHOR_DATE": _THEN, "GIT_COMMITTER_DATE": _THEN}
    for words in (
        ("init", "--quiet", "-b", "main"),
        ("add", "-A"),
        (*_ME, "commit", "-qm", "Have it"),
        ("tag", "v1.0"),
    ):
        subprocess.run(["git", "-C", str(folder), *words], check=True, env=environment)
    found = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    return subprocess.run(found, check=True, capture_output=True, text=True).stdout.strip()
