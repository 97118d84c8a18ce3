"""Images in plain manifests: those of containers, in objects of any kind. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from k8s_ucp.gitops.manifests.image_edit import Pin
from k8s_ucp.gitops.manifests.value_edit import Path, text_at
from k8s_ucp.gitops.manifests.yaml_tree import LARGEST, YamlNode, read_documents
from k8s_ucp.gitops.promotion.targets.folder import EnvironmentFolder
from k8s_ucp.gitops.promotion.targets.kinds import Reference, Target, common, split_reference

_LISTS = ("containers", "initContainers", "ephemeralContainers", "sidecars", "steps")
_SINGLE = ("container", "script", "stepTemplate")
"""Containers of templates of Argo Workflows and of tasks of Tekton, which have steps, too."""


@dataclass(frozen=True)
class Container:
    """A container in a manifest."""

    name: str
    location: Reference
    pin: Pin


def find_containers(folder: EnvironmentFolder) -> list[Container]:
    """All containers with an image in the manifests of a folder. Raises NotEditable."""
    found: list[Container] = []
    for name in folder.names():
        last = name.rpartition("/")[2]
        if not last.endswith((".yaml", ".yml", ".json")) or last.startswith("."):
            continue
        text = folder.text(name) or ""
        if "image" not in text or len(text) > LARGEST:
            continue
        for number, root in enumerate(read_documents(text, f"{folder.path}/{name}")):
            found += [
                Container(container, Reference(name, path, parts[0], number), parts[1])
                for path, container, image in _images(root, ())
                if (parts := split_reference(image))
            ]
    return found


def image_targets(containers: Sequence[Container]) -> list[Target]:
    """One target per image; if its containers have different versions, one per container."""
    by_name: dict[str, list[Container]] = {}
    for each in containers:
        by_name.setdefault(each.location.name, []).append(each)
    found = []
    for name, same in by_name.items():
        if len({each.pin for each in same}) == 1:
            found.append(target_of(name, same))
            continue
        parts: dict[tuple[str, str], list[Container]] = {}
        for each in same:
            parts.setdefault((each.location.file, each.name), []).append(each)
        for (file, container), part in parts.items():
            # Knative's containers need no name.
            where = f"{container} in {file}" if container else f"in {file}"
            key = "container: " if container else ""
            found.append(target_of(f"{name} ({where})", part, f"file: {file}, {key}"))
    return found


def target_of(name: str, containers: Sequence[Container], more: str = "") -> Target:
    """A target for these containers. more: further keys that distinguish it from others."""
    image = containers[0].location.name
    line = f"{{image: {image}, {more}{containers[0].name if more else ''}"
    return Target(
        name,
        "image",
        common([each.pin for each in containers]),
        tuple(each.location for each in containers),
        image=image,
        line=line.rstrip(", ") + "}",
    )


def _images(node: YamlNode, path: Path) -> Iterator[tuple[Path, str, str]]:
    """(path of the image, container's name, image)."""
    for key, value in node.pairs:
        if key.value in _LISTS and value.kind == "list":
            for index, item in enumerate(value.items):
                image = text_at(item, ("image",))
                if item.kind == "map" and image:
                    yield (*path, key.value, index, "image"), text_at(item, ("name",)) or "", image
        elif key.value in _SINGLE and (image := text_at(value, ("image",))):
            yield (*path, key.value, "image"), text_at(value, ("name",)) or "", image
        yield from _images(value, (*path, key.value))
    for index, item in enumerate(node.items):
        yield from _images(item, (*path, index))
