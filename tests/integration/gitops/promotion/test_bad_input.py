"""Invalid input: one clear message, exit code 1 or 2, and an unchanged repository."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.gitops.promotion.app_repository import (
    KUSTOMIZATION,
    AppRepository,
    Result,
    Ucp,
    overlay,
)

STAGE = overlay("echo", "stage")


@pytest.fixture
def refused(repository: AppRepository, ucp: Ucp) -> Callable[..., Result]:
    """Run a promotion that must be refused, and check that nothing changed."""

    def run(*words: str, code: int, stdin: str | None = None, **more: str) -> Result:
        before = repository.git("for-each-ref"), repository.git("count-objects", "-v")
        where = () if "--repo" in words else ("--repo", repository.url)
        result = ucp("promote", *words, *where, stdin=stdin, **more)
        assert result.code == code, result.err
        assert result.out == ""
        assert "Traceback" not in result.err
        assert result.err.count("ucp: ") == 1, result.err
        assert (repository.git("for-each-ref"), repository.git("count-objects", "-v")) == before
        return result

    return run


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("ehco", "--env", "stage", "--tag", "1"), 2, "did you mean echo?"),
        (("echo", "--env", "stge", "--tag", "1"), 2, "did you mean stage?"),
        (("echo", "--env", "prod", "--from", "stge"), 2, "did you mean stage?"),
        (("echo", "--env", "prod", "--tag", "1", "--require-env", "qa"), 2, "environment qa"),
        (("echo", "--env", "stage", "--tag", "1", "--require-env", "stage"), 2, "also the target"),
        (("echo", "--env", "stage", "--from", "stage"), 2, "also the target environment"),
        (("echo", "--env", "stage", "--image", "redis=1"), 2, "no image redis"),
        (("echo", "--env", "stage", "--image", "a.b:5000/redis:1"), 2, "no image a.b:5000/redis\n"),
        (("echo", "--env", "stage", "--image", "redis@sha256:" + "a" * 64), 2, "no image redis\n"),
        (("echo", "--env", "stage", "--image", "redis"), 2, "NAME=TAG"),
        (("echo", "--env", "stage", "--image", "a.b:5000/redis"), 2, "NAME=TAG"),
        (("echo", "--env", "stage", "--image", "a=1", "--image", "a=2"), 2, "twice"),
        (("echo", "--env", "stage", "--chart-version", "1", "--chart-version", "2"), 2, "twice"),
        (("echo", "--env", "stage"), 2, "the tag to promote is not specified"),
        (("echo", "--tag", "1"), 2, "the environment is not specified"),
        (("--env", "stage", "--tag", "1"), 2, "the app is not specified"),
        (("echo", "--env", "stage", "--tag", "1", "--digest", "x"), 2, "mutually exclusive"),
        (("echo", "--env", "stage", "--tag", "1", "--semver"), 2, "semantic version"),
        (
            ("echo", "--env", "stage", "--tag", "1.0.0", "--semver", "--sequence", "1"),
            2,
            "mutually exclusive",
        ),
        (("echo", "--env", "stage", "--tag", "1", "--sequence", "-1"), 2, "--sequence"),
        (("echo", "--env", "stage", "--tag", "1", "--sequence", "9" * 30), 2, "--sequence"),
        (("echo", "--env", "stage", "--tag", "1", "--soak", "10m"), 2, "--require-healthy"),
        (("echo", "--env", "stage", "--tag", "1", "--timeout", "soon"), 2, "not a valid duration"),
        (("echo", "--env", "stage", "--tag", "1", "--branch", "no/such"), 1, "no/such"),
        (("echo", "--env", "stage", "--digest", "sha256:123"), 2, "not a valid digest"),
        (("echo", "--env", "stage", "--digest", "1.0"), 2, "not a valid digest"),
        (("echo", "--env", "stage", "--tag", "sha256:" + "a" * 64), 2, "not a valid tag"),
        (("--batch", "/no/such/file"), 2, "failed to read"),
        (("echo", "--batch", "-"), 2, "mutually exclusive"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused(
    refused: Callable[..., Result], words: tuple[str, ...], code: int, said: str
) -> None:
    result = refused(*words, code=code)

    assert said in result.err
    assert "next:" in result.err


# The full tables are in tests/unit/gitops/promotion; these cases test the whole command.
@pytest.mark.parametrize("tag", ["a\nnewTag: evil", "$(touch /tmp/x)", "../../etc/passwd", "-rf"])
def test_invalid_tag_never_reaches_a_file(refused: Callable[..., Result], tag: str) -> None:
    for option in (f"--tag={tag}", f"--image=ealen/echo-server={tag}"):
        assert "not a valid tag" in refused("echo", "--env", "stage", option, code=2).err


@pytest.mark.parametrize("name", ["..", "echo/../echo", "-x", "e\x1bcho"])
def test_name_that_is_a_path_is_refused(refused: Callable[..., Result], name: str) -> None:
    assert refused("--env", "stage", "--tag", "1", "--", name, code=2).err
    assert refused("echo", f"--env={name}", "--tag", "1", code=2).err


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({STAGE: "resources: []\n"}, "no images"),
        ({STAGE: "images: []\n"}, "no images"),
        ({STAGE: "images: [\n"}, "not valid YAML"),
        ({STAGE: KUSTOMIZATION + "---\na: 1\n"}, "2 YAML documents"),
        ({STAGE: "symlink:../prod/kustomization.yaml"}, "symlink"),
        ({STAGE: None, "apps/echo/overlays/stage": "symlink:prod"}, "symlink"),
        ({STAGE: None, "apps/echo/overlays/stage": "symlink:/etc"}, "symlink"),
        (
            {
                STAGE: None,
                overlay("echo", "prod"): None,
                "apps/echo/base/kustomization.yaml": None,
                "apps/echo": "symlink:../elsewhere",
                overlay("x", "stage"): KUSTOMIZATION,
            },
            "symlink",
        ),
        ({"apps/echo/overlays/stage/.promotion.yaml": "symlink:/etc/passwd"}, "symlink"),
        ({"apps/echo/overlays/stage/.promotion.yaml": "images: [1]\n"}, "not a valid"),
        ({STAGE: None, "apps/echo/overlays/stage/x.yaml": "a: 1\n"}, "no image"),
        ({STAGE: None, STAGE + "/x": "a: 1\n"}, "no image"),
        ({STAGE.replace(".yaml", ".yml"): "images: []\n"}, "only one"),
    ],
)
def test_malformed_app_repository_is_refused(
    repository: AppRepository,
    refused: Callable[..., Result],
    files: dict[str, str | None],
    said: str,
) -> None:
    repository.commit(files)

    result = refused("echo", "--env", "stage", "--tag", "1", code=1)

    assert said in result.err


def test_environments_file_that_is_a_symlink_opens_no_gate(
    repository: AppRepository, refused: Callable[..., Result]
) -> None:
    repository.commit({"environments.yaml": "symlink:/dev/null"})

    assert "symlink" in refused("echo", "--env", "prod", "--tag", "1", code=1).err


def test_empty_repository_is_refused(
    refused: Callable[..., Result], ucp: Ucp, repository: AppRepository, tmp_path: Path
) -> None:
    repository._git(tmp_path, "init", "--quiet", "--bare", "empty.git")
    where = ("--repo", str(tmp_path / "empty.git"))

    assert "no commit" in refused("echo", "--env", "stage", "--tag", "1", *where, code=1).err


def test_folder_that_is_not_a_repository_is_refused(
    refused: Callable[..., Result], tmp_path: Path
) -> None:
    for where, said in ((str(tmp_path), "not a git repository"), ("/no/such", "does not exist")):
        words = ("echo", "--env", "stage", "--tag", "1", "--repo", where)
        assert said in refused(*words, code=2).err


def test_unreachable_host_is_reported(refused: Callable[..., Result]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/x.git"
        words = ("echo", "--env", "stage", "--tag", "1", "--repo", url)
        result = refused(*words, code=1)

    assert "check the URL and the network" in result.err


def test_missing_repository_on_a_host_is_reported(
    refused: Callable[..., Result], tmp_path: Path
) -> None:
    url = (tmp_path / "gone.git").as_uri()
    result = refused("echo", "--env", "stage", "--tag", "1", "--repo", url, code=1)

    assert "gone.git" in result.err


def test_credential_in_the_url_is_refused_and_not_shown(refused: Callable[..., Result]) -> None:
    url = "https://user:hunter2@git.example.org/x.git"
    result = refused("echo", "--env", "stage", "--tag", "1", "--repo", url, code=2)

    assert "hunter2" not in result.err
    assert "UCP_GIT_TOKEN" in result.err


def test_health_gate_without_a_kubeconfig_is_refused(refused: Callable[..., Result]) -> None:
    words = ("echo", "--env", "prod", "--tag", "1", "--require-healthy")
    result = refused(*words, code=2)

    assert "KUBECONFIG" in result.err
    assert ".ucp/<topology>/kubeconfigs" in result.err


def test_missing_git_is_reported(refused: Callable[..., Result], tmp_path: Path) -> None:
    result = refused("echo", "--env", "stage", "--tag", "1", code=1, PATH=str(tmp_path))

    assert "install git" in result.err


def test_sequence_of_another_workflow_is_refused(repository: AppRepository, ucp: Ucp) -> None:
    words = ("echo", "--env", "stage", "--repo", repository.url)
    github = {"GITHUB_RUN_NUMBER": "900", "GITHUB_WORKFLOW_REF": "o/r/build.yml@refs/heads/main"}
    assert ucp.promote(*words, "--tag", "1", **github).status == "promoted"
    other = {"GITHUB_RUN_NUMBER": "3", "GITHUB_WORKFLOW_REF": "o/r/deploy.yml@refs/heads/main"}

    result = ucp("promote", *words, "--tag", "2", **other)

    assert result.code == 2
    assert "o/r/build.yml" in result.err
    assert repository.tag("echo", "stage") == "1"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("ehco", "--env", "stage"), 2, "did you mean echo?"),
        (("echo", "--env", "stge"), 2, "did you mean stage?"),
        (("echo",), 2, "the environment is not specified"),
        (("echo", "--env", "stage"), 1, "no earlier version"),
        (("echo", "--env", "stage", "--to", "9.9.9"), 1, "never had 9.9.9"),
        (("echo", "--env", "stage", "--to", "0123456789"), 1, "never had"),
        (("echo", "--env", "stage", "--to", "--all"), 1, "never had --all"),
        (("../x", "--env", "stage"), 2, "is not a valid name"),
    ],
)
def test_rollback_to_an_unknown_target_is_refused(
    repository: AppRepository, ucp: Ucp, words: tuple[str, ...], code: int, said: str
) -> None:
    result = ucp("rollback", *words, "--repo", repository.url)

    assert result.code == code, result.err
    assert said in result.err
    assert len(repository.commits) == 1


def test_history_of_an_unknown_app_is_refused(repository: AppRepository, ucp: Ucp) -> None:
    for words, said in (
        (("ehco",), "did you mean echo?"),
        (("echo", "--env", "x"), "no overlay for the environment"),
    ):
        result = ucp("history", *words, "--repo", repository.url)
        assert result.code == 2
        assert said in result.err


def test_a_kustomization_without_images_gets_the_lines_with_those_of_its_base(
    repository: AppRepository, refused: Callable[..., Result], ucp: Ucp
) -> None:
    pod = "spec: {containers: [{name: a, image: 'a/b:1.10'}]}\n"
    text = "resources: [../../base]\n"
    files = {
        "apps/echo/base/kustomization.yaml": "resources: [pod.yaml]\n",
        "apps/echo/base/pod.yaml": f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\n{pod}",
        STAGE: text,
    }
    repository.commit(files)
    said = refused("echo", "--env", "stage", "--tag", "2", code=1).err
    _, lines, added = said.partition("    images:\n")
    repository.commit({STAGE: text + lines.strip() + "\n" + added})
    ucp("promote", "echo", "--env", "stage", "--tag", "2", "--repo", repository.url)
    assert repository.tag("echo", "stage") == "2"
