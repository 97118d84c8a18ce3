"""Fields of third-party kinds according to their published CRDs: the clouds' managed resources, and
HTTPRoute of the Gateway API.

tests/unit/gitops/provider_fields.json contains them for the kinds that our templates use: at each
level that a template sets, every field with its type, so that a misspelt field can be compared with
its neighbors. It contains facts only: names, types, required fields. To update a package, check
out its repository at the new tag and run

    python -m tests.provider_fields CRDS... < built.yaml

where CRDS are its package/crds folders (for the Gateway API: config/crd/standard) and built.yaml is
the output of `kustomize build` for the repositories that use it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

TABLE = Path(__file__).parent / "unit" / "gitops" / "provider_fields.json"
GROUPS = re.compile(r"\.m\.(upbound|crossplane)\.io$|^gateway\.networking\.k8s\.io$")

Fields = dict[str, Any]
"""{name: type, or {"type": ..., "fields": {...}, "required": [...]}}."""


def is_ours_to_check(document: Mapping[str, Any]) -> bool:
    """Return whether it is a managed resource, a provider's credentials, or a route."""
    return bool(GROUPS.search(_group(document)))


def key(document: Mapping[str, Any]) -> str:
    return f"{document['apiVersion']} {document['kind']}"


def problems(document: Mapping[str, Any], table: Mapping[str, Any]) -> list[str]:
    """Fields of a managed resource that its kind doesn't have, and required ones that it lacks."""
    known = table.get(key(document))
    if known is None:
        return [f"{key(document)}: not in the table"]
    name = f"{key(document)} {document['metadata'].get('name', '')}"
    return [f"{name}: {each}" for each in _wrong(document.get("spec"), known, "spec")]


def path_problem(path: str, kind: str, table: Mapping[str, Any]) -> str | None:
    """Reason why a Composition can't patch a field path of a kind; None if it can."""
    if path.startswith("metadata."):
        return None
    current: Any = table[kind]
    for part in re.findall(r"[^.\[\]]+|\[[^\]]*\]", path.removeprefix("spec.")):
        if part.startswith("["):
            if "map" in str(current.get("type")) or "[]" in str(current.get("type")):
                continue
            return f"{path}: {part} of something that is no list and no map"
        fields = current.get("fields", {}) if isinstance(current, dict) else {}
        if part not in fields:
            return f"{path}: {kind} has no {part}"
        current = fields[part]
    return None


def _wrong(value: Any, known: Any, at: str) -> Iterator[str]:
    kind = known["type"] if isinstance(known, dict) else known
    if kind.startswith("[]"):
        if not isinstance(value, list):
            yield f"{at} must be a list"
            return
        inner = {**known, "type": kind[2:]} if isinstance(known, dict) else kind[2:]
        for index, each in enumerate(value):
            yield from _wrong(each, inner, f"{at}[{index}]")
        return
    if not _fits(value, kind):
        yield f"{at}: {value!r} is no {kind}"
        return
    if kind != "object" or not isinstance(known, dict):
        return
    fields = known.get("fields", {})
    for name, each in value.items():
        if name not in fields:
            yield f"{at}.{name}: no such field"
        else:
            yield from _wrong(each, fields[name], f"{at}.{name}")
    for name in known.get("required", ()):
        if name not in value:
            yield f"{at}.{name} is required"


def _fits(value: Any, kind: str) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in ("number", "integer"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str)
    return isinstance(value, dict) if kind in ("object", "map") else True


def extract(schema: Mapping[str, Any], values: list[Any]) -> Any:
    """The part of a schema that the values use."""
    kind = schema.get("type", "any")
    if kind == "array":
        inner = extract(schema.get("items", {}), [x for each in values for x in each or ()])
        if isinstance(inner, dict):
            return {**inner, "type": f"[]{inner['type']}"}
        return f"[]{inner}"
    properties = schema.get("properties")
    if kind == "object" and not properties:
        return {"type": "map"}
    if kind != "object" or not values:
        return str(kind)
    fields: Fields = {}
    for name, inner in properties.items():
        there = [each[name] for each in values if isinstance(each, dict) and name in each]
        fields[name] = extract(inner, there)
    found: Fields = {"type": "object", "fields": fields}
    required = set(schema.get("required", ()))
    for rule in schema.get("x-kubernetes-validations", ()):
        if match := re.fullmatch(
            r"spec\.forProvider\.(\w+) is a required parameter", rule["message"]
        ):
            required.add(f"forProvider.{match[1]}")
    nested = {each for each in required if "." in each}
    if nested:
        fields["forProvider"]["required"] = sorted(
            {*fields["forProvider"].get("required", ()), *(each.split(".")[1] for each in nested)}
        )
    if required - nested:
        found["required"] = sorted(required - nested)
    return found


def composed(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Resources of a Composition's patch-and-transform steps."""
    for step in document["spec"]["pipeline"]:
        yield from step.get("input", {}).get("resources", ())


def bases(documents: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Managed resources, including those inside Compositions with their patches applied."""
    for document in documents:
        if is_ours_to_check(document):
            yield document
        if document["kind"] == "Composition":
            for each in composed(document):
                if is_ours_to_check(each["base"]):
                    yield _patched(each)


def _patched(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """The base with a value at each path that a patch sets."""
    base = json.loads(json.dumps(resource["base"]))
    base.setdefault("metadata", {}).setdefault("name", resource["name"])
    for patch in resource.get("patches", ()):
        path = patch.get("toFieldPath", "")
        if not path.startswith("spec.") or "[" in path:
            continue
        *parents, last = path.split(".")
        current = base
        for each in parents:
            current = current.setdefault(each, {})
        current.setdefault(last, ["*"] if last == "managementPolicies" else "patched")
    return base


def _group(document: Mapping[str, Any]) -> str:
    return str(document["apiVersion"]).rpartition("/")[0]


def _schema(folders: list[Path], document: Mapping[str, Any]) -> Mapping[str, Any]:
    group, _, version = document["apiVersion"].partition("/")
    for folder in folders:
        for file in folder.glob(f"{group}_*.yaml"):
            crd = next(iter(YAML(typ="safe").load_all(file)))
            if crd["spec"].get("names", {}).get("kind") == document["kind"]:
                for each in crd["spec"]["versions"]:
                    if each["name"] == version:
                        return each["schema"]["openAPIV3Schema"]["properties"]["spec"]
    raise SystemExit(f"no CRD for {key(document)}")


def main() -> None:
    folders = [Path(each) for each in sys.argv[1:]]
    documents = [each for each in YAML(typ="safe").load_all(sys.stdin) if each]
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for each in bases(documents):
        by_kind.setdefault(key(each), []).append(each)
    kinds = {
        name: extract(_schema(folders, found[0]), [each.get("spec", {}) for each in found])
        for name, found in sorted(by_kind.items())
    }
    table = {**json.loads(TABLE.read_text("utf-8")), "kinds": kinds}
    TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
