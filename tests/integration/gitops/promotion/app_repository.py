"""A real bare app repository, people who push to it, and checks of its history."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

from k8s_ucp.cli import main

UCP = Path(sys.executable).with_name("ucp")

KUSTOMIZATION = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
# Tags are written by pipelines.
resources: [../../base]
images:
  - name: ealen/echo-server
    newTag: "0.9.2"  # first
"""
ENVIRONMENTS = "environments:\n  - name: stage\n  - name: prod\n    promotesFrom: stage\n"


def overlay(app: str, env: str) -> str:
    return f"apps/{app}/overlays/{env}/kustomization.yaml"


def plain_environment(home: Path, **more: str) -> dict[str, str]:
    """Environment of a test's process: without the machine's git settings and CI variables."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        **more,
    }


@dataclass(frozen=True)
class Result:
    """Result of a command that has ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def status(self) -> str:
        return str(self.data["status"])


class Ucp:
    """Runs `ucp` in its own process."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self.environment = dict(environment)
        self.folder = folder

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(UCP), *arguments],
            env={**self.environment, **more},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, stdin: str | None = None, **more: str) -> Result:
        done = subprocess.run(
            [str(UCP), *arguments],
            env={**self.environment, **more},
            cwd=self.folder,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def promote(self, *arguments: str, **more: str) -> Result:
        return self("promote", *arguments, "-o", "json", **more)


class UcpHere(Ucp):
    """Runs `ucp` in this process, one at a time: starting Python takes most of a promotion's time.

    Output uses the encoding of a real standard output. `start` still creates processes.
    """

    def __call__(self, *arguments: str, stdin: str | None = None, **more: str) -> Result:
        out, err = _stream(errors="strict"), _stream(errors="backslashreplace")
        with (
            patch.dict(os.environ, {**self.environment, **more}, clear=True),
            patch.object(sys, "stdin", _stream((stdin or "").encode(), errors="strict")),
            chdir(self.folder),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = main.run(list(arguments))
        return Result(code, _said(out), _said(err))


def _stream(content: bytes = b"", *, errors: str) -> TextIOWrapper:
    return TextIOWrapper(BytesIO(content), encoding="utf-8", errors=errors)


def _said(stream: TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def finish(running: subprocess.Popen[str], seconds: float = 300) -> Result:
    """Wait for a started command; it is killed at the deadline."""
    try:
        out, err = running.communicate(timeout=seconds)
    except BaseException:
        running.kill()
        running.communicate()
        raise
    return Result(running.returncode, out, err)


class AppRepository:
    """A bare repository as on a git host, with apps for stage and prod."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], apps: Sequence[str] = ("echo",)
    ) -> None:
        self.folder = folder
        self.environment = {**environment, "GIT_TERMINAL_PROMPT": "0"}
        self._git(folder.parent, "init", "--quiet", "--bare", "--initial-branch=main", str(folder))
        # The reflog would show a forced push.
        self.git("config", "core.logAllRefUpdates", "true")
        self.git("config", "http.receivepack", "true")
        self.git("config", "gc.auto", "0")
        self.git("config", "receive.autogc", "false")
        files = {"environments.yaml": ENVIRONMENTS}
        for app in apps:
            files[f"apps/{app}/base/kustomization.yaml"] = "resources: []\n"
            for env in ("stage", "prod"):
                files[overlay(app, env)] = KUSTOMIZATION
        self.first = self.commit(files)

    @classmethod
    def hosted_at(cls, folder: Path, source: AppRepository) -> AppRepository:
        """The same content as `source`, in the place where a forge stores it."""
        found = cls.__new__(cls)
        found.folder, found.environment, found.first = folder, source.environment, source.first
        return found

    @property
    def url(self) -> str:
        return self.folder.as_uri()

    def git(self, *arguments: str, stdin: str | None = None) -> str:
        return self._git(self.folder, *arguments, stdin=stdin)

    def _git(self, folder: Path, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"git {arguments}: {done.stderr}"
        return done.stdout

    def commit(self, files: Mapping[str, str | None], message: str = "edit") -> str:
        """Create another person's commit on top of main, as the host itself would."""
        lines = ["commit refs/heads/main", "committer A Person <person@example.org> now"]
        lines += [f"data {len(message.encode())}", message]
        if self._exists():
            lines.append(f"from {self.tip}")
        for path, text in files.items():
            if text is None:
                lines.append(f"D {path}")
            elif text.startswith("symlink:"):
                target = text.removeprefix("symlink:")
                lines += [f"M 120000 inline {path}", f"data {len(target.encode())}", target]
            else:
                lines += [f"M 100644 inline {path}", f"data {len(text.encode())}", text]
        self.git("fast-import", "--quiet", "--date-format=now", stdin="\n".join(lines) + "\n")
        return self.tip

    def _exists(self) -> bool:
        return bool(self.git("for-each-ref", "refs/heads/main"))

    @property
    def tip(self) -> str:
        return self.git("rev-parse", "refs/heads/main").strip()

    @property
    def commits(self) -> list[str]:
        """Oldest first."""
        return self.git("rev-list", "--reverse", "refs/heads/main").split()

    def text(self, path: str, commit: str = "main") -> str:
        return self.git("show", f"{commit}:{path}")

    def tag(self, app: str, env: str) -> str:
        line = next(each for each in self.text(overlay(app, env)).splitlines() if "newTag" in each)
        return line.split("#")[0].split(":", 1)[1].strip().strip("\"'")

    def message(self, commit: str = "main") -> str:
        return self.git("show", "-s", "--format=%B", commit)

    def hook(self, name: str, script: str) -> None:
        path = self.folder / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)

    def prove_sound(self) -> None:
        """Check that nothing is lost or forced, history is linear, and every object is intact."""
        parents = [line.split() for line in self.git("rev-list", "--parents", "main").splitlines()]
        assert all(len(line) <= 2 for line in parents), "history is not linear"
        assert parents[-1] == [self.first], "history does not begin where it began"
        updates = [line.split()[:2] for line in self._reflog()]
        order = self.commits
        place = {commit: number for number, commit in enumerate(order)}
        for old, new in updates:
            assert new in place, f"{new[:8]} was there and is lost"
            assert not old.strip("0") or place[old] < place[new], "the branch was forced"
        self.git("fsck", "--full", "--strict", "--no-dangling")

    def _reflog(self) -> list[str]:
        return (self.folder / "logs" / "refs" / "heads" / "main").read_text().splitlines()


class Person:
    """A person with a clone, who edits, pulls with rebase and pushes."""

    def __init__(self, repository: AppRepository, folder: Path) -> None:
        self.repository = repository
        self.folder = folder
        repository._git(folder.parent, "clone", "--quiet", repository.url, str(folder))
        for key, value in (("user.name", folder.name), ("user.email", "person@example.org")):
            self.git("config", key, value)

    def git(self, *arguments: str) -> str:
        return self.repository._git(self.folder, *arguments)

    def push(self, path: str, text: str) -> str:
        """Commit a file and push it, with as many rebases as needed; return the commit id."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)
        self.git("add", path)
        self.git("commit", "--quiet", "-m", f"write {path}")
        for _ in range(200):
            self.git("pull", "--quiet", "--rebase")
            try:
                self.git("push", "--quiet", "origin", "HEAD:main")
            except AssertionError:
                continue
            return self.git("rev-parse", "HEAD").strip()
        raise AssertionError("a person never got a push through")
