"""The rendered pipelines, run as a runner would: variables are substituted, then the shell runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.git.clones import make_clone
from k8s_ucp.gitops.check.repositories import Checkout, check
from k8s_ucp.topology import Environment
from k8s_ucp.topology.parts import Ci
from tests.conftest import CACHE
from tests.integration.gitops.conftest import Repositories
from tests.person import git as git_in

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


def started(world: Repositories, provider: str) -> dict[str, Any]:
    """{path: documents} of the pipelines of a pushed app repository."""
    ci = Ci.model_validate({"provider": provider, "install": INSTALL})
    world.start(ci=ci, environments=ENVIRONMENTS)
    return {
        path: list(YAML(typ="safe", pure=True).load_all(text.decode()))
        for path, text in world.files("apps").items()
        if path.startswith((".git", "ci/"))
    }


def run(
    script: str, variables: dict[str, str], folder: Path, kustomize: Path, *, ends: int = 0
) -> str:
    """Run a step as a runner does; return its output."""
    for text in variables.values():
        assert "${{" not in text and "$[[" not in text, text
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        env={
            "HOME": str(folder),
            "PATH": f"{BIN}:{kustomize.parent}:{os.environ['PATH']}",
            "UCP_CACHE_DIR": str(folder),
            "UCP_GIT_TOKEN": "t",
            **variables,
        },
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == ends, done.stderr
    return done.stdout + done.stderr


def tags(world: Repositories) -> list[str]:
    texts = [
        world.files("apps")[f"apps/echo/overlays/{each.name}/kustomization.yaml"].decode()
        for each in ENVIRONMENTS
    ]
    return [re.findall(r"newTag: \"?([^\s\"]+)", text)[0] for text in texts]


HEAD_A, HEAD_B, HEAD_OLD = "a" * 40, "b" * 40, "c" * 40
MERGE_OF_A, README = "1" * 40, "2" * 40
ANSWERS: dict[str, Any] = {}
"""{path: response of the forge}"""


class Api(BaseHTTPRequestHandler):
    """The forge's API: it responds for one project, and only to its token."""

    def do_GET(self) -> None:
        sent = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN")
        allowed = self.path in ANSWERS and sent in ("Bearer of-the-job", "may-read")
        self.send_response(200 if allowed else 404)
        self.end_headers()
        if allowed:
            self.wfile.write(json.dumps(ANSWERS[self.path]).encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def api() -> Iterator[str]:
    ANSWERS.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class GitHub:
    """The rendered workflow, run for events of a service's repository."""

    def __init__(self, world: Repositories, kustomize: Path, folder: Path, api: str) -> None:
        files = started(world, "github")
        assert sorted(files) == [".github/workflows/check.yml", ".github/workflows/release.yml"]
        (workflow,) = files[".github/workflows/release.yml"]
        self.jobs = workflow["jobs"]
        assert list(self.jobs) == ["build", "to-stage", "to-qa", "to-prod"]
        assert self.jobs["to-stage"]["needs"] == ["build"]
        assert self.jobs["to-prod"]["needs"] == ["to-qa"]
        assert workflow["permissions"] == {"contents": "read", "pull-requests": "read"}
        self.kustomize, self.folder, self.api = kustomize, folder, api
        # For a commit, the API also returns open requests and those that came in otherwise.
        ANSWERS[f"/repos/o/echo/commits/{MERGE_OF_A}/pulls"] = [
            self._pull(HEAD_B, merged=False, commit=MERGE_OF_A),
            self._pull(HEAD_OLD, merged=True, commit="3" * 40),
            self._pull(HEAD_A, merged=True, commit=MERGE_OF_A),
        ]
        ANSWERS[f"/repos/o/echo/commits/{README}/pulls"] = []

    @staticmethod
    def _pull(head: str, *, merged: bool, commit: str) -> dict[str, Any]:
        at = "2026-01-01T00:00:00Z" if merged else None
        return {
            "merged_at": at,
            "merge_commit_sha": commit,
            "head": {"sha": head},
            "base": {"ref": "main"},
        }

    def opened(self, head: str) -> str:
        assert self.jobs["to-stage"].get("if") is None
        return self._job("to-stage", "main", **{"github.event.pull_request.head.sha": head})

    def pushed(self, job: str, commit: str, ends: int = 0) -> str:
        assert self.jobs[job]["if"] == (
            "github.event_name == 'push'"
            " && github.ref_name == github.event.repository.default_branch"
        )
        return self._job(job, commit, ends)

    def _job(self, job: str, commit: str, ends: int = 0, **event: str) -> str:
        given = {
            "inputs.app": "echo",
            "inputs.image": "ealen/echo-server",
            "secrets.apps-token": "t",
            "github.token": "of-the-job",
            **event,
        }
        step = self.jobs[job]["steps"][-1]
        variables = {
            key: re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: given[found[1]], str(value))
            for key, value in step["env"].items()
        }
        variables |= {"GITHUB_SHA": commit, "GITHUB_REF_NAME": "main"}
        variables |= {"GITHUB_API_URL": self.api, "GITHUB_REPOSITORY": "o/echo"}
        return run(step["run"], variables, self.folder, self.kustomize, ends=ends)


