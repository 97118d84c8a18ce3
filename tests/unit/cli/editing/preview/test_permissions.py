"""Permissions that an app needs beyond its own namespace, as stated in the question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from k8s_ucp.cli.editing.preview.app_objects import AppObjects
from k8s_ucp.cli.editing.preview.permissions import (
    find_forbidden,
    lacking_permissions,
    uncreated_namespaces,
)
from k8s_ucp.topology import App


def config(namespace: str, kind: str = "ConfigMap") -> dict[str, object]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": namespace}}


@pytest.mark.parametrize(
    ("brings", "words"),
    [
        (
            [config("prod"), config("staging")],
            "it writes to prod, staging, outside of its namespace web and it has no Namespace "
            "object for "
            "prod, staging",
        ),
        (
            [
                config("more"),
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "more"}},
                config("web"),
            ],
            "it writes to more, outside of its namespace web",
        ),
        ([config("more")], "it writes to more, outside of its namespace web"),
    ],
)
def test_a_foreign_namespace_without_a_namespace_object_is_reported(
    brings: list[object], words: str
) -> None:
    app = App.model_validate({"name": "web", "path": "manifests/web"})
    assert lacking_permissions(app, AppObjects(brings)).words == words  # type: ignore[arg-type]


def test_what_to_do_beyond_the_flags_is_reported() -> None:
    app = App.model_validate({"name": "web", "path": "manifests/web"})
    lacks = lacking_permissions(app, AppObjects([config("prod"), config("staging")]))
    assert lacks.advice.startswith("and add the Namespaces prod, staging to its manifests")
    assert "set `namespace: web` in its kustomizations" in lacks.advice
    chart = replace(lacks, is_chart=True)
    assert chart.advice.startswith("and add the Namespaces prod, staging to its templates")
    assert "kustomizations" not in chart.advice
    one = lacking_permissions(app, AppObjects([config("prod"), config("web")]))
    assert one.flags() == "--also-namespace prod"
    template = lacking_permissions(app, AppObjects([config("${NS}"), config("web")]))
    assert not template.any
    assert "use --namespace instead of --also-namespace, so that all" in one.advice
    moves = lacking_permissions(app, AppObjects([config("more")]))
    assert moves.advice == ""


def test_an_allowed_namespace_that_nothing_creates_is_still_reported() -> None:
    allowed = {"name": "web", "path": "manifests/web", "namespaces": ["api", "more", "prod"]}
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "more"}}
    brings = AppObjects([config("prod"), config("more"), made, config("api"), config("web")])
    app = App.model_validate(allowed)
    assert not lacking_permissions(app, brings).any
    assert uncreated_namespaces(app, brings, ["web", "api"]) == ["prod"]


def test_an_appproject_is_to_be_removed_not_moved_to_another_namespace() -> None:
    app = App.model_validate({"name": "web", "path": "manifests/web"})
    project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject"}
    brings = {**project, "metadata": {"name": "x", "namespace": "argocd"}}
    problem = find_forbidden(app, AppObjects([brings]))
    assert problem is not None
    assert "(AppProject/x)" in problem.message
    assert str(problem.next).startswith("remove it from the manifests")
    kinds = {"base/team": "AppProject", "overlays/stage/team": "AppProject", "base/web": "Pod"}
    files = {f"apps/web/{path}.yaml": f"kind: {kind}\n".encode() for path, kind in kinds.items()}
    problem = find_forbidden(app, AppObjects([brings], files=files))
    assert str(problem and problem.next).startswith("remove it from team.yaml;")
