"""Previews an app before anything is written: its form, the files, every object."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.cli.editing.topology_edit import read_topology
from k8s_ucp.errors import UcpError, UsageError, some_of
from k8s_ucp.gitops.manifests.yaml_text import part

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.topology_edit import Edit
    from k8s_ucp.gitops.check.findings import CheckFinding
    from k8s_ucp.gitops.check.repositories import CheckResult
    from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder
    from k8s_ucp.gitops.promotion.targets.probe import Subcharts
    from k8s_ucp.gitops.render.inputs import Rendered
    from k8s_ucp.topology import App, Topology

_REFUSED = frozenset(
    f"{each}.argoproj.io" for each in ("Application", "ApplicationSet", "AppProject")
)
"""Kinds that no app may create; `_forbidden` reports them."""
_GRANTED = ("cluster-kind-not-allowed", "namespace-not-allowed", "reference-missing-object")
"""Rules whose findings are settled by flags of the command."""
_SHOWN = 4
_CHART = re.compile(r"apps/[^/]+/overlays/[^/]+/Chart\.yaml")


def report_form(call: Invocation, edit: Edit, name: str) -> None:
    """Print the form of an app, if people provide its manifests. Raises UcpError."""
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.gitops.manifests.forms import find_form
    from k8s_ucp.gitops.render.app_manifests import read_app
    from k8s_ucp.gitops.render.user_manifests import values_taken

    _, topology = _edited(call, edit)
    app = next(each for each in topology.spec.apps if each.name == name)
    if not _has_own_manifests(app):
        return
    files = read_app(app, call.workspace.root, fetcher_of(call, topology))
    found = find_form(files, app.as_ or ("helm" if app.chart else None), app.overlays)
    call.console.say(f"{name}: {found.words}")
    if found.form == "helm":
        environments = [each.name for each in topology.spec.environments]
        if taken := values_taken(app, files, environments):
            listed = ", ".join(f"{file} for {each}" for each, file in taken.items())
            others = [each for each in environments if each not in taken]
            left = f"; none for {', '.join(others)}" if others else ""
            call.console.say(f"{name}: values files of environments: {listed}{left}")


def mutable_tag_advice(item: Mapping[str, Any], environments: Sequence[str]) -> str:
    """Why an image's tag can't be promoted, such as `latest`; "" if it can."""
    from k8s_ucp.gitops.check.objects import is_moving

    tag = item.get("tag") or ""
    if not environments or not is_moving(tag):
        return ""
    name = item["name"]
    return (
        f"{name}: the tag {tag} is mutable: a new image under the same tag is neither deployed nor "
        "promoted\n"
        f"  next: ucp promote {name} --env {environments[0]} --tag VERSION"
    )


@dataclass(frozen=True)
class Inspection:
    """What apps would create in all environments, by name."""

    app_objects: Mapping[str, _AppObjects] = field(default_factory=dict)
    failures: Mapping[str, UcpError] = field(default_factory=dict)
    """Errors of apps that can't be built."""
    forbidden: Mapping[str, UcpError] = field(default_factory=dict)
    """Errors of apps that create what no flag allows."""


def inspect_apps(call: Invocation, edit: Edit, names: Collection[str]) -> Inspection:
    """Build apps that have their own manifests, for every environment. Raises UcpError."""
    text, topology = _edited(call, edit)
    apps = [each for each in topology.spec.apps if each.name in names and _has_own_manifests(each)]
    if not apps:
        return Inspection()
    failures: dict[str, UcpError] = {}
    found = _objects_of(call, _rendered(call, text.encode(), topology), topology, apps, failures)
    problems = {each.name: _forbidden(each, found[each.name]) for each in apps}
    forbidden = {name: each for name, each in problems.items() if each and name not in failures}
    return Inspection(found, failures, forbidden)


