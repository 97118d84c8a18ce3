"""Writes `source.kustomize` of an Application to the kustomization that it builds. Pure.

Argo CD does the same with `kustomize edit` before each build: name prefix and suffix and namespace
replace existing ones, images and replicas replace those with the same name, and patches are added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.imports.findings import NotImportable
from k8s_ucp.gitops.manifests.image_edit import DIGEST, TAG
from k8s_ucp.gitops.manifests.images_and_ports import split_image
from k8s_ucp.gitops.manifests.yaml_text import dump_all, first_map, maps, part

_TEXTS = {"namePrefix": "namePrefix", "nameSuffix": "nameSuffix", "namespace": "namespace"}
_HELPERS = frozenset(
    [
        *("forceCommonLabels", "forceCommonAnnotations", "labelWithoutSelector"),
        *("labelIncludeTemplates", "ignoreMissingComponents"),
    ]
)
"""Settings that only modify others."""
_TAKEN = _HELPERS | {
    *_TEXTS,
    *("images", "replicas", "commonLabels", "commonAnnotations", "patches", "components"),
}
_ADVICE = "write it to the kustomization of the overlay, then import again"


def used_settings(kustomize: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that have an effect. Raises NotImportable for those that can't be written."""
    used = {key: value for key, value in kustomize.items() if value}
    if others := sorted(str(key) for key in used.keys() - _TAKEN):
        raise NotImportable(
            f"the Application sets kustomize.{', kustomize.'.join(others)}", _ADVICE
        )
    return used if used.keys() - _HELPERS else {}


def with_settings(
    content: bytes, path: str, settings: Mapping[str, Any], has: Callable[[str], bool]
) -> bytes:
    """A kustomization with the settings of an Application, as Argo CD builds it.

    has: whether a component exists at that path relative to the kustomization. Comments are kept if
    no existing field changes. Raises NotImportable.
    """
    try:
        existing = first_map(content, path)
    except UsageError as error:
        raise NotImportable(error.message, f"correct {path}") from error
    new = _written(existing, settings, has)
    if all(new.get(key) == value for key, value in existing.items()):
        more = {key: value for key, value in new.items() if key not in existing}
        longer = content.rstrip() + b"\n" + dump_all([more]).encode()
        try:
            if first_map(longer, path) == new:
                return longer
        except UsageError:
            pass
    return dump_all([new]).encode()


def _written(
    existing: Mapping[str, Any], settings: Mapping[str, Any], has: Callable[[str], bool]
) -> dict[str, Any]:
    new = dict(existing)
    for name, key in _TEXTS.items():
        if name in settings:
            new[key] = _plain(name, settings[name])
    if listed := settings.get("images"):
        new["images"] = _by_name(maps(existing, "images"), map(_image, _list("images", listed)))
    if "replicas" in settings:
        new["replicas"] = _by_name(
            maps(existing, "replicas"), map(_count, maps(settings, "replicas"))
        )
    _label(new, settings)
    if annotations := part(settings, "commonAnnotations"):
        force = bool(settings.get("forceCommonAnnotations"))
        new["commonAnnotations"] = _added(existing, "commonAnnotations", annotations, force)
    if "patches" in settings:
        new["patches"] = [*maps(existing, "patches"), *map(dict, maps(settings, "patches"))]
    if listed := settings.get("components"):
        components = [str(each) for each in _list("components", listed)]
        if missing := [each for each in components if not has(each)]:
            raise NotImportable(f"its component {missing[0]} does not exist here", _ADVICE)
        known = existing.get("components")
        known = known if isinstance(known, list) else []
        new["components"] = [*known, *(each for each in components if each not in known)]
    return new


def _label(new: dict[str, Any], settings: Mapping[str, Any]) -> None:
    labels = part(settings, "commonLabels")
    if not labels:
        return
    if not settings.get("labelWithoutSelector"):
        force = bool(settings.get("forceCommonLabels"))
        new["commonLabels"] = _added(new, "commonLabels", labels, force)
        return
    known = maps(new, "labels")
    if any(part(each, "pairs").keys() & labels.keys() for each in known):
        raise NotImportable(
            "the Application sets a label that the kustomization also sets", _ADVICE
        )
    pairs = {str(key): _plain("commonLabels", value) for key, value in labels.items()}
    more = {"includeTemplates": True} if settings.get("labelIncludeTemplates") else {}
    new["labels"] = [*known, {"pairs": pairs, **more}]


def _added(
    existing: Mapping[str, Any], key: str, pairs: Mapping[str, Any], force: bool
) -> dict[str, Any]:
    """Pairs added to the existing ones, which Argo CD only overrides with the force option."""
    known = part(existing, key)
    if not force and known.keys() & pairs.keys():
        raise NotImportable(
            f"the Application sets {key}, which the kustomization also sets", _ADVICE
        )
    return {**known, **{str(each): _plain(key, value) for each, value in pairs.items()}}


def _by_name(
    existing: Iterable[Mapping[str, Any]], more: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    found = {str(each.get("name")): dict(each) for each in existing}
    return list({**found, **{str(each["name"]): dict(each) for each in more}}.values())


def _image(text: Any) -> dict[str, Any]:
    """`[NAME=]NEW[:TAG][@DIGEST]` as an entry of `images`."""
    name, equals, new = str(text).rpartition("=")
    new_name, version = split_image(new)
    tag, _, digest = version.partition("@")
    name = name if equals else new_name
    valid = (not tag or TAG.fullmatch(tag)) and (not digest or DIGEST.fullmatch(digest))
    if not name or not valid or "*" in new or "$" in str(text) or not (version or equals):
        raise NotImportable(f"the Application sets the image {text}", _ADVICE)
    found = {"name": name}
    found |= {"newName": new_name} if new_name not in (name, "") else {}
    found |= {"newTag": tag} if tag else {}
    return {**found, **({"digest": digest} if digest else {})}


def _count(item: Mapping[str, Any]) -> dict[str, Any]:
    count = str(item.get("count"))
    if not item.get("name") or not re.fullmatch(r"[0-9]{1,9}", count):
        raise NotImportable("the Application sets replicas that are not a number", _ADVICE)
    return {"name": str(item["name"]), "count": int(count)}


def _plain(key: str, value: Any) -> str:
    """A string without variables that Argo CD would substitute."""
    if isinstance(value, (dict, list)) or "$" in str(value):
        raise NotImportable(f"the Application sets kustomize.{key} to {value}", _ADVICE)
    return str(value)


def _list(key: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise NotImportable(f"kustomize.{key} of the Application is not a list", _ADVICE)
    return value
