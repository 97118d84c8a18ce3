"""`ucp promote` on real repositories, over every transport."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent

import pytest

from k8s_ucp.locks import folder_locked
from tests.integration.gitops.promotion.app_repository import (
    KUSTOMIZATION,
    AppRepository,
    Person,
    Ucp,
    UcpHere,
    overlay,
)
from tests.integration.gitops.promotion.conftest import Transport


def test_tag_is_promoted_over_every_transport(
    repository: AppRepository, transport: Transport, ucp: Ucp
) -> None:
    result = ucp.promote(
        "echo", "--env", "stage", "--tag", "1.0.0", "--repo", transport.url(repository.folder),
        **transport.variables,
    )  # fmt: skip

    assert result.code == 0, result.err
    assert result.data["status"] == "promoted"
    assert (result.data["from"], result.data["to"]) == ("0.9.2", "1.0.0")
    assert result.data["commit"] == repository.tip
    assert repository.text(overlay("echo", "stage")) == KUSTOMIZATION.replace("0.9.2", "1.0.0")
    assert repository.text(overlay("echo", "prod")) == KUSTOMIZATION
    numbers = repository.git("diff", "--numstat", "main~1", "main").split()
    assert numbers == ["1", "1", overlay("echo", "stage")]
    repository.prove_sound()


def test_same_tag_again_is_unchanged(repository: AppRepository, ucp: Ucp) -> None:
    words = ("echo", "--env", "stage", "--tag", "1.0.0", "--repo", repository.url)
    ucp.promote(*words)
    result = ucp.promote(*words)

    assert (result.code, result.status, result.data["commit"]) == (0, "unchanged", None)
    assert len(repository.commits) == 2


def test_promotion_to_stage_and_then_to_prod(repository: AppRepository, ucp: Ucp) -> None:
    repo = ("--repo", repository.url)
    early = ucp.promote("echo", "--env", "prod", "--tag", "1.0.0", *repo)
    assert (early.code, early.status) == (1, "gated")
    assert "stage" in early.err

    assert ucp.promote("echo", "--env", "stage", "--tag", "1.0.0", *repo).code == 0
    result = ucp.promote("echo", "--env", "prod", "--from", "stage", *repo)

    assert (result.code, result.status) == (0, "promoted")
    assert repository.tag("echo", "prod") == "1.0.0"


def test_sequence_and_its_record_are_one_commit(repository: AppRepository, ucp: Ucp) -> None:
    repo = ("--repo", repository.url)
    ucp.promote("echo", "--env", "stage", "--tag", "2", "--sequence", "20", *repo)
    changed = repository.git("diff", "--name-only", "main~1", "main").split()
    assert changed == ["apps/echo/overlays/stage/.promotion.yaml", overlay("echo", "stage")]

    late = ucp.promote("echo", "--env", "stage", "--tag", "1", "--sequence", "19", *repo)
    assert (late.code, late.status) == (0, "superseded")
    forced = ucp.promote(
        "echo", "--env", "stage", "--tag", "1", "--sequence", "19", "--force", *repo
    )
    assert (forced.code, forced.status) == (0, "promoted")
    assert repository.tag("echo", "stage") == "1"


def test_run_number_is_the_default_sequence(repository: AppRepository, ucp: Ucp) -> None:
    words = ("echo", "--env", "stage", "--repo", repository.url)
    assert ucp.promote(*words, "--tag", "2", GITHUB_RUN_NUMBER="7").status == "promoted"
    assert ucp.promote(*words, "--tag", "1", GITHUB_RUN_NUMBER="6").status == "superseded"
    assert ucp.promote(*words, "--tag", "3", CI_PIPELINE_IID="8").status == "promoted"


def test_semver_orders_promotions_by_their_tags(repository: AppRepository, ucp: Ucp) -> None:
    words = ("echo", "--env", "stage", "--semver", "--repo", repository.url)
    assert ucp.promote(*words, "--tag", "0.10.0").status == "promoted"
    assert ucp.promote(*words, "--tag", "0.9.9").status == "superseded"


def test_expect_promotes_only_from_the_given_version(repository: AppRepository, ucp: Ucp) -> None:
    words = ("echo", "--env", "stage", "--expect", "0.9.2", "--repo", repository.url)
    assert ucp.promote(*words, "--tag", "1").status == "promoted"
    lost = ucp.promote(*words, "--tag", "2")
    assert (lost.code, lost.status) == (1, "conflict")
    assert repository.tag("echo", "stage") == "1"


def test_commit_has_message_trailers_author_and_link(repository: AppRepository, ucp: Ucp) -> None:
    ucp.promote(
        "echo", "--env", "stage", "--tag", "1", "--repo", repository.url,
        CI_PIPELINE_IID="8", CI_PIPELINE_URL="https://gitlab.example/p/8",
        GITLAB_USER_NAME="Mona Lisa", GITLAB_USER_EMAIL="mona@example.org",
    )  # fmt: skip

    assert repository.message().startswith("promote echo to stage: 0.9.2 -> 1\n\n")
    trailers = [f"%(trailers:key=Ucp-{key},valueonly)" for key in ("Sequence", "Run")]
    layout = "|".join([*trailers, "%an <%ae>", "%cn <%ce>"])
    read = repository.git("show", "-s", f"--format={layout}", "main")
    assert [each.strip() for each in read.split("|")] == [
        "8", "https://gitlab.example/p/8", "Mona Lisa <mona@example.org>", "ucp <ucp@localhost>",
    ]  # fmt: skip


def test_identity_in_git_settings_takes_precedence(
    repository: AppRepository, ucp: Ucp, home: Path
) -> None:
    (home / ".gitconfig").write_text("[user]\n\tname = Robot\n\temail = robot@example.org\n")
    words = ("echo", "--env", "stage", "--tag", "1", "--repo", repository.url)
    ucp.promote(*words, CI_PIPELINE_IID="8", GITLAB_USER_NAME="Mona")

    assert repository.git("show", "-s", "--format=%an|%cn", "main").strip() == "Robot|Robot"


def test_commits_are_signed_if_git_is_configured_to_sign(
    repository: AppRepository, ucp: Ucp, home: Path
) -> None:
    key = home / "signing"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = key.with_suffix(".pub").read_text().split()
    (home / "allowed").write_text(f"robot@example.org {public[0]} {public[1]}\n")
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Robot\n\temail = robot@example.org\n"
        f"\tsigningKey = {key}\n[gpg]\n\tformat = ssh\n[commit]\n\tgpgSign = true\n"
        f'[gpg "ssh"]\n\tallowedSignersFile = {home / "allowed"}\n'
    )

    result = ucp.promote("echo", "--env", "stage", "--tag", "1", "--repo", repository.url)

    assert result.code == 0, result.err
    repository.git("verify-commit", "main")
    assert repository.git("show", "-s", "--format=%an|%G?", "main").strip() == "Robot|G"


def test_missing_signing_key_stops_before_the_push(
    repository: AppRepository, ucp: Ucp, home: Path
) -> None:
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Robot\n\temail = robot@example.org\n\tsigningKey = /missing\n"
        "[gpg]\n\tformat = ssh\n[commit]\n\tgpgSign = true\n"
    )
    result = ucp("promote", "echo", "--env", "stage", "--tag", "1", "--repo", repository.url)

    assert result.code == 1
    assert "/missing" in result.err
    assert len(repository.commits) == 1


def test_batch_is_one_commit(repository: AppRepository, ucp: Ucp) -> None:
    repository.commit({overlay("shop", "stage"): "images:\r\n- {name: web}\r\n- {name: db}\r\n"})
    batch = """
    - {app: echo, env: stage, tag: "3"}
    - {app: shop, env: stage, images: {web: v1, db: v2}}
    """
    result = ucp(
        "promote", "--batch", "-", "--repo", repository.url, "-o", "json", "--sequence", "4",
        stdin=batch,
    )  # fmt: skip

    assert result.code == 0, result.err
    assert [each["status"] for each in result.data["promotions"]] == ["promoted", "promoted"]
    assert len(repository.commits) == 3
    assert repository.git("show", f"main:{overlay('shop', 'stage')}") == (
        "images:\n- {name: web, newTag: v1}\n- {name: db, newTag: v2}\n"
    )


def test_rollback_holds_the_tag_and_history_lists_it(repository: AppRepository, ucp: Ucp) -> None:
    repo = ("--repo", repository.url)
    stage = ("echo", "--env", "stage")
    ucp.promote(*stage, "--tag", "1", "--sequence", "1", *repo)
    ucp.promote(*stage, "--tag", "2", "--sequence", "2", *repo)

    back = ucp("rollback", *stage, *repo, "-o", "json")
    assert (back.code, back.data["from"], back.data["to"]) == (0, "2", "1"), back.err
    assert back.data["held"] == ["2"]

    release = f"ucp rollback echo {' '.join(repo)} --env stage --release-hold"
    assert f"stage: on hold: 2; release: {release}" in ucp("history", "echo", *repo).err
    for words in (("--tag", "2"), ("--tag", "2", "--sequence", "2"), ("--tag", "9")):
        held = ucp.promote(*stage, *words, *repo)
        assert (held.code, held.status) == (1, "held")
    assert ucp.promote(*stage, "--tag", "x", "--sequence", "1", *repo).status == "superseded"
    assert ucp.promote(*stage, "--tag", "3", "--sequence", "3", *repo).status == "promoted"

    told = ucp("history", "echo", "--env", "stage", *repo, "-o", "json").data
    assert [(each["kind"], each["to"]) for each in told] == [
        ("promote", "3"), ("rollback", "1"), ("promote", "2"), ("promote", "1"), ("edit", "0.9.2"),
    ]  # fmt: skip
    assert [each["sequence"] for each in told] == [3, None, 2, 1, None]
    assert "on hold" not in ucp("history", "echo", *repo).err


def test_hold_is_released(repository: AppRepository, ucp: Ucp) -> None:
    repo = ("--repo", repository.url)
    stage = ("echo", "--env", "stage")
    ucp.promote(*stage, "--tag", "1", *repo)
    ucp("rollback", *stage, *repo)
    assert ucp.promote(*stage, "--tag", "2", *repo).status == "held"

    released = ucp("rollback", *stage, "--release-hold", *repo, "-o", "json")

    assert released.code == 0, released.err
    assert repository.tag("echo", "stage") == "0.9.2"
    assert ucp.promote(*stage, "--tag", "2", *repo).status == "promoted"
    again = ucp("rollback", *stage, "--release-hold", *repo, "-o", "json")
    assert (again.code, again.status) == (0, "unchanged")

    frozen = ucp("rollback", *stage, "--hold", *repo, "-o", "json")
    assert (frozen.code, frozen.data["to"]) == (0, "2"), frozen.err
    assert repository.tag("echo", "stage") == "2"
    assert ucp.promote(*stage, "--tag", "3", "--sequence", "9", *repo).status == "held"
    assert ucp("rollback", *stage, "--hold", "--release-hold", *repo).code == 2

    told = ucp("history", *stage, *repo, "-o", "json").data
    assert [(each["kind"], each["from"], each["to"]) for each in told] == [
        ("hold", None, "2"), ("promote", "0.9.2", "2"), ("release", None, "0.9.2"),
        ("rollback", "1", "0.9.2"), ("promote", "0.9.2", "1"), ("edit", None, "0.9.2"),
    ]  # fmt: skip


@pytest.mark.parametrize("by", ["tag", "commit", "short commit"])
def test_rollback_to_a_named_tag_or_commit(repository: AppRepository, ucp: Ucp, by: str) -> None:
    repo = ("--repo", repository.url)
    stage = ("echo", "--env", "stage")
    first = ucp.promote(*stage, "--tag", "1", *repo).data["commit"]
    ucp.promote(*stage, "--tag", "2", *repo)
    ucp.promote("echo", "--env", "prod", "--tag", "2", *repo)
    target = {"tag": "1", "commit": first, "short commit": first[:9]}[by]

    result = ucp("rollback", *stage, "--to", target, *repo, "-o", "json")

    assert (result.code, result.data["to"]) == (0, "1"), result.err
    assert repository.tag("echo", "prod") == "2"


def test_history_includes_edits_of_people(repository: AppRepository, ucp: Ucp) -> None:
    text = KUSTOMIZATION.replace("0.9.2", "hotfix")
    repository.commit({overlay("echo", "prod"): text}, "hotfix \x1e\x1f\n\nUcp-App: no trailer")

    result = ucp("history", "echo", "--repo", repository.url)

    assert result.code == 0, result.err
    line = next(each for each in result.out.splitlines() if "hotfix" in each)
    assert "edit" in line
    assert "A Person" in line


@pytest.mark.parametrize("date", ["", " 253402300800 +0000"], ids=["missing", "year 10000"])
def test_a_commit_with_an_invalid_date_is_listed(
    repository: AppRepository, ucp: Ucp, date: str
) -> None:
    repository.commit({overlay("echo", "stage"): KUSTOMIZATION.replace("0.9.2", "1")})
    raw = repository.git("cat-file", "commit", "main")
    odd = re.sub(r"^(committer .+>) .+$", rf"\1{date}", raw, flags=re.MULTILINE)
    write = ("hash-object", "--literally", "-w", "-t", "commit", "--stdin")
    repository.git("update-ref", "refs/heads/main", repository.git(*write, stdin=odd).strip())
    echo = ("echo", "--env", "stage", "--repo", repository.url)

    result = ucp("history", *echo, "-o", "json")

    assert result.code == 0, result.err
    assert result.data[0]["time"] == "1970-01-01T00:00:00Z"
    assert ucp.promote(*echo, "--tag", "2").code == 0
    assert ucp("rollback", *echo).code == 0
    assert repository.tag("echo", "stage") == "1"


def test_changed_image_of_several_is_named(repository: AppRepository, ucp: Ucp) -> None:
    images = "images:\n- {name: web, newTag: v1}\n- {name: db, newTag: '16'}\n"
    repository.commit({overlay("shop", "stage"): images})
    repo = ("--repo", repository.url)

    result = ucp("promote", "shop", "--env", "stage", "--image", "web=v2", *repo)

    assert result.code == 0, result.err
    assert "promoted: shop in stage: web v1 -> v2" in result.err
    assert "promote shop to stage: web v1 -> v2" in repository.git("log", "-1", "--format=%s")
    told = ucp("history", "shop", *repo).out.splitlines()
    assert told[1].split()[3:5] == ["web=v1", "web=v2"]


def test_named_branch_is_promoted(repository: AppRepository, ucp: Ucp) -> None:
    repository.git("branch", "release", "main")
    words = ("echo", "--env", "stage", "--tag", "1", "--repo", repository.url)
    result = ucp.promote(*words, "--branch", "release")

    assert result.code == 0, result.err
    assert repository.git("rev-parse", "release").strip() == result.data["commit"]
    assert len(repository.commits) == 1


class TestWorkingClone:
    """`--repo PATH` with a clone of the user."""

    @pytest.fixture
    def clone(self, repository: AppRepository, tmp_path: Path) -> Path:
        folder = tmp_path / "my clone"
        repository._git(tmp_path, "clone", "--quiet", repository.url, str(folder))
        return folder

    def test_clone_is_fast_forwarded_after_the_promotion(
        self, repository: AppRepository, clone: Path, ucp: Ucp
    ) -> None:
        repository.commit({"README.md": "hi\n"})
        (clone / "notes.txt").write_text("mine")
        result = ucp.promote("echo", "--env", "stage", "--tag", "1", "--repo", str(clone))

        assert result.code == 0, result.err
        assert repository._git(clone, "rev-parse", "HEAD").strip() == repository.tip
        assert repository._git(clone, "status", "--porcelain") == "?? notes.txt\n"
        assert '"1"' in (clone / overlay("echo", "stage")).read_text()

    def test_shallow_clone_is_sufficient(
        self, repository: AppRepository, tmp_path: Path, ucp: Ucp
    ) -> None:
        repository.commit({"README.md": "hi\n"})
        folder = tmp_path / "shallow"
        repository._git(tmp_path, "clone", "-q", "--depth=1", repository.url, str(folder))
        repository.commit({"README.md": "hello\n"})
        result = ucp.promote("echo", "--env", "stage", "--tag", "1", "--repo", str(folder))

        assert result.code == 0, result.err
        assert repository.tag("echo", "stage") == "1"
        repository.prove_sound()

    def test_git_settings_of_the_clone_are_used(
        self, repository: AppRepository, clone: Path, ucp: Ucp
    ) -> None:
        repository._git(clone, "config", "user.name", "Local")
        repository._git(clone, "config", "user.email", "local@example.org")
        ucp.promote("echo", "--env", "stage", "--tag", "1", "--repo", str(clone))

        assert repository.git("show", "-s", "--format=%an", "main").strip() == "Local"

    @pytest.mark.parametrize("state", ["dirty", "staged", "detached", "ahead", "other branch"])
    def test_clone_with_changes_or_on_another_branch_is_refused(
        self, repository: AppRepository, clone: Path, ucp: Ucp, state: str
    ) -> None:
        repository._git(clone, "config", "user.name", "x")
        repository._git(clone, "config", "user.email", "x@example.org")
        readme = clone / overlay("echo", "prod")
        more: tuple[str, ...] = ()
        if state == "detached":
            repository._git(clone, "checkout", "--quiet", "--detach")
        elif state == "other branch":
            more = ("--branch", "release")
        else:
            readme.write_text("edited\n")
            if state != "dirty":
                repository._git(clone, "add", "-A")
            if state == "ahead":
                repository._git(clone, "commit", "--quiet", "-m", "mine")
        before = repository._git(clone, "status", "--porcelain=v2", "--branch")

        words = ("promote", "echo", "--env", "stage", "--tag", "1", "--repo", str(clone))
        result = ucp(*words, *more)

        assert result.code == 1, result.err
        assert "next:" in result.err
        assert repository._git(clone, "status", "--porcelain=v2", "--branch") == before
        assert len(repository.commits) == 1

    def test_branch_that_tracks_a_local_one_is_refused_with_the_reason(
        self, repository: AppRepository, clone: Path, ucp: Ucp
    ) -> None:
        repository._git(clone, "switch", "--quiet", "--create", "topic", "--track", "main")
        words = ("promote", "echo", "--env", "stage", "--tag", "1", "--repo", str(clone))
        for more in ((), ("--pr", "--forge", "gitea")):
            refused = ucp(*words, *more, GITEA_TOKEN="x")

            assert refused.code == 1
            assert "the branch topic of" in refused.err
            assert "follows the local branch main" in refused.err
            assert f"git -C '{clone}' switch main" in refused.err
        repository._git(clone, "switch", "--quiet", "main")
        assert ucp(*words).code == 0

    def test_branch_that_is_missing_on_the_remote_is_named(
        self, repository: AppRepository, clone: Path, ucp: Ucp
    ) -> None:
        repository._git(clone, "switch", "--quiet", "--create", "topic")
        words = ("promote", "echo", "--env", "stage", "--tag", "1", "--repo", str(clone))
        refused = ucp(*words)

        assert refused.code == 1
        assert f"{repository.url} has no branch topic" in refused.err
        assert f"git -C '{clone}' push --set-upstream origin topic" in refused.err

    def test_clone_that_can_not_be_updated_is_reported_with_the_reason(
        self, repository: AppRepository, clone: Path, ucp: Ucp
    ) -> None:
        (clone / ".git" / "index.lock").touch()
        words = ("promote", "echo", "--env", "stage", "--tag", "1", "--repo", str(clone))
        result = ucp(*words)

        assert result.code == 0, result.err
        assert "index.lock': File exists" in result.err
        assert f"then: git -C '{clone}' pull --ff-only" in result.err
        assert repository.tag("echo", "stage") == "1"

    @pytest.mark.parametrize("command", ["promote", "rollback"])
    def test_clone_in_use_is_awaited_only_until_the_timeout(
        self, repository: AppRepository, clone: Path, ucp: Ucp, command: str
    ) -> None:
        more = ("--tag", "1") if command == "promote" else ("--hold",)
        words = (command, "echo", "--env", "stage", *more, "--repo", str(clone))

        with folder_locked(clone):
            refused = ucp(*words, "--timeout", "1s")

        assert refused.code == 1
        assert str(clone) in refused.err
        # Not every file system reports the holder of a lock.
        who = f"process {os.getpid()}" if "process" in refused.err else "another command"
        assert f"waiting for {who}, which uses {clone}" in refused.err
        assert f"last state: {who} uses it; nothing was changed" in refused.err
        assert "next: wait for that command to end" in refused.err
        assert len(repository.commits) == 1
        assert ucp(*words).code == 0

    def test_clone_without_a_remote_is_refused(
        self, repository: AppRepository, clone: Path, ucp: Ucp
    ) -> None:
        repository._git(clone, "remote", "remove", "origin")
        spaced = clone.rename(clone.with_name("my clone"))
        result = ucp("promote", "echo", "--env", "stage", "--tag", "1", "--repo", str(spaced))

        assert result.code == 1
        assert "no remote" in result.err
        assert "git -C '/" in result.err


@pytest.fixture
def silent() -> Iterator[str]:
    """Address of a host that accepts connections and sends nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_silent_host_is_awaited_only_until_the_timeout(
    repository: AppRepository, ucp: Ucp, tmp_path: Path, silent: str
) -> None:
    url = f"http://{silent}/team/apps.git"
    clone = tmp_path / "clone"
    repository._git(tmp_path, "clone", "--quiet", repository.url, str(clone))
    repository._git(clone, "remote", "set-url", "origin", url.replace("//", "//ci:s3cret@"))

    for repo in (url, str(clone)):
        words = ("promote", "echo", "--env", "stage", "--tag", "1", "--repo", repo)
        refused = ucp(*words, "--timeout", "2s", UCP_GIT_TOKEN="s3cret")

        assert refused.code == 1
        assert f"of {url}: not reached within" in refused.err
        assert "next: " in refused.err
        assert "s3cret" not in refused.err


