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
    from k8s_ucp import yaml_io

    return yaml_io.dump(data)
