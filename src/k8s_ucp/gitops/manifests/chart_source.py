"""Fetches Helm charts from HTTP chart repositories, OCI registries and folders.

Helm fetches them, with only the credential for that repository and its own home directory. A pinned
version is fetched once and kept in the user's cache.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from k8s_ucp.errors import UcpError, command_line
from k8s_ucp.git.environment import Credential
from k8s_ucp.gitops.manifests.forms import ChartFile, Files, chart_file
from k8s_ucp.gitops.manifests.helm import HelmFailed, call
from k8s_ucp.loopback import is_loopback
from k8s_ucp.process import RunningPrograms
from k8s_ucp.workspace import write_private_file

FETCH_SECONDS = 180.0
MOST_BYTES = 64_000_000
"""Maximum size of the files of a chart."""
MOST_UNPACKED = 2 * MOST_BYTES
"""Maximum size of its archive without compression."""
_REFUSED = re.compile(r"\b40[13]\b|unauthorized|forbidden|denied", re.IGNORECASE)
_NO_SUCH_DEPENDENCY = re.compile(r"can't get a valid version|Chart\.lock\) is out of sync")
"""Helm's words for a chart and what it depends on, if their versions don't match."""
_LOCKS = ("Chart.lock", "requirements.lock")
_GENERATED = re.compile(rb"^(generated: ).*", re.MULTILINE)
"""The time in a lock that helm writes."""


@dataclass(frozen=True)
class ChartRef:
    """A chart in a repository. repository: https://…, or oci://… without the chart's name."""

    repository: str
    name: str

    @property
    def oci(self) -> bool:
        return self.repository.startswith("oci://")

    @property
    def plain(self) -> bool:
        """The registry is on this machine and is accessed over plain http."""
        return self.oci and is_loopback(urlsplit(self.repository).hostname or "")

    def __str__(self) -> str:
        return f"{self.repository.rstrip('/')}/{self.name}"


@dataclass(frozen=True)
class PinnedChart:
    """An exact version of a chart, and the digest of its content."""

    version: str
    digest: str


class ChartChanged(UcpError):
    """A chart version's content differs from the one recorded or fetched before."""


def pull(
    helm: Path,
    ref: ChartRef,
    version: str,
    cache: Path,
    credential: Credential | None,
    *,
    digest: str | None = None,
) -> dict[str, bytes]:
    """The files of a chart: {path: content}. digest: the expected one. Raises UcpError."""
    kept = _kept(cache, ref, version)
    archive = _read_kept(kept)
    # The cached archive may be older than the recorded digest: then fetch it again.
    if archive is None or digest not in (None, digest_of(archive)):
        archive = _fetch(helm, ref, version, credential)
        if digest not in (None, found := digest_of(archive)):
            raise ChartChanged(
                f"digest mismatch for version {version} of the chart {ref}: {found}, expected "
                f"{digest}: it was published again with other content, or the version was changed "
                "without the digest",
                next="ask its publisher; if the content is correct, set `digest` of the chart in "
                f"ucp.yaml to {found}",
            )
        _keep(kept, archive)
    return unpack(archive, str(ref))


def pin(
    helm: Path,
    ref: ChartRef,
    version: str | None,
    cache: Path,
    credential: Credential | None,
    programs: RunningPrograms | None = None,
) -> PinnedChart:
    """What a version or a range is now, which is kept in the cache; None: the newest version.

    programs: tracks helm while it runs. Raises UcpError, and ChartChanged if different content was
    fetched before.
    """
    archive = _fetch(helm, ref, version, credential, programs)
    exact = chart_file(unpack(archive, str(ref))).version
    found, kept = digest_of(archive), _kept(cache, ref, exact)
    if (known := _read_kept(kept)) and (before := digest_of(known)) != found:
        raise ChartChanged(
            f"digest mismatch for version {exact} of the chart {ref}: {found}, but earlier "
            f"{before}: it was published again with other content",
            next=f"ask its publisher; if the new content is correct, delete {kept} and try again",
        )
    _keep(kept, archive)
    return PinnedChart(exact, found)


def digest_of(archive: bytes) -> str:
    """Digest of a packed chart, as in a repository's index and a registry's layer."""
    return f"sha256:{hashlib.sha256(archive).hexdigest()}"


def _kept(cache: Path, ref: ChartRef, version: str) -> Path:
    name = hashlib.sha256(f"{ref} {version}".encode()).hexdigest()[:20]
    return cache / "sources" / "charts" / f"{name}.tgz"


def _read_kept(kept: Path) -> bytes | None:
    """The kept archive; None if there is none, or a power failure left it empty or with zeros."""
    archive = kept.read_bytes() if kept.exists() else b""
    return archive if any(archive) else None


