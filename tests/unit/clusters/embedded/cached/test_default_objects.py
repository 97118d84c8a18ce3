"""The cache of API servers' default objects: what is cached, and UIDs that differ by cluster."""

from __future__ import annotations

import base64
from pathlib import Path

from k8s_ucp.clusters import seeds
from k8s_ucp.clusters.embedded.cached import default_objects

UID = "0c4f9d5e-1b7a-4c56-9d34-6f1d2a3b4c5d"


def coded(text: bytes) -> str:
    return base64.b64encode(text).decode()


def test_a_cached_object_gets_a_new_uid_and_is_otherwise_unchanged() -> None:
    # Protobuf's encoding: the length precedes the text.
    before = b"k8s\x00\x0a\x05admin*$" + UID.encode() + b"2\x00rules"
    one, other = (base64.b64decode(default_objects.renewed(coded(before))) for _ in range(2))
    assert len({before, one, other}) == 3
    for each in (one, other):
        assert (each[:13], each[13 + 36 :]) == (before[:13], before[13 + 36 :])
        assert len(each) == len(before)


def test_an_object_without_a_uid_is_unchanged() -> None:
    assert default_objects.renewed(coded(b"k8s\x00rules")) == coded(b"k8s\x00rules")


def test_objects_that_are_secret_or_identify_a_cluster_are_not_cached() -> None:
    others = ("namespaces", "secrets", "configmaps", "serviceaccounts", "services", "leases")
    kinds = [each.removesuffix("/").rpartition("/")[2] for each in default_objects.PREFIXES]
    assert not set(others) & set(kinds)


def test_the_cache_key_depends_on_program_versions_and_not_on_paths() -> None:
    programs = {each: Path(f"/tools/{each}-1/bin/{each}") for each in default_objects.PROGRAMS}
    newer = {**programs, "etcd": Path("/tools/etcd-2/bin/etcd")}
    assert default_objects.key(programs) != default_objects.key(newer)
    elsewhere = {name: Path("/cache") / path.relative_to("/") for name, path in programs.items()}
    assert default_objects.key(programs) == default_objects.key(elsewhere)


def test_a_cache_file_with_unexpected_keys_is_ignored(tmp_path: Path) -> None:
    """The datastore's folder does not exist, so any write would fail."""
    assert not default_objects.write_cached_objects(tmp_path, tmp_path, "key")
    seeds.keep_objects(tmp_path, "key", {"/registry/secrets/default/one": coded(b"{}")})
    assert not default_objects.write_cached_objects(tmp_path, tmp_path, "key")
