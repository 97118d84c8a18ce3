"""Pull requests: one test suite for a real Gitea and for stand-ins of GitHub and GitLab."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import CACHE
from tests.integration.gitops.promotion import gitea_server
from tests.integration.gitops.promotion.app_repository import (
    KUSTOMIZATION,
    Result,
    Ucp,
    finish,
    overlay,
)
from tests.integration.gitops.promotion.forge_hosts import ForgeHost, forge_host

STAGE = ("echo", "--env", "stage")


@pytest.fixture(scope="module")
def gitea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[gitea_server.Gitea | None]:
    if gitea_server.unbuildable():
        yield None
        return
    built = gitea_server.build(CACHE)
    with gitea_server.running(built, tmp_path_factory.mktemp("gitea") / "data") as server:
        yield server


@pytest.fixture(
    params=[
        pytest.param("gitea", marks=pytest.mark.slow),
        "github",
        pytest.param("gitlab", marks=pytest.mark.slow),
    ]
)
def host(
    request: pytest.FixtureRequest, tmp_path: Path, environment: dict[str, str]
) -> Iterator[ForgeHost]:
    server = None
    if request.param == "gitea":
        server = request.getfixturevalue("gitea")
        if server is None:
            pytest.skip(gitea_server.unbuildable())
    folder = tmp_path / "forge"
    folder.mkdir()
    with forge_host(request.param, folder, environment, server) as found:
        yield found


WITH_EACH = pytest.mark.parametrize("host", ["gitea", "github", "gitlab"], indirect=True)
"""Marks what each forge must show in quick runs, too: open, update, merge, close, refuse."""


def propose(ucp: Ucp, host: ForgeHost, *words: str, **more: str) -> Result:
    return ucp.promote(*STAGE, "--pr", "--repo", host.url, *words, **{**host.variables, **more})


def until_merged(host: ForgeHost) -> None:
    """Wait for the merge, which forges do in the background."""
    until = time.monotonic() + 60
    while host.open_requests() and time.monotonic() < until:
        time.sleep(0.1)
    assert host.open_requests() == []


pytestmark = pytest.mark.timeout(1800)  # the first test builds Gitea


@WITH_EACH
def test_a_pull_request_is_opened(host: ForgeHost, ucp: Ucp) -> None:
    result = propose(ucp, host, "--tag", "1.0.0", "--sequence", "5")

    assert result.code == 0, result.err
    (shown,) = host.open_requests()
    assert (result.status, result.data["pr"]) == ("pr", shown.url)
    assert (result.data["from"], result.data["to"]) == ("0.9.2", "1.0.0")
    assert shown.title == "promote echo to stage: 0.9.2 -> 1.0.0"
    assert "Ucp-Sequence: 5" in shown.body
    assert host.repository.tip == host.repository.first
    proposed = host.repository.git("diff", "--name-only", "main", "ucp/echo/stage").split()
    assert proposed == ["apps/echo/overlays/stage/.promotion.yaml", overlay("echo", "stage")]
    assert result.data["commit"] == host.repository.git("rev-parse", "ucp/echo/stage").strip()


@WITH_EACH
def test_dry_run_opens_and_changes_no_pull_request(host: ForgeHost, ucp: Ucp) -> None:
    first = propose(ucp, host, "--tag", "1.0.0", "--dry-run")
    assert (first.code, first.status, first.data["pr"]) == (0, "pr", None), first.err
    assert "would open a pull request: echo in stage: 0.9.2 -> 1.0.0" in first.err
    assert host.open_requests() == []

    propose(ucp, host, "--tag", "1.0.0")
    before = host.repository.git("for-each-ref"), host.open_requests()
    again = propose(ucp, host, "--tag", "1.0.0", "--dry-run")
    assert (again.data["diff"], "already in" in again.err) == (None, True)
    second = propose(ucp, host, "--tag", "2.0.0", "--dry-run")
    assert second.status == "pr"
    assert f"would update {second.data['pr']}" in second.err
    assert '+    newTag: "2.0.0"' in second.data["diff"]
    back = propose(ucp, host, "--tag", "0.9.2", "--dry-run")
    assert (back.code, back.status) == (0, "unchanged")
    assert "would close the pull request" in back.err
    assert (host.repository.git("for-each-ref"), host.open_requests()) == before


@WITH_EACH
def test_newer_promotion_updates_the_open_pull_request(host: ForgeHost, ucp: Ucp) -> None:
    first = propose(ucp, host, "--tag", "1.0.0").data["pr"]
    host.repository.commit({"README.md": "somebody else\n"})
    second = propose(ucp, host, "--tag", "2.0.0")

    assert second.code == 0, second.err
    assert (second.status, second.data["pr"]) == ("pr", first)
    (shown,) = host.open_requests()
    assert shown.title == "promote echo to stage: 0.9.2 -> 2.0.0"
    log = host.repository.git("log", "--format=%s", "ucp/echo/stage")
    assert "1.0.0" in log, "the branch was forced"

    host.merge(shown.number)

    assert host.repository.tag("echo", "stage") == "2.0.0"
    assert host.repository.text("README.md") == "somebody else\n"
    assert host.repository.git("diff", "--numstat", "main~1", "main").split()[:2] == ["1", "1"]
    parents = host.repository.git("rev-list", "--parents", "main").splitlines()
    assert all(len(line.split()) <= 2 for line in parents)


def test_same_proposal_is_not_pushed_again(host: ForgeHost, ucp: Ucp) -> None:
    first = propose(ucp, host, "--tag", "1.0.0", "--sequence", "5")
    again = propose(ucp, host, "--tag", "1.0.0", "--sequence", "5")

    assert again.code == 0, again.err
    assert again.data["commit"] == first.data["commit"]
    assert again.data["pr"] == first.data["pr"]
    assert len(host.open_requests()) == 1


def test_older_promotion_is_superseded_by_the_open_proposal(host: ForgeHost, ucp: Ucp) -> None:
    first = propose(ucp, host, "--tag", "2.0.0", "--sequence", "6")
    late = propose(ucp, host, "--tag", "1.0.0", "--sequence", "5")

    assert (late.code, late.status, late.data["pr"]) == (0, "superseded", first.data["pr"])
    assert "2.0.0" in host.open_requests()[0].title


def test_no_pull_request_is_opened_for_the_current_version(host: ForgeHost, ucp: Ucp) -> None:
    result = propose(ucp, host, "--tag", "0.9.2")

    assert (result.code, result.status, result.data["pr"]) == (0, "unchanged", None)
    assert host.open_requests() == []


IMAGES = (
    "images:\n- {name: web, newTag: '1'}\n- {name: db, newTag: '7'}\n- {name: mq, newTag: '3'}\n"
)


def test_proposed_versions_of_other_images_are_kept(host: ForgeHost, ucp: Ucp) -> None:
    host.repository.commit({overlay("echo", "stage"): IMAGES})
    first = propose(ucp, host, "--image", "web=2", "--sequence", "5")
    second = propose(ucp, host, "--image", "db=8", "--sequence", "3")

    assert second.code == 0, second.err
    assert second.data["pr"] == first.data["pr"]
    assert second.data["images"] == [{"name": "db", "from": "7", "to": "8"}]
    assert second.data["kept"] == [{"name": "web", "from": "1", "to": "2"}]
    (shown,) = host.open_requests()
    assert shown.title == "promote echo to stage: 2 images"
    proposed = host.repository.text(overlay("echo", "stage"), "ucp/echo/stage")
    assert proposed == IMAGES.replace("'1'", "'2'").replace("'7'", "'8'")

    # They are dropped if the base has a newer version by now.
    direct = ("--image", "db=9", "--sequence", "4", "--repo", host.url)
    assert ucp.promote(*STAGE, *direct, **host.variables).status == "promoted"
    third = propose(ucp, host, "--image", "mq=4", "--sequence", "2")
    assert [each["name"] for each in third.data["kept"]] == ["web"], third.err
    assert [each["name"] for each in third.data["dropped"]] == ["db"]
    (shown,) = host.open_requests()
    host.merge(shown.number)
    landed = IMAGES.replace("'1'", "'2'").replace("'7'", "'9'").replace("'3'", "'4'")
    assert host.repository.text(overlay("echo", "stage")) == landed


def test_proposal_that_conflicts_with_the_base_is_renewed(host: ForgeHost, ucp: Ucp) -> None:
    host.repository.commit({overlay("echo", "stage"): IMAGES})
    words = ("--image", "web=2", "--image", "db=8", "--sequence", "5")
    propose(ucp, host, *words)
    direct = ("--image", "web=2", "--sequence", "5", "--repo", host.url)
    assert ucp.promote(*STAGE, *direct, **host.variables).status == "promoted"

    renewed = propose(ucp, host, *words)

    assert renewed.data["images"] == [{"name": "db", "from": "7", "to": "8"}], renewed.err
    (shown,) = host.open_requests()
    assert shown.title == "promote echo to stage: db 7 -> 8"
    host.merge(shown.number)
    landed = IMAGES.replace("'1'", "'2'").replace("'7'", "'8'")
    assert host.repository.text(overlay("echo", "stage")) == landed


@WITH_EACH
def test_proposal_of_the_current_version_closes_the_pull_request(host: ForgeHost, ucp: Ucp) -> None:
    first = propose(ucp, host, "--tag", "1.0.0", "--sequence", "5")
    late = propose(ucp, host, "--tag", "0.9.2", "--sequence", "4")
    assert late.status == "superseded", late.err
    back = propose(ucp, host, "--tag", "0.9.2", "--sequence", "6")

    assert (back.code, back.status, back.data["pr"]) == (0, "unchanged", first.data["pr"]), back.err
    assert host.open_requests() == []
    again = propose(ucp, host, "--tag", "0.9.2", "--sequence", "7")
    assert (again.status, again.data["pr"]) == ("unchanged", None)


def test_each_app_and_environment_has_its_own_pull_request(host: ForgeHost, ucp: Ucp) -> None:
    host.repository.commit({overlay("shop", "stage"): KUSTOMIZATION})
    propose(ucp, host, "--tag", "1")
    words = ("--env", "stage", "--tag", "1", "--pr", "--repo", host.url)
    other = ucp.promote("shop", *words, **host.variables)

    assert other.code == 0, other.err
    assert len(host.open_requests()) == 2


def test_proposal_is_renewed_on_top_of_a_direct_promotion(host: ForgeHost, ucp: Ucp) -> None:
    """A direct promotion of the same app lands first."""
    propose(ucp, host, "--tag", "1")
    direct = ucp.promote(*STAGE, "--tag", "2", "--repo", host.url, **host.variables)
    assert direct.status == "promoted", direct.err

    renewed = propose(ucp, host, "--tag", "3")

    assert renewed.data["from"] == "2"
    (shown,) = host.open_requests()
    host.merge(shown.number)
    assert host.repository.tag("echo", "stage") == "3"


def test_promotion_after_a_merge_opens_a_new_pull_request(host: ForgeHost, ucp: Ucp) -> None:
    propose(ucp, host, "--tag", "1")
    (first,) = host.open_requests()
    host.merge(first.number)
    result = propose(ucp, host, "--tag", "2")

    (second,) = host.open_requests()
    assert second.number != first.number
    assert result.data["from"] == "1"
    host.merge(second.number)
    assert host.repository.tag("echo", "stage") == "2"


def test_promotion_after_a_closed_pull_request_opens_a_new_one(host: ForgeHost, ucp: Ucp) -> None:
    propose(ucp, host, "--tag", "9", "--sequence", "9")
    (closed,) = host.open_requests()
    host.close(closed.number)
    result = propose(ucp, host, "--tag", "2", "--sequence", "2")

    assert result.status == "pr", result.err
    (shown,) = host.open_requests()
    assert shown.number != closed.number
    host.merge(shown.number)
    assert host.repository.tag("echo", "stage") == "2"


def test_pull_request_is_merged_at_once_without_required_checks(host: ForgeHost, ucp: Ucp) -> None:
    result = propose(ucp, host, "--tag", "1.0.0", "--sequence", "5", "--merge-when-green")

    assert result.code == 0, result.err
    until_merged(host)
    assert host.repository.tag("echo", "stage") == "1.0.0"
    assert host.repository.message().startswith("promote echo to stage: 0.9.2 -> 1.0.0")
    told = ucp("history", "echo", "--repo", host.url, "-o", "json", **host.variables)
    newest = told.data[0]
    assert (newest["kind"], newest["to"], newest["sequence"]) == ("promote", "1.0.0", 5)


@WITH_EACH
def test_pull_request_is_merged_once_its_checks_are_green(host: ForgeHost, ucp: Ucp) -> None:
    host.hold_checks()
    result = propose(ucp, host, "--tag", "1.0.0", "--merge-when-green")
    assert result.code == 0, result.err
    newer = propose(ucp, host, "--tag", "2.0.0", "--merge-when-green")
    assert newer.code == 0, newer.err
    assert host.repository.tip == host.repository.first

    host.turn_green()

    until_merged(host)
    assert host.repository.tag("echo", "stage") == "2.0.0"
    assert host.repository.message().startswith("promote echo to stage: 0.9.2 -> 2.0.0")


def test_concurrent_proposals_share_one_pull_request(host: ForgeHost, ucp: Ucp) -> None:
    words = ("promote", *STAGE, "--pr", "--repo", host.url, "-o", "json")
    running = [
        ucp.start(*words, "--tag", f"v{number}", "--sequence", str(number), **host.variables)
        for number in range(1, 5)
    ]
    results = [finish(each) for each in running]

    assert [each.code for each in results] == [0] * 4, [each.err for each in results]
    assert {each.status for each in results} <= {"pr", "superseded"}
    (shown,) = host.open_requests()
    host.merge(shown.number)
    assert host.repository.tag("echo", "stage") == "v4"


def test_concurrent_proposals_of_several_images_share_one_pull_request(
    host: ForgeHost, ucp: Ucp
) -> None:
    """Some find the branch of another one before its pull request is open."""
    host.repository.commit({overlay("echo", "stage"): IMAGES})
    words = ("promote", *STAGE, "--pr", "--repo", host.url, "-o", "json")
    running = [
        ucp.start(*words, "--image", f"{name}=new", "--sequence", "1", **host.variables)
        for name in ("web", "db", "mq")
    ]
    results = [finish(each) for each in running]

    assert [each.code for each in results] == [0] * 3, [each.err for each in results]
    (shown,) = host.open_requests()
    assert shown.title == "promote echo to stage: 3 images"
    host.merge(shown.number)
    assert host.repository.text(overlay("echo", "stage")).count("newTag: 'new'") == 3


@WITH_EACH
def test_wrong_token_is_refused_before_the_push(host: ForgeHost, ucp: Ucp) -> None:
    name = next(each for each in host.variables if each.endswith("_TOKEN") and "GIT_" not in each)
    words = ("promote", *STAGE, "--tag", "1", "--pr", "--repo", host.url)
    result = ucp(*words, **{**host.variables, name: "wr0ng-token"})

    assert result.code == 1
    assert "check the token" in result.err
    assert "wr0ng-token" not in result.err
    assert "ucp/" not in host.repository.git("for-each-ref")


def test_unreachable_forge_is_reported(host: ForgeHost, ucp: Ucp) -> None:
    words = ("promote", *STAGE, "--tag", "1", "--pr", "--repo", host.url)
    result = ucp(*words, **{**host.variables, "UCP_FORGE_URL": "http://127.0.0.1:1"})

    assert result.code == 1
    assert "is not responding" in result.err
