"""A real Gitea: built from its pinned Go module into the user's cache, run on loopback.

It needs cgo (SQLite), so a C compiler. Pages and assets, which it serves besides the API, are not
built. The first build takes some minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from k8s_ucp.tools.go.compiler import find_compiler
from k8s_ucp.tools.recipe import needed_compiler
from tests.built_once import built_once

MODULE = Path(__file__).parent / "gitea_module"
PACKAGE = "code.gitea.io/gitea"
TAGS = "sqlite sqlite_unlock_notify"
EXPERIMENT = "nojsonv2"
"""Gitea 1.26 was written for Go 1.26; this experiment selects the JSON package that it expects."""
UNOPTIMIZED = {
    "GOFLAGS": "-mod=readonly -modcacherw -trimpath '-gcflags=all=-N -l -dwarf=false'",
    "CGO_CFLAGS": "-O0",
    "GOGC": "400",
}
"""Built without optimizations: it serves few requests, so build time matters most."""
USER, PASSWORD = "octo", "a-long-password-1"


@dataclass(frozen=True)
class Built:
    """The program, and the folder with its run-time files."""

    program: Path
    static: Path


def unbuildable() -> str:
    """Reason why Gitea can't be built here; empty if it can."""
    if not shutil.which("gcc") and not shutil.which("cc"):
        return "Gitea needs a C compiler (apt-get install gcc libc6-dev)"
    return ""


def build(cache: Path) -> Built:
    """Return Gitea from the cache; a missing one is built, by one process at a time."""
    compiler = find_compiler(needed_compiler(MODULE))
    assert compiler, "no Go compiler; see `ucp tools install`"
    seed = f"{compiler.version} {EXPERIMENT} {TAGS} {UNOPTIMIZED}".encode() + b"".join(
        (MODULE / name).read_bytes() for name in ("go.mod", "go.sum")
    )
    folder = built_once(cache, "gitea", seed, lambda partial: _compile(compiler.program, partial))
    return Built(folder / "gitea", folder / "static")


def _compile(go: Path, partial: Path) -> None:
    work = partial / "work"
    work.mkdir()
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(MODULE / name, work / name)
    environment = {
        **os.environ,
        **UNOPTIMIZED,
        "CGO_ENABLED": "1",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOEXPERIMENT": EXPERIMENT,
        "GOPATH": str(work / "go"),
        "GOMODCACHE": str(work / "go" / "modules"),
        "GOCACHE": str(work / "go" / "objects"),
    }

    def run(*words: str) -> str:
        done = subprocess.run(
            [str(go), *words], cwd=work, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"go {words[0]}: {done.stderr[-3000:]}"
        return done.stdout

    flags = "-s -w -X main.Version=1.26.0"
    run("build", "-tags", TAGS, f"-ldflags={flags}", "-o", str(partial / "gitea"), PACKAGE)
    source = Path(run("list", "-m", "-f", "{{.Dir}}", PACKAGE).strip())
    for name in ("templates", "options", "public"):
        shutil.copytree(source / name, partial / "static" / name, copy_function=shutil.copyfile)
    # Modules and object files take gigabytes, and are not needed again.
    shutil.rmtree(work)


@dataclass(frozen=True)
class Gitea:
    """A running Gitea with one user."""

    root: str
    folder: Path
    token: str

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Call the API as that user. Raises HTTPError."""
        request = Request(
            f"{self.root}/api/v1/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )
        with urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def repository(self, name: str) -> Path:
        return self.folder / "repositories" / USER / f"{name}.git"


@contextlib.contextmanager
def running(built: Built, folder: Path) -> Iterator[Gitea]:
    """Run Gitea with its data in `folder` until the end of the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = folder / "app.ini"
    folder.mkdir(parents=True)
    settings.write_text(_settings(folder, built.static, port))
    settings.chmod(0o600)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "USER": os.environ.get("USER", "root"),
        "GITEA_WORK_DIR": str(folder),
        "GOGC": "400",  # Also for the hooks: a quarter less CPU time for each.
    }
    words = [str(built.program), "--config", str(settings)]
    log = (folder / "log").open("w")
    server = subprocess.Popen(
        [*words, "web"], env=environment, stdout=log, stderr=log, start_new_session=True
    )
    try:
        _wait(f"http://127.0.0.1:{port}/api/v1/version", server, folder / "log")
        made = subprocess.run(
            [*words, "admin", "user", "create", "--username", USER, "--password", PASSWORD,
             "--email", "octo@example.org", "--must-change-password=false", "--admin",
             "--access-token", "--access-token-scopes", "all"],
            env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        token = next(
            line.rpartition(" ")[2]
            for line in made.stdout.splitlines()
            if "access token" in line.lower()
        )
        yield Gitea(f"http://127.0.0.1:{port}", folder, token)
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        log.close()


def _settings(folder: Path, static: Path, port: int) -> str:
    root = "I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true\n" if os.getuid() == 0 else ""
    return f"""\
APP_NAME = tests
RUN_MODE = prod
WORK_PATH = {folder}
{root}
[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/
STATIC_ROOT_PATH = {static}
OFFLINE_MODE = true
DISABLE_SSH = true
LFS_START_SERVER = false
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
SQLITE_JOURNAL_MODE = WAL
[repository]
ROOT = {folder}/repositories
DEFAULT_BRANCH = main
[security]
INSTALL_LOCK = true
SECRET_KEY = {secrets.token_hex(32)}
INTERNAL_TOKEN = {secrets.token_hex(32)}
[service]
DISABLE_REGISTRATION = true
[log]
MODE = console
LEVEL = Warn
[indexer]
ISSUE_INDEXER_TYPE = db
[queue]
TYPE = channel
[cron]
ENABLED = false
[actions]
ENABLED = false
[packages]
ENABLED = false
[mailer]
ENABLED = false
"""


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        assert server.poll() is None, f"Gitea ended: {log.read_text()[-3000:]}"
        with contextlib.suppress(HTTPError, URLError, OSError), urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    raise AssertionError(f"Gitea is not responding: {log.read_text()[-3000:]}")
