"""Image names: which ones manifests contain, and their names in a mirror."""

from __future__ import annotations

import pytest

from k8s_ucp.clusters.images import from_mirror, mirrored, named_in

MANIFEST = """\
spec:
  initContainers:
    - name: init
      image: "quay.io/argoproj/argocd:v3.5.7"
  containers:
    - image: redis:8
      name: redis
    - name: own
      image: k8s-ucp/reconciler:0.1.0-abc
      imagePullPolicy: IfNotPresent
"""


@pytest.mark.parametrize(
    ("image", "there"),
    [
        ("quay.io/argoproj/argocd:v3", "m:5000/x/argoproj/argocd:v3"),
        ("localhost/a:1", "m:5000/x/a:1"),
        ("localhost:5001/a/b@sha256:00", "m:5000/x/a/b@sha256:00"),
        ("ealen/echo-server:0.9.2", "m:5000/x/ealen/echo-server:0.9.2"),
        ("redis:8", "m:5000/x/library/redis:8"),
    ],
)
def test_the_mirror_replaces_the_registry_of_an_image(image: str, there: str) -> None:
    assert mirrored(image, "m:5000/x") == there
    assert mirrored(image, None) == image


def test_every_image_of_a_manifest_is_found_once() -> None:
    assert named_in(MANIFEST + MANIFEST) == [
        "k8s-ucp/reconciler:0.1.0-abc",
        "quay.io/argoproj/argocd:v3.5.7",
        "redis:8",
    ]


def test_a_manifest_for_a_mirror_names_no_other_registry() -> None:
    found = named_in(from_mirror(MANIFEST, "mirror.example.org"))
    assert all(each.startswith("mirror.example.org/") for each in found)
    assert len(found) == 3
    assert from_mirror(MANIFEST, None) == MANIFEST
