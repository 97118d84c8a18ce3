"""Searches a topology for secrets in places that others can read.

The output of commands that tests run is searched, too, so every failure that a test causes counts.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import SECRET, Kube, Object
from tests.changing_files import paths_below

if TYPE_CHECKING:
    from tests.e2e.world import Workbench

SHORTEST = 12
"""Minimum length of a value to search for: tests use short passwords such as `first`."""
LARGEST = 64 * 1024
"""Maximum size in bytes of a file that may be a key."""
PUBLIC = frozenset(
    {"ca.crt", "tls.crt", "namespace", "namespaces", "url", "project", "type", "name", "server"}
    | {"username", "user", "region", "host", "endpoint", "port", "database", "clusterResources"}
    | {"admin.passwordMtime"}
)
"""Keys of Secrets whose values are public."""
_HIDDEN = re.compile(r"(?i)pass|token|secret|private|key-data|keydata|^key$|^auth$")
_LINE = re.compile(r"(?im)^\s*\S*(?:pass|token|secret|key-data)\S*\s*[=:]\s*(\S+)\s*$")
_KEY_FILES = re.compile(r"\.key$|password|token|keys\.json$|account\.json$|kubeconfig")
_PRIVATE = ("PRIVATE KEY", "AGE-SECRET-KEY-")
_CERTIFICATE = base64.b64encode(b"-----BEGIN CERTIFICAT").decode()
"""Beginning of a certificate, which is public in cloud descriptions and connection Secrets.

