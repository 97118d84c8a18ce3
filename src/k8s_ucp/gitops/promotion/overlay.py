"""An app's overlay for one environment at one commit: its images, its marks, its rewriting."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.manifests.image_edit import Image, Pin, read_images, set_pin
from k8s_ucp.gitops.manifests.yaml_tree import NotEditable
from k8s_ucp.gitops.promotion import order as order_of
from k8s_ucp.gitops.promotion.order import MARKS_FILE, Mark

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""What an app or environment may be called: a folder's name that is no path; use fullmatch."""


class Tip(Protocol):
    """The repository's content at one commit. Symlinks are never followed: NotEditable."""

    def read(self, path: str) -> bytes | None:
        """A file's content, None where there is no such file."""

    def folders(self, path: str) -> list[str]:
        """Names of the folders in a folder, sorted; none where there is no such folder."""


@dataclass(frozen=True)
class Overlay:
    """`apps/<app>/overlays/<env>` at one commit."""

    app: str
    env: str
    path: str
    """Of the kustomization."""
    text: str
    images: tuple[Image, ...]
    marks: Mapping[str, Mark]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def pins(self) -> dict[str, Pin]:
        """What each image is held to."""
        return {image.name: image.pin for image in self.images}


def read_overlay(tip: Tip, app: str, env: str) -> Overlay:
    """An overlay with its marks. Raises UsageError, NotEditable, UcpError (with nearest names)."""
    check_name("app", app)
    check_name("environment", env)
    folder = overlay_folder(app, env)
    held = {}
    for name in KUSTOMIZATIONS:
        content = tip.read(f"{folder}/{name}")
        if content is not None:
            held[name] = content
    if len(held) > 1:
        raise NotEditable(
            f"{folder} contains {' and '.join(held)}, but kustomize accepts only one of them"
        )
    if not held:
        raise _unknown(tip, app, env)
    name, content = held.popitem()
    path = f"{folder}/{name}"
    text = decoded(content, path)
    marks_path = f"{folder}/{MARKS_FILE}"
    marks = tip.read(marks_path)
    return Overlay(
        app,
        env,
        path,
        text,
        tuple(read_images(text, path)),
        order_of.read_marks(None if marks is None else decoded(marks, marks_path), marks_path),
    )


def overlay_folder(app: str, env: str) -> str:
    """Where an app's overlay for an environment lies in the app repository."""
    return f"apps/{app}/overlays/{env}"


def check_name(what: str, name: str) -> None:
    """Raises UsageError for a name that can be no folder of its own."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name of an {what}",
            next="use letters, digits, `-`, `_` and `.`",
        )


def nearest(name: str, known: Sequence[str]) -> str:
    """Words that help with a name that isn't known."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(known)}" if known else "none exist"


def written(
    overlay: Overlay, pins: Mapping[str, Pin], marks: Mapping[str, Mark]
) -> dict[str, bytes]:
    """The overlay's files that differ once its images have those pins and marks."""
    text = overlay.text
    for name, pin in pins.items():
        text = set_pin(text, name, pin, overlay.path)
    writes: dict[str, bytes] = {}
    if text != overlay.text:
        writes[overlay.path] = text.encode()
    if dict(marks) != dict(overlay.marks):
        writes[f"{overlay.folder}/{MARKS_FILE}"] = order_of.write_marks(marks).encode()
    return writes


def _unknown(tip: Tip, app: str, env: str) -> UcpError:
    apps = tip.folders("apps")
    if app not in apps:
        return UcpError(f"the app {app} does not exist in the repository", next=nearest(app, apps))
    envs = tip.folders(f"apps/{app}/overlays")
    if env not in envs:
        return UcpError(
            f"the app {app} has no overlay for the environment {env}", next=nearest(env, envs)
        )
    folder = overlay_folder(app, env)
    return NotEditable(
        f"{folder} has no kustomization file", next=f"add {folder}/{KUSTOMIZATIONS[0]}"
    )


def decoded(content: bytes, path: str) -> str:
    """A file's text. Raises NotEditable for what is no UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotEditable(f"{path} is not valid UTF-8") from error