def grant(
    call: Invocation,
    edit: Edit,
    items: Mapping[str, dict[str, Any]],
    inspection: Inspection,
    *,
    named: bool = False,
) -> None:
    """Ask for permissions that apps need beyond their namespaces; none is granted silently.

    items: items of ucp.yaml by app, to which permissions are added. named: flags include the app's
    name. Raises UcpError for an app that can't be added, and with the flags for all apps if a
    confirmation is impossible.
    """
    lacking: dict[str, _Permissions] = {}
    _, topology = _edited(call, edit)
    for app in topology.spec.apps:
        if app.name not in items or app.name not in inspection.app_objects:
            continue
        if problem := inspection.failures.get(app.name):
            raise problem
        app_objects = inspection.app_objects[app.name]
        _print_foreign(call, topology, app.name, app_objects.objects)
        _print_unlisted(call, app.name, app_objects)
        if problem := inspection.forbidden.get(app.name):
            raise problem
        wanted = _permissions(app, app_objects)
        if wanted.any:
            lacking[app.name] = wanted
    _ask(lacking, items, named=named)


def refuse_new_errors(call: Invocation, edit: Edit) -> None:
    """Check people's manifests before the first start, which would otherwise fail halfway.

    Apps given by an image can break a rule only together with other manifests, such as an Ingress
    with the same host. If the topology was started, the push of the edit is checked. Raises
    UcpError.
    """
    from k8s_ucp.gitops.check.repositories import shown
    from k8s_ucp.topology import load

    text, topology = _edited(call, edit)
    if (
        not any(map(_has_own_manifests, topology.spec.apps))
        or call.workspace.gitops(topology.name).core.exists()
    ):
        return
    after = _checked(call, _rendered(call, text.encode(), topology), topology).errors
    if not after:
        return
    path = call.workspace.topology_file
    known = load(path)
    before = _checked(call, _rendered(call, path.read_bytes(), known), known).errors
    if new := [each for each in after if each not in before]:
        raise UcpError(
            "\n".join(["`ucp check` would refuse it:", *shown(new)]),
            next="fix it, then run the command again; each rule is explained in docs/checks.md, "
            f"and what may be ignored goes to spec.checks.ignore in {path.name}",
        )


def _ask(
    lacking: Mapping[str, _Permissions], items: Mapping[str, dict[str, Any]], *, named: bool
) -> None:
    from k8s_ucp.cli.questions import can_ask, confirm

    if lacking and not can_ask():
        flags = (each.flags(f"{name}=" if named else "") for name, each in lacking.items())
        raise UsageError(
            "\n  ".join(f"{name}: {each.words}" for name, each in lacking.items()),
            next="".join(
                [
                    f"allow it: run the command again with {' '.join(flags)}",
                    *(f"; {each.advice}" for each in lacking.values() if each.advice),
                ]
            ),
        )
    for name, each in lacking.items():
        if not confirm(f"{name}: {each.words}. Allow it?", default=False):
            raise UsageError(f"{name}: {each.words}; this was not allowed")
        for key, words in each.keys.items():
            items[name][key] = [*items[name].get(key, ()), *words]
        if each.moves:
            items[name]["namespace"] = each.namespaces[0]


@dataclass(frozen=True)
class _AppObjects:
    """Everything that an app creates, in all environments together."""

    objects: list[Mapping[str, Any]] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    """`Kind/name` of objects that it refers to, and that nothing creates."""
    is_chart: bool = False
    texts: dict[str, str] = field(default_factory=dict)
    """{environment: objects as YAML}"""
    unlisted: dict[str, list[str]] = field(default_factory=dict)
    """{image: environments} in which no overlay lists its version, so that it can't be promoted."""
    unset: list[str] = field(default_factory=list)
    """Messages about images of a chart whose version a promotion doesn't find."""


