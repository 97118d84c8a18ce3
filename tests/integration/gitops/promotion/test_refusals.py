"""Refusals of a push by git hosts, in each wording: which are retried, and which are final."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.integration.gitops.promotion.app_repository import AppRepository, Ucp
from tests.integration.gitops.promotion.conftest import Transport
from tests.integration.gitops.promotion.git_servers import TOKEN, USER, http_git

WORDS = ("echo", "--env", "stage", "--tag", "1")

RIVAL = """
export GIT_AUTHOR_NAME=r GIT_AUTHOR_EMAIL=r@x GIT_COMMITTER_NAME=r GIT_COMMITTER_EMAIL=r@x
git update-ref refs/heads/main $(git commit-tree -p main -m rival "main^{tree}")
"""

# A host that checks pushes itself (proc-receive) has its own error messages. The first push races
# with a rival: the branch moves, and the response is one of these messages.

LATE = [
    "fetch first",
    "non-fast-forward",
    "cannot lock ref 'refs/heads/main': is at 1111111 but expected 2222222",
    "incorrect old value provided",
    "failed to update ref",
    "failed to lock",
    "stale info",
    "TF401035: the object was changed by somebody else",
]
FINAL = [
    "pre-receive hook declined",
    "hook declined",
    "protected branch hook declined",
    "push declined due to repository rule violations",
    "permission denied",
    "prohibited by Gerrit: not permitted: update",
    "TF402455: Pushes to this branch are not permitted; you must use a pull request",
]

PROC_RECEIVE = '''#!/usr/bin/env python3
"""A host that decides itself: refuses `times` pushes in its own words, then takes them."""
import pathlib, subprocess, sys

folder = pathlib.Path("{folder}")
read, write = sys.stdin.buffer, sys.stdout.buffer

def packets():
    while True:
        size = int(read.read(4), 16)
        if size == 0:
            return
        yield read.read(size - 4)

def send(*lines):
    for line in lines:
        write.write(b"%04x" % (len(line) + 4) + line)
    write.write(b"0000")
    write.flush()

list(packets())
send(b"version=1\\0")
commands = [line.decode().split() for line in packets()]
left = int((folder / "left").read_text())
(folder / "left").write_text(str(max(0, left - 1)))
(folder / "seen").open("a").write("push\\n")
for old, new, ref in commands:
    if left:
        if {moves}:
            subprocess.run(["sh", str(folder / "rival")], check=True)
        send(f"ng {{ref}} {words}\\n".encode())
    else:
        subprocess.run(["git", "update-ref", ref, new, old], check=True)
        send(f"ok {{ref}}\\n".encode())
'''


def host(repository: AppRepository, folder: Path, words: str, *, times: int, moves: bool) -> Path:
    """Make the repository respond to the next pushes with that message."""
    (folder / "left").write_text(str(times))
    (folder / "seen").write_text("")
    repository.git("config", "receive.procReceiveRefs", "refs/heads")
    hook = repository.folder / "hooks" / "proc-receive"
    hook.parent.mkdir(exist_ok=True)
    text = PROC_RECEIVE.format(folder=folder, moves=moves, words=words.replace('"', '\\"'))
    hook.write_text(text)
    hook.chmod(0o755)
    (folder / "rival").write_text(
        "set -e\n"
        # It must run outside the quarantine of the push that is being checked.
        "unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n"
        f"cd '{repository.folder}'\n"
        f"{RIVAL}\n"
    )
    return folder / "seen"


@pytest.mark.parametrize("words", LATE)
def test_push_that_lost_a_race_is_repeated_on_the_new_tip(
    repository: AppRepository, ucp: Ucp, tmp_path: Path, words: str
) -> None:
    seen = host(repository, tmp_path, words, times=2, moves=True)

    result = ucp.promote(*WORDS, "--repo", repository.url)

    assert result.code == 0, result.err
    assert (result.status, result.data["attempts"]) == ("promoted", 3)
    assert len(seen.read_text().split()) == 3
    assert len(repository.commits) == 4
    repository.prove_sound()


@pytest.mark.parametrize("words", FINAL)
def test_declined_push_is_final(
    repository: AppRepository, ucp: Ucp, tmp_path: Path, words: str
) -> None:
    seen = host(repository, tmp_path, words, times=99, moves=True)

    result = ucp("promote", *WORDS, "--repo", repository.url)

    assert result.code == 1
    assert words in result.err
    assert len(seen.read_text().split()) == 1


def test_protected_branch_is_reported_with_the_way_to_open_a_pull_request(
    repository: AppRepository, ucp: Ucp
) -> None:
    words = "GitLab: You are not allowed to push code to protected branches on this project."
    repository.hook("pre-receive", f'echo "{words}" >&2; exit 1')
    refused = ucp("promote", *WORDS, "--repo", repository.url)
    assert refused.code == 1
    assert "next: propose it instead: add --pr" in refused.err

    repository.hook("pre-receive", 'echo "Commits must be signed." >&2; exit 1')
    assert "--pr" not in ucp("promote", *WORDS, "--repo", repository.url).err


def test_unknown_error_is_final_if_the_branch_did_not_move(
    repository: AppRepository, ucp: Ucp, tmp_path: Path
) -> None:
    seen = host(repository, tmp_path, "TF999: computer says no", times=99, moves=False)

    result = ucp("promote", *WORDS, "--repo", repository.url)

    assert result.code == 1
    assert "computer says no" in result.err
    assert len(seen.read_text().split()) == 1


@pytest.mark.parametrize("hook", ["pre-receive", "update"])
@pytest.mark.parametrize("words", ["fetch first", "cannot lock ref", "GH006: Protected branch"])
def test_declining_hook_is_final_whatever_it_prints(
    repository: AppRepository, transport: Transport, ucp: Ucp, hook: str, words: str
) -> None:
    counter = repository.folder / "declined"
    repository.hook(hook, f'echo x >> "{counter}"; echo "{words}" >&2; exit 1')

    result = ucp(
        "promote", *WORDS, "--repo", transport.url(repository.folder), **transport.variables
    )

    assert result.code == 1
    assert words in result.err
    assert "hook declined" in result.err
    assert len(counter.read_text().split()) == 1
    assert len(repository.commits) == 1


def test_push_is_repeated_after_a_rival_between_fetch_and_push(
    repository: AppRepository, ucp: Ucp
) -> None:
    """With git's own error for that race instead of a hook's: the ref's lock decides."""
    repository.hook(
        "pre-receive",
        "[ -e raced ] && exit 0\ntouch raced\n"
        "unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n"
        f"{RIVAL}\n",
    )
    result = ucp.promote(*WORDS, "--repo", repository.url)

    assert (result.code, result.data["attempts"]) == (0, 2), result.err
    repository.prove_sound()


