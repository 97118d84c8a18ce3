"""CRDs of composite kinds; integration tests compare them with those that Crossplane creates."""

from __future__ import annotations

from k8s_ucp.compositions.composite_kinds import composite_kind
from tests.unit.compositions import platform


def test_a_composite_kind_has_the_fields_of_its_definition_and_of_crossplane() -> None:
    definitions = {each["metadata"]["name"]: each for each in platform.definitions().definitions}
    definition = definitions["postgreses.k8s-ucp.io"]
    kind = composite_kind(definition)

    assert kind["metadata"] == {"name": "postgreses.k8s-ucp.io"}
    assert kind["spec"]["names"]["categories"] == ["ucp", "composite"]
    assert kind["spec"]["names"]["listKind"] == "PostgresList"
    (version,) = kind["spec"]["versions"]
    (given,) = definition["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    own = given["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert own["properties"].items() <= spec["properties"].items()
    assert spec["properties"].keys() - own["properties"].keys() == {"crossplane"}
    assert spec["required"] == own["required"]
    columns = [each["name"] for each in version["additionalPrinterColumns"]]
    assert columns[-5:] == ["SYNCED", "READY", "COMPOSITION", "COMPOSITIONREVISION", "AGE"]