def _keep(kept: Path, archive: bytes) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_private_file(kept, archive)


def _fetch(
    helm: Path,
    ref: ChartRef,
    version: str | None,
    credential: Credential | None,
    programs: RunningPrograms | None = None,
) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ucp-chart-") as home:
        target = Path(home, "pulled")
        target.mkdir()
        wanted = ["--version", version] if version else []
        arguments = ["pull", *wanted, "--destination", str(target)]
        _call(_Helm(helm, Path(home), programs), arguments, ref, credential)
        found = list(target.glob("*.tgz"))
        if len(found) != 1:
            raise UcpError(f"helm fetched no chart from {ref}")
        return found[0].read_bytes()


def unpack(archive: bytes, what: str) -> dict[str, bytes]:
    """The regular files of a packed chart, without its top folder. Raises UcpError."""
    found: dict[str, bytes] = {}
    size = 0
    try:
        content = _decompressed(archive)
        if len(content) > MOST_UNPACKED:
            raise UcpError(f"the chart {what} is too large")
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as packed:
            for member in packed:
                path = member.name.removeprefix("./").partition("/")[2]
                if not member.isfile() or not _is_inside(path):
                    continue
                if member.size < 0:  # From the header of a sparse file; it would raise the limit.
                    raise tarfile.TarError(f"{path!r} has a negative size")
                size += member.size
                if size > MOST_BYTES:
                    raise UcpError(f"the chart {what} is too large")
                file = packed.extractfile(member)
                found[path] = file.read() if file else b""
    except (tarfile.TarError, zlib.error, OSError, EOFError, ValueError, OverflowError) as error:
        raise UcpError(f"the chart {what} can't be unpacked: {error}") from error
    return found


def _decompressed(archive: bytes) -> bytes:
    """An archive without its compression, if it has any; at most one byte too many.

    A thousandth of the size is enough for an archive of zeros, also as a header that tarfile reads.
    """
    if not archive.startswith(b"\x1f\x8b"):
        return archive
    with gzip.GzipFile(fileobj=io.BytesIO(archive)) as stream:
        return stream.read(MOST_UNPACKED + 1)


def _is_inside(path: str) -> bool:
    """A path below its folder; not `/etc/hosts`, which remains of `chart//etc/hosts`."""
    return {"", "..", "."}.isdisjoint(path.split("/"))


def missing_dependencies(files: Files) -> list[Mapping[str, Any]]:
    """The dependencies of a chart that aren't in its charts/ folder. Raises UsageError."""
    vendored = {path.split("/")[1] for path in files if path.startswith("charts/")}
    return [
        each
        for each in chart_file(files).dependencies
        if each.get("repository")
        and not any(
            name == each.get("name") or name.startswith(f"{each.get('name')}-") for name in vendored
        )
    ]


def with_dependencies(
    helm: Path,
    files: Files,
    beside: Mapping[str, Files],
    programs: RunningPrograms | None = None,
) -> dict[str, bytes]:
    """A chart's files including its dependencies. beside: local ones, by `file://` URL.

    An edit reads an app several times: what was fetched for the same files is kept while the
    command runs. programs: tracks helm while it runs. Raises UcpError.
    """
    missing = missing_dependencies(files)
    if not missing:
        return dict(files)
    key = _content_key(files, beside)
    if key not in _FETCHED:
        _FETCHED[key] = _fetch_dependencies(helm, files, missing, beside, programs)
    return dict(_FETCHED[key])


_FETCHED: dict[str, dict[str, bytes]] = {}
"""{key of a chart's files: its files with its dependencies}"""


