"""What an app would bring, before anything is written: its form, the files, every object."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.cli.editing.topology_edit import read_topology
from k8s_ucp.errors import UcpError, UsageError

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.topology_edit import Edit
    from k8s_ucp.gitops.check.findings import CheckFinding
    from k8s_ucp.gitops.render.inputs import Rendered
    from k8s_ucp.topology import App, Topology

_GRANTED = ("cluster-kind-not-allowed", "namespace-not-allowed")
"""Rules whose findings flags of the command settle."""


def tell(call: Invocation, edit: Edit, name: str) -> None:
    """Say what an app is that people bring, and refuse what can't be read. Raises UcpError."""
    from k8s_ucp.cli.app_sources import fetcher_of
    from k8s_ucp.gitops.manifests.forms import find_form
    from k8s_ucp.gitops.render.app_manifests import read_app

    _, topology = _edited(call, edit)
    app = next(each for each in topology.spec.apps if each.name == name)
    if not _is_brought(app):
        return
    files = read_app(app, call.workspace.root, fetcher_of(call, topology))
    found = find_form(files, app.as_ or ("helm" if app.chart else None), app.overlays)
    call.console.say(f"{name}: {found.words}")


def grant(
    call: Invocation, edit: Edit, items: Mapping[str, dict[str, Any]], *, named: bool = False
) -> None:
    """Ask for what apps need beyond their namespaces; nothing is given silently.

    items: of ucp.yaml by app, to which it is added. named: the flags name the app as well.
    Raises UcpError where nobody can be asked.
    """
    text, topology = _edited(call, edit)
    apps = [each for each in topology.spec.apps if each.name in items and _is_brought(each)]
    found = objects_of(call, text, topology, [each.name for each in apps]) if apps else {}
    for app in apps:
        _tell_foreign(call, topology, app.name, found[app.name])
        _grant(app, found[app.name], items[app.name], f"{app.name}=" if named else "")


def _grant(app: App, objects: list[Mapping[str, Any]], item: dict[str, Any], prefix: str) -> None:
    from k8s_ucp.cli.questions import can_ask, confirm

    _refuse_applications(app.name, objects)
    wanted = _permissions(app, objects)
    if not wanted.kinds and not wanted.namespaces:
        return
    what = f"{app.name}: {wanted.words}"
    if not can_ask():
        raise UsageError(what, next=f"allow it: run the command again with {wanted.flags(prefix)}")
    if not confirm(f"{what}. Allow it?", default=False):
        raise UsageError(f"{what}; this was not allowed")
    if wanted.kinds:
        item["clusterKinds"] = [*app.cluster_kinds, *wanted.kinds]
    if wanted.moves:
        item["namespace"] = wanted.namespaces[0]
    elif wanted.namespaces:
        item["namespaces"] = [*app.namespaces, *wanted.namespaces]


@dataclass(frozen=True)
class _Permissions:
    """What an app lacks."""

    home: str
    kinds: list[str]
    """Outside of namespaces."""
    namespaces: list[str]
    moves: bool
    """It has objects in one namespace only, another than its own."""

    @property
    def words(self) -> str:
        words = []
        if self.kinds:
            words.append(f"it creates the cluster-scoped kinds {', '.join(self.kinds)}")
        if self.namespaces:
            there = ", ".join(self.namespaces)
            words.append(f"it writes to {there}, outside its namespace {self.home}")
        return " and ".join(words)

    def flags(self, prefix: str = "") -> str:
        """Of the command that grants it."""
        flag = "--namespace" if self.moves else "--also-namespace"
        flags = [f"--cluster-kind {prefix}{each}" for each in self.kinds]
        return " ".join([*flags, *(f"{flag} {prefix}{each}" for each in self.namespaces)])


def _permissions(app: App, objects: list[Mapping[str, Any]]) -> _Permissions:
    from k8s_ucp.gitops.check.permissions import needed

    found = needed(objects, app.home)
    kinds = [each for each in found.kinds if not _is_granted(each, app.cluster_kinds)]
    namespaces = [each for each in found.namespaces if each not in app.namespaces]
    return _Permissions(app.home, kinds, namespaces, found.alone and not app.namespace)


def _is_brought(app: App) -> bool:
    """People bring its manifests: they are neither made here nor shipped with ucp."""
    return app.form != "image" and not (app.path or "").startswith("ucp:")


def _refuse_applications(name: str, objects: list[Mapping[str, Any]]) -> None:
    """An app of apps belongs to Argo CD's namespace, which no app's project admits."""
    if any(
        each.get("kind") in ("Application", "ApplicationSet")
        and str(each.get("apiVersion")).startswith("argoproj.io/")
        for each in objects
    ):
        raise UsageError(
            f"{name} declares Argo CD Applications, which are allowed in the core repository only",
            next="ucp app import REPO adds the apps that they deploy",
        )


