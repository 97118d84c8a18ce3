"""Shape of an app for the tests: its files, its source, and what is promoted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Source = Literal["folder", "git", "http", "oci"]
"""Source of an app for `ucp app add`; http and oci: charts in a repository and in a registry."""

Files = Mapping[str, str | bytes]
"""{path below a folder: content}"""

OLD, NEW = "1.0.0", "2.0.0"
"""The version at first, and the one that is promoted."""


@dataclass(frozen=True)
class Shape:
    """One form in which users have an app."""

    name: str
    about: str
    files: Files
    said: str = "kustomization"
    """Part of the command's description of it."""
    source: Source = "folder"
    path: str = ""
    """Path of the app in its folder or repository."""
    flags: tuple[str, ...] = ()
    """Flags in addition to those that the source needs."""
    promoted: Mapping[str, Any] = field(default_factory=lambda: {"tag": NEW})
    """Fields of its item in `ucp promote --batch`."""
    images: tuple[str, ...] = ()
    """Images that run afterwards; by default the app's own image in the new version."""
    before: tuple[str, ...] = ()
    """Images that run at first; the same default, in the old version."""
    committed: Files = field(default_factory=dict)
    """Files that a person commits to the app's folder in the app repository after it was added."""
    newer: Files = field(default_factory=dict)
    """Files that differ in the next version of a chart in a repository."""
    quick: bool = False
    """Tested in every run; the others only in the soak."""

    @property
    def image(self) -> str:
        return f"example.org/{self.name}"

    @property
    def namespaces(self) -> list[str]:
        """Namespaces in which it runs."""
        pairs = list(zip(self.flags, self.flags[1:], strict=False))
        home = [value for flag, value in pairs if flag == "--namespace"] or [self.name]
        return home + [value for flag, value in pairs if flag == "--also-namespace"]

    def running(self, *, new: bool) -> set[str]:
        """Images that Argo CD finds in the app."""
        named = self.images if new else self.before
        return set(named or [f"{self.image}:{NEW if new else OLD}"])


def pod(image: str, *, more: str = "") -> str:
    """A pod's spec in one line."""
    return f'{{containers: [{{name: main, image: "{image}"}}]{more}}}'


def workload(name: str, image: str = "", *, kind: str = "Deployment", more: str = "") -> str:
    """A workload with one container. more: further lines of its spec."""
    image = image or f"example.org/{name}:{OLD}"
    return f"""\
apiVersion: apps/v1
kind: {kind}
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  selector:
    matchLabels: {{app: {name}}}
  template:
    metadata:
      labels: {{app: {name}}}
    spec: {pod(image)}
{more}"""


def service(name: str, *, more: str = "") -> str:
    return f"""\
apiVersion: v1
kind: Service
metadata:
  name: {name}
spec:
  selector: {{app: {name}}}
  ports:
    - {{name: http, port: 80, targetPort: 8080}}
{more}"""


def documents(*texts: str) -> str:
    """One file with several documents."""
    return "---\n".join(text if text.endswith("\n") else f"{text}\n" for text in texts)
