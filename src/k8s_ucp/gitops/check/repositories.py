"""Checks the repositories without a cluster: for `ucp check`, CI and the push hook.

Duplicate hosts, references to what isn't there, what isn't pinned, fields that Kubernetes doesn't
have, overlays that can't be built. The rules are in files.py, objects.py and kinds.py; here they
meet the repositories.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from k8s_ucp.check_rules import RULES
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check.files import (
    Tree,
    find_core_faults,
    find_environment_faults,
    find_file_faults,
    find_topology_faults,
)
from k8s_ucp.gitops.check.findings import CheckFinding, Fault
from k8s_ucp.gitops.check.guard_rails import GuardRailRules
from k8s_ucp.gitops.check.locations import Locations
from k8s_ucp.gitops.check.objects import Object, find_faults, hosts, mirrored_in, of_object
from k8s_ucp.gitops.check.permissions import Permissions
from k8s_ucp.gitops.check.suppressions import (
    IgnoredFinding,
    Triage,
    annotation_suppressions,
    comment_suppressions,
)
from k8s_ucp.gitops.manifests.build_charts import build_charts
from k8s_ucp.gitops.manifests.build_many import Built, build_many
from k8s_ucp.gitops.manifests.sources import is_http
from k8s_ucp.gitops.manifests.yaml_text import documents
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.repositories import CHECKS, Rendered
from k8s_ucp.topology import Topology, parse
from k8s_ucp.topology.parts import Checks
from k8s_ucp.topology.rules.references import find_bad_checks

SHOWN = 20


@dataclass(frozen=True)
class Checkout:
    """The folders of the repositories; None for one that isn't at hand."""

    core: Path | None = None
    apps: Path | None = None


