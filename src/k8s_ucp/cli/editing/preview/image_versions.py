"""Finds images of an app whose versions a promotion can't change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from k8s_ucp.errors import UcpError, some_of

if TYPE_CHECKING:
    from k8s_ucp.cli.editing.preview.builds import ChartRenderer
    from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder
    from k8s_ucp.gitops.promotion.targets.probe import Probe, Subcharts
    from k8s_ucp.gitops.render.inputs import Rendered

_SHOWN = 4
_IMAGE_FIELDS = ("image", "imageName")
_CONTAINERS = ("containers", "initContainers")
"""Fields in which kustomize changes images, in objects of every kind."""


def mutable_tag_advice(item: Mapping[str, Any], environments: Sequence[str]) -> str:
    """Why an image's tag can't be promoted, such as `latest`; "" if it can."""
    from k8s_ucp.gitops.check.objects.images import is_moving

    tag = item.get("tag") or ""
    if not environments or not is_moving(tag):
        return ""
    name = item["name"]
    return (
        f"{name}: the tag {tag} is mutable: a new image under the same tag is neither deployed nor "
        "promoted\n"
        f"  next: ucp promote {name} --env {environments[0]} --tag VERSION"
    )


def unlisted_images(
    rendered: Rendered, name: str, environment: str, items: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Images of a kustomization that aren't in the list that promotions change."""
    from k8s_ucp.gitops.manifests.images_and_ports import images, one_version, split_image

    listed = _listed_images(rendered, name, environment)
    if listed is None:
        return []
    versions: dict[str, set[str]] = {}
    for image in images(list(items)):
        image_name, version = split_image(image)
        versions.setdefault(image_name, set()).add(version)
    return [image for image, _ in one_version(versions) if image not in listed]


def images_outside_containers(
    rendered: Rendered, name: str, environment: str, items: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """A message about images of custom resources in a kustomization, such as a Kafka's `image`."""
    from k8s_ucp.gitops.check.kinds import is_custom_resource
    from k8s_ucp.gitops.check.objects.item import named
    from k8s_ucp.gitops.manifests.images_and_ports import split_image

    listed = _listed_images(rendered, name, environment)
    if listed is None:
        return
    found: dict[str, set[str]] = {}
    for item in filter(is_custom_resource, items):
        for image in _images_of_fields(item):
            image_name, version = split_image(image)
            if version and image_name not in listed:
                found.setdefault(image, set()).add(named(item))
    if found:
        objects = sorted({each for names in found.values() for each in names})
        yield (
            f"`ucp promote` can't change {some_of(sorted(found), _SHOWN)} of "
            f"{some_of(objects, _SHOWN)}: `images` of a kustomization changes containers only, so "
            "change it in the manifests"
        )


def _listed_images(rendered: Rendered, name: str, environment: str) -> set[str] | None:
    """Names in `images` of an overlay's kustomization; None if it has no kustomization."""
    from k8s_ucp.gitops.manifests.yaml_text import first_map, maps

    path = f"apps/{name}/overlays/{environment}/kustomization.yaml"
    if path not in rendered.apps:
        return None
    listed = maps(first_map(rendered.apps[path], path), "images")
    return {str(each.get(key)) for each in listed for key in ("name", "newName")}


def _images_of_fields(value: object) -> Iterator[str]:
    """Images in fields that aren't of containers, such as `spec.image`."""
    from k8s_ucp.gitops.check.objects.images import invalid_image

    if isinstance(value, dict):
        for key, each in value.items():
            if key in _IMAGE_FIELDS and isinstance(each, str) and not invalid_image(each):
                yield each
            elif key not in _CONTAINERS:
                yield from _images_of_fields(each)
    elif isinstance(value, list):
        for each in value:
            yield from _images_of_fields(each)


@dataclass(frozen=True)
class _RenderedFiles:
    """The app repository as it would be."""

    content: Mapping[str, bytes]

    def read(self, path: str) -> bytes | None:
        return self.content.get(path)

    def files(self, path: str) -> list[str]:
        start = f"{path}/"
        return sorted(each.removeprefix(start) for each in self.content if each.startswith(start))


def unset_images(
    rendered: Rendered,
    name: str,
    environment: str,
    items: Sequence[Mapping[str, Any]],
    again: ChartRenderer,
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

    def attempt(*, with_unset_tags: bool) -> tuple[Probe, list[str]]:
        tried = probe(values, targets, now, subcharts, with_unset_tags=with_unset_tags)
        return tried, list(images(list(again(tried.values)))) if tried.paths else now

    try:
        found, values = find_targets(folder, environment), read_values(folder, environment)
        targets = [each for each in found.targets if each.kind == "image"] if found else []
        subcharts = _subcharts(folder)
        try:
            tried, after = attempt(with_unset_tags=True)
        except UcpError:
            # The schema of the values knows no such tag.
            tried, after = attempt(with_unset_tags=False)
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
