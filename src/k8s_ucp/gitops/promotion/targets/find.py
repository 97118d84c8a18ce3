"""Finds what can be promoted in an environment's folder. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from k8s_ucp.gitops.manifests.forms import KUSTOMIZATIONS
from k8s_ucp.gitops.manifests.image_edit import Pin, read_images
from k8s_ucp.gitops.manifests.value_edit import Path, node_at, text_at
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, YamlNode
from k8s_ucp.gitops.promotion.targets.config import Named
from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder
from k8s_ucp.gitops.promotion.targets.helm import (
    CHART_FILE,
    SETTINGS,
    Values,
    find_values,
    read_file,
    read_values,
    value_target,
)
from k8s_ucp.gitops.promotion.targets.kinds import (
    CHART,
    ChartFiles,
    KustomizeImage,
    Target,
    Version,
    common,
)
from k8s_ucp.gitops.promotion.targets.manifests import find_containers, image_targets, target_of

Form = Literal["kustomize", "helm", "manifests"]


@dataclass(frozen=True)
class Found:
    """What can be promoted in a folder. file: the one to show to users; "" for the folder."""

    form: Form
    file: str
    targets: tuple[Target, ...]


def find_targets(folder: EnvironmentFolder, env: str, named: Sequence[Named] = ()) -> Found | None:
    """The targets in a folder; None for an empty folder. Raises NotEditable."""
    held = [name for name in KUSTOMIZATIONS if folder.text(name) is not None]
    if len(held) > 1:
        raise NotEditable(
            f"{folder.path} contains {' and '.join(held)}, but kustomize accepts only one of them"
        )
    if held:
        found = Found("kustomize", held[0], _kustomized(folder, held[0], named))
    elif folder.text(CHART_FILE) is not None:
        found = Found("helm", "", _chart(folder, env, named))
    elif folder.names():
        found = Found("manifests", "", tuple(_plain(folder, named)))
    else:
        return None
    return replace(found, targets=_unique(folder, found.targets))


def is_read(name: str) -> bool:
    """The file must be read to know what can be promoted in an environment's folder."""
    if "/" not in name and name in (*KUSTOMIZATIONS, CHART_FILE, SETTINGS):
        return True
    top, _, rest = name.partition("/")
    if rest and top in ("templates", "charts", "crds"):
        # Usually a chart's. In a folder of plain manifests, these files are read one by one.
        return False
    return name.endswith((".yaml", ".yml", ".json")) and not name.startswith(".")


def _kustomized(folder: EnvironmentFolder, file: str, named: Sequence[Named]) -> tuple[Target, ...]:
    root = folder.tree(file)
    listed = node_at(root, ("helmCharts",))
    charts = _listed_charts(
        [
            _Listed(item, ("helmCharts", index, "version"), "releaseName")
            for index, item in enumerate(listed.items if listed else ())
        ],
        folder,
        file,
    )
    named_images = [each for each in named if not each.chart]
    only_charts = (charts or len(named_images) < len(named)) and not node_at(root, ("images",))
    images: list[Target] = []
    if not only_charts and not (named_images and all(each.paths for each in named_images)):
        images = _kustomize_images(folder, file)
    if named_images:
        images = _images_named(
            named_images, images, lambda each: read_file(folder, each.file or file, each.paths)
        )
    return (*images, *_charts(charts, named, folder, file))


def _images_named(
    named_images: Sequence[Named], found: Sequence[Target], source: Callable[[Named], Values]
) -> list[Target]:
    """The images that the user's targets name: by path in a source, else among those found."""
    images = []
    for each in named_images:
        if each.paths:
            images.append(value_target(source(each), each.name, each.paths))
        else:
            images += [image for image in found if each.name in (image.name, image.image)]
    return images


def _kustomize_images(folder: EnvironmentFolder, file: str) -> list[Target]:
    return [
        Target(
            image.name,
            "image",
            image.pin,
            (KustomizeImage(file, image.name),),
            image=image.new_name or image.name,
        )
        for image in read_images(folder.text(file) or "", f"{folder.path}/{file}")
    ]


def _chart(folder: EnvironmentFolder, env: str, named: Sequence[Named]) -> tuple[Target, ...]:
    values = read_values(folder, env)
    named_images = [each for each in named if not each.chart]
    images = (
        find_values(values)
        if not all(each.paths for each in named_images) or not named_images
        else []
    )
    if named_images:
        images = _images_named(
            named_images,
            images,
            lambda each: read_file(folder, each.file, each.paths) if each.file else values,
        )
    copied, charts = _copied(folder, named), _dependencies(folder)
    # No chart depends on itself: one with the name of its dependency only adds values to it.
    if all(each.name != copied.name for each in charts):
        charts = [copied, *charts]
    return (*images, *_charts(charts, named, folder, CHART_FILE))


