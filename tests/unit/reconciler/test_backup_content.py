"""The backup's document and its key: contents, updates, and errors for invalid ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import SECRET, Kind, Kube, Object
from k8s_ucp.reconciler.backup.backup_key import BadKey, key_for, load_key
from k8s_ucp.reconciler.backup.core_state import CoreState
from k8s_ucp.reconciler.backup_content import (
    EXTERNAL_NAMES,
    PASSWORDS,
    SECTIONS,
    SOURCES,
    Backup,
    dump,
    is_renewal,
    parse,
    updated,
)

parts = st.text(st.sampled_from("abc-."), min_size=1, max_size=3)
names = st.builds("{}/{}".format, parts, parts)
texts = st.text(max_size=8)
mappings = st.dictionaries(names, texts, max_size=2)
sources = st.fixed_dictionaries(
    {"type": texts, "labels": mappings, "annotations": mappings, "data": mappings}
)
resources = names.map("VPC.x/{}".format)
backups = st.builds(
    Backup,
    st.dictionaries(names, mappings, max_size=3),
    st.dictionaries(names, sources, max_size=3),
    st.dictionaries(resources, texts, max_size=3),
)


def never(section: str, key: str) -> bool:
    return False


@given(backups)
def test_a_backup_is_parsed_back_unchanged(backup: Backup) -> None:
    assert parse(dump(backup)) == backup
    assert dump(parse(dump(backup))) == dump(backup)
    assert parse(dump(backup, "demo"), "demo") == backup


@given(backups, backups, st.sets(st.tuples(st.sampled_from(SECTIONS), names | resources)))
def test_existing_entries_are_updated_and_others_kept_until_they_are_deleted(
    known: Backup, seen: Backup, lost: set[tuple[str, str]]
) -> None:
    kept = updated(known, seen, lambda *each: each in lost)
    for name in SECTIONS:
        assert dict(seen.section(name)).items() <= kept.section(name).items()
        for key, value in known.section(name).items():
            if key not in seen.section(name):
                assert (key in kept.section(name)) is ((name, key) not in lost)
                assert kept.section(name).get(key, value) == value
    assert updated(kept, seen, never) == kept


def test_an_empty_core_removes_nothing_from_the_backup() -> None:
    known = Backup({"ucp-clusters/a": {"password": "eA=="}}, {"ns/k": {}}, {"VPC.x/ns/v": "vpc-1"})
    assert updated(known, Backup(), never) == known
    assert not updated(Backup(), Backup(), never)


def test_only_a_changed_kubeconfig_is_a_renewal() -> None:
    known = Backup(sources={"ns/k": {"labels": {"a": "b"}, "data": {"kubeconfig": "old"}}})
    renewed = Backup(sources={"ns/k": {"labels": {"a": "b"}, "data": {"kubeconfig": "new"}}})
    relabeled = Backup(sources={"ns/k": {"labels": {}, "data": {"kubeconfig": "old"}}})
    assert is_renewal(known, renewed)
    assert not is_renewal(known, known)
    assert not is_renewal(known, relabeled)
    assert not is_renewal(known, Backup())
    assert not is_renewal(known, Backup({"a/b": {"password": "x"}}, renewed.sources))


class Core:
    """A restored core with at most one Secret."""

    def __init__(self, secret: Object | None) -> None:
        self.secret = secret

    def find(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        return self.secret if kind is SECRET else {"data": dict.fromkeys(SECTIONS, "yes")}


@pytest.mark.parametrize(
    ("labels", "gone"),
    [
        ({"k8s-ucp.io/kubeconfig": "", "a": "b"}, False),
        ({"a": "b"}, True),
        ({}, True),
        (None, True),
    ],
)
def test_a_kubeconfig_without_its_label_counts_as_deleted(
    labels: dict[str, str] | None, gone: bool
) -> None:
    core = Core({"metadata": {"labels": labels}})
    state = CoreState(cast(Kube, core), ("ns",), ("ns",))
    assert state.is_deleted(SOURCES, "ns/k") is gone
    # For passwords, a label that Argo CD may not have added yet proves nothing.
    assert not state.is_deleted(PASSWORDS, "ns/k")
    core.secret = None
    assert state.is_deleted(SOURCES, "ns/k")
    assert state.is_deleted(PASSWORDS, "ns/k")


def test_the_document_contains_its_format_version_and_all_sections() -> None:
    content = json.loads(dump(Backup()))
    assert content == {"version": 1, PASSWORDS: {}, SOURCES: {}, EXTERNAL_NAMES: {}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"version": 2, "passwords": {"a": "S3CR3T"}}', "a newer version of ucp (format 2"),
        (b'["S3CR3T"]', "is not a valid backup"),
        (b"S3CR3T", "is not a valid backup"),
        (b"[" * 200_000, "is not a valid backup"),
        (b'{"version": {"a": "S3CR3T"}}', "is not a valid backup"),
        (b'{"version": 1, "topology": ["S3CR3T"]}', "is not a valid backup"),
        (b'{"version": 1, "passwords": "S3CR3T"}', "is not a valid backup"),
        (b'{"version": 1, "passwords": {"ns/a": "S3CR3T"}}', "is not a valid backup"),
        (b'{"version": 1, "passwords": {"ns/a": {"password": 1}}}', "is not a valid backup"),
        (b'{"version": 1, "passwords": {"S3CR3T": {}}}', "is not a valid backup"),
        (b'{"version": 1, "registrationSources": {"ns/a": {"data": {}}}}', "is not a valid backup"),
        (b'{"version": 1, "externalNames": {"VPC.x/ns/v": ["S3CR3T"]}}', "is not a valid backup"),
        (b'{"version": 1, "externalNames": {"VPC.x/v": "S3CR3T"}}', "is not a valid backup"),
    ],
)
def test_an_invalid_backup_is_reported_without_its_content(text: bytes, said: str) -> None:
    with pytest.raises(UcpError) as caught:
        parse(text)
    assert said in caught.value.message
    assert caught.value.next
    assert "S3CR3T" not in str(caught.value)


def test_a_backup_of_another_topology_is_refused_and_one_without_a_name_is_not() -> None:
    backup = Backup({"ns/a": {"password": "eA=="}})
    with pytest.raises(UcpError, match="is the backup of the topology one, not of two") as caught:
        parse(dump(backup, "one"), "two")
    assert "set metadata.name of ucp.yaml back to one" in caught.value.next
    assert parse(dump(backup, "one")) == backup
    assert parse(dump(backup), "two") == backup


def test_the_repr_of_a_backup_omits_its_secrets() -> None:
    assert "S3CR3T" not in repr(Backup({"a/b": {"password": "S3CR3T"}}, {"a/c": {"d": "S3CR3T"}}))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work" / "creds" / "backup.key"


def made(path: Path, *, waiting: Callable[[], bool] = lambda: False) -> str:
    key_for(path, waiting)
    return path.read_text()


def test_the_key_is_created_once_and_only_the_user_can_read_it(path: Path) -> None:
    old = os.umask(0)
    try:
        text = made(path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert made(path) == text
    assert sorted(each.name for each in path.parent.iterdir()) == [".gitignore", "backup.key"]
    assert (path.parent / ".gitignore").stat().st_mode & 0o777 == 0o600


def test_git_ignores_the_key_in_any_work_tree(path: Path) -> None:
    made(path)
    (path.parent / "README.md").write_text("")
    (path.parent / "gcp.json.example").write_text("")
    root = path.parent.parent
    subprocess.run(["git", "init", "-q", root], check=True)
    status = ["git", "-C", root, "status", "--porcelain", "--untracked-files=all"]
    shown = subprocess.run(status, check=True, capture_output=True, text=True).stdout
    assert sorted(line[3:] for line in shown.splitlines()) == [
        "creds/README.md",
        "creds/gcp.json.example",
    ]


def test_the_key_encrypts_and_decrypts_and_its_repr_omits_it(path: Path) -> None:
    key = key_for(path, lambda: False)
    first, second = key.close(b"S3CR3T"), key.close(b"S3CR3T")
    assert first != second
    assert key.open(first) == key.open(second) == b"S3CR3T"
    assert b"S3CR3T" not in first
    assert first.isascii()
    assert "AGE-SECRET-KEY" not in repr(key)
    assert load_key(path) == key


def test_another_key_cannot_decrypt_a_backup(path: Path, tmp_path: Path) -> None:
    sealed = key_for(path, lambda: False).close(b"S3CR3T")
    other = key_for(tmp_path / "other.key", lambda: False)
    with pytest.raises(BadKey) as caught:
        other.open(sealed)
    assert "can't decrypt" in caught.value.message
    assert f"restore the key that the backup was encrypted with to {tmp_path}" in str(caught.value)


def test_a_damaged_backup_is_not_blamed_on_the_key(path: Path) -> None:
    key = key_for(path, lambda: False)
    sealed = key.close(b"S3CR3T" * 100)
    for text in (sealed[:-60] + b"\n", sealed[:100], sealed + sealed, b"", b"\x00nonsense"):
        with pytest.raises(UcpError, match="is damaged") as caught:
            key.open(text)
        assert not isinstance(caught.value, BadKey)
        assert caught.value.next.endswith("git log -- backup/state.age")


def test_no_key_is_created_if_a_backup_needs_the_old_one(path: Path) -> None:
    with pytest.raises(BadKey) as caught:
        made(path, waiting=lambda: True)
    assert f"its key {path} is missing" in caught.value.message
    assert "restore your copy of the key" in str(caught.value)
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "hello", "AGE-SECRET-KEY-1QQQQ", "{0}{0}", b"\xff\xfe"])
def test_an_invalid_key_file_is_refused_and_kept(path: Path, text: str | bytes) -> None:
    good = made(path)
    broken = text if isinstance(text, bytes) else text.format(good).encode()
    path.write_bytes(broken)
    with pytest.raises(BadKey) as caught:
        made(path)
    assert "is not a valid backup key" in caught.value.message
    assert path.read_bytes() == broken


def test_what_could_be_read_for_ever_is_no_key(path: Path) -> None:
    """In a clone of others, the file may be a link to /dev/zero."""
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    with pytest.raises(BadKey, match="is not a valid backup key"):
        load_key(path)


def test_a_key_that_cannot_be_read_is_not_called_invalid(path: Path) -> None:
    """Otherwise people would replace the right key, which only has the wrong owner or mode."""
    path.parent.mkdir(parents=True)
    path.symlink_to(path)  # Root may read a file of any mode.
    with pytest.raises(BadKey, match="failed to read the backup key") as caught:
        load_key(path)
    assert "make it readable" in str(caught.value.next)


def test_a_key_of_age_keygen_is_accepted(path: Path) -> None:
    text = made(path)
    secret = next(line for line in text.splitlines() if line.startswith("AGE-"))
    known = load_key(path)
    path.write_text(f"# created: 2026-11-21T11:00:00Z\n# public key: age1\n{secret}\n")
    assert load_key(path) == known


def test_age_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys; import k8s_ucp.plans, k8s_ucp.reconciler.backup_content;"
        "import k8s_ucp.reconciler.backup.backup_key;"
        "sys.exit('pyrage' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