@dataclass(frozen=True)
class CheckResult:
    """What a check says."""

    findings: list[CheckFinding]
    """Those that nobody ignores."""
    ignored: list[IgnoredFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Suppressions at a place that do not count, or match nothing; what can't be judged."""
    unused: list[str] = field(default_factory=list)
    """Entries of ucp.yaml that match nothing."""

    @property
    def errors(self) -> list[CheckFinding]:
        return [each for each in self.findings if each.blocks]

    @property
    def warnings(self) -> list[CheckFinding]:
        return [each for each in self.findings if not each.blocks]

    @property
    def summary(self) -> str:
        """Counts, in words."""
        counts = (
            (len(self.errors), "error"),
            (len(self.warnings), "warning"),
            (len(self.ignored), "ignored"),
        )
        said = [f"{n} {w}{'s' * (n != 1 and w != 'ignored')}" for n, w in counts if n]
        return ", ".join(said) or "no problems found"

    def over(self, other: CheckResult) -> CheckResult:
        """Both, where this one is about what is in git and the other about what will be."""
        mine, suppressed = set(self.findings), {each.finding for each in self.ignored}
        return CheckResult(
            sorted(mine | (set(other.findings) - suppressed)),
            sorted(
                {*self.ignored, *(e for e in other.ignored if e.finding not in mine | suppressed)}
            ),
            sorted({*self.notes, *other.notes}),
            [each for each in self.unused if each in other.unused],
        )


def check(
    kustomize: Path,
    checkout: Checkout,
    only: Collection[str] | None = None,
    *,
    also: Collection[str] = (),
    helm: Path | None = None,
    checks: Checks | None = None,
) -> CheckResult:
    """Everything that is wrong. only: apps that changed; the others are not built again.

    helm: renders charts. also: transports of git besides https and ssh for what overlays take in,
    and addresses by plain http.
    checks: those of ucp.yaml in the core repository without it. What can't be judged is a finding.
    """
    core = Tree.of(checkout.core) if checkout.core else None
    apps = Tree.of(checkout.apps) if checkout.apps else None
    topology = _topology_of(core)
    permissions, rails = Permissions(topology), GuardRailRules(topology)
    unread: list[Fault] = []
    if checks is None:
        checks = topology.spec.checks if topology else Checks()
        if apps is not None and core is None:
            checks, unread = _checks_of(apps)
    triage = Triage(checks)

    core_objects: list[Object] = []
    if core is not None and checkout.core:
        roots = [each for each in core.roots if only is None or each.startswith("mirrors")]
        built = build_many(kustomize, checkout.core, [[each] for each in roots], also=also)
        core_objects = [each for found in built.objects.values() for each in found]
        core_objects += [each for _, each in core.plain()]
    if core is not None and only is None:
        faults = [
            *_guarded(".", partial(find_file_faults, core)),
            *_guarded("bootstrap", partial(find_core_faults, core, apps)),
            *_guarded("ucp.yaml", partial(find_topology_faults, core, _parse)),
            *_guarded(".", partial(_object_faults, core, built, None)),
        ]
        _locate(triage, "core", core, built, faults)
    unjudged: list[str] = []
    if apps is not None and checkout.apps:
        unjudged = [
            f"apps: {app}: not checked: only Argo CD renders its jsonnet"
            for app in apps.jsonnet
            if only is None or app in only
        ]
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
        known = core_objects if core is not None else None
        faults = [
            *unread,
            *_guarded(".", partial(find_file_faults, apps)),
            *_guarded("environments.yaml", partial(find_environment_faults, apps)),
            *_guarded(".", partial(_object_faults, apps, built, known, permissions)),
            *_guarded(".", partial(_guard_rail_faults, apps, built, permissions, rails)),
            *_guarded("apps", partial(find_host_faults, apps, built)),
        ]
        _locate(triage, "apps", apps, built, faults)
    whole = only is None and core is not None and apps is not None
    return CheckResult(
        sorted(triage.findings),
        sorted(triage.ignored),
        [*triage.refused, *(triage.unmatched if only is None else ()), *unjudged],
        triage.unused if whole else [],
    )


def _locate(triage: Triage, repository: str, tree: Tree, built: Built, faults: list[Fault]) -> None:
    """Find where the faults are written and which are ignored."""
    locations = Locations(tree)
    findings = []
    for fault in faults:
        file, line = locations.find(fault)
        severity = "error" if fault.denied else RULES[fault.rule].severity
        about = (fault.path, fault.message, fault.rule, fault.object, severity)
        findings.append(CheckFinding(repository, *about, file=file, line=line))
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
    kustomize: Path, rendered: Rendered, *, also: Collection[str] = (), helm: Path | None = None
) -> CheckResult:
    """What is wrong with a render. also, helm: as in `check`."""
    with tempfile.TemporaryDirectory(prefix="ucp-check-") as folder:
        render_to(Path(folder), rendered)
        found = Checkout(Path(folder, "core"), Path(folder, "apps"))
        return check(kustomize, found, also=also, helm=helm)


def transports(topology: Topology) -> set[str]:
    """Transports of git that its owner relies on; of repositories by plain http the addresses."""
    named = [topology.spec.git.core, topology.spec.git.apps, *(e.repo for e in topology.spec.apps)]
    texts = [str(each) for each in named if each and "://" in str(each)]
    found = {each if is_http(each) else each.partition("://")[0] for each in texts}
    return found | ({"file"} if topology.spec.git.provider == "local" else set())


def transports_in(core: Path) -> set[str]:
    """Those of the topology in the files of its core repository; none where it can't be read."""
    try:
        return transports(_parse((core / "ucp.yaml").read_text("utf-8")))
    except (OSError, UcpError, UnicodeDecodeError):
        return set()


def _topology_of(core: Tree | None) -> Topology | None:
    """None where it isn't at hand, or wrong: that is a finding of its own."""
    text = core.files.get("ucp.yaml") if core else None
    if text is None:
        return None
    try:
        return _parse(text.decode("utf-8"))
    except (UcpError, UnicodeDecodeError):
        return None


