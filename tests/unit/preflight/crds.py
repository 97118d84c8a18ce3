"""CustomResourceDefinitions, as far as preflight checks read them."""

from __future__ import annotations

from typing import Any


def crd(kind: str, categories: list[str] | None, scope: str = "Namespaced") -> dict[str, Any]:
    names: dict[str, Any] = {"kind": kind, "plural": f"{kind.lower()}s"}
    if categories is not None:
        names["categories"] = categories
    versions = [{"name": "v1beta1", "served": False}, {"name": "v1", "served": True}]
    return {"spec": {"group": "a.example", "names": names, "scope": scope, "versions": versions}}
