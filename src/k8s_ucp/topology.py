"""The topology file, `ucp.yaml`: what a user wants, checked before anything is changed.

A key exists here once something is built that obeys it. The words for what is wrong with a file
are in topology_problems.py, the rules between values in topology_rules.py, the file that
`ucp start` writes in topology_text.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.topology_problems import from_pydantic, means, sentences
from k8s_ucp.topology_rules import find_problems

NAME_PATTERN = means(
    r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$",
    "a name: lower-case letters, digits and '-', a letter or digit first and last, "
    "at most 40 characters (RFC 1123)",
)
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""An RFC 1123 label, short enough to be a part of `<topology>-<environment>`."""

Tag = Annotated[
    str,
    StringConstraints(
        pattern=means(
            r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$",
            "an image tag: letters, digits, '_', '.' and '-', at most 128 characters",
        )
    ),
]
"""An OCI tag."""

Image = Annotated[
    str,
    StringConstraints(
        pattern=means(
            r"^([a-z0-9][a-z0-9.-]*(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*"
            r"(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$",
            "an image without its tag, such as ealen/echo-server (the tag has a key of its own)",
        )
    ),
]

Host = Annotated[
    str,
    StringConstraints(
        pattern=means(
            r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$",
            "a DNS name in lower case",
        )
    ),
]

Duration = Annotated[
    str,
    StringConstraints(
        pattern=means(r"^([1-9][0-9]*(s|m|h))+$", "a duration such as 30s, 1m or 1h30m")
    ),
]


class Part(BaseModel):
    """Every part of the file: unknown keys are errors, names are written in camelCase."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class CoreCluster(Part):
    provider: Literal["embedded"] = "embedded"
    version: str | None = None


class Git(Part):
    """Where the two repositories live."""

    provider: Literal["local", "url"] = "local"
    core: str | None = None
    apps: str | None = None
    branch: str = "main"
    poll: Duration = "30s"


class AppCluster(Part):
    provider: Literal["embedded"] = "embedded"
    version: str | None = None


class Environment(Part):
    name: Name
    cluster: AppCluster = AppCluster()
    promotes_from: Name | None = Field(None, alias="promotesFrom")
    access: Literal["admin", "scoped"] = "admin"
    deletion_protection: bool = Field(False, alias="deletionProtection")
    state: Literal["running", "stopped"] = "running"


class App(Part):
    name: Name
    image: Image
    tag: Tag
    """Only the first tag: afterwards the overlays own it."""
    hosts: tuple[Host, ...] = ()
    replicas: int = Field(1, ge=0, le=1000)


class CrossplaneSettings(Part):
    poll_interval: Duration = Field("1m", alias="pollInterval")
    sync_interval: Duration = Field("1h", alias="syncInterval")
    max_reconcile_rate: int = Field(100, alias="maxReconcileRate", ge=1, le=10000)
    leader_election: bool = Field(True, alias="leaderElection")


class ReconcilerSettings(Part):
    source_namespaces: tuple[Name, ...] = Field(
        ("ucp-clusters", "crossplane-system"), alias="sourceNamespaces"
    )
    token_lifetime: Duration = Field("24h", alias="tokenLifetime")


class Tools(Part):
    source: Literal["auto", "sources"] = "auto"


class Metadata(Part):
    name: Name


class Spec(Part):
    domain: Host = "example.org"
    core: CoreCluster = CoreCluster()
    git: Git = Git()
    environments: tuple[Environment, ...] = ()
    apps: tuple[App, ...] = ()
    crossplane: CrossplaneSettings = CrossplaneSettings()
    reconciler: ReconcilerSettings = ReconcilerSettings()
    tools: Tools = Tools()


class Topology(Part):
    """A whole topology file."""

    api_version: Literal["k8s-ucp.io/v1alpha1"] = Field("k8s-ucp.io/v1alpha1", alias="apiVersion")
    kind: Literal["Topology"] = "Topology"
    metadata: Metadata
    spec: Spec = Spec()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def core_cluster(self) -> str:
        """Name of the core cluster."""
        return f"{self.name}-core"

    def app_cluster(self, environment: str) -> str:
        """Name of an environment's app cluster."""
        return f"{self.name}-{environment}"


def load(path: Path) -> Topology:
    """Read and check a topology file.

    Raises UsageError that names line, nearest key and what is allowed; UcpError where the file
    can't be read.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"there is no topology file {path}", next="ucp start") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text in UTF-8", next=f"edit {path}") from error
    except OSError as error:
        raise UcpError(f"can't read {path}: {error.strerror}") from error
    return parse(text, path)


def parse(text: str, path: Path) -> Topology:
    """Check the text of a topology file; path: for messages. Raises UsageError."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    advice = f"edit {path}"
    try:
        content = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        reason = (error.problem or "no YAML").splitlines()[0]
        raise UsageError(f"{path.name}:{line}: not valid YAML: {reason}", next=advice) from error
    except (YAMLError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{path.name}: not valid YAML: {reason}", next=advice) from error
    if content is None:
        raise UsageError(
            f"{path.name} is empty", next=f"remove {path} and let `ucp start` write a new one"
        )
    try:
        topology = Topology.model_validate(content, by_alias=True, by_name=False)
        problems = find_problems(topology)
    except ValidationError as error:
        problems = from_pydantic([dict(each) for each in error.errors()], Topology)
    if problems:
        raise UsageError("\n".join(sentences(problems, text, path.name)), next=advice)
    return topology


def default(
    name: str = "demo",
    environments: Iterable[str] = ("stage", "prod"),
    apps: Iterable[str] = ("echo",),
) -> Topology:
    """The topology that the wizard and `--yes` propose: each environment promotes the one before.

    apps: names out of APPS. Raises UsageError for another name.
    """
    names = list(environments)
    return Topology(
        metadata=Metadata(name=name),
        spec=Spec(
            environments=tuple(
                Environment(name=each, promotes_from=names[place - 1] if place else None)
                for place, each in enumerate(names)
            ),
            apps=tuple(known_app(each) for each in apps),
        ),
    )


APPS: dict[str, App] = {
    "echo": App(name="echo", image="ealen/echo-server", tag="0.9.2", hosts=("echo",)),
}
"""Apps that can be had by name."""


def known_app(name: str) -> App:
    """One of the apps that can be had by name. Raises UsageError for another."""
    if name not in APPS:
        raise UsageError(
            f"no app is known by the name '{name}'; known: {', '.join(APPS)}",
            next="add your own app to ucp.yaml: name, image, tag",
        )
    return APPS[name]
