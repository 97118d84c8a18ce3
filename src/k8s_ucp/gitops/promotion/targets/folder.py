"""The folder of an app for one environment, read at one commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from k8s_ucp.gitops.manifests.yaml_tree import NotEditable, YamlNode, read_documents, read_tree


class Files(Protocol):
    """The repository's content at one commit. Symbolic links aren't followed: NotEditable."""

    def read(self, path: str) -> bytes | None:
        """A file's content, None if it doesn't exist."""

    def files(self, path: str) -> list[str]:
        """Paths of the files below a folder, relative to it, sorted."""


@dataclass(frozen=True)
class EnvironmentFolder:
    """A folder of the repository; file names are relative to it."""

    source: Files
    path: str

    def text(self, name: str) -> str | None:
        """A file's text; None if it doesn't exist. Raises NotEditable if it isn't valid UTF-8."""
        content = self.source.read(f"{self.path}/{name}")
        return None if content is None else decoded(content, f"{self.path}/{name}")

    def tree(self, name: str) -> YamlNode | None:
        """The only document of a YAML file; None if the file is missing or empty."""
        text = self.text(name)
        if text is None or not read_documents(text, f"{self.path}/{name}"):
            return None
        return read_tree(text, f"{self.path}/{name}")

    def names(self) -> list[str]:
        """All files below the folder."""
        return self.source.files(self.path)


def decoded(content: bytes, path: str) -> str:
    """A file's text. Raises NotEditable if it isn't valid UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotEditable(f"{path} is not valid UTF-8") from error
