"""Apps found in a repository, and what can't be imported with the reason. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from k8s_ucp.errors import command_line
from k8s_ucp.gitops.manifests.forms import PARTS, USUAL
from k8s_ucp.gitops.manifests.reachable import resolve
from k8s_ucp.gitops.manifests.yaml_text import maps, part
from k8s_ucp.topology.rules.names import closed_to_apps, taken_namespace

if TYPE_CHECKING:
    from k8s_ucp.topology.parts import AppForm

NAMES = frozenset(
    [
        *("dev", "develop", "development", "sandbox", "integration", "int", "test", "testing"),
        *("qa", "uat", "preview", "stage", "staging", "stg", "preprod", "pre-prod"),
        *("prod", "production", "prd", "live"),
    ]
)
"""Environment names that are recognized anywhere in a path or name."""
_APPS_TOO = frozenset(["integration", "int", "live", "preview", "sandbox", "test", "testing"])
"""Those of `NAMES` with which names of apps begin or end, too: `preview-controller-prod`."""
PARENTS = frozenset(["overlays", "environments", "envs", "env", "stages", "variants"])
"""Folders whose subfolders are environments, whatever their names are."""
DEFAULT = "default"
"""An overlay with this name applies to every environment without its own."""
MOST_LETTERS = 40
"""Of an app's name."""
_VERSION = re.compile(r"v?\d+(\.\d+)+([-+][\w.]+)?")


@dataclass(frozen=True)
class RemoteSource:
    """Source of an app in another repository. chart: in a chart repository; None: git."""

    url: str
    revision: str | None = None
    chart: str | None = None

    def command(self, app: str, path: str = "", flags: Sequence[str] = ()) -> str:
        """The command that adds an app from here, quoted for a shell.

        path: of a folder or file in a git repository. flags: further words of the command.
        """
        if self.chart is None:
            words = [self.url, *(("--path", path) if path else ())]
        elif self.url.startswith("oci://"):
            words = ["--chart", f"{self.url.rstrip('/')}/{self.chart}"]
        else:
            words = ["--chart", self.chart, "--repo", self.url]
        if self.revision:
            words += ["--ref" if self.chart is None else "--version", self.revision]
        return command_line("ucp", "app", "add", free_name(app), *words, *flags)


def chart_versions(
    remotes: Iterable[tuple[str | None, RemoteSource | None]],
) -> dict[str, str | None] | None:
    """{environment: version} of a remote chart; None if anything else differs."""
    found = list(remotes)
    charts = {(each.url, each.chart) if each and each.chart else None for _, each in found}
    if None in charts or len(charts) > 1:
        return None
    return {environment or "": each.revision for environment, each in found if each}


@dataclass(frozen=True)
class DiscoveredApp:
    """An app that can be imported."""

    name: str
    form: AppForm
    where: str
    """File (and line) that declares it, or its folder."""
    path: str | None = None
    """Its folder in the tree or in the remote repository.

    Of a kustomization with overlays: the folder for environments without an overlay, or None.
    """
    overlays: Mapping[str, str] = field(default_factory=dict)
    """{environment: folder of its kustomization}."""
    values: Mapping[str, str | bytes] = field(default_factory=dict)
    """{environment: values file in the chart, or the values themselves}; "" for all others."""
    environments: tuple[str, ...] = ()
    """Names used by the repository; empty: no differences between environments."""
    namespace: str | None = None
    remote: RemoteSource | None = None
    """None: the files are in the tree."""
    versions: Mapping[str, str | None] = field(default_factory=dict)
    """{environment: version of the remote chart} if they differ; None: the newest."""
    generated: Mapping[str, bytes] = field(default_factory=dict)
    """Kustomizations to add for plain manifests, or changed by Applications: {path: content}."""
    notes: tuple[str, ...] = ()
    """Information for the user."""


@dataclass(frozen=True)
class RefusedApp:
    """Something that can't be imported. advice: what to do instead."""

    name: str
    where: str
    reason: str
    advice: str
    folder: str | None = None
    """Folder in the tree if it deploys nothing else: not reported if apps in it were found."""
    for_many: str = ""
    """The advice for many apps with this reason, if `advice` is for this app alone."""


