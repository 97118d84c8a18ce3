"""Environments in names, and commands that add apps."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.imports.findings import NAMES, RemoteSource, free_name, in_text
from k8s_ucp.gitops.imports.trees import Origin


@pytest.mark.parametrize(
    ("name", "environment"),
    [
        ("integration-staging", "staging"),
        ("preview-controller-prod", "prod"),
        ("prod-test", "prod"),
        ("web-pre-prod", "pre-prod"),
        ("web-test", "test"),
        ("integration", "integration"),
        ("web", None),
    ],
)
def test_a_word_that_is_usual_in_names_of_apps_is_the_environment_only_if_none_other_is(
    name: str, environment: str | None
) -> None:
    assert in_text(name, NAMES) == environment


def test_a_command_has_no_name_that_is_reserved() -> None:
    chart = RemoteSource("https://charts.example.org", chart="kube-web")
    words = "ucp app add web --chart kube-web --repo https://charts.example.org"
    assert chart.command("kube-web") == words
    assert Origin(folder="repo").command("default", "all") == "ucp app add default-app repo/all"


@pytest.mark.parametrize(
    ("name", "used", "free"),
    [
        ("web", (), "web"),
        ("web", ("web",), "web-app"),
        ("web", ("web", "web-app"), "web-2"),
        ("kube-prometheus-stack", (), "prometheus-stack"),
        ("kube-ingress-nginx", ("ingress-nginx-app",), "ingress-nginx-2"),
        ("w" * 40, ("w" * 40,), "w" * 36 + "-app"),
    ],
)
def test_a_name_that_is_proposed_can_be_used(name: str, used: tuple[str, ...], free: str) -> None:
    assert free_name(name, used) == free