def test_app_repository_of_the_workspace_is_the_default(
    environment: dict[str, str], tmp_path: Path
) -> None:
    workspace = tmp_path / "ws"
    (workspace / "gitops" / "demo").mkdir(parents=True)
    repository = AppRepository(workspace / "gitops" / "demo" / "apps.git", environment)
    (workspace / "elsewhere").mkdir()
    ucp = UcpHere(environment, workspace / "elsewhere")

    words = ("echo", "--env", "stage", "--tag", "1", "--workspace", str(workspace))
    assert ucp.promote(*words).status == "promoted"
    assert repository.tag("echo", "stage") == "1"

    (workspace / "gitops" / "other" / "apps.git").mkdir(parents=True)
    unclear = ucp("promote", *words)
    assert unclear.code == 2
    assert "demo or other" in unclear.err
    assert ucp.promote(*words, "--topology", "demo").status == "unchanged"


@pytest.mark.parametrize(
    "words", [("history", "echo"), ("rollback", "echo", "--env", "stage")], ids=["history", "back"]
)
def test_shallow_clone_is_refused_with_the_command_that_unshallows_it(
    words: tuple[str, ...], repository: AppRepository, ucp: Ucp, tmp_path: Path
) -> None:
    ucp.promote("echo", "--env", "stage", "--tag", "1.0.0", "--repo", repository.url)
    clone = tmp_path / "shallow clone"
    url = repository.folder.as_uri()
    subprocess.run(["git", "clone", "--quiet", "--depth=1", url, str(clone)], check=True)

    refused = ucp(*words, "--repo", str(clone))

    assert refused.code == 1
    assert f"git -C '{clone}' fetch --unshallow" in refused.err
    subprocess.run(["git", "-C", str(clone), "fetch", "--quiet", "--unshallow"], check=True)
    assert ucp(*words, "--repo", str(clone)).code == 0


