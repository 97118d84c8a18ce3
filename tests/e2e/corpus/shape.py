"""A shape of an app for the tests: its files, how it is given, and what is promoted of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Source = Literal["folder", "git", "http", "oci"]
"""How an app is given to `ucp app add`; http and oci: charts of a repository and of a registry."""

Files = Mapping[str, str | bytes]
"""{path below a folder: content}"""

OLD, NEW = "1.0.0", "2.0.0"
"""What runs at first, and what is promoted."""


@dataclass(frozen=True)
class Shape:
    """One form in which people have an app."""

    name: str
    about: str
    files: Files
    said: str = "kustomization"
    """A part of what the command says that it is."""
    source: Source = "folder"
    path: str = ""
    """Of the app in its folder or repository."""
    flags: tuple[str, ...] = ()
    """Besides those that the source needs."""
    promoted: Mapping[str, Any] = field(default_factory=lambda: {"tag": NEW})
    """Of an item of `ucp promote --batch`."""
    images: tuple[str, ...] = ()
    """That run afterwards; by default the app's own image in the new version."""
    before: tuple[str, ...] = ()
    """The same, as it is at first."""
    committed: Files = field(default_factory=dict)
    """What a person commits to the app's folder in the app repository after it was added."""
    newer: Files = field(default_factory=dict)
    """Of a chart in a repository: what differs in its next version."""
    quick: bool = False
    """Tried in every run of the tests; the others in the soak."""

    @property
    def image(self) -> str:
        return f"example.org/{self.name}"

    @property
    def namespaces(self) -> list[str]:
        """That it runs in."""
        pairs = list(zip(self.flags, self.flags[1:], strict=False))
        home = [value for flag, value in pairs if flag == "--namespace"] or [self.name]
        return home + [value for flag, value in pairs if flag == "--also-namespace"]

    def running(self, *, new: bool) -> set[str]:
        """Images that Argo CD sees in the app."""
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
    """One file of several documents."""
    return "---\n".join(text if text.endswith("\n") else f"{text}\n" for text in texts)
