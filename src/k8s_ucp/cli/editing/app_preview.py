"""What an app would bring, before anything is written: its form, the files, every object."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
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
        _grant(app, found[app.name], items[app.name], f"{app.name}=" if named else "")


def _grant(app: App, objects: list[Mapping[str, Any]], item: dict[str, Any], prefix: str) -> None:
    from k8s_ucp.cli.questions import can_ask, confirm
    from k8s_ucp.gitops.check.permissions import needed

    _refuse_applications(app.name, objects)
    found = needed(objects, app.home)
    kinds = [each for each in found.kinds if not _is_granted(each, app.cluster_kinds)]
    namespaces = [each for each in found.namespaces if each not in app.namespaces]
    if not kinds and not namespaces:
        return
    flags = [f"--cluster-kind {prefix}{each}" for each in kinds]
    if found.alone and not app.namespace:
        flags.append(f"--namespace {prefix}{namespaces[0]}")
    else:
        flags += [f"--also-namespace {prefix}{each}" for each in namespaces]
    words = []
    if kinds:
        words.append(f"it brings {', '.join(kinds)}, which lie outside of namespaces")
    if namespaces:
        words.append(f"it writes to {', '.join(namespaces)}, outside of its namespace {app.home}")
    what = f"{app.name}: {' and '.join(words)}"
    if not can_ask():
        raise UsageError(what, next=f"allow it, by the same command with {' '.join(flags)}")
    if not confirm(f"{what}. Allow it?", default=False):
        raise UsageError(f"{what}, and may not")
    if kinds:
        item["clusterKinds"] = [*app.cluster_kinds, *kinds]
    if found.alone and not app.namespace:
        item["namespace"] = namespaces[0]
    elif namespaces:
        item["namespaces"] = [*app.namespaces, *namespaces]


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
            f"{name} declares Applications of Argo CD, which only the core repository may have",
            next="ucp app import with the repository adds the apps that they stand for",
        )


def _is_granted(kind: str, granted: Collection[str]) -> bool:
    return any(each.partition(".")[0] == kind for each in granted)


def objects_of(
    call: Invocation, text: str, topology: Topology, names: Sequence[str]
) -> dict[str, list[Mapping[str, Any]]]:
    """Every object of apps, on all environments. Raises UcpError."""
    from k8s_ucp.gitops.manifests.build_many import objects

    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in names}
    for name, _, shown in _built(_rendered(call, text.encode(), topology), topology, names):
        found[name] += objects(shown)
    return found


def _built(
    rendered: Rendered, topology: Topology, names: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """(app, environment, its objects as YAML). Raises UcpError."""
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.cli.check import kustomize
    from k8s_ucp.gitops.publish.repositories import render_to

    program, charts = kustomize(), pinned_helm()
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
    tell(call, edit, name)
    text, topology, before, after = _before_and_after(call, edit)
    call.console.data(f"# {call.workspace.topology_file.name}\n{text}")
    for file, what in _differing(before, after):
        call.console.data(f"# {file} ({what})")
    for _, environment, shown in _built(after, topology, [name]):
        call.console.data(f"# {name} on {environment}\n{shown}")
    for each in _findings(after, topology, [name]):
        call.console.say(f"would be refused: {each}" if each.blocks else str(each))


def changes(
    call: Invocation, edit: Edit, names: Sequence[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """(files that a commit would add or change, what the check refuses of these apps).

    Raises UcpError.
    """
    _, topology, before, after = _before_and_after(call, edit)
    refused = [str(each) for each in _findings(after, topology, names) if each.blocks]
    return _differing(before, after), refused


def _findings(after: Rendered, topology: Topology, names: Sequence[str]) -> list[CheckFinding]:
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.cli.check import kustomize
    from k8s_ucp.gitops.check.repositories import check_rendered, transports

    checked = check_rendered(kustomize(), after, also=transports(topology), helm=pinned_helm())
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
    from k8s_ucp.gitops.manifests.kustomize import build
    from k8s_ucp.gitops.manifests.yaml_text import dump_all

    folder = f"apps/{name}/overlays/{environment}"
    place = apps / folder
    if (place / "kustomization.yaml").exists():
        return build(kustomize, place, also=transports(topology))
    if (place / "Chart.yaml").exists():
        home = next(each.home for each in topology.spec.apps if each.name == name)
        built = build_charts(helm, apps, [folder], {folder: home})
        if folder in built.failures:
            raise UcpError(f"{name} on {environment}: {built.failures[folder]}")
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
