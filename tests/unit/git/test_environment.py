"""Which of the caller's environment variables git, its filters, helpers and hooks get."""

from __future__ import annotations

from pathlib import Path

from k8s_ucp.git.environment import Credential, git_call

CALLER = {
    "PATH": "/usr/bin",
    "SSH_AUTH_SOCK": "/run/agent",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_DIR": ".",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_ACCESS_KEY_ID": "x",
    "DIGITALOCEAN_TOKEN": "x",
    "ARM_CLIENT_SECRET": "x",
    "GOOGLE_APPLICATION_CREDENTIALS": "/x",
    "UCP_GIT_TOKEN": "x",
    "KUBECONFIG": "/x",
}
KEPT = {"PATH", "SSH_AUTH_SOCK", "GIT_AUTHOR_NAME"}


def dropped(argv: tuple[str, ...]) -> set[str]:
    words = argv[: argv.index("git")]
    return set(words[2::2]) if words else set()


def test_git_in_a_local_repository_gets_no_secret_of_the_caller() -> None:
    own = Path("/a/k8s-ucp.gitconfig")
    call = git_call(
        ["status"], folder=Path("/a"), credential=None, own=own, local=True, inherited=CALLER
    )
    assert dropped(call.argv) == CALLER.keys() - KEPT


def test_git_for_a_remote_keeps_variables_that_credential_helpers_may_need() -> None:
    call = git_call(["fetch"], folder=Path("/a"), credential=None, inherited=CALLER)
    assert dropped(call.argv) == {"GIT_DIR"}


def test_the_credential_is_passed_in_the_environment_and_not_in_argv() -> None:
    call = git_call(
        ["fetch"],
        folder=Path("/a"),
        credential=Credential("me", "hunter2"),
        remote="https://me@git.example.org:8443/a/b.git",
        own=Path("/a/k8s-ucp.gitconfig"),
        local=True,
        inherited={"UCP_GIT_PASSWORD": "of an outer call"},
    )
    assert call.environment["UCP_GIT_PASSWORD"] == "hunter2"
    assert call.environment["UCP_GIT_FOR"] == "https://git.example.org:8443"
    assert "UCP_GIT_PASSWORD" not in dropped(call.argv)
    assert "hunter2" not in " ".join(call.argv)
