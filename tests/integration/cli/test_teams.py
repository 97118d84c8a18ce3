"""`ucp team` and `ucp claim` in a workspace that was never started, and the page about them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.cli import questions
from k8s_ucp.cli.editing import teams
from k8s_ucp.cli.main import run
from k8s_ucp.cli.plan_runner import EditKept
from k8s_ucp.git.repository import Repository

PAGE = Path(__file__).resolve().parents[3] / "docs" / "teams.md"
TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  clouds: {aws: {simulated: true}}
  environments:
    - {name: stage}
    - {name: prod, promotesFrom: stage}
"""


@pytest.fixture
def workspace(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ucp.yaml").write_text(TOPOLOGY, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ucp(line: str) -> int:
    return run(shlex.split(line))


def files(workspace: Path, team: str = "shop") -> set[str]:
    return set(Repository(workspace / f"gitops/demo/team-{team}.git").listing("main"))


def test_commands_of_the_page_about_teams_work(workspace: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) > 5
    for line in lines:
        assert ucp(line.removeprefix("ucp ")) == 0, line
    assert "teams" not in (workspace / "ucp.yaml").read_text("utf-8")
    # Files that the team committed stay.
    assert "apps/shop/base/deployment.yaml" in files(workspace)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("team list", "ucp team add NAME"),
        ("claim list", "ucp team add NAME"),
        ("app list", "ucp app add NAME FOLDER"),
    ],
)
def test_empty_list_says_how_to_add_an_entry(
    workspace: Path, capsys: pytest.CaptureFixture[str], line: str, command: str
) -> None:
    assert ucp(line) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert f"add one: {command}" in said.err
    assert ucp(f"{line} -o json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_renamed_branch_of_a_team_is_refused(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new branch of the old name would hide the team's files from Argo CD."""
    assert ucp("team add shop") == 0
    assert ucp("claim new database orders --env stage") == 0
    remote = Repository(workspace / "gitops/demo/team-shop.git")
    remote.git("branch", "-m", "main", "trunk")
    before = remote.refs()
    assert ucp("claim new database more --env stage") == 1
    told = capsys.readouterr().err
    assert "the repository of team shop has no branch main; its branches: trunk" in told
    assert "git push origin trunk:refs/heads/main" in told
    shutil.rmtree(workspace / "gitops/demo/team-shop")  # A clone that has never seen the branch.
    assert ucp("claim new database more --env stage") == 1
    assert "has no branch main" in capsys.readouterr().err
    assert remote.refs() == before
    remote.git("branch", "-m", "trunk", "main")
    assert ucp("claim new database more --env stage") == 0
    assert {"claims/shop-orders.yaml", "claims/shop-more.yaml"} <= files(workspace)


def test_claims_are_added_and_removed(
    workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ucp("team add shop") == 0
    before = files(workspace)
    assert ucp("claim new database shop-orders --size large --storage 20 --env prod") == 0
    assert ucp("claim new database orders") == 2, "the name is taken"
    assert ucp("claim new compute box --env nowhere") == 2
    assert ucp("claim new compute Box") == 2
    capsys.readouterr()
    assert ucp("claim list -o json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["name"], found["kind"], found["environment"], found["size"]) == (
        *("shop-orders", "Postgres", "prod", "large"),
    )
    assert (found["state"], found["why"]) == ("unknown", "the core cluster is not responding")
    assert ucp("claim remove orders --team shop") == 0
    assert ucp("claim new compute box") == 0
    assert "claims/shop-box.yaml" in files(workspace)
    with monkeypatch.context() as terminal:
        terminal.setattr(questions, "can_ask", lambda: True)
        terminal.setattr(questions, "confirm", lambda *_, default: default)
        assert ucp("claim remove box") == 2, "a person is asked, since data is deleted"
        assert "claims/shop-box.yaml" in files(workspace)
        assert ucp("claim remove box --yes") == 0
    assert files(workspace) == before
    assert "claims/README.md" in before, "Argo CD reads the folder"
    assert ucp("claim remove orders") == 2


@pytest.mark.parametrize(
    "fields", ["metadata: orders", "metadata: {name: [x]}", "spec: [a]", "spec: {size: 2026-11-29}"]
)
def test_a_claim_with_a_value_of_another_type_is_listed(
    workspace: Path, capsys: pytest.CaptureFixture[str], fields: str
) -> None:
    assert ucp("team add shop") == 0
    folder = workspace / "gitops/demo/team-shop.git"
    remote, path = Repository(folder), "claims/orders.yaml"
    files = {path: f"kind: Postgres\n{fields}\n".encode()}
    commit = remote.write_commit("By hand\n", files, parent=remote.resolve("main"))
    update = ("update-ref", "refs/heads/main", commit)
    subprocess.run(["git", "-C", str(folder), *update], check=True)
    capsys.readouterr()
    assert ucp("claim list -o json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["path"], found["kind"]) == (path, "Postgres")
    assert ucp("claim list") == 0
    assert ucp("claim remove orders --yes") == 2, "the file has no claim of this name"


def test_a_claim_is_not_removed_with_others_that_a_person_added_to_its_file(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their databases would be deleted with their data, though the question names one claim."""
    assert ucp("team add shop") == 0
    assert ucp("claim new database orders") == 0
    remote, path = Repository(workspace / "gitops/demo/team-shop.git"), "claims/shop-orders.yaml"
    tip = remote.resolve("main")
    assert tip
    text = remote.read(tip, path)[path]
    for more, named in (
        (text.replace(b"shop-orders", b"shop-payments"), "Postgres shop-payments"),
        (b"kind: List\nitems: []\n", "List"),
        (b"{[", "can't be parsed as YAML"),
    ):
        commit = remote.write_commit("By hand\n", {path: text + b"---\n" + more}, parent=tip)
        update = ("update-ref", "refs/heads/main", commit)
        subprocess.run(
            ["git", "-C", str(workspace / "gitops/demo/team-shop.git"), *update], check=True
        )
        capsys.readouterr()
        assert ucp("claim remove orders --yes") == 2
        assert named in capsys.readouterr().err
        assert path in files(workspace)


def test_claim_that_nothing_would_create_is_refused(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (workspace / "ucp.yaml").write_text(TOPOLOGY.replace("simulated: true", ""), "utf-8")
    assert ucp("team add shop --template database") == 2
    assert not (workspace / "gitops").exists()
    assert ucp("team add shop") == 0
    before = files(workspace)
    assert ucp("claim new database orders") == 2
    assert "need a simulated cloud" in capsys.readouterr().err
    assert ucp("claim new compute box") == 2
    assert "need a simulated cloud" in capsys.readouterr().err
    assert ucp("claim new database orders --provider gcp") == 2
    assert "demo does not use gcp: nothing would create the claim" in capsys.readouterr().err
    assert files(workspace) == before


def test_team_name_that_is_invalid_for_a_service_is_refused(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ucp("team add 1shop --template service") == 2
    said = capsys.readouterr().err
    assert "--template service can't be used for the team 1shop" in said
    assert "choose another name, such as my-1shop, or omit --template" in said
    assert not (workspace / "gitops").exists()
    assert ucp("team add 1shop") == 0


def test_refused_team_or_claim_leaves_nothing_behind(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ucp("team add demo") == 2, "called like the topology"
    assert ucp("team add shop --repo https://me:pass@g.example.org/x") == 2
    assert not (workspace / "gitops").exists()
    assert (workspace / "ucp.yaml").read_text("utf-8") == TOPOLOGY
    assert ucp("claim new database orders") == 2, "there is no team"
    assert ucp("team remove shop") == 2
    said = capsys.readouterr().err
    assert "unknown team" in said
    assert "next: ucp team list" in said


def test_a_lost_topology_file_is_restored_before_a_team_is_added(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new file would declare nothing of what runs."""
    state = workspace / ".ucp" / "demo"
    state.mkdir(parents=True)
    (workspace / "ucp.yaml").rename(state / "ucp.yaml")
    assert ucp("team add shop") == 2
    assert "next: restore it: cp " in capsys.readouterr().err


def test_a_teams_repository_is_kept_if_the_edit_of_an_interrupted_addition_is(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C during the push, or if the same command runs twice at once."""
    real = teams.edit_topology

    def interrupted(*given: Any, **more: Any) -> None:
        real(*given, **more)
        raise EditKept("interrupted; the edit of ucp.yaml was pushed")

    monkeypatch.setattr(teams, "edit_topology", interrupted)

    assert ucp("team add shop --template database") != 0
    assert "claims/shop-database.yaml" in files(workspace)


def test_repository_with_content_gets_only_the_claims_folder(workspace: Path) -> None:
    theirs = workspace / "theirs.git"
    assert ucp("team add first") == 0
    first = workspace / "gitops/demo/team-first.git"
    first.rename(theirs)
    clone = Repository(workspace / "gitops/demo/team-first")
    commit = clone.write_commit("Mine\n", {"mine.txt": b"mine\n"}, parent=None)
    Repository(theirs).git("fetch", "--quiet", str(clone.folder), f"+{commit}:refs/heads/main")
    assert ucp(f"team add shop --template service --repo {theirs.as_uri()}") == 0
    assert set(Repository(theirs).listing("main")) == {"mine.txt", "claims/README.md"}
