"""What is wrong with the repositories, before a cluster finds out: `ucp check`, CI, local pushes.

Duplicate hosts, references to what isn't there, what isn't pinned, fields that Kubernetes doesn't
have, overlays that can't be built. The rules are in files.py, objects.py and kinds.py; here they
meet the repositories.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check.files import (
    Fault,
    Tree,
    find_core_faults,
    find_environment_faults,
    find_file_faults,
    find_topology_faults,
)
from k8s_ucp.gitops.check.mirrors import mirrored_in
from k8s_ucp.gitops.check.objects import Object, find_faults, hosts
from k8s_ucp.gitops.check.permissions import Permissions
from k8s_ucp.gitops.manifests.build_charts import build_charts
from k8s_ucp.gitops.manifests.build_many import Built, build_many
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.repositories import Rendered
from k8s_ucp.topology import Topology, parse

SHOWN = 20


@dataclass(frozen=True, order=True)
class CheckFinding:
    """One thing that is wrong."""

    repository: str
    """`core` or `apps`."""
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.repository}: {self.path}: {self.message}"


@dataclass(frozen=True)
class Checkout:
    """The folders of the repositories; None for one that isn't at hand."""

    core: Path | None = None
    apps: Path | None = None


def check(
    kustomize: Path,
    checkout: Checkout,
    only: Collection[str] | None = None,
    *,
    also: Collection[str] = (),
    helm: Path | None = None,
) -> list[CheckFinding]:
    """Everything that is wrong. only: apps that changed; the others are not built again.

    helm: renders charts. also: transports of git besides https and ssh for what overlays take in.
    What can't be judged is a finding.
    """
    core = Tree.of(checkout.core) if checkout.core else None
    apps = Tree.of(checkout.apps) if checkout.apps else None
    permissions = Permissions(_topology_of(core))
    findings: set[CheckFinding] = set()

    def add(repository: str, where: str, faults: Iterator[Fault]) -> None:
        found = _guarded(where, lambda: faults)
        findings.update(CheckFinding(repository, path, words) for path, words in found)

    core_objects: list[Object] = []
    if core is not None and checkout.core:
        roots = [each for each in core.roots if only is None or each.startswith("mirrors")]
        built = build_many(kustomize, checkout.core, [[each] for each in roots], also=also)
        core_objects = [each for found in built.objects.values() for each in found]
        core_objects += [each for _, each in core.plain()]
    if core is not None and only is None:
        add("core", ".", find_file_faults(core))
        add("core", "bootstrap", find_core_faults(core, apps))
        add("core", "ucp.yaml", find_topology_faults(core, _parse))
        add("core", ".", _object_faults(core, built, None))
    if apps is not None and checkout.apps:
        wanted = [each for each in apps.overlays if only is None or each[1] in only]
        groups = [
            [folder for folder, _, name in wanted if name == environment]
            for environment in sorted({each[2] for each in wanted})
        ]
        others = [] if only is not None else [e for e in apps.roots if not e.startswith("apps/")]
        built = build_many(
            kustomize, checkout.apps, [*groups, *([each] for each in others)], also=also
        )
        charts = [each for each in apps.chart_overlays if only is None or each[1] in only]
        homes = {folder: permissions.of(app).home for folder, app, _ in charts}
        rendered = build_charts(helm, checkout.apps, list(homes), homes)
        built.objects |= rendered.objects
        built.failures |= rendered.failures
        add("apps", ".", find_file_faults(apps))
        add("apps", "environments.yaml", find_environment_faults(apps))
        known = core_objects if core is not None else None
        add("apps", ".", _object_faults(apps, built, known, permissions))
        add("apps", "apps", _host_faults(apps, built))
    return sorted(findings)


def check_rendered(
    kustomize: Path, rendered: Rendered, *, also: Collection[str] = (), helm: Path | None = None
) -> list[CheckFinding]:
    """What is wrong with a render. also, helm: as in `check`."""
    with tempfile.TemporaryDirectory(prefix="ucp-check-") as folder:
        render_to(Path(folder), rendered)
        found = Checkout(Path(folder, "core"), Path(folder, "apps"))
        return check(kustomize, found, also=also, helm=helm)


