"""What vendoring deletes from the core repository, in which users have files of their own."""

from __future__ import annotations

from k8s_ucp.gitops.publish.vendor import changes

OURS = b"# Rendered by k8s-ucp (`ucp render --vendor`) from the chart a.\nkind: X\n"


def test_only_manifests_that_ucp_vendored_are_deleted() -> None:
    tip = {
        "platform/external-dns/vendored/stage/manifests.yaml": OURS,
        "platform/external-dns/vendored/prod/manifests.yaml": OURS,
        "platform/external-dns/vendored/stage/patch.yaml": b"kind: Patch\n",
        "platform/mine/vendored/stage/manifests.yaml": b"kind: Mine\n",
        "charts/vendored/values.yaml": OURS,
    }
    kept = {"platform/external-dns/vendored/prod/manifests.yaml": OURS}
    assert changes(tip, {}, kept) == {"platform/external-dns/vendored/stage/manifests.yaml": None}
