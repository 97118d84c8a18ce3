"""Reads and checks topology files, and proposes a default one."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from k8s_ucp.errors import UcpError, UsageError, command_line
from k8s_ucp.providers import DEFAULT
from k8s_ucp.topology.model import Metadata, Spec, Topology
from k8s_ucp.topology.parts import App, AppCluster, Clouds, CoreCluster, Database, Environment
from k8s_ucp.topology.placement import proposed_database_provider
from k8s_ucp.topology.problems import from_pydantic, sentences
from k8s_ucp.topology.rules.all_rules import find_problems

LARGEST = 4_000_000
"""Bytes of a topology file. In a clone of others, it can be a link to a device that never ends."""


def load(path: Path) -> Topology:
    """Read and check a topology file.

    Raises UsageError with line, nearest key and allowed values; UcpError if the file can't be read.
    """
    return parse(read_topology(path).replace("\r\n", "\n").replace("\r", "\n"), path)


def read_topology(path: Path) -> str:
    """The text of a topology file, with the user's line ends. Raises UcpError."""
    try:
        content = _read(path)
        return content.decode("utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"the topology file {path} does not exist", next="ucp start") from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path.name}:{line}: not valid UTF-8", next=f"edit {path}") from error
    except OSError as error:
        raise UcpError(
            f"failed to read {path}: {error.strerror}", next=f"make {path} a readable file"
        ) from error


def _read(path: Path) -> bytes:
    """The content, if the file ends. Raises OSError, UsageError."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        # Reading a FIFO would wait until something writes to it.
        raise UsageError(
            f"{path} is not a regular file, so it is not a topology file",
            next=command_line("ls", "-lL", path),
        )
    with path.open("rb") as stream:
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise UsageError(
            f"{path} has more than {LARGEST} bytes, so it is not a topology file",
            next=command_line("ls", "-lL", path),
        )
    return content


def parse(text: str, path: Path, *, written: bool = True) -> Topology:
    """Check the text of a topology file. Raises UsageError.

    path: for messages. written: False if a command was about to write this text.
    """
    from k8s_ucp.topology.yaml_reader import BadYaml, read

    advice = (
        f"edit {path}"
        if written
        else f"change the command, or edit {path.name} first; it is unchanged"
    )
    try:
        content = read(text)
    except BadYaml as error:
        where = path.name if error.line is None else f"{path.name}:{error.line}"
        raise UsageError(f"{where}: not valid YAML: {error.reason}", next=advice) from error
    if content is None:
        raise UsageError(
            f"{path.name} is empty", next=f"delete {path}, then `ucp start` writes a new one"
        )
    try:
        topology = Topology.model_validate(content, by_alias=True, by_name=False)
        problems = find_problems(topology)
    except ValidationError as error:
        problems = from_pydantic([dict(each) for each in error.errors()], Topology)
    if problems:
        raise UsageError(
            "\n".join(sentences(problems, text, path.name if written else None)), next=advice
        )
    return topology


def default(
    name: str = "demo",
    environments: Iterable[str] = ("stage", "prod"),
    apps: Iterable[str] = ("echo",),
    *,
    core: CoreCluster | None = None,
    providers: Mapping[str, str] | None = None,
    clouds: Clouds | None = None,
) -> Topology:
    """The topology that the wizard and `--yes` propose: environments promote from the one before.

    apps: names from APPS. providers: by environment (default: embedded).
    Raises UsageError for an unknown app.
    """
    names, made_by = list(environments), providers or {}
    wanted, clouds = tuple(known_app(each) for each in apps), clouds or Clouds()
    declared = tuple(
        Environment(
            name=each,
            cluster=AppCluster.model_validate({"provider": made_by.get(each, DEFAULT)}),
            promotes_from=names[index - 1] if index else None,
        )
        for index, each in enumerate(names)
    )
    provider = proposed_database_provider(clouds, declared)
    databases = sorted({each.database for each in wanted if each.database})
    return Topology(
        metadata=Metadata(name=name),
        spec=Spec(
            core=core or CoreCluster(),
            environments=declared,
            apps=wanted,
            databases=tuple(Database(name=each, provider=provider) for each in databases),
            clouds=clouds,
        ),
    )


APPS: dict[str, App] = {
    "echo": App(name="echo", image="ealen/echo-server", tag="0.9.2", hosts=("echo",)),
    "echo-client": App(name="echo-client", path="ucp:echo-client"),
    "quote": App(name="quote", path="ucp:quote", hosts=("quote",), database="quotes"),
}
"""Built-in apps by name."""

APP_WORDS = {
    "echo": "a server that echoes requests and shows its tag",
    "echo-client": "a client that calls the echo server every ten seconds",
    "quote": "a web page with a backend and a Postgres",
}
"""Descriptions of the built-in apps."""


def known_app(name: str) -> App:
    """The built-in app of a name. Raises UsageError if there is none."""
    if name not in APPS:
        raise UsageError(
            f"unknown app '{name}'; built-in apps: {', '.join(APPS)}",
            next="add your own app to ucp.yaml: name, image, tag",
        )
    return APPS[name]
