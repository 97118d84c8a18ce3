"""The version of each app in the overlays of an app repository. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.manifests.forms import chart_file
from k8s_ucp.gitops.manifests.image_edit import Image, read_images
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.promotion.order import MARKS_FILE, read_marks

SHOWN = 2
_NAME = re.compile(r"(?:.*/)?(?P<last>[^/:@]+)[:@]?(?P<version>[^/]*)")
_FILE = re.compile(r"apps/([^/]+)/overlays/([^/]+)/(.+)")


def versions_in(files: Mapping[str, bytes]) -> dict[str, dict[str, list[str]]]:
    """{app: {environment: its images or its chart, with versions}}; files: by path.

    Overlays with only manifests or jsonnet are included with no versions.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for path, content in files.items():
        if not (match := _FILE.fullmatch(path)):
            continue
        app, environment, name = match.groups()
        versions = found.setdefault(app, {}).setdefault(environment, [])
        if name == "Chart.yaml":
            # Several apps may use the same chart; the version differs.
            versions[:] = _chart_of(content)
        elif name in ("kustomization.yaml", "kustomization.yml"):
            versions[:] = _images_of(content, path)
    return found


def is_marks_file(path: str) -> bool:
    """Whether it is the file with the order and holds of an overlay."""
    match = _FILE.fullmatch(path)
    return match is not None and match[3] == MARKS_FILE


def holds_in(files: Mapping[str, bytes]) -> dict[tuple[str, str], list[str]]:
    """{(app, environment): its versions on hold}; files: by path. Unreadable files hold nothing."""
    found: dict[tuple[str, str], list[str]] = {}
    for path, content in files.items():
        if not is_marks_file(path):
            continue
        try:
            marks = read_marks(content.decode("utf-8"), path)
        except (NotEditable, ValueError):
            continue
        if held := list(dict.fromkeys(each for mark in marks.values() for each in mark.held)):
            _, app, _, environment, _ = path.split("/")
            found[app, environment] = held
    return found


def on_hold(held: Sequence[str]) -> str:
    """For tables: "on hold: 1.4.0"; "" if nothing is."""
    return f"on hold: {', '.join(held)}" if held else ""


def brief(versions: Sequence[str]) -> str:
    """For a table column: the only version, or some of several with short image names."""
    parts = [_NAME.fullmatch(each) for each in versions]
    named = [(each["last"], each["version"] or "") for each in parts if each]
    if len(named) == 1:
        return named[0][1]
    held = [f"{last} {version}" for last, version in named if version]
    more = len(named) - len(held[:SHOWN])
    return ", ".join([*held[:SHOWN], *([f"{more} more"] if more and held else [])]) or (
        f"{more} without a version" if more else ""
    )


def _images_of(content: bytes, path: str) -> list[str]:
    try:
        images = read_images(content.decode("utf-8"), path)
    except (NotEditable, ValueError):
        return []
    return [_reference(each) for each in images]


def _reference(image: Image) -> str:
    """The reference as in pods; without a version if the overlay doesn't pin one."""
    name, mark = image.new_name or image.name, ":" if image.pin.tag else "@"
    return f"{name}{mark}{image.pin}" if image.pin else name


def _chart_of(content: bytes) -> list[str]:
    """`<chart>:<version>` from Chart.yaml; empty if it has neither."""
    try:
        chart = chart_file({"Chart.yaml": content})
    except UsageError:
        return []
    return [f"{chart.name}:{chart.version}"]
