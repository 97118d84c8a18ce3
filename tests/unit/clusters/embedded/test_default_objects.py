"""Default objects of API servers: which are kept, and that each cluster's are its own."""

from __future__ import annotations

import base64
from pathlib import Path

from k8s_ucp.clusters import seeds
from k8s_ucp.clusters.embedded import default_objects

UID = "0c4f9d5e-1b7a-4c56-9d34-6f1d2a3b4c5d"


def coded(text: bytes) -> str:
    return base64.b64encode(text).decode()


def test_an_object_gets_a_uid_of_its_own_and_stays_what_it_is() -> None:
    # As protobuf has it: the length stands before the text.
    before = b"k8s\x00\x0a\x05admin*$" + UID.encode() + b"2\x00rules"
    one, other = (base64.b64decode(default_objects.renewed(coded(before))) for _ in range(2))
    assert len({before, one, other}) == 3
    for each in (one, other):
        assert (each[:13], each[13 + 36 :]) == (before[:13], before[13 + 36 :])
        assert len(each) == len(before)


def test_what_names_no_uid_stays_as_it_is() -> None:
    assert default_objects.renewed(coded(b"k8s\x00rules")) == coded(b"k8s\x00rules")


def test_nothing_that_identifies_a_cluster_or_is_secret_is_kept() -> None:
    others = ("namespaces", "secrets", "configmaps", "serviceaccounts", "services", "leases")
    kinds = [each.removesuffix("/").rpartition("/")[2] for each in default_objects.PREFIXES]
    assert not set(others) & set(kinds)


def test_other_programs_have_other_objects() -> None:
    programs = {each: Path(f"/tools/{each}-1/bin/{each}") for each in default_objects.PROGRAMS}
    newer = {**programs, "etcd": Path("/tools/etcd-2/bin/etcd")}
    assert default_objects.key(programs) != default_objects.key(newer)
    elsewhere = {name: Path("/cache") / path.relative_to("/") for name, path in programs.items()}
    assert default_objects.key(programs) == default_objects.key(elsewhere)


def test_a_file_with_other_keys_is_none(tmp_path: Path) -> None:
    """The folder of the datastore does not exist: anything that is written would fail."""
    assert not default_objects.write_cached_objects(tmp_path, tmp_path, "key")
    seeds.keep_objects(tmp_path, "key", {"/registry/secrets/default/one": coded(b"{}")})
    assert not default_objects.write_cached_objects(tmp_path, tmp_path, "key")