@dataclass(frozen=True)
class _Permissions:
    """Permissions that an app lacks."""

    home: str
    kinds: list[str]
    """Cluster-scoped kinds."""
    namespaces: list[str]
    unmade: list[str]
    """Those of `namespaces` for which the app has no Namespace object."""
    moves: bool
    """All its objects are in a single namespace that isn't its own."""
    outside: list[str]
    """Objects that something else has to create."""

    @property
    def any(self) -> bool:
        return bool(self.kinds or self.namespaces or self.outside)

    @property
    def keys(self) -> dict[str, list[str]]:
        """Lists of ucp.yaml to which they would be added."""
        namespaces = [] if self.moves else self.namespaces
        found = {
            "clusterKinds": self.kinds,
            "namespaces": namespaces,
            "fromOutside": self.outside,
        }
        return {key: words for key, words in found.items() if words}

    @property
    def words(self) -> str:
        words = []
        if self.kinds:
            kinds = "kind" if len(self.kinds) == 1 else "kinds"
            words.append(f"it creates the cluster-scoped {kinds} {', '.join(self.kinds)}")
        if self.namespaces:
            namespaces = ", ".join(self.namespaces)
            words.append(f"it writes to {namespaces}, outside of its namespace {self.home}")
        if self.unmade and not self.moves:
            words.append(f"it has no Namespace object for {', '.join(self.unmade)}")
        if self.outside:
            words.append(
                f"it needs {', '.join(self.outside)}, which something else has to create, since "
                "neither the app nor a mirror brings it"
            )
        return " and ".join(words)

    @property
    def advice(self) -> str:
        """What to change instead, or in addition to the flags; "" if they are enough."""
        if self.moves or not self.unmade:
            return ""
        return (
            f"and add the Namespace {', '.join(self.unmade)} to its manifests, because Argo CD "
            f"creates {self.home} alone; or set `namespace: {self.home}` in its kustomizations "
            "instead, which needs no flag for it"
        )

    def flags(self, prefix: str = "") -> str:
        """Flags of the command that grant them."""
        flag = "--namespace" if self.moves else "--also-namespace"
        flags = [f"--cluster-kind {prefix}{each}" for each in self.kinds]
        flags += [f"{flag} {prefix}{each}" for each in self.namespaces]
        return " ".join([*flags, *(f"--from-outside {prefix}{each}" for each in self.outside)])


def _permissions(app: App, app_objects: _AppObjects) -> _Permissions:
    from k8s_ucp.gitops.check.permissions import needed

    found = needed(app_objects.objects, app.home)
    kinds = [each for each in found.kinds if not _is_granted(each, app.cluster_kinds)]
    namespaces = [each for each in found.namespaces if each not in app.namespaces]
    moves = found.alone and not app.namespace
    made = {_namespace_made(each) for each in app_objects.objects} | {"default"}
    unmade = [each for each in namespaces if each not in made]
    return _Permissions(app.home, kinds, namespaces, unmade, moves, sorted(app_objects.missing))


def _forbidden(app: App, app_objects: _AppObjects) -> UsageError | None:
    """What no flag can allow: Applications, and objects in namespaces of the platform."""
    from k8s_ucp.gitops.check.objects import named
    from k8s_ucp.gitops.check.permissions import needed
    from k8s_ucp.topology.rules.names import closed_to_apps

    objects = app_objects.objects
    # Applications belong to Argo CD's namespace, which no app's project permits.
    if any(
        each.get("kind") in ("Application", "ApplicationSet")
        and str(each.get("apiVersion")).startswith("argoproj.io/")
        for each in objects
    ):
        return UsageError(
            f"{app.name} declares Argo CD Applications, which are allowed in the core repository "
            "only",
            next="ucp app import REPO adds the apps that they deploy",
        )
    for namespace in filter(closed_to_apps, needed(objects, app.home).namespaces):
        outside = {
            named(each)
            for each in objects
            if namespace in (part(each, "metadata").get("namespace"), _namespace_made(each))
        }
        way = "remove metadata.namespace there, or set `namespace` in the kustomization"
        if app_objects.is_chart:
            way = "set the chart's value for it, if it has one: --values FILE"
        return UsageError(
            f"{app.name}: {some_of(sorted(outside), _SHOWN)} would go to the namespace "
            f"{namespace}, which is reserved: no app may write to it",
            next=f"{way} (its own namespace is {app.home}); software of the cluster's itself you "
            "can install by kubectl: ucp kubeconfig ENV --merge",
        )
    return None


def _namespace_made(item: Mapping[str, Any]) -> Any:
    return part(item, "metadata").get("name") if item.get("kind") == "Namespace" else None


def _has_own_manifests(app: App) -> bool:
    """Whether people provide its manifests; otherwise they are generated or shipped with ucp."""
    return app.form != "image" and not (app.path or "").startswith("ucp:")


def _print_foreign(
    call: Invocation, topology: Topology, name: str, objects: list[Mapping[str, Any]]
) -> None:
    """Print the kinds whose CRDs must already be on the clusters."""
    from k8s_ucp.gitops.check.kinds import foreign_kinds

    kinds = [each for each in foreign_kinds(objects) if each not in _REFUSED]
    rollouts = [each for each in kinds if each.endswith(".argoproj.io")]
    if topology.spec.addons.argo_rollouts:
        kinds = [each for each in kinds if each not in rollouts]
    if kinds:
        words = f"{name}: the clusters need the CRDs of {', '.join(kinds)}; it brings none of them"
        if {*rollouts} & {*kinds}:
            words += "; `addons: {argo-rollouts: true}` in ucp.yaml brings Argo Rollouts"
        if any(each.startswith("HelmRelease.") for each in kinds):
            words += "; `ucp app import` with the folder adds the charts of HelmReleases"
        call.console.say(words)


