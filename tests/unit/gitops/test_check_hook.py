"""Which apps a push changes."""

from __future__ import annotations

from k8s_ucp.gitops.check_hook import changed_apps


def test_changed_apps_are_derived_from_the_changed_paths() -> None:
    assert changed_apps(["apps/web/base/x", "README.md", "apps/a/overlays/b/c"]) == {"web", "a"}
    assert changed_apps(["apps/web/x", "*"]) is None
    assert changed_apps(['"apps/\\303\\244/x"']) is None