def transports(topology: Topology) -> set[str]:
    """Transports of git that its owner relies on, besides those that are always there."""
    named = [topology.spec.git.core, topology.spec.git.apps, *(e.repo for e in topology.spec.apps)]
    found = {str(each).partition("://")[0] for each in named if each and "://" in str(each)}
    return found | ({"file"} if topology.spec.git.provider == "local" else set())


def _topology_of(core: Tree | None) -> Topology | None:
    """None where it isn't at hand, or wrong: that is a finding of its own."""
    text = core.files.get("ucp.yaml") if core else None
    if text is None:
        return None
    try:
        return _parse(text.decode("utf-8"))
    except (UcpError, UnicodeDecodeError):
        return None


def _parse(text: str) -> Topology:
    return parse(text, Path("ucp.yaml"))


def _guarded(path: str, faults: Callable[[], Iterator[Fault]]) -> Iterator[Fault]:
    """The same faults; an error of our own is one more, on that path.

    People write files in any shape. One that a rule doesn't expect must neither end the check nor
    pass it.
    """
    try:
        yield from faults()
    except Exception as error:  # noqa: BLE001 (said above)
        yield path, f"failed to check: {type(error).__name__}: {error}"


def _object_faults(
    tree: Tree,
    built: Built,
    core_objects: list[Object] | None,
    permissions: Permissions | None = None,
) -> Iterator[Fault]:
    yield from built.failures.items()
    apps = {folder: app for folder, app, _ in tree.places}
    for folder, found in built.objects.items():
        yield from _guarded(
            folder, partial(_overlay_faults, folder, apps, found, core_objects, permissions)
        )
    for path, item in tree.plain():
        app = apps.get("/".join(path.split("/")[:4]))
        yield from _guarded(path, partial(_plain_faults, path, item, app, permissions))


def _overlay_faults(
    folder: str,
    apps: Mapping[str, str],
    found: list[Object],
    core_objects: list[Object] | None,
    permissions: Permissions | None,
) -> Iterator[Fault]:
    known = None
    if core_objects is not None and permissions and folder in apps:
        home = permissions.of(apps[folder]).home
        known = mirrored_in(core_objects, home, folder.rpartition("/")[2])
    yield from ((folder, words) for words in find_faults(found, known))
    if permissions and folder in apps:
        yield from ((folder, words) for words in permissions.faults(apps[folder], found))


def _plain_faults(
    path: str, item: Object, app: str | None, permissions: Permissions | None
) -> Iterator[Fault]:
    # Argo CD reads it with its neighbours, and with manifests that are not read here.
    yield from ((path, words) for words in find_faults([item], None, whole=False))
    if permissions and app:
        yield from ((path, words) for words in permissions.faults(app, [item]))


def _host_faults(tree: Tree, built: Built) -> Iterator[Fault]:
    """One host, one app on one environment: whoever comes second is told."""
    owners: dict[str, str] = {}
    routes: set[tuple[str, str]] = set()
    for folder, _, _ in sorted(tree.places):
        items = built.objects.get(folder)
        if items is None:  # Not built this time: what the overlay itself says.
            items = [
                each
                for path, content in tree.documents.items()
                if path.startswith(f"{folder}/")
                for each in content
            ]
        for item in items:
            try:
                claimed = set(hosts(item))
            except (TypeError, ValueError, AttributeError):
                yield folder, f"failed to read the hosts of a {item.get('kind')}"
                continue
            for host in sorted({host for host, _ in claimed}):
                other = owners.setdefault(host, folder)
                if other != folder:
                    yield folder, f"the host {host} is already used by {other}"
            if built.objects.get(folder) is not None:
                for host, path in sorted(claimed & routes):
                    yield folder, f"duplicate host and path {host}{path}"
                routes |= claimed


def refuse(findings: list[CheckFinding], what: str) -> None:
    """Raises UcpError where something is wrong."""
    if not findings:
        return
    lines = [str(each) for each in findings[:SHOWN]]
    if len(findings) > SHOWN:
        lines.append(f"... and {len(findings) - SHOWN} more")
    raise UcpError("\n".join([f"{what}:", *lines]), next="fix it, then run `ucp check`")