class NotImportable(Exception):
    """Stops reading an app, which becomes a RefusedApp."""

    def __init__(self, reason: str, advice: str, *, for_many: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice
        self.for_many = for_many

    def refusal(self, name: str, where: str) -> RefusedApp:
        return RefusedApp(name, where, self.reason, self.advice, for_many=self.for_many)


@dataclass(frozen=True)
class Discovery:
    """All apps and refusals of a repository, sorted by name."""

    findings: tuple[DiscoveredApp, ...] = ()
    refusals: tuple[RefusedApp, ...] = ()
    notes: tuple[str, ...] = ()
    """Information on the whole repository."""


@dataclass(frozen=True)
class ArgoDocument:
    """A YAML document in a file. line: its first line."""

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

    @property
    def sources(self) -> list[dict[str, object]]:
        """Sources of an Application, or of the template of an ApplicationSet."""
        content = self.content
        if self.kind == "ApplicationSet":
            content = part(part(content, "spec"), "template")
        return [dict(each) for each in sources_of(content)]

    @property
    def folder(self) -> str | None:
        """The folder of its only source, in any repository; None if it has several, or none."""
        found = [each.get("path") for each in self.sources]
        return resolve("", str(found[0])) if len(found) == 1 and found[0] is not None else None

    @property
    def folders(self) -> list[str]:
        """The folders of its sources, in any repository."""
        paths = (each.get("path") for each in self.sources)
        return [str(resolve("", str(each))) for each in paths if each is not None]

    def refused(self, reason: str, advice: str) -> RefusedApp:
        return RefusedApp(self.name, self.where, reason, advice)


def sources_of(application: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Sources of an Application, or of a set's template; with a hydrator, the dry source."""
    spec = part(application, "spec")
    dry = part(part(spec, "sourceHydrator"), "drySource")
    return maps(spec, "sources") or [part(spec, "source") or dry]


def app_name(text: str) -> str:
    """A valid app name for ucp.yaml, as close to the text as possible."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MOST_LETTERS].strip("-")
    return name or "app"


def free_name(name: str, used: Collection[str] = ()) -> str:
    """A name like this one that an app can have: of no reserved namespace, and none of `used`."""
    # With this prefix, every name is reserved, whatever its ending is.
    stem = re.sub(r"^(kube-)+", "", name)
    endings = itertools.chain(("", "-app"), (f"-{each}" for each in itertools.count(2)))
    names = (f"{stem[: MOST_LETTERS - len(each)].strip('-')}{each}" for each in endings)
    free = (each for each in names if not (closed_to_apps(each) or taken_namespace(each)))
    return next(each for each in free if each not in used)


def named_by(folder: str, title: str) -> tuple[list[str], str]:
    """(parent folders, name) of an app from its folder; title: if no folder name is specific.

    Folders such as `base`, `k8s` or `charts` aren't specific, nor are versions. `default` can't be
    the name of an app.
    """
    segments = [
        each
        for each in folder.split("/")
        if each and each not in PARTS and not _VERSION.fullmatch(each)
    ]
    for at in reversed(range(len(segments))):
        name = segments[at].lower()
        if name not in {*USUAL, DEFAULT} and re.search("[a-z0-9]", name):
            return segments[:at], app_name(segments[at])
    return segments, app_name(title if re.search("[a-z0-9]", title.lower()) else "app")


def without_environment(name: str, environment: str | None) -> str:
    """`web` from `web-prod` and `prod-web`, `shop-web` from `shop-prod-web`.

    The name itself if nothing would remain.
    """
    if environment:
        for shorter in (
            name.removesuffix(f"-{environment}"),
            name.removeprefix(f"{environment}-"),
            name.replace(f"-{environment}-", "-", 1),
        ):
            if shorter != name:
                return shorter
    return name


def in_text(text: str, environments: Iterable[str]) -> str | None:
    """The longest environment name that the text starts or ends with, or equals.

    Of two, one that is also a usual name of an app is not the environment: `integration-prod`.
    """
    for each in sorted(environments, key=lambda name: (name in _APPS_TOO, -len(name), name)):
        if text == each or text.endswith(f"-{each}") or text.startswith(f"{each}-"):
            return each
    return None


def in_path(path: str, environments: Iterable[str]) -> str | None:
    """The environment in a path: the folder below one such as `overlays`, or any segment."""
    segments = [each for each in path.split("/") if each]
    known = frozenset(environments)
    for parent, name in itertools.pairwise(segments):
        if parent in PARENTS and (name in known or name not in ("base", DEFAULT)):
            return name
    return next((each for each in reversed(segments) if each in known), None)