def _content_key(files: Files, beside: Mapping[str, Files]) -> str:
    found = hashlib.sha256()
    for name, listed in (("", files), *sorted(beside.items())):
        for path, content in sorted(listed.items()):
            digest = hashlib.sha256(content).hexdigest()
            found.update(f"{name}\0{path}\0{digest}\n".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def _fetch_dependencies(
    helm: Path,
    files: Files,
    missing: Sequence[Mapping[str, Any]],
    beside: Mapping[str, Files],
    programs: RunningPrograms | None,
) -> dict[str, bytes]:
    chart = chart_file(files)
    with tempfile.TemporaryDirectory(prefix="ucp-chart-") as home:
        # Deep enough that `../..` in a dependency's path stays inside.
        root = Path(home, "a", "b", "c", "d", "chart")
        write_files(root, files)
        neighbors = chart.neighbors
        for address, others in beside.items():
            target = Path(os.path.normpath(root / neighbors[address]))
            if not target.is_relative_to(home):
                raise UcpError(
                    f"the chart {chart.name} depends on {address}, outside of its repository"
                )
            write_files(target, others)
        runner = _Helm(helm, Path(home), programs)
        remote = {str(each["repository"]) for each in missing}
        for number, url in enumerate(sorted(remote)):
            if url.startswith(("http://", "https://")):
                _depend(runner, ["repo", "add"], [f"dependency-{number}", url], chart)
        locked = any(name in files for name in _LOCKS)
        plain = any(ChartRef(url, chart.name).plain for url in remote)
        arguments = ["dependency", "build" if locked else "update"]
        _depend(runner, [*arguments, *(["--plain-http"] if plain else [])], [str(root)], chart)
        found = {
            each.relative_to(root).as_posix(): each.read_bytes()
            for each in sorted(root.rglob("*"))
            if each.is_file() and not each.is_symlink()
        }
    local = tuple(
        f"charts/{each.get('name')}-"
        for each in missing
        if str(each["repository"]).startswith("file://")
    )
    for path in found.keys() - files.keys():
        if path.startswith(local) and path.endswith(".tgz"):
            found[path] = _without_times(found[path])
        elif path in _LOCKS:
            found[path] = _GENERATED.sub(rb'\1"1970-01-01T00:00:00Z"', found[path])
    return found


def _without_times(archive: bytes) -> bytes:
    """The same archive for the same files: helm writes the time at which it packs them."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as new,
    ):
        for each in old:
            each.mtime = 0
            new.addfile(each, old.extractfile(each))
    return packed.getvalue()


def write_files(root: Path, files: Files) -> None:
    """Write files below a folder, which is created. Raises UcpError for a path outside of it."""
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        if not _is_inside(path):
            raise UcpError(f"the file {path!r} would be written outside of {root}")
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


@dataclass(frozen=True)
class _Helm:
    """helm with a home of its own."""

    program: Path
    home: Path
    programs: RunningPrograms | None = None

    def run(self, arguments: list[str], names: list[str], stdin: str | None = None) -> str:
        return call(
            self.program,
            arguments,
            names,
            home=self.home,
            timeout=FETCH_SECONDS,
            stdin=stdin,
            programs=self.programs,
        )


def _call(helm: _Helm, arguments: list[str], ref: ChartRef, credential: Credential | None) -> str:
    """Run a command of helm on a chart. arguments: the command and its options."""
    plain = ["--plain-http"] if ref.plain else []
    try:
        if credential and ref.oci:
            login = ["registry", "login", "--username", credential.username, "--password-stdin"]
            host = urlsplit(ref.repository).netloc
            helm.run([*login, *plain], [host], credential.password)
        if ref.oci:
            return helm.run([*arguments, *plain], [str(ref)])
        if credential:
            add = ["repo", "add", "--username", credential.username, "--password-stdin"]
            helm.run(add, ["ucp", ref.repository], credential.password)
            return helm.run(arguments, [f"ucp/{ref.name}"])
        return helm.run([*arguments, "--repo", ref.repository], [ref.name])
    except HelmFailed as error:
        raise UcpError(
            f"the chart {ref}: {error.message}", next=_advice(error.message, ref)
        ) from error


def _advice(output: str, ref: ChartRef) -> str:
    """What to do if helm can't fetch a chart, from helm's output."""
    if _REFUSED.search(output):
        return (
            "declare its credential in ucp.yaml and name it (--auth NAME of `ucp app add`; "
            "docs/apps.md, Private sources)"
        )
    if "not found" in output:
        arguments = [ref.name, "--repo", ref.repository] if not ref.oci else [str(ref)]
        return f"check its name and version: {command_line('helm', 'show', 'chart', *arguments)}"
    return (
        "check its address and the network (HTTPS_PROXY sets a proxy), then run the command again"
    )


def _depend(helm: _Helm, arguments: list[str], names: list[str], chart: ChartFile) -> None:
    try:
        helm.run(arguments, names)
    except HelmFailed as error:
        raise UcpError(
            f"failed to fetch the charts that the chart {chart.name} depends on: {error.message}",
            next=_advice_on_dependencies(error.message),
        ) from error


def _advice_on_dependencies(output: str) -> str:
    """What to do if helm can't fetch what a chart depends on, from helm's output."""
    if _NO_SUCH_DEPENDENCY.search(output):
        return (
            "correct the versions of `dependencies` in its Chart.yaml, run `helm dependency "
            "update` there if it has a Chart.lock, then run the command again"
        )
    return (
        "put them into its charts/ folder by `helm dependency build` on a machine that reaches "
        "their repository"
    )