def _is_granted(kind: str, granted: Collection[str]) -> bool:
    return any(each.partition(".")[0] == kind for each in granted)


def _objects_of(
    call: Invocation,
    rendered: Rendered,
    topology: Topology,
    apps: Sequence[App],
    failures: dict[str, UcpError] | None = None,
) -> dict[str, _AppObjects]:
    """What each app creates, by name.

    failures: receives the errors of apps that can't be built, by name. None: the first is raised.
    """
    from k8s_ucp.gitops.check.objects import mirrored_in, missing
    from k8s_ucp.gitops.manifests.build_many import objects
    from k8s_ucp.gitops.manifests.yaml_text import documents

    by_name = {each.name: each for each in apps}
    charts = {each.split("/")[1] for each in rendered.apps if _CHART.fullmatch(each)}
    found = {name: _AppObjects(is_chart=name in charts) for name in by_name}
    syncers = [
        item
        for path, content in rendered.core.items()
        if path.startswith("mirrors/") and b"kind: Syncer" in content
        for item in documents(content, path)
        if isinstance(item, dict)
    ]
    for name, environment, shown, again in _built(call, rendered, topology, [*by_name], failures):
        app, items = by_name[name], list(objects(shown))
        if again and not found[name].texts:
            found[name].unset.extend(_unset(rendered, name, environment, items, again))
        mirrored = mirrored_in(syncers, app.home, environment)
        mirrored = mirrored.and_also(app.from_outside) if mirrored else None
        found[name].objects.extend(items)
        found[name].texts[environment] = shown
        for image in _unlisted(rendered, name, environment, items):
            found[name].unlisted.setdefault(image, []).append(environment)
        if not _ignores_missing(topology, app):
            found[name].missing.update(missing(items, mirrored))
    return found


def _unlisted(
    rendered: Rendered, name: str, environment: str, items: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Images of a kustomization that aren't in the list that promotions change."""
    from k8s_ucp.gitops.manifests.images_and_ports import images, one_version, split_image
    from k8s_ucp.gitops.manifests.yaml_text import first_map, maps

    path = f"apps/{name}/overlays/{environment}/kustomization.yaml"
    if path not in rendered.apps:
        return []
    versions: dict[str, set[str]] = {}
    for image in images(list(items)):
        known, version = split_image(image)
        versions.setdefault(known, set()).add(version)
    listed = maps(first_map(rendered.apps[path], path), "images")
    known_there = {str(each.get(key)) for each in listed for key in ("name", "newName")}
    return [image for image, _ in one_version(versions) if image not in known_there]


_Again = Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]]
"""Renders a chart with further values; returns its objects. Raises UcpError."""


@dataclass(frozen=True)
class _RenderedFiles:
    """The app repository as it would be."""

    content: Mapping[str, bytes]

    def read(self, path: str) -> bytes | None:
        return self.content.get(path)

    def files(self, path: str) -> list[str]:
        start = f"{path}/"
        return sorted(each.removeprefix(start) for each in self.content if each.startswith(start))


def _unset(
    rendered: Rendered,
    name: str,
    environment: str,
    items: Sequence[Mapping[str, Any]],
    again: _Again,
) -> Iterator[str]:
    """Messages about images of a chart that promotions can't change."""
    from k8s_ucp.gitops.manifests.images_and_ports import images
    from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
    from k8s_ucp.gitops.promotion.targets.find import find_targets
    from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder
    from k8s_ucp.gitops.promotion.targets.helm import read_values
    from k8s_ucp.gitops.promotion.targets.probe import probe, proposed, unlisted

    folder = EnvironmentFolder(_RenderedFiles(rendered.apps), f"apps/{name}/overlays/{environment}")
    now = list(images(list(items)))
    try:
        found, values = find_targets(folder, environment), read_values(folder, environment)
        targets = [each for each in found.targets if each.kind == "image"] if found else []
        tried = probe(values, targets, now, _subcharts(folder))
        after = list(images(list(again(tried.values)))) if tried.paths else now
    except (NotEditable, UcpError):
        # Nothing is known then; the promotion reports what it can't change.
        return
    left = unlisted(tried, targets, values, now, after)
    if named := [each for each in left if each.path]:
        lines, images_named = ", ".join(proposed(tried, after)), [each.image for each in named]
        yield (
            f"`ucp promote` does not find the version of {some_of(images_named, _SHOWN)}; "
            f"name it in apps/{name}/.promotion.yaml: targets: [{lines}]"
        )
    if others := [each.image for each in left if not each.path]:
        yield (
            f"`ucp promote` can't change {some_of(others, _SHOWN)}: no value of the chart is its "
            "version"
        )


