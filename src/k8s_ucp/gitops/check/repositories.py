"""Checks the repositories without a cluster: for `ucp check`, CI and the push hook.

It finds duplicate hosts, dangling references, unpinned versions, fields that Kubernetes doesn't
have, and overlays that can't be built. The rules are in files.py, objects.py, collisions.py and
kinds.py; this module applies them to the repositories.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from k8s_ucp.check_rules import RULES
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check.collisions import (
    find_host_faults,
    find_node_port_faults,
    find_repeated_faults,
)
from k8s_ucp.gitops.check.files import (
    find_core_faults,
    find_environment_faults,
    find_file_faults,
    find_topology_faults,
    find_unlisted_clusters,
)
from k8s_ucp.gitops.check.findings import (
    CheckFinding,
    Fault,
    apps_of,
    lines_of,
    without_consequences,
)
from k8s_ucp.gitops.check.guard_rails import GuardRailRules
from k8s_ucp.gitops.check.locations import Locations
from k8s_ucp.gitops.check.objects.faults import find_faults
from k8s_ucp.gitops.check.objects.item import Object
from k8s_ucp.gitops.check.objects.mirrored import mirrored_in
from k8s_ucp.gitops.check.permissions import Permissions
from k8s_ucp.gitops.check.shared_namespaces import (
    SharedNamespaces,
    provided_by,
    with_neighbors,
)
from k8s_ucp.gitops.check.suppressions import (
    IgnoredFinding,
    Triage,
    annotation_suppressions,
    comment_suppressions,
)
from k8s_ucp.gitops.check.tree import Tree
from k8s_ucp.gitops.manifests.build_charts import build_charts
from k8s_ucp.gitops.manifests.build_many import Built, build_many, first_equal, unlisted
from k8s_ucp.gitops.manifests.sources import transports
from k8s_ucp.gitops.manifests.yaml_text import documents
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.repositories import CHECKS, Rendered
from k8s_ucp.topology import Topology, load, parse
from k8s_ucp.topology.parts import Checks
from k8s_ucp.topology.rules.keys import find_bad_checks

SHOWN = 20
BuiltCharts = Mapping[tuple[str, str], list[Object]]
"""{(overlay, namespace of its app): objects} of charts that are rendered already."""
BuiltOverlays = Mapping[str, list[Object]]
"""{overlay: objects} of kustomizations that are built already."""


@dataclass(frozen=True)
class Checkout:
    """The folders of the checked-out repositories; None if a repository isn't available."""

    core: Path | None = None
    apps: Path | None = None


