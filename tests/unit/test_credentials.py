"""Credentials: the format that each cloud expects, and that no secret is ever shown."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import pytest

from k8s_ucp import credentials
from k8s_ucp.clouds import CLOUDS
from k8s_ucp.credentials import BadCredential, CredentialRef, load, load_login
from k8s_ucp.errors import CommandFailed, DeadlineExceeded, ProgramMissing

SECRET = "hunter2-" + "x" * 40
GCP = {
    "type": "service_account",
    "client_email": "a@b",
    "private_key": SECRET,
    "project_id": "p",
    "token_uri": "https://t",
}
AZURE = {"clientId": "a", "clientSecret": SECRET, "subscriptionId": "b", "tenantId": "c"}
AWS = f"[default]\naws_access_key_id = AK\naws_secret_access_key = {SECRET}\n"
GOOD = {
    "gcp": json.dumps(GCP),
    "aws": AWS,
    "azure": json.dumps(AZURE),
    "digitalocean": SECRET + "\n",
}
BAD = {
    "gcp without a key": ("gcp", json.dumps({**GCP, "private_key": ""}), "it has no private_key"),
    "gcp of a user": ("gcp", json.dumps({**GCP, "type": "user"}), "type is not service_account"),
    "gcp as text": ("gcp", SECRET, "it is not valid JSON"),
    "gcp as a list": ("gcp", json.dumps([SECRET]), "it is not a JSON object"),
    "aws of another profile": ("aws", AWS.replace("default", "me"), r"no section \[default\]"),
    "aws without a section": ("aws", f"aws_secret_access_key = {SECRET}", "not a valid INI file"),
    "aws without an id": ("aws", AWS.replace("access_key_id", "x"), "no aws_access_key_id"),
    "azure without a tenant": (
        "azure",
        json.dumps({**AZURE, "tenantId": 7}),
        "it has no tenantId",
    ),
    "digitalocean in two words": ("digitalocean", f"{SECRET} {SECRET}", "it is not a valid token"),
    "digitalocean cut off": ("digitalocean", "dop_v1_", "it is not a valid token"),
    "digitalocean with a NUL": ("digitalocean", f"{SECRET}\0", "it is not a valid token"),
    "azure without an end": ("azure", "[" * 60_000, "it is not valid JSON"),
    "digitalocean as JSON": ("digitalocean", json.dumps({"tokens": SECRET}), "it has no token"),
    "empty": ("aws", " \n", "it does not exist"),
}


def private(path: Path, text: str, mode: int = 0o600) -> CredentialRef:
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return CredentialRef(file=path)


LOGINS = {
    "token": (f"{SECRET}\n", ("", SECRET)),
    "login": (json.dumps({"username": "ci", "password": SECRET, "more": 1}), ("ci", SECRET)),
    "with the mark of an editor": (f"\ufeff{SECRET}\r\n", ("", SECRET)),
    "two words": (f"{SECRET} {SECRET}", "it is not a valid token"),
    "a NUL": (f"{SECRET}\0", "it is not a valid token"),
    "no user": (json.dumps({"password": SECRET}), "it has no username"),
    "empty": ("", "it does not exist"),
}


@pytest.mark.parametrize("case", LOGINS)
def test_logins_for_git_are_read_from_a_token_or_json(case: str, tmp_path: Path) -> None:
    text, expected = LOGINS[case]
    place = private(tmp_path / "forge.token", text)
    if isinstance(expected, tuple):
        assert load_login("forge", place) == expected
        return
    with pytest.raises(BadCredential, match=expected) as caught:
        load_login("forge", place)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("cloud", GOOD)
def test_valid_credentials_are_loaded(cloud: str, tmp_path: Path) -> None:
    text = load(cloud, private(tmp_path / "c", GOOD[cloud]))
    assert SECRET in text
    if cloud == "digitalocean":
        assert json.loads(text) == {"token": SECRET}


@pytest.mark.parametrize("case", BAD)
def test_invalid_credentials_are_reported_with_the_expected_format_only(
    case: str, tmp_path: Path
) -> None:
    cloud, text, why = BAD[case]
    with pytest.raises(BadCredential, match=why) as caught:
        load(cloud, private(tmp_path / "c", text))
    assert CLOUDS[cloud].credential.expected in caught.value.message
    assert f"spec.credentials.{cloud}" in caught.value.next
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown


def test_a_credential_is_read_from_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_CLOUD", GOOD["aws"])
    assert load("aws", CredentialRef(variable="MY_CLOUD")) == GOOD["aws"]
    monkeypatch.delenv("MY_CLOUD")
    with pytest.raises(BadCredential, match="the variable MY_CLOUD: it does not exist"):
        load("aws", CredentialRef(variable="MY_CLOUD"))


def test_a_file_readable_by_other_users_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCredential, match="other users can read") as caught:
        load("gcp", private(tmp_path / "c", GOOD["gcp"], 0o644))
    assert caught.value.next.startswith("chmod 600")


def test_a_file_outside_the_workspace_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside.token").write_text("a-token\n")
    (tmp_path / "outside.token").chmod(0o600)
    with pytest.raises(BadCredential, match="leave the workspace"):
        load_login("forge", CredentialRef(file=tmp_path / "workspace" / ".." / "outside.token"))


def test_invalid_credential_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCredential, match="the file does not exist"):
        load("gcp", CredentialRef(file=tmp_path / "nothing"))
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    with pytest.raises(BadCredential, match="it is not a regular file"):
        load("gcp", CredentialRef(file=folder))
    with pytest.raises(BadCredential, match="longer than"):
        load("gcp", private(tmp_path / "long", SECRET * 2000))
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    binary.chmod(0o600)
    with pytest.raises(BadCredential, match="not valid UTF-8"):
        load("gcp", CredentialRef(file=binary))


def test_a_credential_is_read_from_1password(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []

    def read(argv: list[str], *, timeout: float) -> str:
        calls.append(argv)
        assert timeout > 0
        return GOOD["azure"]

    monkeypatch.setattr(credentials, "run", read)
    assert load("azure", CredentialRef(reference="op://a/b/c")) == GOOD["azure"]
    assert calls == [["op", "read", "--no-newline", "op://a/b/c"]]


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (ProgramMissing("no op"), "op is not installed"),
        (CommandFailed(["op"], 1, SECRET), "it failed"),
        (DeadlineExceeded("op", 60, SECRET), "timed out"),
    ],
)
def test_failures_of_1password_are_reported_without_the_secret(
    failure: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise failure

    monkeypatch.setattr(credentials, "run", fail)
    with pytest.raises(BadCredential, match=words) as caught:
        load("gcp", CredentialRef(reference="op://a/b/c"))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.next


def test_a_token_in_place_of_a_variable_name_is_not_repeated() -> None:
    """Some tokens look like names, and the error may end up in a CI log."""
    for pasted in ("ghp_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "AKIA0123456789ABCDEF"):
        with pytest.raises(BadCredential) as caught:
            load("digitalocean", CredentialRef(variable=pasted))
        assert pasted[4:] not in str(caught.value)