def _plain(folder: EnvironmentFolder, named: Sequence[Named]) -> list[Target]:
    named_images = [each for each in named if not each.chart]
    containers = (
        [] if named_images and all(each.paths for each in named_images) else find_containers(folder)
    )
    if not named_images:
        return image_targets(containers)
    found = []
    for entry in named_images:
        if entry.paths:
            if not entry.file:
                raise NotEditable(
                    f"the path of {entry.name} in .promotion.yaml has no file",
                    next=f"name a file of {folder.path}: {{image: {entry.name}, file: NAME, …}}",
                )
            values = read_file(folder, entry.file, entry.paths)
            found.append(value_target(values, entry.name, entry.paths))
            continue
        same = [
            container
            for container in containers
            if container.location.name == entry.name
            and entry.file in ("", container.location.file)
            and entry.container in ("", container.name)
        ]
        if same:
            more = [f"({entry.container})"] if entry.container else []
            more += [f"in {entry.file}"] if entry.file else []
            name = entry.name
            twice = [other.name for other in named_images].count(entry.name) > 1
            found.append(target_of(" ".join([name, *more]) if twice else name, same))
    return found


def _copied(folder: EnvironmentFolder, named: Sequence[Named]) -> Target:
    """The chart that is copied to the folder itself."""
    root = folder.tree(CHART_FILE)
    name, version = text_at(root, ("name",)) or "", text_at(root, ("version",)) or ""
    repo = next((each.repo for each in named if each.chart and each.name == name), "")
    return Target(CHART + name, "chart", Pin(tag=version), (ChartFiles(CHART_FILE, repo),))


def _dependencies(folder: EnvironmentFolder) -> list[Target]:
    """Dependencies of a chart that aren't vendored beside it: Argo CD fetches these."""
    listed = node_at(folder.tree(CHART_FILE), ("dependencies",))
    names = folder.names()
    vendored = {name.split("/")[1] for name in names if name.startswith("charts/")}
    found = []
    for index, item in enumerate(listed.items if listed else ()):
        name = text_at(item, ("name",)) or ""
        beside = any(each == name or each.startswith(f"{name}-") for each in vendored)
        remote = "://" in (text_at(item, ("repository",)) or "")
        if remote and not beside and "Chart.lock" not in names:
            found.append(_Listed(item, ("dependencies", index, "version"), "alias"))
    return _listed_charts(found, folder, CHART_FILE)


@dataclass(frozen=True)
class _Listed:
    """A chart in a list. path: of its version. second: key that distinguishes uses of a chart."""

    item: YamlNode
    path: Path
    second: str

    @property
    def name(self) -> str:
        return text_at(self.item, ("name",)) or ""


def _listed_charts(listed: Sequence[_Listed], folder: EnvironmentFolder, file: str) -> list[Target]:
    """One target per chart; charts that are listed several times have their second name.

    Those that also lack a second name change together.
    """
    names = Counter(each.name for each in listed)
    paths: dict[tuple[str, str], list[Path]] = {}
    for each in listed:
        second = text_at(each.item, (each.second,)) if names[each.name] > 1 else ""
        paths.setdefault((each.name, second or each.name), []).append(each.path)
    return [_version(name, file, places, folder) for (_, name), places in paths.items()]


def _version(name: str, file: str, paths: Sequence[Path], folder: EnvironmentFolder) -> Target:
    root = folder.tree(file)
    pins = [Pin(tag=text_at(root, path) or "") for path in paths]
    locations = tuple(Version(file, path) for path in paths)
    return Target(CHART + name, "chart", common(pins), locations)


def _charts(
    found: Sequence[Target], named: Sequence[Named], folder: EnvironmentFolder, file: str
) -> list[Target]:
    named_charts = [each for each in named if each.chart]
    if not named_charts:
        return list(found)
    charts = []
    for each in named_charts:
        if each.paths:
            charts.append(_version(each.name, each.file or file, each.paths[:1], folder))
        else:
            charts += [chart for chart in found if chart.short == each.name]
    return charts


def _unique(folder: EnvironmentFolder, targets: Sequence[Target]) -> tuple[Target, ...]:
    names = [each.name for each in targets]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice and not any(isinstance(each.locations[0], KustomizeImage) for each in targets):
        raise NotEditable(
            f"{folder.path} has several targets with the name {twice}",
            next="rename them, or list their paths in one entry",
        )
    return tuple(targets)
