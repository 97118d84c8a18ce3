"""Versions and holds, as overlays have them."""

from __future__ import annotations

from k8s_ucp.gitops.promotion.order import Mark, write_marks
from k8s_ucp.inspect.overlay_versions import holds_in, on_hold

HELD = write_marks({"a": Mark(held=("1.4.0",)), "b": Mark(sequence=7, held=("1.4.0", "2.0"))})


def test_versions_on_hold_are_read_from_the_overlays() -> None:
    files = {
        "apps/echo/overlays/prod/.promotion.yaml": HELD.encode(),
        "apps/echo/overlays/stage/.promotion.yaml": write_marks({"a": Mark(sequence=3)}).encode(),
        "apps/echo/overlays/eu/.promotion.yaml": b"images: [",
        "apps/echo/overlays/us/sub/.promotion.yaml": HELD.encode(),
        "apps/echo/.promotion.yaml": b"targets: []\n",
    }
    held = holds_in(files)
    assert held == {("echo", "prod"): ["1.4.0", "2.0"]}
    assert on_hold(held["echo", "prod"]) == "on hold: 1.4.0, 2.0"
    assert on_hold([]) == ""
