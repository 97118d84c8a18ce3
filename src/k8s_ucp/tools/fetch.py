"""Creates a cache entry in a folder from a publisher's release.

Nothing of a download is stored, unpacked or made executable before its hash was verified.
"""

from __future__ import annotations

import contextlib
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from k8s_ucp import process
from k8s_ucp.errors import UcpError
from k8s_ucp.tools import download
from k8s_ucp.tools.build import keep
from k8s_ucp.tools.download import NotServed
from k8s_ucp.tools.go.compiler import ModuleSource
from k8s_ucp.tools.go.module_archive import (
    WrongHash,
    fetch_module,
    module_version,
    proxies,
    unpack,
)
from k8s_ucp.tools.recipe import Phase, Recipe
from k8s_ucp.tools.releases.locks import ReleaseLocks
from k8s_ucp.tools.releases.publishers import Asset, published_checksum
from k8s_ucp.tools.store import ToolStore, file_hash

REACH_SECONDS = 4.0
"""For a publisher's server to respond; then it is considered unreachable."""

OnProgress = Callable[[Phase, str], None]


@dataclass(frozen=True)
class ReleaseFetcher:
    """Fetches releases; verifies each file against a locked hash or its publisher's."""

    store: ToolStore
    locks: ReleaseLocks
    source: ModuleSource
    running: process.RunningPrograms

    def fetch(self, recipe: Recipe, name: str, partial: Path, on_progress: OnProgress) -> Path:
        """Fetch into `partial`; returns the folder in it that is to become the entry.

        The next call resumes interrupted downloads. Raises WrongHash, NotReached, NotServed,
        UcpError.
        """
        entry, downloads = partial / "entry", self.store.downloads(name)
        (entry / "bin").mkdir(mode=0o755, parents=True)
        downloads.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.store.log(name).open("w", encoding="utf-8") as log:

            def write(line: str) -> None:
                with contextlib.suppress(OSError):  # the download reports a full disk too
                    print(line, file=log, flush=True)

            for asset in recipe.assets:
                self._asset(asset, downloads / asset.file, entry / "bin", on_progress, write)
            if recipe.tool.keep:
                self._kept_files(recipe, downloads, entry / "module", on_progress, write)
        shutil.rmtree(downloads, ignore_errors=True)
        return entry

    def _asset(
        self,
        asset: Asset,
        file: Path,
        folder: Path,
        on_progress: OnProgress,
        log: Callable[[str], None],
    ) -> None:
        locked = self.locks.get(asset.url)
        expected, who = locked or (self._published(asset), asset.checksums)
        if not file.exists():
            download.fetch_file(
                asset.url,
                file,
                progress=_progress_of(on_progress, asset.file),
                ended=lambda: self.running.ended,
            )
        found = file_hash(file)
        log(f"{asset.url}\n  sha256 {found}\n  expected {expected}: {who}")
        if found != expected:
            file.unlink()
            raise WrongHash(
                f"checksum mismatch for {asset.url}: its sha256 is {found}, expected {expected}"
                f"{f' ({who})' if locked else ''}; the download was deleted",
                next=(
                    "find out who changed it (a proxy?); or build from sources: ucp tools "
                    "install --source sources"
                ),
            )
        if not locked:
            self.locks.learn(asset.url, expected, asset.checksums)
        for program, path in asset.programs.items():
            _put_program(file, path, folder / program, asset)

    def _published(self, asset: Asset) -> str:
        found = published_checksum(download.fetch_text(asset.checksums), asset.file)
        if found is None:
            raise NotServed(f"{asset.checksums} has no sha256 of {asset.file}", 200)
        return found

    def _kept_files(
        self,
        recipe: Recipe,
        downloads: Path,
        to: Path,
        on_progress: OnProgress,
        log: Callable[[str], None],
    ) -> None:
        tool, folder = recipe.tool, recipe.module_folder
        assert folder
        version, checksum = module_version(folder, tool.module)
        archive, source = downloads / "module.zip", downloads / "source"
        fetch_module(
            tool.module,
            version,
            checksum,
            self.source,
            archive,
            progress=_progress_of(on_progress, f"files of {tool.module}"),
            ended=lambda: self.running.ended,
        )
        log(f"{tool.module} {version} {checksum} (go.sum)")
        unpack(archive, tool.module, version, tool.keep, source)
        keep(tool, source, to)


def out_of_reach(recipes: Iterable[Recipe], source: ModuleSource) -> dict[str, str]:
    """Tool -> its unreachable server. All servers are contacted in parallel, for REACH_SECONDS."""
    needed = {each.tool.name: _servers(each, source) for each in recipes}
    answering: set[str] = set()

    def ask(server: str) -> None:
        if download.server_responds(server, seconds=REACH_SECONDS, plain=True):
            answering.add(server)

    # Daemon threads instead of a pool, because name resolution has no timeout.
    threads = [
        threading.Thread(target=ask, args=(each,), daemon=True)
        for each in {server for servers in needed.values() for server in servers}
    ]
    for thread in threads:
        thread.start()
    until = time.monotonic() + REACH_SECONDS
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    seen = frozenset(answering)
    silent = {
        name: [each for each in wanted if each not in seen] for name, wanted in needed.items()
    }
    return {name: urlsplit(each[0]).hostname or each[0] for name, each in silent.items() if each}


def _servers(recipe: Recipe, source: ModuleSource) -> list[str]:
    """Roots of the servers that a recipe needs, without duplicates."""
    urls = [url for each in recipe.assets for url in (each.url, each.checksums)]
    if recipe.tool.keep:
        urls += proxies(source)[:1] or [f"https://{source.setting}"]
    return list(dict.fromkeys(_root(each) for each in urls))


def _root(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


def _put_program(file: Path, path: str, target: Path, asset: Asset) -> None:
    """Extract a program from a verified file."""
    if not path:
        file.replace(target)
    else:
        try:
            with tarfile.open(file) as archive, target.open("wb") as out:
                member = archive.extractfile(path)
                if member is None:
                    raise KeyError(path)
                shutil.copyfileobj(member, out)
        except (tarfile.TarError, KeyError, EOFError) as error:
            raise UcpError(
                f"{asset.url} does not contain the program {path}",
                next="this is a bug in k8s-ucp: please report it",
            ) from error
    target.chmod(0o755)


def _progress_of(on_progress: OnProgress, what: str) -> download.Progress:
    def progress(here: int, whole: int | None) -> None:
        size = f" of {whole / 10**6:.0f}" if whole else ""
        on_progress(Phase.DOWNLOADING, f"{what}: {here / 10**6:.0f}{size} MB")

    return progress
