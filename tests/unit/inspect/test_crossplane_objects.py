"""Crossplane's objects on a core cluster."""

from __future__ import annotations

from typing import Any, cast

from k8s_ucp.inspect.crossplane_objects import composites
from k8s_ucp.kube import Kind, Kube, Object


class Core:
    """The API of a core cluster with two definitions, and one composite of each."""

    def list_all(self, kind: Kind, *_: Any) -> list[Object]:
        if kind.kind == "CompositeResourceDefinition":
            return [self._definition("Store", referenceable=False), self._definition("Queue")]
        return [{"kind": kind.kind, "metadata": {"name": "mine"}}]

    def _definition(self, kind: str, *, referenceable: bool = True) -> Object:
        version = {"name": "v1", "served": True, "referenceable": referenceable}
        names = {"kind": kind, "plural": f"{kind.lower()}s"}
        return {"spec": {"group": "example.org", "names": names, "versions": [version]}}


def test_a_definition_without_a_version_for_composites_has_none() -> None:
    """Crossplane's webhook would refuse it, but embedded clusters call none."""
    assert [each["kind"] for each in composites(cast(Kube, Core()))] == ["Queue"]
