"""Reads YAML, and writes it with comments preserved; the only user of ruamel.

The pure Python parser is used everywhere: it alone reports positions of values, and implements YAML
1.2, in which `no` is a string. It is slow (a tenth of a millisecond per line), so
gitops/manifests/yaml_text.py reads kustomize's output.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

__all__ = ["YAMLError", "dump", "editor", "events", "load", "load_all", "written"]


def load(text: str) -> Any:
    """The only document of a text; None if the text is empty. Raises YAMLError, ValueError."""
    return YAML(typ="safe", pure=True).load(text)


def load_all(text: str) -> Iterator[Any]:
    """The documents of a text. Raises YAMLError, ValueError."""
    yield from YAML(typ="safe", pure=True).load_all(text)


def events(text: str) -> Iterator[Any]:
    """The parser's events, with positions. Raises YAMLError, ValueError."""
    yield from YAML(typ="safe", pure=True).parse(text)


def dump(data: Any) -> str:
    """Serialize data as one document in block style; keeps the order of keys."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    return written(yaml, data)


def editor(*, width: int, indent_lists: bool = False) -> YAML:
    """For texts that users wrote: keeps comments, order and quotes. width: maximum line length."""
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = width
    if indent_lists:
        yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def written(yaml: YAML, data: Any) -> str:
    """Serialize data with `yaml`."""
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()