def _tell_foreign(
    call: Invocation, topology: Topology, name: str, objects: list[Mapping[str, Any]]
) -> None:
    """Which kinds must be on the clusters already."""
    from k8s_ucp.gitops.check.kinds import foreign_kinds

    kinds = foreign_kinds(objects)
    rollouts = [each for each in kinds if each.endswith(".argoproj.io")]
    if topology.spec.addons.argo_rollouts:
        kinds = [each for each in kinds if each not in rollouts]
    if kinds:
        words = f"{name}: the clusters need the CRDs of {', '.join(kinds)}; it brings none of them"
        advice = "; `addons: {argo-rollouts: true}` in ucp.yaml brings Argo Rollouts"
        call.console.say(words + (advice if {*rollouts} & {*kinds} else ""))


def _is_granted(kind: str, granted: Collection[str]) -> bool:
    return any(each.partition(".")[0] == kind for each in granted)


def objects_of(
    call: Invocation, text: str, topology: Topology, names: Sequence[str]
) -> dict[str, list[Mapping[str, Any]]]:
    """Every object of apps, on all environments. Raises UcpError."""
    from k8s_ucp.gitops.manifests.build_many import objects

    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in names}
    for name, _, shown in _built(call, _rendered(call, text.encode(), topology), topology, names):
        found[name] += objects(shown)
    return found


def _built(
    call: Invocation, rendered: Rendered, topology: Topology, names: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """(app, environment, its objects as YAML). Raises UcpError."""
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.cli.check import kustomize
    from k8s_ucp.gitops.publish.repositories import render_to

    program, charts = kustomize(), pinned_helm(call, topology)
    with tempfile.TemporaryDirectory(prefix="ucp-preview-") as folder:
        render_to(Path(folder), rendered)
        for each in topology.spec.environments:
            for name in names:
                apps = Path(folder, "apps")
                shown = _objects(program, charts, apps, name, each.name, topology)
                yield name, each.name, shown


def preview(call: Invocation, edit: Edit, name: str) -> None:
    """Print the files that a commit would change, and the objects of each environment.

    Raises UcpError for what can't be rendered.
    """
    from k8s_ucp.gitops.manifests.build_many import objects

    tell(call, edit, name)
    text, topology, before, after = _before_and_after(call, edit)
    call.console.data(f"# {call.workspace.topology_file.name}\n{text}")
    for file, what in _differing(before, after):
        call.console.data(f"# {file} ({what})")
    found: list[Mapping[str, Any]] = []
    for _, environment, shown in _built(call, after, topology, [name]):
        call.console.data(f"# {name} on {environment}\n{shown}")
        found += objects(shown)
    for each in _findings(call, after, topology, [name]):
        if each.rule not in _GRANTED:
            call.console.say(f"would be refused: {each}" if each.blocks else str(each))
    app = next(each for each in topology.spec.apps if each.name == name)
    try:
        _refuse_applications(name, found)
    except UsageError as error:
        call.console.say(f"would be refused: {error.message}; {error.next}")
        return
    _tell_foreign(call, topology, name, found)
    lacks = _permissions(app, found)
    if _is_brought(app) and (lacks.kinds or lacks.namespaces):
        call.console.say(f"would be refused: {lacks.words}; allow it with {lacks.flags()}")


def changes(
    call: Invocation, edit: Edit, names: Sequence[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """(files that a commit would add or change, what the check refuses of these apps).

    Raises UcpError.
    """
    _, topology, before, after = _before_and_after(call, edit)
    refused = [str(each) for each in _findings(call, after, topology, names) if each.blocks]
    return _differing(before, after), refused


def _findings(
    call: Invocation, after: Rendered, topology: Topology, names: Sequence[str]
) -> list[CheckFinding]:
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.cli.check import kustomize
    from k8s_ucp.gitops.check.repositories import check_rendered, transports

    checked = check_rendered(
        kustomize(), after, also=transports(topology), helm=pinned_helm(call, topology)
    )
    starts = tuple(f"apps/{each}/" for each in names)
    return [each for each in checked.findings if each.path.startswith(starts)]


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
    """The objects of an app on an environment, as YAML."""
    from k8s_ucp.gitops.check.repositories import transports
    from k8s_ucp.gitops.manifests.build_charts import build_charts
    from k8s_ucp.gitops.manifests.forms import manifest_files
    from k8s_ucp.gitops.manifests.kustomize import BuildFailed, build
    from k8s_ucp.gitops.manifests.yaml_text import dump_all

    folder = f"apps/{name}/overlays/{environment}"
    place = apps / folder
    if (place / "kustomization.yaml").exists():
        try:
            return build(kustomize, place, also=transports(topology))
        except BuildFailed as error:
            raise BuildFailed(
                f"{name} on {environment}: {error.message.replace(f'{apps}/', '')}",
                next="correct the kustomization that you brought, then run the command again",
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


def _edited(call: Invocation, edit: Edit) -> tuple[str, Topology]:
    path = call.workspace.topology_file
    return edit(read_topology(path), path)


def _before_and_after(call: Invocation, edit: Edit) -> tuple[str, Topology, Rendered, Rendered]:
    """(new text of ucp.yaml, what it says, the repositories without the edit, and with it)."""
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
