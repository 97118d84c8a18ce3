"""Objects that `ucp start` applies get Argo CD's tracking annotation if an Application has them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from k8s_ucp.components.manifests import read
from k8s_ucp.components.ownership.tracking import TrackingApp, keepers, tracked
from k8s_ucp.names import TRACKING_ID

URL = "http://git/core.git"
KEEPER = TrackingApp("argocd", "platform/argocd", deep=True, namespace="argocd")
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: argocd
spec:
  source:
    repoURL: http://git/core
    targetRevision: main
    path: platform/argocd
    directory:
      recurse: true
  destination:
    name: in-cluster
    namespace: argocd
"""
SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: argocd-server
  namespace: argocd
"""


def marked(text: str, path: str = "platform/argocd/workloads.yaml") -> Any:
    """The object as it is applied."""
    [found] = tracked(read({path: text.encode()}), [KEEPER])
    return YAML(typ="safe", pure=True).load(found.text)


@pytest.mark.parametrize(
    "more",
    [
        "",
        "  annotations:\n    a: b\n",
        "  annotations:\n      a: b\n      c: d\n",
        "  labels:\n    annotations: no\n",
        "\n  labels:\n    x: y\n",
    ],
)
def test_the_tracking_annotation_is_added_to_existing_metadata(more: str) -> None:
    plain = YAML(typ="safe", pure=True).load(SERVER + more)
    found = marked(SERVER + more + "spec:\n  metadata:\n    annotations:\n      not: mine\n")
    assert found["metadata"]["annotations"].pop(TRACKING_ID) == (
        "argocd:apps/Deployment:argocd/argocd-server"
    )
    assert found.pop("spec") == {"metadata": {"annotations": {"not": "mine"}}}
    plain["metadata"].setdefault("annotations", {})
    assert found == plain


def test_objects_without_a_namespace_are_tracked_in_that_of_the_application() -> None:
    text = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: it\n"
    assert marked(text)["metadata"]["annotations"] == {
        TRACKING_ID: "argocd:rbac.authorization.k8s.io/ClusterRole:argocd/it"
    }
    text = "apiVersion: v1\nkind: Service\nmetadata:\n  namespace: else\n  name: it\n"
    assert marked(text)["metadata"]["annotations"] == {TRACKING_ID: "argocd:/Service:else/it"}


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Secret\nmetadata: {name: it}\n",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: it\n  annotations: {a: b}\n",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: it\n  annotations:\n",
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: it\n  annotations:\n    {TRACKING_ID}: x\n",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: it\n  annotations:\n     # y\n    a: b\n",
    ],
)
def test_manifests_of_other_layouts_are_unchanged(text: str) -> None:
    assert marked(text) == YAML(typ="safe", pure=True).load(text)


def test_only_the_folder_of_the_application_is_tracked() -> None:
    assert marked(SERVER, "platform/argocd-more/a.yaml") == YAML(typ="safe", pure=True).load(SERVER)
    assert keepers({"bootstrap/kind/argocd.yaml": APPLICATION.encode()}, "bootstrap/kind", URL) == [
        KEEPER
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("recurse: true", "recurse: true\n      exclude: crds.yaml"),
        ("    directory:\n", "    kustomize: {}\n    directory:\n"),
        ("http://git/core", "http://git/other"),
        ("    path: platform/argocd\n", "    chart: argo-cd\n"),
        ("kind: Application", "kind: ApplicationSet"),
    ],
)
def test_an_application_that_may_exclude_objects_tracks_nothing(old: str, new: str) -> None:
    """It would prune objects that have its tracking annotation and are not in its source."""
    assert old in APPLICATION
    text = APPLICATION.replace(old, new)
    assert keepers({"bootstrap/kind/argocd.yaml": text.encode()}, "bootstrap/kind", URL) == []


def test_a_folder_with_a_kustomization_is_not_tracked() -> None:
    files = {
        "bootstrap/kind/argocd.yaml": APPLICATION.encode(),
        "platform/argocd/kustomization.yaml": b"resources: []\n",
    }
    assert keepers(files, "bootstrap/kind", URL) == []


def test_an_application_without_recursion_tracks_no_subfolders() -> None:
    flat = TrackingApp("argocd", "platform/argocd", deep=False, namespace="argocd")
    near, far = read({f"platform/argocd/{each}.yaml": SERVER.encode() for each in ("a", "b/c")})
    assert flat.keeps(near)
    assert not flat.keeps(far)


WORDS = st.from_regex(r"[a-z][a-z0-9./]{0,12}", fullmatch=True)


@given(
    st.dictionaries(WORDS, WORDS, max_size=3),
    st.dictionaries(WORDS, WORDS, max_size=3),
    st.sampled_from([2, 4]),
)
def test_only_the_tracking_annotation_is_added(
    annotations: dict[str, str], labels: dict[str, str], indent: int
) -> None:
    pad = " " * indent
    text = f"apiVersion: v1\nkind: Secret\nmetadata:\n{pad}name: it\n"
    for field, values in (("labels", labels), ("annotations", annotations)):
        if values:
            text += f"{pad}{field}:\n"
            text += "".join(f"{pad * 2}{name}: '{value}'\n" for name, value in values.items())
    found = marked(text)
    assert found["metadata"]["annotations"].pop(TRACKING_ID) == "argocd:/Secret:argocd/it"
    assert found["metadata"]["annotations"] == annotations
    assert found["metadata"].get("labels", {}) == labels
