"""Data on stdout in the notation that `-o` asks for."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer


class Output(StrEnum):
    """-o"""

    table = "table"
    json = "json"
    yaml = "yaml"


OutputOption = Annotated[
    Output, typer.Option("-o", "--output", help="Output format: table, json or yaml.")
]


def notation(data: Any, output: Output) -> str:
    """The data as JSON or YAML text."""
    if output is Output.json:
        return json.dumps(data, indent=2)
    import io

    from ruamel.yaml import YAML

    stream = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.dump(data, stream)
    return stream.getvalue()