def _subcharts(folder: EnvironmentFolder) -> Subcharts:
    """Values of an environment's subcharts. Raises NotEditable."""
    from k8s_ucp.gitops.manifests.yaml_tree import read_tree
    from k8s_ucp.gitops.promotion.targets.folder import decoded
    from k8s_ucp.gitops.promotion.targets.subcharts import subchart_values

    files = {each: folder.source.read(f"{folder.path}/{each}") or b"" for each in folder.names()}
    found = ((way, decoded(content, ".".join(way))) for way, content in subchart_values(files))
    return [(way, read_tree(text, ".".join(way))) for way, text in found if text.strip()]


def _print_unlisted(call: Invocation, name: str, app_objects: _AppObjects) -> None:
    for each in app_objects.unset:
        call.console.say(f"{name}: {each}")
    by_places: dict[str, list[str]] = {}
    for image, environments in app_objects.unlisted.items():
        by_places.setdefault(", ".join(environments), []).append(image)
    for places, images in by_places.items():
        call.console.say(
            f"{name}: `ucp promote` can't change {', '.join(images)} in {places}, whose version a "
            "patch or a remote base sets: set it by `images` of the overlay"
        )


def _ignores_missing(topology: Topology, app: App) -> bool:
    """Whether ucp.yaml ignores missing references of the app, or of all apps."""
    return any(
        each.rule == "reference-missing-object" and each.app in (None, app.name)
        for each in topology.spec.checks.ignore
    )


def _built(
    call: Invocation,
    rendered: Rendered,
    topology: Topology,
    names: Sequence[str],
    failures: dict[str, UcpError] | None,
) -> Iterator[tuple[str, str, str, _Again | None]]:
    """(app, environment, objects as YAML, function to render a chart again).

    failures: as in `_objects_of`.
    """
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.cli.check import kustomize
    from k8s_ucp.gitops.publish.repositories import render_to

    program, charts = kustomize(), pinned_helm(call, topology)
    with tempfile.TemporaryDirectory(prefix="ucp-preview-") as folder:
        render_to(Path(folder), replace(rendered, core={}))
        for each in topology.spec.environments:
            for name in names:
                apps = Path(folder, "apps")
                try:
                    shown = _objects(program, charts, apps, name, each.name, topology)
                except UcpError as error:
                    if failures is None:
                        raise
                    failures.setdefault(name, error)
                    continue
                yield name, each.name, shown, _again(charts, apps, name, each.name, topology)