class GitLab:
    """The rendered pipeline, run for events of a service's project."""

    def __init__(self, world: Repositories, kustomize: Path, folder: Path, api: str) -> None:
        files = started(world, "gitlab")
        assert sorted(files) == [".gitlab-ci.yml", "ci/release.yml"]
        inputs, self.jobs = files["ci/release.yml"]
        assert list(inputs["spec"]["inputs"]) == ["app", "image", "context"]
        for job in (*self.jobs.values(), *files[".gitlab-ci.yml"][0].values()):
            assert re.search(r"@sha256:[0-9a-f]{64}$", job["image"])
        self.kustomize, self.folder, self.api = kustomize, folder, api
        self.more = {"UCP_API_TOKEN": "may-read"}
        path = "/projects/7/repository/commits/{}/merge_requests"
        ANSWERS[path.format(MERGE_OF_A)] = [
            self._request(HEAD_B, state="opened"),
            self._request(HEAD_OLD, merge_commit_sha="3" * 40),
            self._request(HEAD_A, squash_commit_sha=MERGE_OF_A),
        ]
        ANSWERS[path.format(README)] = []

    @staticmethod
    def _request(head: str, **fields: str) -> dict[str, Any]:
        commits = {"merge_commit_sha": None, "squash_commit_sha": None, "sha": head}
        return {"state": "merged", "target_branch": "main", **commits, **fields}

    def opened(self, head: str) -> str:
        # With merged results pipelines, GitLab creates the commit for the pipeline.
        merged = {"CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": head} if head == HEAD_B else {}
        return self._job("to-stage", "9" * 40 if merged else head, **merged)

    def pushed(self, job: str, commit: str, ends: int = 0) -> str:
        assert self.jobs[job]["rules"] == [{"if": "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"}]
        return self._job(job, commit, ends)

    def _job(self, job: str, commit: str, ends: int = 0, **more: str) -> str:
        given = {"app": "echo", "image": "ealen/echo-server"}
        variables = {
            key: re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: given[found[1]], str(value))
            for key, value in self.jobs[job]["variables"].items()
        }
        variables |= {"CI_COMMIT_SHA": commit, "CI_COMMIT_BRANCH": "main"}
        variables |= {"CI_API_V4_URL": self.api, "CI_PROJECT_ID": "7", **self.more, **more}
        script = self.jobs[job]["script"][0]
        return run(script, variables, self.folder, self.kustomize, ends=ends)


@pytest.fixture
def kustomize() -> Path:
    from k8s_ucp.tools.installer import Installer

    return Installer(CACHE, lambda event: None).install(("kustomize",)).path("kustomize")