PLANS = {
    "a tag": ("promote", "echo", "--env", "stage", "--tag", "1.0.0"),
    "a tag and its sequence": (
        "promote", "echo", "--env", "stage", "--tag", "1.0.0", "--sequence", "4",
    ),
    "a digest": ("promote", "echo", "--env", "stage", "--digest", f"sha256:{'a' * 64}"),
    "several apps": (
        "promote", "--batch", "-",
    ),
    "a rollback": ("rollback", "shop", "--env", "stage"),
    "a hold": ("rollback", "shop", "--env", "stage", "--hold"),
}  # fmt: skip


@pytest.mark.parametrize("words", PLANS.values(), ids=PLANS.keys())
def test_dry_run_prints_the_commit_that_the_command_then_pushes(
    hosted: Callable[..., AppRepository], ucp: Ucp, tmp_path: Path, words: tuple[str, ...]
) -> None:
    repository = hosted("echo", "shop")
    crlf = KUSTOMIZATION.replace("\n", "\r\n").rstrip()
    repository.commit({overlay("echo", "stage"): crlf})
    repo = ("--repo", repository.url)
    ucp.promote("shop", "--env", "stage", "--tag", "0.9.3", *repo)
    before = repository.git("for-each-ref")
    batch = "[{app: echo, env: stage, tag: 1.0.0}, {app: shop, env: stage, tag: 1.0.0}]"

    shown = ucp(*words, *repo, "--dry-run", stdin=batch)
    planned = ucp(*words, *repo, "--dry-run", "-o", "json", stdin=batch)

    assert (shown.code, planned.code) == (0, 0), shown.err
    assert "would " in shown.err
    assert repository.git("for-each-ref") == before
    data = planned.data
    assert (data["status"], data["dryRun"], data["commit"]) == ("promoted", True, None)
    assert indent(data["message"], "    ") in shown.out
    assert shown.out.endswith(data["diff"].replace("\r\n", "\n"))  # as read from a stream
    person = Person(repository, tmp_path / "person")
    (tmp_path / "patch").write_bytes(data["diff"].encode())
    person.git("apply", "--index", "--whitespace=nowarn", str(tmp_path / "patch"))
    real = ucp(*words, *repo, "-o", "json", stdin=batch)
    assert real.status == "promoted"
    assert person.git("write-tree") == repository.git("rev-parse", "main^{tree}")
    assert repository.message().strip() == data["message"].strip()


def test_dry_run_ends_like_the_promotion(repository: AppRepository, ucp: Ucp) -> None:
    repo = ("--repo", repository.url, "--dry-run")
    gated = ucp.promote("echo", "--env", "prod", "--tag", "1.0.0", *repo)
    assert (gated.code, gated.status, gated.data["diff"]) == (1, "gated", None)

    unchanged = ucp.promote("echo", "--env", "stage", "--tag", "0.9.2", *repo)
    assert (unchanged.code, unchanged.status, unchanged.data["diff"]) == (0, "unchanged", None)
    assert len(repository.commits) == 1


def test_dry_run_leaves_a_clone_as_it_is(
    repository: AppRepository, ucp: Ucp, tmp_path: Path
) -> None:
    person = Person(repository, tmp_path / "clone")
    before = person.git("rev-parse", "HEAD"), person.git("count-objects")

    words = ("echo", "--env", "stage", "--tag", "1.0.0", "--repo", str(person.folder))
    result = ucp.promote(*words, "--dry-run")

    assert (result.code, result.status) == (0, "promoted")
    assert (person.git("rev-parse", "HEAD"), person.git("count-objects")) == before
    assert person.git("status", "--porcelain") == ""
    assert len(repository.commits) == 1
