"""Collects what apps would create in all environments."""

from __future__ import annotations

import re
import tempfile
import zlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.cli.editing.preview.builds import OverlayBuilder
from k8s_ucp.cli.editing.preview.image_versions import (
    images_outside_containers,
    unlisted_images,
    unset_images,
)
from k8s_ucp.errors import UcpError

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.preview.builds import BuiltOverlay, ChartRenderer
    from k8s_ucp.gitops.render.inputs import Rendered
    from k8s_ucp.topology import App, Topology

_Built = tuple[str, str, Sequence[Mapping[str, Any]]]
"""(app, environment, objects)"""
_CHART = re.compile(r"apps/[^/]+/overlays/[^/]+/Chart\.yaml")
_RANDOM = re.compile(
    rb"\b(?:rand(?:AlphaNum|Alpha|Ascii|Bytes|Int|Numeric)|uuidv4|htpasswd|bcrypt"
    rb"|gen(?:CA|PrivateKey|SelfSignedCert|SignedCert))"
)
"""Functions of templates with another result each time."""
_MOST_UNPACKED = 20_000_000


@dataclass(frozen=True)
class AppObjects:
    """Everything that an app creates, in all environments together."""

    objects: list[Mapping[str, Any]] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    """`Kind/name` of objects that it refers to, and that nothing creates."""
    is_chart: bool = False
    texts: dict[str, str] = field(default_factory=dict)
    """{environment: objects as YAML}"""
    charts: dict[tuple[str, str], list[Mapping[str, Any]]] = field(default_factory=dict)
    """{(overlay, namespace): objects} of a chart, which the check needn't render again."""
    overlays: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """{overlay: objects} of a kustomization, which the check needn't build again."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The app's files that these were built from."""
    unlisted: dict[str, list[str]] = field(default_factory=dict)
    """{image: environments} in which no overlay lists its version, so that it can't be promoted."""
    foreign: list[str] = field(default_factory=list)
    """`Kind.group` of its custom resources whose CRDs neither it nor an app of before has."""
    changing: list[str] = field(default_factory=list)
    """`Kind/name` of a chart's objects that are others each time that it is rendered."""
    unset: list[str] = field(default_factory=list)
    """Messages about images of a chart or a custom resource that a promotion can't change."""


def files_of(rendered: Rendered, name: str) -> dict[str, bytes]:
    """The files of an app, by path in the app repository."""
    start = f"apps/{name}/"
    return {path: each for path, each in rendered.apps.items() if path.startswith(start)}


def has_own_manifests(app: App) -> bool:
    """Whether people provide its manifests; otherwise they are generated or shipped with ucp."""
    return app.form != "image" and not (app.path or "").startswith("ucp:")


def objects_of(
    call: Invocation,
    rendered: Rendered,
    topology: Topology,
    apps: Sequence[App],
    failures: dict[str, UcpError] | None = None,
) -> dict[str, AppObjects]:
    """What each app creates, by name.

    failures: receives the errors of apps that can't be built, by name. None: the first is raised.
    """
    by_name = {each.name: each for each in apps}
    built: list[_Built] = []
    charts = {each.split("/")[1] for each in rendered.apps if _CHART.fullmatch(each)}
    found = {
        name: AppObjects(is_chart=name in charts, files=files_of(rendered, name))
        for name in by_name
    }
    for name, environment, overlay, again in _built(call, rendered, topology, [*by_name], failures):
        items = overlay.objects
        if not found[name].texts:
            where = rendered, name, environment, items
            unset = unset_images(*where, again) if again else images_outside_containers(*where)
            found[name].unset.extend(unset)
            if again and may_change(rendered.apps, f"apps/{name}/overlays/{environment}/"):
                found[name].changing.extend(changing_objects(items, again))
        built.append((name, environment, items))
        found[name].objects.extend(items)
        found[name].texts[environment] = overlay.text
        folder = f"apps/{name}/overlays/{environment}"
        if again:
            found[name].charts[folder, by_name[name].home] = items
        else:
            found[name].overlays[folder] = items
        for image in unlisted_images(rendered, name, environment, items):
            found[name].unlisted.setdefault(image, []).append(environment)
    _add_foreign_kinds(found, rendered)
    beside = _of_neighbors(call, rendered, topology, by_name)
    for name, absent in _missing(rendered, topology, built, beside):
        if not _ignores_missing(topology, by_name[name]):
            found[name].missing.update(absent)
    return found


def _add_foreign_kinds(found: Mapping[str, AppObjects], rendered: Rendered) -> None:
    from k8s_ucp.gitops.check.kinds import foreign_kinds

    # Not built, since that takes long: a CRD in a chart's templates is found, too.
    declaring = [
        content
        for path, content in rendered.apps.items()
        if path.startswith("apps/") and path.split("/")[1] not in found
        if b"CustomResourceDefinition" in content
    ]
    for each in found.values():
        for kind in foreign_kinds(each.objects):
            name, _, group = kind.partition(".")
            words = [_line("kind", name), _line("group", group)]
            if not any(all(word.search(text) for word in words) for text in declaring):
                each.foreign.append(kind)


