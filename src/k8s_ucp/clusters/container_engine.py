"""The container engine that kind uses: Docker, podman or nerdctl, through its command line.

Only features that all three command lines share are used. Errors say what to type, since a missing
or stopped engine, or one that this user may not access, is the most common first problem.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from k8s_ucp import process
from k8s_ucp.errors import CommandFailed, DeadlineExceeded, ProgramMissing, UcpError

ENGINES = ("docker", "podman", "nerdctl")
CHOICE = "KIND_EXPERIMENTAL_PROVIDER"
"""kind's own variable for the engine. It overrides our choice, and passes our choice to kind."""
CLUSTER_LABEL = "io.x-k8s.kind.cluster"
MARKS = "/etc/k8s-ucp/"
"""Folder in a node; the name of a mount below it identifies the owner of the cluster."""

LOOKS, BETWEEN_LOOKS = 60, 0.25
"""Attempts to inspect the containers, and seconds between them. Some containers are deleted between
`ps` and `inspect`; one that is being created is listed while its volumes are filled, but can't be
inspected yet."""
ASK_SECONDS = 20.0
LARGEST = 16_000_000
"""Characters that a command may print; a privileged pod can change what programs in a node do."""
STOP_SECONDS = 10
"""Grace period for a node to stop; etcd loses nothing even if it is killed."""

_TITLES = {"docker": "Docker", "podman": "podman", "nerdctl": "nerdctl"}
_CLOSED = ("permission denied while trying to connect", "docker.sock: connect: permission denied")
_STOPPED = (
    "cannot connect to the docker daemon",
    "is the docker daemon running",
    "failed to connect to the docker api",
    "error during connect",
    "cannot connect to podman",
    "unable to connect to podman",
    "cannot access containerd socket",
    "rootless containerd not running",
)


@dataclass(frozen=True)
class EngineInfo:
    """What an engine reports about itself."""

    memory: int
    """Bytes of memory of the machine, or virtual machine, that runs the containers; 0: unknown."""
    cgroup: int
    """cgroup version: 1 or 2."""
    rootless: bool
    version: str = ""


@dataclass(frozen=True)
class ContainerNode:
    """A container that is a node of a kind cluster, running or not."""

    id: str
    name: str
    cluster: str
    running: bool
    owner: str
    """Owner according to the mount below MARKS; empty if it is not one of ours."""
    ports: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """Port of the node -> address and port of this machine."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Path in the node -> folder of this machine."""


class ContainerEngine:
    """A container engine of the user. It is not called before it is used."""

    def __init__(self, name: str | None = None) -> None:
        """name: one of ENGINES; None: the user's choice, or the first that is installed."""
        self._name = name

    @property
    def name(self) -> str:
        """Name of its command. Raises ProgramMissing if none is installed, or UcpError."""
        if self._name is None:
            self._name = find_engine()
        return self._name

    @property
    def title(self) -> str:
        """Name for messages."""
        return _TITLES[self.name]

    def run(self, *arguments: str, timeout: float = ASK_SECONDS, stdin: str | None = None) -> str:
        """Run a command and return its stdout. Raises UcpError with advice, DeadlineExceeded."""
        argv = [self.name, *arguments]
        try:
            return process.run(argv, timeout=timeout, stdin=stdin, output=LARGEST)
        except CommandFailed as error:
            raise self._explained(error) from error
        except DeadlineExceeded as error:
            raise DeadlineExceeded(
                f"a response of {self.title} to `{self.name} {arguments[0]}`",
                timeout,
                error.last_state,
                next=_start_it(self.name),
            ) from error

    def info(self) -> EngineInfo:
        """What the engine reports about itself. Raises UcpError if it does not respond."""
        return read_info(json.loads(self.run("info", "--format", "{{json .}}")))

    def nodes(self, cluster: str | None = None) -> list[ContainerNode]:
        """Nodes of one kind cluster, or of all, sorted by name. Raises UcpError."""
        label = f"label={CLUSTER_LABEL}" + (f"={cluster}" if cluster else "")
        for attempt in range(LOOKS):
            ids = self.run("ps", "--all", "--quiet", "--no-trunc", "--filter", label).split()
            try:
                found = json.loads(self.run("inspect", "--type", "container", *ids)) if ids else []
            except CommandFailed:
                # Any container, even a foreign one, may have come or gone meanwhile: list them
                # again.
                if attempt == LOOKS - 1:
                    raise
                time.sleep(BETWEEN_LOOKS)
            else:
                break
        return sorted((read_node(each) for each in found), key=lambda each: each.name)

    def has_image(self, image: str) -> bool:
        """Whether the image is present and need not be pulled."""
        return self.image_id(image) is not None

    def image_id(self, image: str) -> str | None:
        """ID of an image, which identifies its content; None if it is not present."""
        try:
            return self.run("image", "inspect", "--format", "{{.Id}}", image).strip()
        except CommandFailed:
            return None

    def save_images(self, images: Sequence[str], archive: Path, *, timeout: float) -> None:
        """Write images with their names into an archive that nodes can load. Raises UcpError."""
        # podman saves only one image per archive without this option.
        more = ("--multi-image-archive",) if self.name == "podman" else ()
        self.run("save", *more, "--output", str(archive), *images, timeout=timeout)

    def start(self, nodes: Sequence[ContainerNode], *, timeout: float) -> None:
        self.run("start", *(each.id for each in nodes), timeout=timeout)

    def stop(self, nodes: Sequence[ContainerNode], *, timeout: float) -> None:
        """Stop nodes with a grace period, then kill them."""
        grace = str(max(1, min(STOP_SECONDS, int(timeout / 2))))
        self.run("stop", "--time", grace, *(each.id for each in nodes), timeout=timeout + 10)

    def remove(self, nodes: Sequence[ContainerNode], *, timeout: float) -> None:
        """Remove nodes with their anonymous volumes."""
        self.run("rm", "--force", "--volumes", *(each.id for each in nodes), timeout=timeout)

    def execute(self, node: ContainerNode, *arguments: str, timeout: float = ASK_SECONDS) -> str:
        """Run a program inside a running node."""
        return self.run("exec", node.id, *arguments, timeout=timeout)

    def copy_in(self, node: ContainerNode, file: Path, path: str, *, timeout: float) -> None:
        """Copy a file of this machine to a path in a running node."""
        self.run("cp", str(file), f"{node.id}:{path}", timeout=timeout)

    def network(self, name: str) -> str | None:
        """ID of a network; None if there is none of that name. Raises UcpError."""
        if name not in self.run("network", "ls", "--format", "{{.Name}}").split():
            return None
        found = json.loads(self.run("network", "inspect", name))
        return str(found[0].get("Id") or found[0].get("id") or name)

    def users_of_network(self, name: str) -> list[str]:
        """IDs of the containers attached to a network, running or not."""
        return self.run("ps", "--all", "--quiet", "--filter", f"network={name}").split()

    def remove_network(self, name: str) -> None:
        self.run("network", "rm", name)

    def environment(self) -> dict[str, str]:
        """Environment for kind: the user's, with this engine selected."""
        return {**os.environ, CHOICE: self.name}

    def _explained(self, error: CommandFailed) -> UcpError:
        output = error.output.lower()
        if any(each in output for each in _CLOSED):
            return UcpError(
                f"permission denied to use {self.title} as this user", next=_let_in(self.name)
            )
        if any(each in output for each in _STOPPED):
            return UcpError(f"{self.title} is not running", next=_start_it(self.name))
        return error


