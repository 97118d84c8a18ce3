"""Writes the table of Kubernetes' built-in kinds, from the pinned API server: `make kinds`."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

from k8s_ucp.gitops.check.kinds import TABLE
from k8s_ucp.kube import Kube
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.installer import Installer
from k8s_ucp.workspace import cache_folder
from tests.control_planes import control_planes, made, quiet

ANYTHING = ("JSON", "RawExtension", "FieldsV1", "Patch", "JSONSchemaProps")
QUANTITY, EITHER, TIME = "Quantity", "IntOrString", ("Time", "MicroTime")


def table(kube: Kube) -> dict[str, Any]:
    """{version, kinds: {apiVersion/kind: type}, types: {type: {field: accepted type}}}.

    Types of fields: `string`, `integer`, `number`, `boolean`, `quantity`, `either` (a number or a
    string), `any`, `[…` (a list), `{…` (a mapping), `=a|b` (one of), `#type`. A leading `!` marks a
    required field.
    """
    schemas: dict[str, Any] = {}
    for path, place in kube.request("GET", "/openapi/v3")["paths"].items():
        if path.startswith(("api/v1", "apis/")):
            answer = kube.request("GET", place["serverRelativeURL"])
            schemas |= answer["components"]["schemas"]
    kinds, wanted = {}, []
    for name, schema in sorted(schemas.items()):
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            if "metadata" in schema.get("properties", {}) and name.endswith(f".{kind['kind']}"):
                version = "/".join(each for each in (kind["group"], kind["version"]) if each)
                if not kind["kind"].endswith("List"):
                    kinds[f"{version}/{kind['kind']}"] = short(name)
                    wanted.append(name)
    types: dict[str, dict[str, str]] = {}
    while wanted:
        name = wanted.pop()
        if short(name) in types:
            continue
        schema = schemas[name]
        types[short(name)] = {
            field: "any"
            if field == "status" and "metadata" in schema["properties"]
            else ("!" if field in schema.get("required", ()) else "") + takes(value, wanted)
            for field, value in sorted(schema.get("properties", {}).items())
        }
    version = f"v{CATALOGUE['kubernetes'].version}"
    return {"version": version, "kinds": kinds, "types": dict(sorted(types.items()))}


def short(name: str) -> str:
    """Shorten a type's name: io.k8s.api.apps.v1.Deployment becomes apps.v1.Deployment."""
    return re.sub(r"^(io\.k8s\.)?(api|apimachinery\.pkg|apiextensions-apiserver\.pkg)\.", "", name)


def takes(schema: dict[str, Any], wanted: list[str]) -> str:
    if "allOf" in schema:
        schema = {**schema, **schema["allOf"][0]}
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        last = name.rpartition(".")[2]
        if last in ANYTHING:
            return "any"
        if last == QUANTITY:
            return "quantity"
        if last == EITHER:
            return "either"
        if last in TIME:
            return "string"
        wanted.append(name)
        return f"#{short(name)}"
    if "oneOf" in schema or schema.get("x-kubernetes-preserve-unknown-fields"):
        return "any"
    kind = schema.get("type")
    if kind == "array":
        return f"[{takes(schema['items'], wanted)}"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return "{" + (takes(inner, wanted) if isinstance(inner, dict) else "any")
    if schema.get("enum"):
        return "=" + "|".join(str(each) for each in schema["enum"] if each != "")
    return kind or "any"


def text(found: dict[str, Any]) -> str:
    """One line per type, so that a new version is readable as a diff."""
    lines = [f'{{"version": {json.dumps(found["version"])},', '"kinds": {']
    for part in ("kinds", "types"):
        rows = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found[part].items()]
        lines.append(",\n".join(rows))
        lines.append('}, "types": {' if part == "kinds" else "}}")
    return "\n".join(lines) + "\n"


def main() -> None:
    toolbox = Installer(cache_folder(), quiet).install()
    with tempfile.TemporaryDirectory() as folder, control_planes(Path(folder), toolbox) as planes:
        TABLE.write_text(text(table(made(planes.provider(), "kinds"))), "utf-8")


if __name__ == "__main__":
    main()
