"""The JSON Schema that editors read."""

from __future__ import annotations

import json
from typing import Any

from k8s_ucp.gitops.render.repositories import templates_folder
from k8s_ucp.topology.schema import NAME, json_schema, schema_text


def properties(schema: dict[str, Any], path: str) -> dict[str, Any]:
    part = schema
    for key in path.split(".") if path else []:
        part = part["properties"][key]
        part = part.get("items", part)
        if "$ref" in part:
            part = schema["$defs"][part["$ref"].rpartition("/")[2]]
    return dict(part["properties"])


def test_the_committed_schema_is_current() -> None:
    committed = (templates_folder() / "core" / NAME).read_text("utf-8")
    assert committed == schema_text(), "make schema"


def test_keys_have_descriptions_and_allowed_values() -> None:
    schema = json_schema()
    silent = {
        f"{name}.{key}"
        for name, part in schema["$defs"].items()
        for key, found in part.get("properties", {}).items()
        if not found.keys() & {"description", "$ref"} and key != "name"
    }
    assert not silent
    assert "Initial tag" in properties(schema, "spec.apps")["tag"]["description"]
    assert properties(schema, "spec.environments")["access"]["enum"] == ["admin", "scoped"]
    assert "op://" in json.dumps(schema["$defs"]["CredentialSource"])
