"""CI workflows of the app repository: actions and images, pinned by digest. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

CHECKOUT = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1"
CHECKOUT_VERSION = "v7.0.1"
"""The tag of this commit in the action's repository."""
PYTHON_IMAGE = (
    "python:3.12.14-slim-bookworm"
    "@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254"
)
DOCKER_IMAGE = (
    "docker:28.0.1-dind@sha256:ddf7f6fd0d2175709739f1d47e6134fa8eb055d2f61c11c3f99780c79b44578e"
)
"""Engine and client in one image."""

_FILES = {".github/": "github", ".gitlab-ci.yml": "gitlab", "ci/": "gitlab"}


def provider_of(path: str) -> str | None:
    """The CI system that a file of the app repository belongs to; None for all other files."""
    return next((name for start, name in _FILES.items() if path.startswith(start)), None)


def pipeline_values(topology: Topology) -> dict[str, Any] | None:
    """Values for the CI templates; None if there is no CI or no environment to promote to."""
    ci, environments = topology.spec.ci, topology.spec.environments
    if ci is None or not environments:
        return None
    return {
        "ci": ci,
        "first": environments[0].name,
        "checkout": CHECKOUT,
        "checkout_version": CHECKOUT_VERSION,
        "python_image": PYTHON_IMAGE,
        "docker_image": DOCKER_IMAGE,
    }
