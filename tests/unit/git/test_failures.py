"""Git's error output: classified by cause, and without credentials."""

from __future__ import annotations

import time

import pytest

from k8s_ucp.git.failures import (
    Damaged,
    HostUnreachable,
    NoSpace,
    Rejected,
    RepositoryMissing,
    SettingsUnreadable,
    Unsigned,
    classify,
    redact,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:p@ss@host/a", "https://host/a"),
        ("'https://tok:@@@host:1/a@b'", "'https://host:1/a@b'"),
        ("https://user:p'ss@host", "https://host"),
        ("ssh://git:p@ss@host/a", "ssh://git:***@host/a"),
        ("ssh://g@t:pass@host/a", "ssh://g@t:***@host/a"),
        ("ssh://:pass@host/a", "ssh://:***@host/a"),
        ("ssh://git@host:22/a", "ssh://git@host:22/a"),
        ("https://host:443/a and me@host", "https://host:443/a and me@host"),
        ("git@host:a/b", "git@host:a/b"),
    ],
)
def test_credentials_in_urls_are_hidden_up_to_the_last_at(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "word",
    ["a.", "repository ", "repository '", "a://b:", "https://", "object file ", "(stored in "],
)
def test_a_long_line_of_a_remote_host_is_read_within_seconds(word: str) -> None:
    """Nothing could interrupt the search of a pattern, not even Ctrl-C."""
    began = time.process_time()
    line = redact(f"remote: {word * (60_000 // len(word))}")
    classify("fetch", "https://host/a", line)
    assert time.process_time() - began < 3


def test_a_full_disk_is_not_classified_as_a_network_failure() -> None:
    gone = "fatal: the remote end hung up unexpectedly\n"
    full = f"fatal: failed to write to /a/apps.git/shallow_x: No space left on device\n{gone}"
    assert isinstance(classify("push", "/a/apps.git", full), NoSpace)
    assert isinstance(classify("push", "https://host/a", gone), HostUnreachable)
    mounted = (
        f"fatal: Unable to create temporary file '/a/shallow_x': Read-only file system\n{gone}"
    )
    assert isinstance(classify("push", "/a/apps.git", mounted), NoSpace)
    index = "fatal: sha1 file '/a/apps/.git/index.lock' write error. Out of diskspace\n"
    assert isinstance(classify("status", "/a/apps", index), NoSpace)


@pytest.mark.parametrize(
    "said", ["fatal: expected flush after ref listing", "fatal: expected 'packfile'"]
)
def test_an_answer_that_ends_too_early_is_a_network_failure(said: str) -> None:
    """A promotion repeats the call then."""
    assert isinstance(classify("clone", "https://host/a", f"{said}\n"), HostUnreachable)


def test_a_damaged_repository_is_not_classified_as_a_network_failure() -> None:
    said = (
        "remote: error: object file ./objects/8a/baf721 is empty\n"
        "remote: fatal: loose object 8abaf721 (stored in ./objects/8a/baf721) is corrupt\n"
        "fatal: early EOF\nfatal: fetch-pack: invalid index-pack output\n"
    )
    error = classify("fetch", "file:///a/apps.git", said)
    assert isinstance(error, Damaged)
    assert "git fsck" in (error.next or "")
    aborting = "remote: aborting due to possible repository corruption on the remote side.\n"
    assert isinstance(classify("fetch", "/a/apps.git", aborting + "fatal: early EOF\n"), Damaged)


def test_unreadable_git_settings_are_not_classified_as_a_network_failure() -> None:
    said = "unable to access '{}': {}\n"
    unreadable = "fatal: " + said.format("/home/me/.gitconfig", "Permission denied")
    assert isinstance(classify("push", "https://host/a", unreadable), SettingsUnreadable)
    away = "fatal: " + said.format("https://host/a/", "Failed sending data to the peer")
    assert isinstance(classify("push", "https://host/a", away), HostUnreachable)
    of_kustomize = 'Get "https://host/a.json": dial tcp: lookup host on 10.0.0.1:53: no such host'
    assert isinstance(classify("fetch", "apps/web", of_kustomize), HostUnreachable)


@pytest.mark.parametrize(
    "said",
    [
        "SSL certificate problem: self-signed certificate in certificate chain",
        "server certificate verification failed. CAfile: none CRLfile: none",
    ],
)
def test_an_untrusted_certificate_is_not_explained_by_the_network(said: str) -> None:
    error = classify(
        "fetch", "https://host/a", f"fatal: unable to access 'https://host/a/': {said}"
    )
    assert isinstance(error, HostUnreachable)
    assert "http.sslCAInfo" in (error.next or "")


@pytest.mark.parametrize(
    "said",
    [
        "fatal: unable to update url base from redirection:\n  asked for: https://host/a/info/refs\n"
        "   redirect: https://host/users/sign_in\n",
        "fatal: https://host/a/info/refs not valid: is this a git repository?\n",
    ],
)
def test_a_page_instead_of_a_repository_is_explained(said: str) -> None:
    error = classify("ls-remote", "https://host/a", said)
    assert isinstance(error, RepositoryMissing)
    assert "such as a login" in (error.next or "")


@pytest.mark.parametrize(
    "said",
    [
        "error: gpg failed to sign the data\n",
        "error: user.signingKey needs to be set for ssh signing\n",
        "error: Couldn't load public key /a/key: No such file or directory?\n",
    ],
)
def test_a_signing_failure_names_the_command_that_disables_signing(said: str) -> None:
    failure = classify("commit-tree", "/a/apps", f"{said}fatal: failed to write commit object\n")
    assert isinstance(failure, Unsigned)
    assert failure.next
    assert "git config --global commit.gpgSign false" in failure.next


def test_a_lock_that_stays_on_the_remote_is_no_race_with_another_push() -> None:
    race = "!\tx:refs/heads/main\t[remote rejected] (atomic transaction failed)\n"
    left = f"{race}remote: error: Unable to create '/a/refs/heads/main.lock': File exists.\n"
    moved, locked = (classify("push", "/a/apps.git", said) for said in (race, left))
    assert isinstance(moved, Rejected)
    assert isinstance(locked, Rejected)  # It is repeated like a race.
    assert (moved.next or "").startswith("run the command again")
    assert "delete the .lock file" in (locked.next or "")
