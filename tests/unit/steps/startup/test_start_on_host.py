"""What a component that is started on this machine is known by."""

from __future__ import annotations

from k8s_ucp.components.manifests import Manifest, read
from k8s_ucp.steps.startup.start_on_host import initialised_by

KIND = {
    "crds.yaml": b"kind: CustomResourceDefinition\napiVersion: v1\nmetadata: {name: things.x}\n"
}


def test_another_crossplane_initialises_itself_though_its_kinds_are_the_same() -> None:
    kinds: list[Manifest] = read(KIND)
    assert initialised_by("2.4.0", kinds) == initialised_by("2.4.0", read(KIND))
    assert initialised_by("2.4.0", kinds) != initialised_by("2.4.1", kinds)
    assert initialised_by("2.4.0", kinds) != initialised_by("2.4.0", [])