@pytest.mark.parametrize("forge", [GitHub, GitLab])
def test_merge_promotes_its_own_image_and_no_other(
    forge: type[GitHub | GitLab], world: Repositories, kustomize: Path, tmp_path: Path, api: str
) -> None:
    pipeline = forge(world, kustomize, tmp_path, api)
    # The folder of a job may have the files of a merge request.
    (tmp_path / "json.py").write_text("raise SystemExit('executed')\n")
    pipeline.opened(HEAD_A)
    assert tags(world) == [HEAD_A, "0.9.2", "0.9.2"]
    pipeline.opened(HEAD_B)
    assert tags(world) == [HEAD_B, "0.9.2", "0.9.2"]
    # A is merged while stage runs B, which nobody has reviewed.
    words = pipeline.pushed("to-qa", MERGE_OF_A, ends=1)
    assert "stage does not have the tag yet" in words
    assert tags(world) == [HEAD_B, "0.9.2", "0.9.2"]
    pipeline.opened(HEAD_A)
    pipeline.pushed("to-qa", MERGE_OF_A)
    pipeline.pushed("to-prod", MERGE_OF_A)
    assert tags(world) == [HEAD_A] * 3
    # A push that is not a merge promotes nothing, whatever stage runs.
    pipeline.opened(HEAD_B)
    assert "nothing to promote" in pipeline.pushed("to-qa", README)
    assert tags(world) == [HEAD_B, HEAD_A, HEAD_A]


def test_merge_in_a_private_gitlab_project_is_found_with_git(
    world: Repositories, kustomize: Path, tmp_path: Path, api: str
) -> None:
    """The API rejects requests without a token; only the head of a merge request is accepted."""
    pipeline = GitLab(world, kustomize, tmp_path, api)
    service = tmp_path / "service"
    service.mkdir()

    git = partial(git_in, service)
    git("init", "--quiet", "--initial-branch=main")
    git("commit", "--quiet", "--allow-empty", "-m", "First")
    heads = {}
    for number, name in ((1, "a"), (2, "b")):
        git("switch", "--quiet", "-c", name, "main")
        git("commit", "--quiet", "--allow-empty", "-m", f"Change {name}")
        heads[name] = git("rev-parse", "HEAD")
        git("update-ref", f"refs/merge-requests/{number}/head", "HEAD")
    git("switch", "--quiet", "main")
    git("commit", "--quiet", "--allow-empty", "-m", "By hand\n\nSee merge request o/echo!2")
    by_hand = git("rev-parse", "HEAD")
    git("merge", "--quiet", "--no-ff", "-m", "See merge request o/echo!2", "a")
    pipeline.more = {"CI_REPOSITORY_URL": service.as_uri(), "CI_PROJECT_DIR": str(service)}
    pipeline.opened(heads["a"])
    pipeline.pushed("to-qa", git("rev-parse", "HEAD"))
    assert tags(world) == [heads["a"], heads["a"], "0.9.2"]
    assert "UCP_API_TOKEN" in pipeline.pushed("to-qa", by_hand, ends=1)


@pytest.mark.parametrize("provider", ["github", "gitlab"])
def test_check_accepts_the_rendered_repository(
    world: Repositories, kustomize: Path, tmp_path: Path, provider: str
) -> None:
    files = started(world, provider)
    clone = make_clone(tmp_path / "clone", world.folder.apps_remote.as_uri())
    clone.fetch()
    clone.git("checkout", "--quiet", "origin/main")
    # The repository of this topology is a folder, which no hosted runner can reach.
    found = {each.rule for each in check(kustomize, Checkout(apps=clone.folder)).findings}
    assert found == {"pipeline-local-repository"}
    if provider == "github":
        steps = files[".github/workflows/check.yml"][0]["jobs"]["check"]["steps"]
        script = "\n".join(each["run"] for each in steps if "run" in each)
    else:
        script = files[".gitlab-ci.yml"][0]["check"]["script"][0]
    assert "1 warning" in run(script, {}, clone.folder, kustomize)