def find_engine() -> str:
    """The user's choice, or the first engine that is installed. Raises UcpError."""
    chosen = os.environ.get(CHOICE)
    if chosen:
        if chosen not in ENGINES:
            raise UcpError(
                f"{CHOICE} is {chosen!r}, which is not a supported container engine; "
                f"supported: {', '.join(ENGINES)}",
                next=f"unset {CHOICE}",
            )
        if process.find_program(chosen) is None:
            raise ProgramMissing(
                f"{CHOICE} is {chosen}, which is not installed",
                next=f"install {chosen}, or unset {CHOICE}",
            )
        return chosen
    for each in ENGINES:
        if process.find_program(each):
            return each
    raise ProgramMissing(
        "kind clusters need a container engine, but docker, podman and nerdctl are not installed",
        next="install Docker (Debian: sudo apt install docker.io), or use provider: embedded",
    )


def read_info(info: Mapping[str, Any]) -> EngineInfo:
    """Parse the `info` of Docker and nerdctl, or of podman. Raises UcpError."""
    if "host" in info:
        host = info["host"]
        return EngineInfo(
            memory=int(host.get("memTotal") or 0),
            cgroup=1 if str(host.get("cgroupVersion", "")).endswith("1") else 2,
            rootless=bool((host.get("security") or {}).get("rootless")),
            version=str((info.get("version") or {}).get("Version", "")),
        )
    if errors := info.get("ServerErrors"):
        # Some versions of `docker info` exit with 0 without a daemon.
        raise UcpError(f"Docker is not running: {errors[0]}", next=_start_it("docker"))
    return EngineInfo(
        memory=int(info.get("MemTotal") or 0),
        cgroup=1 if str(info.get("CgroupVersion", "")) == "1" else 2,
        rootless=any("rootless" in str(each) for each in info.get("SecurityOptions") or []),
        version=str(info.get("ServerVersion", "")),
    )


def read_node(found: Mapping[str, Any]) -> ContainerNode:
    """Parse a node from the engine's `inspect`."""
    labels = (found.get("Config") or {}).get("Labels") or {}
    mounts = {
        str(each["Destination"]): str(each.get("Source", "")) for each in found.get("Mounts") or []
    }
    owners = [each.removeprefix(MARKS) for each in mounts if each.startswith(MARKS)]
    bound = (found.get("HostConfig") or {}).get("PortBindings") or {}
    if not bound:
        bound = (found.get("NetworkSettings") or {}).get("Ports") or {}
    return ContainerNode(
        id=str(found["Id"]),
        name=str(found["Name"]).removeprefix("/"),
        cluster=str(labels.get(CLUSTER_LABEL, "")),
        running=bool((found.get("State") or {}).get("Running")),
        owner=owners[0] if len(owners) == 1 else "",
        ports={
            int(str(port).partition("/")[0]): (
                str(bindings[0].get("HostIp") or "127.0.0.1"),
                int(bindings[0]["HostPort"]),
            )
            for port, bindings in bound.items()
            if bindings and str(bindings[0].get("HostPort") or "").isdigit()
        },
        mounts=mounts,
    )


def mark_of(owner: str) -> str:
    """Mount path in a node that identifies its owner."""
    return MARKS + owner


def mark_folder(cache: Path) -> Path:
    """The empty folder that is mounted as a mark; engines recreate it if it is missing."""
    return cache / "kind-mark"


def _start_it(engine: str) -> str:
    if engine == "podman":
        return "podman machine start (on Linux: podman info shows the problem)"
    if engine == "nerdctl":
        return "sudo systemctl start containerd"
    return "sudo systemctl start docker (or start Docker Desktop), then run the command again"


def _let_in(engine: str) -> str:
    if engine == "docker":
        return "sudo usermod -aG docker $USER, then log in again"
    return f"run ucp as a user with access to {engine}"
