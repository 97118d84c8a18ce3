"""The door to ruamel: YAML read without surprises, and written with its comments kept.

The parser in Python is the one that is used everywhere: it alone tells where a value stands, and
takes YAML 1.2, in which `no` is a word. It is slow (a tenth of a millisecond for a line): what
kustomize prints is read in gitops/manifests/yaml_text.py.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

__all__ = ["YAMLError", "dump", "editor", "events", "load", "load_all", "written"]


def load(text: str) -> Any:
    """The one document of a text; None for an empty one. Raises YAMLError, ValueError."""
    return YAML(typ="safe", pure=True).load(text)


def load_all(text: str) -> Iterator[Any]:
    """The documents of a text. Raises YAMLError, ValueError."""
    yield from YAML(typ="safe", pure=True).load_all(text)


def events(text: str) -> Iterator[Any]:
    """What the parser meets from beginning to end, with marks. Raises YAMLError, ValueError."""
    yield from YAML(typ="safe", pure=True).parse(text)


def dump(data: Any) -> str:
    """Data as a text of one document: keys in their order, a line for each item."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    return written(yaml, data)


def editor(*, width: int, indent_lists: bool = False) -> YAML:
    """For texts that people wrote: comments, order and quotes stay. width: of a line, at most."""
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = width
    if indent_lists:
        yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def written(yaml: YAML, data: Any) -> str:
    """What it writes for that data."""
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()