def _line(key: str, value: str) -> re.Pattern[bytes]:
    """An indented line of a file that sets a key to a value."""
    return re.compile(
        rf"^[ \t]+{key}:[ \t]*[\"']?{re.escape(value)}[\"']?[ \t]*\r?$".encode(), re.M
    )


def may_change(files: Mapping[str, bytes], start: str) -> bool:
    """Whether a chart, or one in it, has functions with another result each time."""
    return any(
        _RANDOM.search(_unpacked(content) if path.endswith(".tgz") else content)
        for path, content in files.items()
        if path.startswith(start)
    )


def _unpacked(content: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content, _MOST_UNPACKED)
    except zlib.error:
        return b""


def changing_objects(items: Sequence[Mapping[str, Any]], again: ChartRenderer) -> list[str]:
    """`Kind/name` of a chart's objects that differ when it is rendered again."""
    from k8s_ucp.gitops.check.objects.item import named

    return [named(one) for one, other in zip(items, again({}), strict=False) if one != other]


def _of_neighbors(
    call: Invocation, rendered: Rendered, topology: Topology, names: Collection[str]
) -> list[_Built]:
    """The objects of the other apps of ucp.yaml that may write to the namespaces of these.

    Those that can't be built are left out: adding another app doesn't depend on them.
    """
    from k8s_ucp.gitops.check.shared_namespaces import with_neighbors

    others = sorted(with_neighbors(names, topology).difference(names))
    built = _built(call, rendered, topology, others, {}) if others else ()
    return [(name, environment, overlay.objects) for name, environment, overlay, _ in built]


def _missing(
    rendered: Rendered,
    topology: Topology,
    built: Sequence[_Built],
    beside: Sequence[_Built],
) -> Iterator[tuple[str, set[str]]]:
    """(app, `Kind/name` of what it refers to, and neither it nor another app creates).

    beside: of apps of which only what they create counts.
    """
    from k8s_ucp.gitops.check.objects.mirrored import mirrored_in
    from k8s_ucp.gitops.check.objects.references import missing
    from k8s_ucp.gitops.check.shared_namespaces import SharedNamespaces, provided_by
    from k8s_ucp.gitops.manifests.yaml_text import documents

    syncers = [
        item
        for path, content in rendered.core.items()
        if path.startswith("mirrors/") and b"kind: Syncer" in content
        for item in documents(content, path)
        if isinstance(item, dict)
    ]
    shared: dict[str, SharedNamespaces] = {}
    apps = {each.name: each for each in topology.spec.apps}
    for name, environment, items in (*built, *beside):
        created = shared.setdefault(environment, SharedNamespaces())
        created.add(name, apps[name].home, items)
    for name, environment, items in built:
        mirrored = mirrored_in(syncers, apps[name].home, environment)
        also = {*apps[name].from_outside, *provided_by(shared[environment].neighbors(name))}
        yield name, missing(items, mirrored.and_also(also) if mirrored else None)


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
) -> Iterator[tuple[str, str, BuiltOverlay, ChartRenderer | None]]:
    """(app, environment, what it creates, function to render a chart again).

    failures: as in `objects_of`.
    """
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.cli.check import kustomize
    from k8s_ucp.gitops.manifests.build_many import WORKERS, first_equal
    from k8s_ucp.gitops.publish.repositories import render_to
    from k8s_ucp.process import RunningPrograms

    program, charts = kustomize(), pinned_helm(call, topology)
    environments = [each.name for each in topology.spec.environments]
    with tempfile.TemporaryDirectory(prefix="ucp-preview-") as folder:
        render_to(Path(folder), replace(rendered, core={}))
        programs = RunningPrograms()
        builder = OverlayBuilder(program, charts, Path(folder, "apps"), topology, programs)
        pool = ThreadPoolExecutor(max_workers=WORKERS)
        try:
            # The programs run while this thread looks at what the ones before have built.
            builds: dict[tuple[str, str], Future[BuiltOverlay]] = {}
            same = first_equal(rendered.apps, environments)
            for environment, name in product(environments, names):
                first = name, same.get((name, environment), environment)
                builds[name, environment] = builds.get(first) or pool.submit(builder.build, *first)
            waiting = deque(builds.items())
            while waiting:
                (name, environment), build = waiting.popleft()
                try:
                    overlay = build.result()
                except UcpError as error:
                    if failures is None:
                        raise
                    failures.setdefault(name, error)
                    continue
                yield name, environment, overlay, builder.chart_renderer(name, environment)
        finally:
            programs.end()
            pool.shutdown(cancel_futures=True)