def test_stale_lock_on_the_remote_is_reported_with_gits_message(
    repository: AppRepository, ucp: Ucp
) -> None:
    (repository.folder / "refs" / "heads" / "main.lock").touch()

    result = ucp("promote", *WORDS, "--repo", repository.url)

    assert result.code == 1
    assert "main.lock" in result.err


def test_retries_on_a_moving_branch_end_at_the_deadline(
    repository: AppRepository, ucp: Ucp, tmp_path: Path
) -> None:
    host(repository, tmp_path, "fetch first", times=999, moves=True)

    result = ucp("promote", *WORDS, "--repo", repository.url, "--timeout", "4s")

    assert result.code == 1
    assert "not reached within" in result.err
    assert "run the command again" in result.err


def lead(ucp: Ucp, to: str, instead_of: str) -> None:
    """Replace the person's settings by a rewriting of URLs."""
    text = f'[url "{to}"]\n\tinsteadOf = {instead_of}\n'
    Path(ucp.environment["GIT_CONFIG_GLOBAL"]).write_text(text)


class TestHttp:
    """Cases that exist only over HTTP."""

    def variables(self) -> dict[str, str]:
        return {"UCP_GIT_USERNAME": USER, "UCP_GIT_TOKEN": TOKEN}

    def test_push_with_a_lost_response_is_not_repeated(
        self, repository: AppRepository, ucp: Ucp, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        with http_git(tmp_path / "git host", environment) as served:
            served.faults.lost_answers = 1
            words = (*WORDS, "--repo", served.url(repository.folder))
            result = ucp.promote(*words, **self.variables())

        assert result.code == 0, result.err
        assert (result.status, result.data["attempts"]) == ("promoted", 2)
        assert result.data["commit"] == repository.tip
        assert len(repository.commits) == 2

    def test_unavailable_server_is_retried(
        self, repository: AppRepository, ucp: Ucp, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        with http_git(tmp_path / "git host", environment) as served:
            served.faults.unavailable = 2
            words = (*WORDS, "--repo", served.url(repository.folder))
            result = ucp.promote(*words, **self.variables())

        assert result.code == 0, result.err
        assert result.status == "promoted"

    @pytest.mark.parametrize("typed", ["http://git.example.org/", "git@git.example.org:"])
    def test_credential_is_sent_to_the_url_that_the_persons_settings_rewrite_to(
        self,
        repository: AppRepository,
        ucp: Ucp,
        tmp_path: Path,
        environment: dict[str, str],
        typed: str,
    ) -> None:
        with http_git(tmp_path / "git host", environment) as served:
            url = served.url(repository.folder)
            base, _, name = url.rpartition("/")
            lead(ucp, f"{base}/", typed)
            # Settings of another repository must not decide where a token is sent.
            away = ["git", "config", "url.http://127.0.0.1:1/.insteadOf", typed]
            subprocess.run(["git", "init", "--quiet"], cwd=ucp.folder, check=True)
            subprocess.run(away, cwd=ucp.folder, check=True)
            result = ucp.promote(*WORDS, "--repo", typed + name, **self.variables())
            assert result.code == 0, result.err
            assert result.status == "promoted"

            userinfo = base.replace("://", "://job:t0ken@")
            lead(ucp, f"{userinfo}/", typed)
            result = ucp.promote(*WORDS, "--repo", typed + name, **self.variables())
            assert result.code == 0, result.err

    def test_token_for_https_is_not_sent_unencrypted(self, ucp: Ucp) -> None:
        lead(ucp, "http://127.0.0.1:1/", "https://git.example.org/")
        words = ("promote", *WORDS, "--repo", "https://git.example.org/apps.git")
        refused = ucp(*words, **self.variables())

        assert refused.code == 2
        assert "where the token would be sent unencrypted" in refused.err

    @pytest.mark.parametrize(
        ("token", "named"),
        [("", "the credential of this repository"), ("wrong-token", "the variable UCP_GIT_TOKEN")],
    )
    def test_wrong_or_missing_credential_is_reported(
        self,
        repository: AppRepository,
        ucp: Ucp,
        tmp_path: Path,
        environment: dict[str, str],
        token: str,
        named: str,
    ) -> None:
        with http_git(tmp_path / "git host", environment) as served:
            words = ("promote", *WORDS, "--repo", served.url(repository.folder))
            result = ucp(*words, UCP_GIT_USERNAME=USER, UCP_GIT_TOKEN=token)

        assert result.code == 1
        assert f"next: check {named}" in result.err
        assert "wrong-token" not in result.err
        assert len(repository.commits) == 1

    def test_token_is_in_no_argument_file_or_output(
        self, repository: AppRepository, ucp: Ucp, tmp_path: Path, environment: dict[str, str]
    ) -> None:
        """A wrapper of git records its arguments."""
        log = tmp_path / "calls"
        tools = tmp_path / "tools"
        tools.mkdir()
        (tools / "git").write_text(
            f'#!/bin/sh\nfor word in "$@"; do echo "$word" >> "{log}"; done\n'
            f'PATH="${{PATH#*:}}" exec git "$@"\n'
        )
        (tools / "git").chmod(0o755)
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        repository.hook("pre-receive", "echo no >&2; exit 1")
        with http_git(tmp_path / "git host", environment) as served:
            words = ("promote", *WORDS, "-v", "--repo", served.url(repository.folder))
            path = f"{tools}:{environment['PATH']}"
            keep = {"TMPDIR": str(scratch), "PATH": path, "GIT_TRACE_REDACT": "1"}
            result = ucp(*words, **self.variables(), **keep)

        assert result.code == 1
        assert "push" in log.read_text()
        for place in (log.read_text(), result.out, result.err):
            assert TOKEN not in place
        for path_ in scratch.rglob("*"):
            assert not path_.is_file() or TOKEN.encode() not in path_.read_bytes()