def _checks_of(apps: Tree) -> tuple[Checks, list[Fault]]:
    """Those of ucp.yaml as the app repository has them, for a pipeline that has it alone."""
    try:
        content = documents(apps.files.get(CHECKS, b""), CHECKS)
        found = Checks.model_validate(content[0] if content and content[0] else {})
        if problem := next(find_bad_checks(found), None):
            raise UcpError(problem.message)
    except (UcpError, ValidationError) as error:
        words = error.message if isinstance(error, UcpError) else error.errors()[0]["msg"]
        return Checks(), [Fault("check-failed", f"not the checks of a ucp.yaml: {words}", CHECKS)]
    return found, []


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
        yield Fault("check-failed", f"failed to check: {type(error).__name__}: {error}", path)


def _object_faults(
    tree: Tree,
    built: Built,
    core_objects: list[Object] | None,
    permissions: Permissions | None = None,
) -> Iterator[Fault]:
    yield from (Fault("build-failed", words, path) for path, words in built.failures.items())
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
        app = permissions.of(apps[folder])
        known = mirrored_in(core_objects, app.home, folder.rpartition("/")[2])
        known = known.and_also(app.brought) if known else None
    refused = permissions.faults(apps[folder], found) if permissions and folder in apps else ()
    yield from (replace(each, path=folder) for each in chain(find_faults(found, known), refused))


def _plain_faults(
    path: str, item: Object, app: str | None, permissions: Permissions | None
) -> Iterator[Fault]:
    # Argo CD reads it with its neighbours, and with manifests that are not read here.
    faults = find_faults([item], None, whole=False)
    refused = permissions.faults(app, [item]) if permissions and app else ()
    yield from (replace(each, path=path) for each in chain(faults, refused))


def _guard_rail_faults(
    tree: Tree, built: Built, permissions: Permissions, rails: GuardRailRules
) -> Iterator[Fault]:
    plain = [(path, [item]) for path, item in tree.plain()]
    apps = {folder: (app, environment) for folder, app, environment in tree.places}
    for path, found in [*built.objects.items(), *plain]:
        if place := apps.get("/".join(path.split("/")[:4])):
            app, environment = place
            home = permissions.of(app).home
            faults = partial(rails.faults, environment, home, found)
            yield from (replace(each, path=path) for each in _guarded(path, faults))


def find_host_faults(tree: Tree, built: Built) -> Iterator[Fault]:
    """One host, one app on one environment: whoever comes second is told."""
    owners: dict[tuple[str, str], str] = {}
    routes: dict[str, dict[tuple[str, str], str]] = {}
    for folder, _, environment in sorted(tree.places):
        routed = routes.setdefault(environment, {})
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
                words = f"failed to read the hosts of a {item.get('kind')}"
                yield Fault("check-failed", words, folder)
                continue
            for host in sorted({host for host, _ in claimed}):
                other = owners.setdefault((environment, host), folder)
                if other != folder:
                    words = f"the host {host} is already used by {other}"
                    yield of_object(item, Fault("host-taken", words, folder, value=host))
            if built.objects.get(folder) is not None:
                for host, path in sorted(claimed & routed.keys()):
                    other = routed[host, path]
                    where = "" if other == folder else f", which {other} claims, too"
                    words = f"duplicate host and path {host}{path}{where}"
                    yield of_object(item, Fault("host-path-duplicate", words, folder, value=host))
                routed.update(dict.fromkeys(claimed - routed.keys(), folder))


def refuse(checked: CheckResult, what: str) -> None:
    """Raises UcpError where something is wrong that must not be."""
    if not checked.errors:
        return
    raise UcpError(
        "\n".join([f"{what}:", *shown(checked.errors)]), next="fix it, then run `ucp check`"
    )


def shown(findings: list[CheckFinding]) -> list[str]:
    """A line each, as many as a person reads."""
    lines = [str(each) for each in findings[:SHOWN]]
    if len(findings) > SHOWN:
        lines.append(f"... and {len(findings) - SHOWN} more")
    return lines