@dataclass(frozen=True)
class CheckResult:
    """The result of a check."""

    findings: list[CheckFinding]
    """Findings that aren't ignored."""
    ignored: list[IgnoredFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Suppressions in files that are invalid or match nothing, and what can't be checked."""
    unused: list[str] = field(default_factory=list)
    """Entries of `checks.ignore` in ucp.yaml that match nothing."""

    @property
    def errors(self) -> list[CheckFinding]:
        return [each for each in self.findings if each.blocks]

    @property
    def warnings(self) -> list[CheckFinding]:
        return [each for each in self.findings if not each.blocks]

    @property
    def summary(self) -> str:
        """The counts as a sentence."""
        counts = (
            (len(self.errors), "error"),
            (len(self.warnings), "warning"),
            (len(self.ignored), "ignored"),
        )
        counted = [f"{n} {w}{'s' * (n != 1 and w != 'ignored')}" for n, w in counts if n]
        return ", ".join(counted) or "no problems found"

    def over(self, other: CheckResult) -> CheckResult:
        """Merge both results: this one is about the state in git, `other` about the next render."""
        findings, suppressed = set(self.findings), {each.finding for each in self.ignored}
        return CheckResult(
            sorted(findings | (set(other.findings) - suppressed)),
            sorted(
                {
                    *self.ignored,
                    *(e for e in other.ignored if e.finding not in findings | suppressed),
                }
            ),
            sorted({*self.notes, *other.notes}),
            [each for each in self.unused if each in other.unused],
        )


def check(
    kustomize: Path,
    checkout: Checkout,
    only: Collection[str] | None = None,
    *,
    changed: Collection[str] = (),
    also: Collection[str] = (),
    helm: Path | None = None,
    checks: Checks | None = None,
    same: Mapping[str, str] = MappingProxyType({}),
    charts: BuiltCharts = MappingProxyType({}),
    overlays: BuiltOverlays = MappingProxyType({}),
) -> CheckResult:
    """Check the repositories.

    only: apps that changed; the others are not built, unless they use one of the files `changed`
    or share a namespace with a changed app.
    helm: the program that renders charts. also: git transports besides https and ssh that overlays
    may use, and URLs allowed over plain http. checks: the settings of ucp.yaml, if there is no core
    repository to read them from. same: {overlay: another one that builds the same objects}. charts,
    overlays: those that aren't built again. What can't be checked is reported as a finding.
    """
    core = Tree.of(checkout.core) if checkout.core else None
    apps = Tree.of(checkout.apps) if checkout.apps else None
    if only is not None and apps is not None:
        only = {*only, *apps.apps_using(changed)}
    topology = _topology_of(core)
    if only is not None:
        only = with_neighbors(only, topology)
    unread: list[Fault] = []
    if checks is None:
        checks = topology.spec.checks if topology else Checks()
        if apps is not None and core is None:
            checks, unread = _checks_of(apps)
    triage = Triage(checks)
    core_objects: list[Object] | None = None
    if core is not None and checkout.core:
        roots = [each for each in core.roots if only is None or each.startswith("mirrors")]
        built = build_many(kustomize, checkout.core, [[each] for each in roots], also=also)
        core_objects = [each for found in built.objects.values() for each in found]
        core_objects += [each for _, each in core.plain()]
        if only is None:
            _locate(triage, "core", core, built, _core_faults(core, apps, built))
    unjudged: list[str] = []
    if apps is not None and checkout.apps:
        permissions = Permissions(topology)
        built = _built(kustomize, checkout.apps, _groups(apps, only), same, also, overlays)
        homes = {
            folder: permissions.of(app).home
            for folder, app, _ in apps.chart_overlays
            if only is None or app in only
        }
        _add_charts(built, helm, checkout.apps, homes, charts)
        faults = [*unread, *_app_faults(apps, built, core_objects, permissions, topology)]
        _locate(triage, "apps", apps, built, faults)
        unjudged = _unjudged(apps, only)
    is_complete = only is None and core is not None and apps is not None
    return CheckResult(
        sorted(without_consequences(triage.findings)),
        sorted(triage.ignored),
        [*triage.refused, *(triage.unmatched if only is None else ()), *unjudged],
        triage.unused if is_complete else [],
    )


def _unjudged(apps: Tree, only: Collection[str] | None) -> list[str]:
    """What only Argo CD can render or fetch, in sentences."""
    jsonnet = [app for app in apps.jsonnet if only is None or app in only]
    settings = [each for each in apps.settings if only is None or each[1] in only]
    return [
        *(f"apps: {app}: not checked: only Argo CD renders its jsonnet" for app in jsonnet),
        *(
            f"apps: {folder}: not checked: only Argo CD fetches this submodule"
            for folder in apps.submodules
        ),
        *(
            f"apps: {file}: not checked: only Argo CD applies its {key}"
            for file, _, key in settings
        ),
    ]


def _groups(apps: Tree, only: Collection[str] | None) -> list[list[str]]:
    """The kustomize roots to build: the overlays of each environment together, others alone."""
    wanted = [each for each in apps.overlays if only is None or each[1] in only]
    environments = sorted({environment for _, _, environment in wanted})
    groups = [[folder for folder, _, name in wanted if name == each] for each in environments]
    others = [] if only is not None else [e for e in apps.roots if not e.startswith("apps/")]
    return [*groups, *([each] for each in others)]


def _built(
    kustomize: Path,
    root: Path,
    groups: Sequence[Sequence[str]],
    same: Mapping[str, str],
    also: Collection[str],
    known: BuiltOverlays,
) -> Built:
    """All folders of the groups, of which those in `same` and `known` aren't built again."""
    firsts = [
        [each for each in group if same.get(each, each) == each and each not in known]
        for group in groups
    ]
    once = build_many(kustomize, root, firsts, also=also)
    once.objects |= {
        folder: [each for item in found for each in unlisted(item)]
        for folder, found in known.items()
    }
    found = Built()
    for folder in (each for group in groups for each in group):
        first = same.get(folder, folder)
        if first in once.objects:
            found.objects[folder] = once.objects[first]
        elif first in once.failures:
            found.failures[folder] = once.failures[first].replace(first, folder)
    return found


def _add_charts(
    built: Built,
    helm: Path | None,
    root: Path,
    homes: Mapping[str, str],
    known: BuiltCharts,
) -> None:
    """Render the overlays that are Helm charts. homes: {overlay: namespace of its app}."""
    missing = [folder for folder, home in homes.items() if (folder, home) not in known]
    rendered = build_charts(helm, root, missing, homes)
    built.objects |= {each[0]: known[each] for each in homes.items() if each in known}
    built.objects |= rendered.objects
    built.failures |= rendered.failures


def _core_faults(core: Tree, apps: Tree | None, built: Built) -> list[Fault]:
    return [
        *_guarded(".", partial(find_file_faults, core)),
        *_guarded("bootstrap", partial(find_core_faults, core, apps)),
        *_guarded("clusters", partial(find_unlisted_clusters, core)),
        *_guarded("ucp.yaml", partial(find_topology_faults, core, _parse)),
        *_guarded(".", partial(_object_faults, core, built, None)),
    ]


def _app_faults(
    apps: Tree,
    built: Built,
    core_objects: list[Object] | None,
    permissions: Permissions,
    topology: Topology | None,
) -> list[Fault]:
    rails = GuardRailRules(topology)
    return [
        *_guarded(".", partial(find_file_faults, apps)),
        *_guarded("environments.yaml", partial(find_environment_faults, apps)),
        *_guarded(".", partial(_object_faults, apps, built, core_objects, permissions)),
        *_guarded(".", partial(_guard_rail_faults, apps, built, permissions, rails)),
        *_guarded("apps", partial(find_host_faults, apps, built)),
        *_guarded("apps", partial(find_node_port_faults, apps, built)),
    ]


def _locate(triage: Triage, repository: str, tree: Tree, built: Built, faults: list[Fault]) -> None:
    """Find the locations of the faults, and sort out the ignored ones."""
    locations = Locations(tree)
    findings = []
    for fault in faults:
        file, line = locations.find(fault)
        severity = "error" if fault.denied else RULES[fault.rule].severity
        about = (fault.path, fault.message, fault.rule, fault.object, severity)
        finding = CheckFinding(repository, *about, file=file, line=line)
        findings.append(replace(finding, included_in=fault.included_in))
    faulty = {(each.path, each.object) for each in faults}
    written = comment_suppressions(tree.files)
    for folder, found in built.objects.items():
        written += [
            suppression for item in found for suppression in annotation_suppressions(folder, item)
        ]
    for path, items in tree.documents.items():
        written += [
            suppression
            for item in items
            for suppression in annotation_suppressions(path, item)
            if (path, suppression.object) in faulty
        ]
    triage.take(repository, findings, written)


def check_rendered(
    kustomize: Path,
    rendered: Rendered,
    *,
    also: Collection[str] = (),
    helm: Path | None = None,
    charts: BuiltCharts = MappingProxyType({}),
    overlays: BuiltOverlays = MappingProxyType({}),
) -> CheckResult:
    """Check a render before it is published. also, helm, charts, overlays: as in `check`."""
    with tempfile.TemporaryDirectory(prefix="ucp-check-") as folder:
        render_to(Path(folder), rendered)
        found = Checkout(Path(folder, "core"), Path(folder, "apps"))
        same = _equal_overlays(rendered.apps)
        return check(
            kustomize, found, also=also, helm=helm, same=same, charts=charts, overlays=overlays
        )


def _equal_overlays(files: Mapping[str, bytes]) -> dict[str, str]:
    """{overlay: the first one of the app with the same files}.

    Of rendered files only: a clone can have symbolic links.
    """
    paths = (each.split("/") for each in files)
    environments = {each[3] for each in paths if len(each) > 4 and each[2] == "overlays"}
    return {
        f"apps/{app}/overlays/{environment}": f"apps/{app}/overlays/{first}"
        for (app, environment), first in first_equal(files, sorted(environments)).items()
    }


def transports_in(core: Path) -> set[str]:
    """Git transports of the topology in a core repository; empty if it can't be read."""
    try:
        return transports(load(core / "ucp.yaml"))
    except UcpError:
        return set()


def _topology_of(core: Tree | None) -> Topology | None:
    """The topology of the core repository; None if it is missing, or invalid (its own finding)."""
    text = core.files.get("ucp.yaml") if core else None
    if text is None:
        return None
    try:
        return _parse(text.decode("utf-8"))
    except (UcpError, UnicodeDecodeError):
        return None


def _checks_of(apps: Tree) -> tuple[Checks, list[Fault]]:
    """`checks` of ucp.yaml as stored in the app repository, for CI without the core repository."""
    try:
        content = documents(apps.files.get(CHECKS, b""), CHECKS)
        found = Checks.model_validate(content[0] if content and content[0] else {})
        if problem := next(find_bad_checks(found), None):
            raise UcpError(problem.message)
    except (UcpError, ValidationError) as error:
        message = error.message if isinstance(error, UcpError) else error.errors()[0]["msg"]
        return Checks(), [
            Fault("check-failed", f"not valid as `checks` of a ucp.yaml: {message}", CHECKS)
        ]
    return found, []


def _parse(text: str) -> Topology:
    return parse(text, Path("ucp.yaml"))


def _guarded(path: str, faults: Callable[[], Iterator[Fault]]) -> Iterator[Fault]:
    """Pass faults through, and report an unexpected exception as one more fault at `path`.

    Users' files can have any shape. One that a rule doesn't expect must neither abort the check nor
    pass it.
    """
    try:
        yield from faults()
    except Exception as error:  # noqa: BLE001 (see the docstring)
        yield Fault("check-failed", f"failed to check: {type(error).__name__}: {error}", path)


def _object_faults(
    tree: Tree,
    built: Built,
    core_objects: list[Object] | None,
    permissions: Permissions | None = None,
) -> Iterator[Fault]:
    yield from (Fault("build-failed", message, path) for path, message in built.failures.items())
    apps = {folder: app for folder, app, _ in tree.deployed_overlays}
    shared = _shared_namespaces(tree, built, permissions) if permissions else {}
    for folder, found in built.objects.items():
        yield from _guarded(
            folder, partial(_overlay_faults, folder, apps, found, core_objects, permissions, shared)
        )
    for path, item in tree.plain():
        app = apps.get("/".join(path.split("/")[:4]))
        yield from _guarded(path, partial(_plain_faults, path, item, app, permissions))
    yield from _guarded("apps", partial(find_repeated_faults, tree))


def _shared_namespaces(
    tree: Tree, built: Built, permissions: Permissions
) -> dict[str, SharedNamespaces]:
    """{environment: what its apps create}"""
    overlays = {folder: (app, environment) for folder, app, environment in tree.deployed_overlays}
    found: dict[str, SharedNamespaces] = {}
    plain = [(path, [item]) for path, item in tree.plain()]
    for path, items in [*built.objects.items(), *plain]:
        if overlay := overlays.get("/".join(path.split("/")[:4])):
            app, environment = overlay
            shared = found.setdefault(environment, SharedNamespaces())
            shared.add(app, permissions.of(app).home, items)
    return found


def _overlay_faults(
    folder: str,
    apps: Mapping[str, str],
    found: list[Object],
    core_objects: list[Object] | None,
    permissions: Permissions | None,
    shared: Mapping[str, SharedNamespaces],
) -> Iterator[Fault]:
    known, neighbors = None, list[Object]()
    if core_objects is not None and permissions and folder in apps:
        app, environment = permissions.of(apps[folder]), folder.rpartition("/")[2]
        known = mirrored_in(core_objects, app.home, environment)
        beside = shared.get(environment, SharedNamespaces())
        neighbors = beside.neighbors(app.app)
        known = known.and_also({*app.from_outside, *provided_by(neighbors)}) if known else None
    refused = permissions.faults(apps[folder], found) if permissions and folder in apps else ()
    faults = find_faults(found, known, neighbors=neighbors)
    yield from (replace(each, path=folder) for each in chain(faults, refused))


def _plain_faults(
    path: str, item: Object, app: str | None, permissions: Permissions | None
) -> Iterator[Fault]:
    # Argo CD reads the file together with its neighbors, and with manifests that aren't read here.
    faults = find_faults([item], None, whole=False, deployed=app is not None)
    refused = permissions.faults(app, [item]) if permissions and app else ()
    yield from (replace(each, path=path) for each in chain(faults, refused))


def _guard_rail_faults(
    tree: Tree, built: Built, permissions: Permissions, rails: GuardRailRules
) -> Iterator[Fault]:
    plain = [(path, [item]) for path, item in tree.plain()]
    overlays = {folder: (app, environment) for folder, app, environment in tree.deployed_overlays}
    for path, found in [*built.objects.items(), *plain]:
        if overlay := overlays.get("/".join(path.split("/")[:4])):
            app, environment = overlay
            home = permissions.of(app).home
            faults = partial(rails.faults, environment, home, found)
            yield from (replace(each, path=path) for each in _guarded(path, faults))


def refuse(checked: CheckResult, what: str) -> None:
    """Raise UcpError if there are errors."""
    if not checked.errors:
        return
    raise UcpError(
        "\n".join([f"{what}:", *shown(checked.errors)]),
        next="fix it, then run `ucp check`",
        apps=apps_of(checked.errors),
    )


def shown(findings: list[CheckFinding]) -> list[str]:
    """The findings as `lines_of` them, at most SHOWN lines."""
    lines = lines_of(findings)
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], *([f"... and {more} more"] if more > 0 else ())]
