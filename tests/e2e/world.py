"""A topology as its user sees it: through the command line, git and the API servers."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from unittest.mock import patch

import psutil

from k8s_ucp.cli import main
from k8s_ucp.clusters.container_engine import ContainerEngine
from k8s_ucp.components import databases
from k8s_ucp.components.host import postgres
from k8s_ucp.inspect.status import application_fields
from k8s_ucp.kube import APPLICATION, LOCAL_CLUSTER, NAMESPACE, Kube
from k8s_ucp.names import ARGOCD_NAMESPACE
from k8s_ucp.workspace import Workspace
from tests import forked_commands
from tests.e2e import canaries

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

UCP = forked_commands.PROGRAM
Answer = TypeVar("Answer")


@dataclass
class Workbench:
    """One workspace with one topology, and its own HOME."""

    workspace: Path
    home: Path
    topology: str = "demo"
    command: tuple[str, ...] = UCP
    as_user: tuple[str, ...] = ()
    """Command prefix that runs the command as another user."""
    environment: dict[str, str] = field(default_factory=dict)
    provider: str = "embedded"
    """Provider of all clusters."""
    logged_out: float = 0
    """Time at which the login session of its start ended."""
    uids_in_login: dict[str, str] = field(default_factory=dict)
    watched: bool = False
    """Search for its secrets (canaries.py), and fork its commands; false in benchmarks."""
    heard: dict[str, str] = field(default_factory=dict, repr=False)
    """Output of all commands, with the arguments of the first command that printed it."""
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    """Secret values, with their locations."""

    @property
    def real(self) -> bool:
        """Return whether its pods really run."""
        return self.provider != "embedded"

    @property
    def env(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name
            not in ("KUBECONFIG", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "PYTEST_CURRENT_TEST")
        }
        return {
            **kept,
            "HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "NO_COLOR": "1",
            **self.environment,
        }

    @property
    def state(self) -> Path:
        return Workspace.at(self.workspace).state(self.topology).root

    @property
    def gitops(self) -> Path:
        return Workspace.at(self.workspace).gitops(self.topology).root

    @property
    def identifier(self) -> str:
        """Identifier by which its processes are recognized."""
        return Workspace.at(self.workspace).state(self.topology).identifier

    @property
    def database_folder(self) -> Path:
        """Folder with the data of the simulated clouds' databases."""
        if os.geteuid() == 0:
            creator = Workspace.at(self.workspace).machine_id(self.topology)
            return postgres.OF_ROOT / f"ucp-{creator}"
        return self.state / "components" / databases.NAME

    def ucp(
        self, *words: str, expect: int = 0, timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command in the workspace and check its exit code."""
        done = self.ucp_any(*words, timeout=timeout)
        assert done.returncode == expect, (
            f"ucp {' '.join(words)}: {done.returncode} instead of {expect}\n"
            f"{done.stdout}\n{done.stderr}"
        )
        return done

    def ucp_any(
        self, *words: str, timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command, whatever its exit code."""
        if self.watched and set(words[:1]) & canaries.ENDS:
            canaries.learn(self)
        given = ["--workspace", str(self.workspace), *words]
        seconds = timeout or (1200 if self.real else 300)
        if self.watched and (self.as_user, self.command) == ((), UCP):
            done = forked_commands.run(given, env=self.env, cwd=self.home, timeout=seconds)
        else:
            command = [*self.as_user, *self.command, *given]
            done = forked_commands.start_program(command, self.env, self.home, seconds)
        self.hear(words, done.stdout, done.stderr)
        if self.watched:
            canaries.learn_files(self)
        return done

    def hear(self, words: Sequence[str], *said: str) -> None:
        """Record the output of a command, except for commands that print secrets."""
        if self.watched and not canaries.TELLS.intersection(words):
            for each in said:
                self.heard.setdefault(each, " ".join(words))

    def shell(self, script: str, toolbox: Toolbox) -> str:
        """Run what a page has readers type into bash, in the workspace; return its output."""
        programs = self.home / "bin"
        programs.mkdir(exist_ok=True)
        shim = '#!/bin/sh\nexec {} "$@"\n'
        for name, words in (("kubectl", [str(toolbox.path("kubectl"))]), ("ucp", self.command)):
            (programs / name).write_text(shim.format(shlex.join(words)))
            (programs / name).chmod(0o755)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.workspace,
            env={**self.env, "PATH": f"{programs}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=360,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def status(self) -> dict[str, Any]:
        """Return the output of `ucp status -o json`.

        Tests call it repeatedly while they wait: it runs in this process if the command is that of
        this checkout.
        """
        if self.command != UCP:
            text = self.ucp("status", "-o", "json", timeout=60).stdout
        else:
            code, text, said = self.run_here("status", "-o", "json")
            assert code == 0, f"ucp status: {code}\n{text}\n{said}"
        found: dict[str, Any] = json.loads(text)
        return found

    def run_here(self, *words: str) -> tuple[int, str, str]:
        """Run a command in this process; return its exit code and output.

        Starting Python and importing everything takes many times as long as most answers.
        """
        with (
            patch.dict(os.environ, self.env, clear=True),
            redirect_stdout(io.StringIO()) as out,
            redirect_stderr(io.StringIO()) as said,
        ):
            code = main.run(["--workspace", str(self.workspace), *words])
        self.hear(words, out.getvalue(), said.getvalue())
        return code, out.getvalue(), said.getvalue()

    def ucp_here(self, *words: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        """As `ucp`, in this process: for commands that only read, or are refused at once."""
        with patch.object(sys, "stdin", io.StringIO()), chdir(self.home):
            code, out, said = self.run_here(*words)
        assert code == expect, f"ucp {' '.join(words)}: {code} instead of {expect}\n{out}\n{said}"
        return subprocess.CompletedProcess(list(words), code, out, said)

    def is_well(self, *, clusters: str, applications: int) -> bool:
        """Return whether everything is ready, and every Application Synced and Healthy.

        clusters: what status calls app clusters besides ready; applications: their minimum number.
        """
        status = self.status()
        return (
            status["core"]["ready"]
            and all(each["ready"] for each in status["components"])
            and all(
                each["cluster"]["ready"] and each["cluster"][clusters]
                for each in status["environments"]
            )
            and len(status["applications"]) >= applications
            and all(
                (each["sync"], each["health"]) == ("Synced", "Healthy")
                for each in status["applications"]
            )
        )

    def kube(self, cluster: str) -> Kube:
        return Kube.from_file(self.state / "kubeconfigs" / f"{self.topology}-{cluster}.yaml")

    def contexts(self) -> set[str]:
        """Names of the contexts in the user's own kubeconfig."""
        default = self.home / ".kube" / "config"
        path = Path(self.environment.get("KUBECONFIG") or default)
        if not path.exists():
            return set()
        return {each["name"] for each in json.loads(path.read_text())["contexts"]}

    def clusters(self) -> set[str]:
        """Names of the running clusters, according to the machine: by processes or containers."""
        if not self.real:
            lines = self.ask_processes(psutil.Process.cmdline)
            words = (word for line in lines for word in line)
            found = (re.search(rf"\b{self.topology}-[a-z]+\b", word) for word in words)
            return {each[0] for each in found if each}
        nodes = ContainerEngine().nodes()
        return {
            each.cluster
            for each in nodes
            if each.running and each.cluster.startswith(f"{self.topology}-")
        }

    def uids(self, *clusters: str) -> dict[str, str]:
        """UIDs of objects that would change if a cluster or its contents were recreated."""
        found = {}
        for cluster in clusters or ("core", "stage", "prod"):
            kube = self.kube(cluster)
            kinds = (NAMESPACE, APPLICATION, LOCAL_CLUSTER) if cluster == "core" else (NAMESPACE,)
            for kind in kinds:
                for each in kube.list_all(kind):
                    meta = each["metadata"]
                    place = f"{cluster}/{kind.kind}/{meta.get('namespace', '')}/{meta['name']}"
                    found[place] = str(meta["uid"])
            kube.close()
        return found

    @contextmanager
    def login(self) -> Iterator[None]:
        """Run commands in a separate login session, whose folder is deleted at its end."""
        folder = tempfile.mkdtemp(prefix="ucp-login-")
        self.environment["XDG_RUNTIME_DIR"] = folder
        try:
            yield
        finally:
            shutil.rmtree(folder)
            del self.environment["XDG_RUNTIME_DIR"]
            self.logged_out = time.time()

    def remove_clusters(self) -> None:
        """Delete kind's clusters, whatever their state: a test failed."""
        engine = ContainerEngine()
        for each in engine.nodes():
            if each.cluster.startswith(f"{self.topology}-"):
                engine.remove([each], timeout=60)

    @contextmanager
    def commit(self, repository: str, message: str) -> Iterator[Path]:
        """Yield a new clone of `core` or `apps` to edit; the edits are pushed as one commit."""
        clone = self.home / f"clone-{repository}"
        shutil.rmtree(clone, ignore_errors=True)
        self.git(self.home, "clone", "-q", str(self.gitops / f"{repository}.git"), str(clone))
        yield clone
        self.git(clone, "add", "-A")
        who = ("-c", "user.name=Person", "-c", "user.email=person@localhost")
        self.git(clone, *who, "commit", "-qm", message)
        try:
            self.git(clone, "push", "-q")
        except subprocess.CalledProcessError:
            # A backup of the core may have been pushed meanwhile: rebase, as people do.
            self.git(clone, *who, "pull", "-q", "--rebase")
            self.git(clone, "push", "-q")

    def git(self, folder: Path, *words: str) -> str:
        done = subprocess.run(
            [*self.as_user, "git", "-C", str(folder), *words],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout.strip()

    def application(self, name: str) -> dict[str, Any] | None:
        """The Application as `ucp status` lists it.

        Tests wait for many of them: this reads it alone, and no other cluster.
        """
        with closing(self.kube("core")) as kube:
            found = kube.find(APPLICATION, name, ARGOCD_NAMESPACE)
        return application_fields(found) if found else None

    def processes(self) -> list[psutil.Process]:
        """Every process of this workspace, by its program, folder and arguments."""
        marks = (str(self.workspace), self.identifier)
        found = []
        for process in psutil.process_iter():
            if process.pid == os.getpid():
                continue
            try:
                words = [process.cwd(), *process.cmdline(), *process.environ().values()]
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
            if any(mark in word for mark in marks for word in words):
                found.append(process)
        return found

    def ask_processes(self, ask: Callable[[psutil.Process], Answer]) -> list[Answer]:
        """Call `ask` for its processes; those that end meanwhile are left out."""
        found = []
        for each in self.processes():
            with suppress(psutil.NoSuchProcess):
                found.append(ask(each))
        return found

    def kill_everything(self) -> None:
        """Kill everything, as a power cut does: nothing can clean up or restart another process."""
        for _ in range(20):
            left = self.processes()
            if not left:
                return
            for process in left:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
            psutil.wait_procs(left, timeout=3)
        raise AssertionError(f"still running: {self.processes()}")


def until(what: str, met: Callable[[], Any], seconds: float = 300) -> Any:
    """Wait for `met` to return something true, and return it; errors count as not yet.

    It sleeps five times as long as a call takes, to leave processor time for the work, but no
    longer than 5 s: a call may also have waited for a response that never came.
    """
    deadline = time.monotonic() + seconds
    last: object = None
    while (looked := time.monotonic()) < deadline:
        try:
            last = met()
        except Exception as error:  # noqa: BLE001 (servers start and stop in these tests)
            last = error
        else:
            if last:
                return last
        time.sleep(min(5.0, max(0.4, 5 * (time.monotonic() - looked))))
    raise AssertionError(f"{what}: not within {seconds} s; last: {last!r}")
