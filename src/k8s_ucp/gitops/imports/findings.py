"""Apps found in a repository, and what can't be imported with the reason. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.forms import PARTS, USUAL
from k8s_ucp.gitops.manifests.yaml_text import maps, part

if TYPE_CHECKING:
    from k8s_ucp.topology.parts import AppForm

NAMES = frozenset(
    [
        *("dev", "develop", "development", "sandbox", "integration", "int", "test", "testing"),
        *("qa", "uat", "preview", "stage", "staging", "stg", "preprod", "pre-prod"),
        *("prod", "production", "prd", "live"),
    ]
)
"""Environment names that are recognized wherever they stand in a path or a name."""
PARENTS = frozenset(["overlays", "environments", "envs", "env", "stages", "variants"])
"""Folders whose sub-folders are environments, whatever their names are."""
DEFAULT = "default"
"""An overlay of this name is of every environment that has none of its own."""
_MOST_LETTERS = 40


@dataclass(frozen=True)
class RemoteSource:
    """Where an app comes from that lies elsewhere. chart: of a chart repository; None: git."""

    url: str
    revision: str | None = None
    chart: str | None = None


def chart_versions(
    remotes: Iterable[tuple[str | None, RemoteSource | None]],
) -> dict[str, str | None] | None:
    """{environment: version} of a chart of a repository; None where more differs than that."""
    found = list(remotes)
    charts = {(each.url, each.chart) if each and each.chart else None for _, each in found}
    if None in charts or len(charts) > 1:
        return None
    return {environment or "": each.revision for environment, each in found if each}


@dataclass(frozen=True)
class DiscoveredApp:
    """An app that can be taken."""

    name: str
    form: AppForm
    where: str
    """File (and line) that declares it, or its folder."""
    path: str | None = None
    """Its folder in the tree or in the remote repository; of a kustomization with overlays: what
    environments without one take, None where there is nothing."""
    overlays: Mapping[str, str] = field(default_factory=dict)
    """{environment: folder of its kustomization}"""
    values: Mapping[str, str | bytes] = field(default_factory=dict)
    """{environment: values file in the chart, or the values themselves}; "" for all others."""
    environments: tuple[str, ...] = ()
    """As the repository names them; none: no environment differs."""
    namespace: str | None = None
    remote: RemoteSource | None = None
    """None: the files are in the tree."""
    versions: Mapping[str, str | None] = field(default_factory=dict)
    """{environment: version of the remote chart} where they differ; None: the newest."""
    generated: Mapping[str, bytes] = field(default_factory=dict)
    """Kustomizations that plain manifests lack, or that Applications change: {path in the tree:
    content}."""
    notes: tuple[str, ...] = ()
    """What a person should know of it."""


@dataclass(frozen=True)
class RefusedApp:
    """Something that can't be taken. advice: what to do instead."""

    name: str
    where: str
    reason: str
    advice: str
    folder: str | None = None
    """Of the tree, where that is all that it deploys: apps of what is there make this needless."""


class NotImportable(Exception):
    """Ends the reading of one app: it becomes a RefusedApp."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice

    def refusal(self, name: str, where: str) -> RefusedApp:
        return RefusedApp(name, where, self.reason, self.advice)


@dataclass(frozen=True)
class Discovery:
    """Everything in a repository, sorted by name."""

    findings: tuple[DiscoveredApp, ...] = ()
    refusals: tuple[RefusedApp, ...] = ()


@dataclass(frozen=True)
class ArgoDocument:
    """A YAML document of a file. line: where it begins."""

    path: str
    line: int
    content: Mapping[str, Any]

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def name(self) -> str:
        return str(part(self.content, "metadata").get("name") or self.content.get("kind"))

    @property
    def kind(self) -> str:
        return str(self.content.get("kind"))

    def refused(self, reason: str, advice: str) -> RefusedApp:
        return RefusedApp(self.name, self.where, reason, advice)


def sources_of(application: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Sources of an Application, or of the template of a set; of a hydrated one what it reads."""
    spec = part(application, "spec")
    dry = part(part(spec, "sourceHydrator"), "drySource")
    return maps(spec, "sources") or [part(spec, "source") or dry]


def app_name(text: str) -> str:
    """A name that ucp.yaml takes, as close to the text as possible. Raises UsageError."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_MOST_LETTERS].strip("-")
    if not name:
        raise UsageError(f"{text!r} is not a valid app name")
    return name


def named_by(folder: str, title: str) -> tuple[list[str], str]:
    """(folders above, name) of an app by its folder; title: where no folder says what it is.

    `base`, and folders such as `k8s` or `charts`, name nothing.
    """
    segments = [each for each in folder.split("/") if each and each not in PARTS]
    for at in reversed(range(len(segments))):
        if segments[at].lower() not in USUAL and re.search("[a-z0-9]", segments[at].lower()):
            return segments[:at], app_name(segments[at])
    return segments, app_name(title if re.search("[a-z0-9]", title.lower()) else "app")


def without_environment(name: str, environment: str | None) -> str:
    """`web` of `web-prod` and `prod-web`; the name itself where nothing would be left."""
    if environment:
        for shorter in (name.removesuffix(f"-{environment}"), name.removeprefix(f"{environment}-")):
            if shorter != name:
                return shorter
    return name


def in_text(text: str, environments: Iterable[str]) -> str | None:
    """The environment that a name begins or ends with, or is; the longest one."""
    for each in sorted(environments, key=lambda name: (-len(name), name)):
        if text == each or text.endswith(f"-{each}") or text.startswith(f"{each}-"):
            return each
    return None


def in_path(path: str, environments: Iterable[str]) -> str | None:
    """The environment that a path names: below a folder such as `overlays`, or a segment."""
    segments = [each for each in path.split("/") if each]
    known = frozenset(environments)
    for parent, name in itertools.pairwise(segments):
        if parent in PARENTS and (name in known or name not in ("base", DEFAULT)):
            return name
    return next((each for each in reversed(segments) if each in known), None)
