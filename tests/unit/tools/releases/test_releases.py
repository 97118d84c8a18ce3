"""URLs of releases, and parsing of their checksum files."""

from __future__ import annotations

import json
import re

import pytest

from k8s_ucp.tools.catalogue import CATALOGUE, Tool
from k8s_ucp.tools.go.compiler import ModuleSource
from k8s_ucp.tools.go.module_archive import module_version, proxies
from k8s_ucp.tools.recipe import MODULES, ProgramSource, release_of, ways
from k8s_ucp.tools.releases.locks import COMMITTED
from k8s_ucp.tools.releases.publishers import ALL, LINUX, published_checksum

HASH = "0123456789abcdef" * 4
RELEASED = pytest.mark.parametrize(
    "tool", [each for each in CATALOGUE.values() if each.release], ids=lambda tool: tool.name
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (HASH, HASH),
        (f"{HASH.upper()}\n", HASH),
        (f"{HASH}  file.tar.gz\n", HASH),
        (f"{HASH} *file.tar.gz\n", HASH),
        (f"{'0' * 64}  other\n\n{HASH}  ./dist/file.tar.gz\n", HASH),
        (f"{HASH}  other.tar.gz\n", None),
        (f"{HASH}  xfile.tar.gz\n", None),
        (f"{HASH[:-1]}  file.tar.gz\n", None),
        ("", None),
        ("<html>not found</html>", None),
        (json.dumps({"assets": [{"name": "file.tar.gz", "digest": f"sha256:{HASH}"}]}), HASH),
        (json.dumps({"assets": [{"name": "file.tar.gz", "digest": f"md5:{HASH}"}]}), None),
        (json.dumps({"assets": [{"name": "file.tar.gz", "digest": None}]}), None),
        (json.dumps({"assets": [{"name": "other", "digest": f"sha256:{HASH}"}]}), None),
        (json.dumps({"message": "rate limit"}), None),
        (json.dumps({"assets": [{"name": "file.tar.gz", "digest": 5}]}), None),
        ("{", None),
        ('{"assets": ' + "[" * 100_000, None),
    ],
)
def test_checksums_are_parsed_in_every_format(text: str, found: str | None) -> None:
    assert published_checksum(text, "file.tar.gz") == found


@RELEASED
@pytest.mark.parametrize("platform", LINUX)
def test_every_program_is_in_the_release_for_linux(tool: Tool, platform: str) -> None:
    assert tool.release
    assets = tool.release.on(tool.version, platform)
    programs = [program for each in assets for program in each.programs]
    assert sorted(programs) == sorted(tool.programs)


@RELEASED
@pytest.mark.parametrize("platform", ALL)
def test_release_urls_are_complete(tool: Tool, platform: str) -> None:
    assert tool.release
    for asset in tool.release.on(tool.version, platform):
        for text in (asset.url, asset.checksums, *asset.programs.values()):
            assert not re.search(r"[{}\s]", text)
        assert asset.url.startswith("https://")
        assert asset.checksums.startswith("https://")
        assert tool.version in asset.url


@pytest.mark.parametrize("program", ["kubectl", "kind", "kustomize", "argocd", "helm"])
@pytest.mark.parametrize("platform", ["darwin/amd64", "darwin/arm64"])
def test_programs_needed_on_macos_have_a_release_for_it(program: str, platform: str) -> None:
    (tool,) = [each for each in CATALOGUE.values() if program in each.programs]
    assert tool.release
    assert program in [name for a in tool.release.on(tool.version, platform) for name in a.programs]


def test_locked_hashes_are_sha256_of_https_urls() -> None:
    locked = json.loads(COMMITTED.read_text())
    assert locked
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in locked.values())
    assert all(each.startswith("https://") for each in locked)
    assert len(set(locked.values())) == len(locked)


@RELEASED
def test_the_source_of_kept_files_is_pinned_by_a_hash(tool: Tool) -> None:
    if tool.keep:
        version, wanted = module_version(MODULES / tool.name, tool.module)
        assert version == f"v{tool.version}"
        assert re.fullmatch(r"h1:[A-Za-z0-9+/]{43}=", wanted)


@RELEASED
def test_the_ways_to_install_follow_the_program_source(tool: Tool) -> None:
    built, released = ways(tool, ProgramSource.AUTO)
    assert built.is_built
    assert released == release_of(tool)
    assert ways(tool, ProgramSource.SOURCES) == (built,)
    assert ways(tool, ProgramSource.RELEASES) == (released,)
    assert built.entry_name(None) != released.entry_name(None)


def test_a_tool_without_releases_is_installed_from_its_usual_source() -> None:
    redis = CATALOGUE["redis"]
    assert release_of(redis) is None
    assert ways(redis, ProgramSource.RELEASES) == ways(redis, ProgramSource.SOURCES)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("https://a.example/go/,direct", ["https://a.example/go"]),
        ("http://a.example|https://b.example,off", ["http://a.example", "https://b.example"]),
        ("direct", []),
        ("off", []),
    ],
)
def test_module_proxies_are_read_from_gos_setting(value: str, found: list[str]) -> None:
    assert proxies(ModuleSource(value, "GOPROXY")) == found