def _again(
    helm: Path, apps: Path, name: str, environment: str, topology: Topology
) -> _Again | None:
    from k8s_ucp.gitops.manifests.build_charts import build_charts

    folder = f"apps/{name}/overlays/{environment}"
    if not (apps / folder / "Chart.yaml").exists():
        return None
    home = next(each.home for each in topology.spec.apps if each.name == name)

    def render(values: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        built = build_charts(helm, apps, [folder], {folder: home}, values)
        if folder in built.failures:
            raise UcpError(built.failures[folder])
        return built.objects[folder]

    return render


@dataclass(frozen=True)
class Refusals:
    """Reasons for which the command would fail without --dry-run."""

    permissions: Sequence[str] = ()
    """What the apps aren't allowed."""
    findings: Sequence[str] = ()
    """Findings of the check."""

    @property
    def reasons(self) -> list[str]:
        return [*self.findings, *self.permissions]

    @property
    def exit_code(self) -> int:
        """That of the command, which asks for permissions before it runs the check."""
        if self.permissions:
            return UsageError.exit_code
        return UcpError.exit_code if self.findings else 0


def preview(call: Invocation, edit: Edit, name: str) -> Refusals:
    """Print the files that a commit would change, and the objects of each environment.

    Raises UcpError if something can't be rendered.
    """

    report_form(call, edit, name)
    text, topology, before, after = _before_and_after(call, edit)
    call.console.data(f"# {call.workspace.topology_file.name}\n{text}")
    for file, what in _differing(before, after):
        call.console.data(f"# {file} ({what})")
    app = next(each for each in topology.spec.apps if each.name == name)
    app_objects = _objects_of(call, after, topology, [app])[name]
    for environment, shown in app_objects.texts.items():
        call.console.data(f"# {name} on {environment}\n{shown}")
    found = _findings(call, after, topology, [name])
    for each in found:
        if each.rule not in _GRANTED:
            call.console.say(f"would be refused: {each}" if each.blocks else str(each))
    if not _has_own_manifests(app):
        return Refusals(findings=_blocking(found))
    _print_foreign(call, topology, name, app_objects.objects)
    _print_unlisted(call, name, app_objects)
    lacking = _refusals(app, app_objects)
    for words in lacking:
        call.console.say(f"would be refused: {words}")
    return Refusals(lacking, _blocking(found))


def _blocking(findings: Sequence[CheckFinding]) -> list[str]:
    return [str(each) for each in findings if each.blocks and each.rule not in _GRANTED]


def _refusals(app: App, app_objects: _AppObjects, prefix: str = "") -> list[str]:
    """What an app isn't allowed, with the flags that would allow it."""
    if problem := _forbidden(app, app_objects):
        return [f"{problem.message}; {problem.next}"]
    lacks = _permissions(app, app_objects)
    if not lacks.any:
        return []
    more = f"; {lacks.advice}" if lacks.advice else ""
    return [f"{lacks.words}; allow it with {lacks.flags(prefix)}{more}"]


def changes(
    call: Invocation, edit: Edit, names: Sequence[str], inspection: Inspection
) -> tuple[list[tuple[str, str]], Refusals]:
    """(files that a commit would add or change, why these apps would be refused).

    Raises UcpError.
    """
    _, topology, before, after = _before_and_after(call, edit)
    lacking: list[str] = []
    for app in topology.spec.apps:
        if app.name in names and (app_objects := inspection.app_objects.get(app.name)):
            refusals = _refusals(app, app_objects, f"{app.name}=")
            lacking += [f"{app.name}: {each.removeprefix(f'{app.name}: ')}" for each in refusals]
    found = _blocking(_findings(call, after, topology, names))
    return _differing(before, after), Refusals(lacking, found)


def _findings(
    call: Invocation, after: Rendered, topology: Topology, names: Sequence[str]
) -> list[CheckFinding]:
    starts = tuple(f"apps/{each}/" for each in names)
    found = _checked(call, after, topology).findings
    return [each for each in found if each.path.startswith(starts)]


def _checked(call: Invocation, rendered: Rendered, topology: Topology) -> CheckResult:
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.cli.check import kustomize
    from k8s_ucp.gitops.check.repositories import check_rendered, transports

    return check_rendered(
        kustomize(), rendered, also=transports(topology), helm=pinned_helm(call, topology)
    )


def _differing(before: Rendered, after: Rendered) -> list[tuple[str, str]]:
    found = []
    for repository in ("core", "apps"):
        old: Mapping[str, bytes] = getattr(before, repository)
        new: Mapping[str, bytes] = getattr(after, repository)
        for file in sorted(new):
            if new[file] != old.get(file):
                found.append((f"{repository}: {file}", "changed" if file in old else "new"))
    return found


def _objects(
    kustomize: Path, helm: Path, apps: Path, name: str, environment: str, topology: Topology
) -> str:
    """The objects of an app in an environment, as YAML."""
    from k8s_ucp.git.failures import HostUnreachable, classify
    from k8s_ucp.gitops.check.repositories import transports
    from k8s_ucp.gitops.manifests.build_charts import build_charts
    from k8s_ucp.gitops.manifests.forms import manifest_files
    from k8s_ucp.gitops.manifests.kustomize import BuildFailed, LoadsFromOutside, build
    from k8s_ucp.gitops.manifests.yaml_text import dump_all

    folder = f"apps/{name}/overlays/{environment}"
    place = apps / folder
    if (place / "kustomization.yaml").exists():
        try:
            return build(kustomize, place, also=transports(topology))
        except LoadsFromOutside as error:
            # Paths in the app repository mean nothing to the user.
            error.message = f"{name} on {environment}: {error.message}".replace(
                f"{apps}/apps/{name}/base/", ""
            ).replace(f"{apps}/", "")
            raise
        except BuildFailed as error:
            if "--enable-helm" in error.message:
                raise _inflates(apps, name, environment) from error
            why = classify("fetch", folder, error.message)
            raise BuildFailed(
                f"{name} on {environment}: {error.message.replace(f'{apps}/', '')}",
                next=why.next
                if isinstance(why, HostUnreachable)
                else "fix the kustomization, then run the command again",
            ) from error
    if (place / "Chart.yaml").exists():
        home = next(each.home for each in topology.spec.apps if each.name == name)
        built = build_charts(helm, apps, [folder], {folder: home})
        if folder in built.failures:
            raise UcpError(
                f"{name} on {environment}: {built.failures[folder]}",
                next="run the command again with --values FILE, if the chart lacks values",
            )
        return dump_all(built.objects[folder])
    files = {
        each.relative_to(place).as_posix(): each.read_bytes()
        for each in sorted(place.rglob("*"))
        if each.is_file()
    }
    shown = [files[each].decode("utf-8", "replace").rstrip() for each in manifest_files(files)]
    shown += [f"# {each}: rendered by Argo CD" for each in files if each.endswith(".jsonnet")]
    return "\n---\n".join(shown) + "\n"


def _inflates(apps: Path, name: str, environment: str) -> UsageError:
    """The error of an app whose kustomization has charts, with the commands for these."""
    from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
    from k8s_ucp.gitops.manifests.yaml_text import first_map, maps

    files = sorted(
        each for each in (apps / "apps" / name).rglob("*") if each.name in KUSTOMIZATIONS
    )
    charts = [
        each
        for file in files
        for each in maps(first_map(file.read_bytes(), file.name), "helmCharts")
    ]
    commands = list(dict.fromkeys(filter(None, map(_command_of_chart, charts))))
    add = "; ".join(commands[:_SHOWN]) or "ucp app add NAME CHART"
    names = ", ".join(dict.fromkeys(str(each.get("name")) for each in charts)) or "helmCharts"
    return UsageError(
        f"{name} on {environment}: its kustomization inflates the chart {names} (helmCharts), "
        "which Argo CD doesn't do here",
        next=f"add the chart as an app of its own ({add}), and the rest without helmCharts",
    )


def _command_of_chart(chart: Mapping[str, Any]) -> str:
    """The command that adds a chart of a kustomization; "" for one in the repository."""
    url, name, version = (str(chart.get(key) or "") for key in ("repo", "name", "version"))
    if not url or not name:
        return ""
    oci = url.startswith("oci://")
    words = ["--chart", f"{url.rstrip('/')}/{name}"] if oci else ["--chart", name, "--repo", url]
    words += ["--version", version] if version else []
    words += ["--values", "FILE"] if chart.get("valuesFile") or chart.get("valuesInline") else []
    app = str(chart.get("releaseName") or name)
    return " ".join(["ucp app add", *map(shlex.quote, [app, *words])])


def _edited(call: Invocation, edit: Edit) -> tuple[str, Topology]:
    path = call.workspace.topology_file
    return edit(read_topology(path), path)


def _before_and_after(call: Invocation, edit: Edit) -> tuple[str, Topology, Rendered, Rendered]:
    """(new text of ucp.yaml, new topology, repositories without the edit, repositories with it)"""
    text, topology = _edited(call, edit)
    before = _rendered(call, call.workspace.topology_file.read_bytes(), None)
    return text, topology, before, _rendered(call, text.encode(), topology)


def _rendered(call: Invocation, text: bytes, topology: Topology | None) -> Rendered:
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.components.repositories import render_all
    from k8s_ucp.gitops.render.app_manifests import read_manifests
    from k8s_ucp.topology import load

    path = call.workspace.topology_file
    topology = topology or load(path)
    manifests = read_manifests(topology, path.parent, fetcher_of(call, topology))
    return render_all(call.workspace, topology, text, manifests, None)
