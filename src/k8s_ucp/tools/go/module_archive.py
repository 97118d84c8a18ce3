"""Downloads a Go module's source without a compiler: from a module proxy, verified by go.sum.

Releases lack files that are needed at run time (manifests, scripts); the module contains them, and
the committed go.sum has its hash.
"""

from __future__ import annotations

import base64
import hashlib
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.tools import download
from k8s_ucp.tools.download import NotReached, NotServed, Progress
from k8s_ucp.tools.go.compiler import ModuleSource

_CORRUPT = (zlib.error, lzma.LZMAError)


class WrongHash(UcpError):
    """A file's hash is not the one that was pinned, locked or published."""


def module_version(module_folder: Path, module: str) -> tuple[str, str]:
    """(version, hash) of a module, as pinned by go.mod and go.sum in that folder.

    Raises UcpError.
    """
    text = (module_folder / "go.sum").read_text("ascii")
    required = re.search(
        rf"^\s*(?:require )?{re.escape(module)} (v\S+)$",
        (module_folder / "go.mod").read_text("utf-8"),
        re.MULTILINE,
    )
    version = required[1] if required else ""
    found = re.search(rf"^{re.escape(module)} {re.escape(version)} (h1:\S+)$", text, re.MULTILINE)
    if not found:
        raise UcpError(
            f"go.sum in {module_folder} lacks {module}",
            next="this is a bug in k8s-ucp: please report it",
        )
    return version, found[1]


def proxies(source: ModuleSource) -> list[str]:
    """URLs of the module proxies that the user's Go uses, without `direct` and `off`."""
    entries = (each.strip().rstrip("/") for each in re.split(r"[,|]", source.value))
    return [each for each in entries if each.startswith(("https://", "http://"))]


def fetch_module(
    module: str,
    version: str,
    wanted: str,
    source: ModuleSource,
    target: Path,
    *,
    progress: Progress,
    ended: Callable[[], bool],
) -> None:
    """Download the module's archive from the first proxy that has it. wanted: its h1 hash.

    Raises NotReached, WrongHash, UcpError.
    """
    path = f"{_escaped(module)}/@v/{_escaped(version)}.zip"
    reason = f"{source.setting} contains no module proxy"
    for proxy in proxies(source):
        try:
            # Plain http is sufficient, because the hash is verified.
            download.fetch_file(
                f"{proxy}/{path}", target, progress=progress, ended=ended, plain=True
            )
            break
        except (NotReached, NotServed) as error:
            reason = source.hide(error.message)
    else:
        raise NotReached(
            f"failed to download the source of {module} {version}: {reason}",
            next=f"check the network and {source.setting}, then run the command again",
        )
    if module_hash(target) != wanted:
        target.unlink()
        raise WrongHash(
            f"checksum mismatch for the Go module {module} {version} (go.sum)",
            next=f"do not use it; find out who changed it (modules come from {source.setting})",
        )


def module_hash(archive: Path) -> str:
    """Go's `h1` hash: over names and hashes of all files. Empty if it is not an archive."""
    lines = []
    try:
        with zipfile.ZipFile(archive) as files:
            for name in sorted(files.namelist()):
                # Not at once: until the hash is known, anyone may have written the archive.
                with files.open(name) as file:
                    digest = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]
                lines.append(f"{digest.hexdigest()}  {name}\n")
    except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, ValueError, *_CORRUPT):
        return ""
    hashed = hashlib.sha256("".join(lines).encode()).digest()
    return f"h1:{base64.b64encode(hashed).decode()}"


def unpack(archive: Path, module: str, version: str, wanted: tuple[str, ...], to: Path) -> None:
    """Extract the wanted files and folders of a verified archive, with the module's layout.

    Raises UcpError.
    """
    root = f"{module}@{version}/"
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            inside = name.removeprefix(root)
            if any(inside == each or inside.startswith(f"{each}/") for each in wanted):
                target = to / inside
                # In addition to the hash: never write outside the folder.
                if not target.resolve().is_relative_to(to.resolve()):
                    raise UcpError(f"{archive.name} contains the unsafe path {name}")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(files.read(name))


def _escaped(text: str) -> str:
    """As in URLs of module proxies: a capital becomes `!` and the lowercase letter."""
    return re.sub("[A-Z]", lambda found: f"!{found[0].lower()}", text)