Its length is divisible by three, so that any continuation begins with the same characters.
"""
TELLS = frozenset({"kubeconfig", "get"})
"""Commands whose purpose is to print secrets."""
ENDS = frozenset({"stop", "destroy", "recreate", "upgrade"})
"""Commands after which a core has different secrets or no longer answers."""


def learn(world: Workbench) -> None:
    """Record the secrets that exist now, with their locations."""
    learn_files(world)
    with contextlib.suppress(UcpError):  # A core may stop while it is asked.
        _note(world, _of_core(world))


def learn_files(world: Workbench) -> None:
    """Record the secrets on this machine only; no server is asked."""
    _note(world, _of_files(world))


def _note(world: Workbench, found: Iterable[tuple[str, str]]) -> None:
    for value, place in found:
        if len(value) >= SHORTEST:
            world.secrets.setdefault(value, place)


def leaks(world: Workbench, *, asking: bool = True) -> list[str]:
    """Return each secret that is in a public place, as its first characters and both locations.

    asking: also search the clusters' objects and a support bundle.
    """
    learn(world)
    found = []
    wanted = {
        form: place
        for value, place in world.secrets.items()
        for form in (value.encode(), base64.b64encode(value.encode()))
    }
    for name, text in _public(world, asking=asking):
        found += [
            f"{form[:4].decode()}… of {place} stands in {name}"
            for form, place in wanted.items()
            if form in text
        ]
    return found


def _of_files(world: Workbench) -> Iterator[tuple[str, str]]:
    for folder in (world.workspace / "creds", world.state):
        for path in paths_below(folder):
            name = path.relative_to(world.workspace).as_posix()
            if folder == world.state and not _KEY_FILES.search(name):
                continue
            with contextlib.suppress(OSError):  # Files come and go meanwhile.
                if path.is_file() and path.stat().st_size <= LARGEST:
                    text = path.read_text("utf-8", "replace")
                    yield from ((each, name) for each in values_of(path.name, text))


def _of_core(world: Workbench) -> Iterator[tuple[str, str]]:
    for _, kube in _clusters(world, "core"):
        for item in kube.list_all(SECRET):
            about = item["metadata"]
            place = f"the Secret {about['namespace']}/{about['name']}"
            for key, encoded in (item.get("data") or {}).items():
                if key not in PUBLIC:
                    text = base64.b64decode(encoded).decode("utf-8", "replace")
                    yield from ((each, place) for each in values_of(key, text))


def values_of(key: str, text: str) -> Iterator[str]:
    """Yield the secret parts of a value, which may be a document, a key or an INI file."""
    if text.lstrip().startswith(("{", "[{")):
        with contextlib.suppress(ValueError):
            yield from _leaves(key, json.loads(text))
            return
    lines = text.strip().splitlines()
    if any(each in text for each in _PRIVATE):
        yield from (each for each in lines if each.startswith("AGE-SECRET-KEY-"))
        if "PRIVATE KEY" in text and len(lines) > 2:
            yield lines[len(lines) // 2]
    elif len(lines) > 1:  # An INI file, or a kubeconfig in YAML.
        yield from _LINE.findall(text)
    elif lines and not lines[0].startswith(_CERTIFICATE):
        yield lines[0].strip()


def _leaves(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _leaves(str(name), each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(key, each)
    elif isinstance(value, str) and _HIDDEN.search(key):
        yield value


def _public(world: Workbench, *, asking: bool) -> Iterator[tuple[str, bytes]]:
    for text, words in world.heard.items():
        yield f"what ucp {words} says", text.encode()
    for each in world.processes():
        with contextlib.suppress(Exception):
            yield f"the command line of {each.name()}", " ".join(each.cmdline()).encode()
    logs = (*world.state.glob("logs/**/*.log*"), *world.state.glob("clusters/**/logs/*.log"))
    notes = (*world.state.glob("*.json"), *world.state.glob("unfinished/*.json"))
    for path in (*logs, *notes, world.workspace / "ucp.yaml"):
        with contextlib.suppress(OSError):
            yield path.relative_to(world.workspace).as_posix(), path.read_bytes()
    for git in (*world.gitops.glob("*.git"), *world.gitops.glob("*/.git")):
        yield git.relative_to(world.workspace).as_posix(), _objects_of_git(world, git)
    if asking:
        yield from _bundle(world)
        yield from _objects(world)


def _objects_of_git(world: Workbench, folder: Path) -> bytes:
    """All git objects, including unreachable ones."""
    return subprocess.run(
        [*world.as_user, "git", "-C", str(folder), "cat-file", "--batch-all-objects", "--batch"],
        env=world.env,
        capture_output=True,
        timeout=60,
        check=True,
    ).stdout


def _bundle(world: Workbench) -> Iterator[tuple[str, bytes]]:
    """Output of `ucp doctor` and its bundle; skipped if commands run as another user."""
    if world.as_user or not world.state.is_dir():
        return
    bundle = world.home / "canaries.tar.gz"
    bundle.unlink(missing_ok=True)
    _, out, said = world.run_here("doctor", "--bundle", str(bundle))
    yield "ucp doctor", (out + said).encode()
    if bundle.exists():
        with tarfile.open(bundle) as archive:
            for each in archive:
                if content := archive.extractfile(each):
                    yield f"{each.name} of the bundle", content.read()


def _objects(world: Workbench) -> Iterator[tuple[str, bytes]]:
    """All objects of the clusters; of Secrets, everything except their data."""
    for cluster, kube in _clusters(world, "*"):
        for path in _listings(kube):
            items = _asked(kube, path).get("items", [])
            if path == "/api/v1/secrets":
                items = [{**each, "data": None} for each in items]
            yield f"{path} of {cluster}", json.dumps(items).encode()


def _listings(kube: Kube) -> Iterator[str]:
    """Paths of all lists, for each API group in its preferred version."""
    groups = _asked(kube, "/apis").get("groups", [])
    versions = (f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups)
    for root in ("/api/v1", *versions):
        for each in _asked(kube, root).get("resources", []):
            if "/" not in each["name"] and "list" in each["verbs"]:
                yield f"{root}/{each['name']}"


def _asked(kube: Kube, path: str) -> Object:
    """Return the response, or an empty one if nothing serves the API: its pod may not run."""
    with contextlib.suppress(UcpError):
        return kube.request("GET", path)
    return {}


def _clusters(world: Workbench, name: str) -> Iterator[tuple[str, Kube]]:
    """Yield the clusters that answer; one that stops meanwhile is skipped."""
    for path in world.state.glob(f"kubeconfigs/{world.topology}-{name}.yaml"):
        kube = Kube.from_file(path)
        if kube.ready():
            yield path.stem, kube
        kube.close()
