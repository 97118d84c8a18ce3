"""Users' own charts and manifests, on real git: promoted, gated, rolled back, listed in history."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.integration.gitops.promotion.app_repository import AppRepository, Ucp

VALUES = "# Values of web.\nimage:\n  tag: 1.0.0  # by CI\n"
MANIFEST = """\
kind: Deployment
spec: {template: {spec: {containers: [{name: web, image: example.org/web:1.0.0}]}}}
---
kind: Service
"""


def chart(env: str) -> dict[str, str]:
    """Files of a chart that `ucp app add` copied for an environment."""
    return {
        "Chart.yaml": "name: web\nversion: 1.0.0\n",
        "values.yaml": "image: {repository: example.org/web, tag: ''}\n",
        "templates/web.yaml": "image: {{ .Values.image.tag }}\n",
        ".argocd-source.yaml": f"helm: {{valueFiles: [values-{env}.yaml]}}\n",
        f"values-{env}.yaml": VALUES,
    }


def bring(repository: AppRepository, files: Mapping[str, Mapping[str, str]]) -> None:
    repository.commit(
        {
            f"apps/web/overlays/{env}/{name}": text
            for env, named in files.items()
            for name, text in named.items()
        }
    )


@pytest.mark.parametrize("form", ["chart", "manifests"])
def test_chart_or_manifests_are_promoted_rolled_back_and_listed(
    repository: AppRepository, ucp: Ucp, form: str
) -> None:
    if form == "chart":
        bring(repository, {env: chart(env) for env in ("stage", "prod")})
        names = {env: f"values-{env}.yaml" for env in ("stage", "prod")}
        place, old = "image.tag in values-stage.yaml", VALUES
    else:
        bring(repository, {env: {"web.yaml": MANIFEST} for env in ("stage", "prod")})
        names = dict.fromkeys(("stage", "prod"), "web.yaml")
        place, old = "containers.0.image in web.yaml", MANIFEST
    files = {env: f"apps/web/overlays/{env}/{name}" for env, name in names.items()}
    repo = ("--repo", repository.url)

    first = ucp.promote("web", "--env", "stage", "--tag", "2.0.0", "--sequence", "7", *repo)
    assert (first.code, first.status) == (0, "promoted"), first.err
    assert place in first.err
    assert first.data["images"] == [{"name": "example.org/web", "from": "1.0.0", "to": "2.0.0"}]
    assert repository.text(files["stage"]) == old.replace("1.0.0", "2.0.0")
    assert "Ucp-Image: example.org/web\nUcp-From: 1.0.0\nUcp-To: 2.0.0" in repository.message()

    early = ucp.promote("web", "--env", "prod", "--tag", "3.0.0", *repo)
    assert (early.code, early.status) == (1, "gated")
    second = ucp.promote("web", "--env", "prod", "--from", "stage", *repo)
    assert (second.code, second.status) == (0, "promoted"), second.err
    assert repository.text(files["prod"]) == old.replace("1.0.0", "2.0.0")

    back = ucp("rollback", "web", "--env", "stage", "-o", "json", *repo)
    assert (back.code, back.data["to"]) == (0, "1.0.0"), back.err
    assert repository.text(files["stage"]) == old
    again = ucp.promote("web", "--env", "stage", "--tag", "2.0.0", "--sequence", "7", *repo)
    assert (again.code, again.status) == (1, "held")

    told = ucp("history", "web", "-o", "json", *repo)
    assert [(each["env"], each["kind"], each["to"]) for each in told.data] == [
        ("stage", "rollback", "1.0.0"),
        ("prod", "promote", "2.0.0"),
        ("stage", "promote", "2.0.0"),
        *sorted([("prod", "edit", "1.0.0"), ("stage", "edit", "1.0.0")]),
    ]
    repository.prove_sound()
