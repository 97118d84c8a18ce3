"""Manifests that another tool has to fill are reported instead of offered as apps."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from k8s_ucp.gitops.imports.argocd.application_templates import fill
from k8s_ucp.gitops.imports.argocd.go_templates import chart_of
from k8s_ucp.gitops.imports.findings import NotImportable
from k8s_ucp.gitops.imports.templates import refuse_templates
from tests.unit.gitops.imports.repository_files import application, found, overlay, refusal

SKELETON = """apiVersion: v1
kind: Service
metadata:
  labels: {app: web}
  name: ${{ values.name }}
spec: {}
"""
IN_CAPITALS = "apiVersion: v1\nkind: Service\nmetadata:\n  name: <CLUSTER_NAME>-web\n"
UNQUOTED = "apiVersion: v1\r\nkind: Namespace\r\nmetadata:\r\n  name: {{ args.team }}\r\n"
FOR_ENVSUBST = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: ${SPACE}\n"


@pytest.mark.parametrize("text", [SKELETON, UNQUOTED, IN_CAPITALS, FOR_ENVSUBST])
def test_a_placeholder_in_a_name_makes_a_template(text: str) -> None:
    with pytest.raises(NotImportable) as refused:
        refuse_templates({"web/a.yaml": b"", "web/all.yaml": text.encode()}, "ucp app add web web")
    assert refused.value.reason.startswith("web/all.yaml is a template: an object in it is called ")
    assert "ucp app add web web (with the result)" in refused.value.advice


@pytest.mark.parametrize(
    "text",
    [
        "kind: Workflow\nmetadata:\n  name: web\nspec:\n  name: '{{inputs.x}}'\n",
        "kind: ConfigMap\nmetadata:\n  name: web\ndata:\n  a: |\n    metadata:\n      name: {{x}}",
        "kind: PrometheusRule\nmetadata:\n  name: web\n  annotations: {a: '{{ $labels.b }}'}\n",
    ],
)
def test_braces_elsewhere_are_for_programs_in_the_cluster(text: str) -> None:
    refuse_templates({"web/all.yaml": text.encode()}, "ucp app add web web")


def test_a_kustomization_may_replace_a_variable() -> None:
    files = {"web/all.yaml": FOR_ENVSUBST.encode()}
    refuse_templates(files, "ucp app add web web", kustomized=True)


def test_long_metadata_is_read_in_one_pass() -> None:
    annotations = "".join(f"        note-{each}: text\n" for each in range(60))
    text = f"kind: Deployment\nmetadata:\n    annotations:\n{annotations}    labels: {{}}\n"
    files = {"web/all.yaml": f"{text}spec: '{{{{x}}}}'\n".encode()}
    refuse_templates(files, "ucp app add web web")


def test_skeletons_are_refused_and_the_other_apps_are_found() -> None:
    web = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
    there = found(
        {
            "skeleton/manifests/all.yaml": SKELETON,
            "kluctl/.kluctl.yaml": "discriminator: a-{{ target.name }}\n",
            "kluctl/nginx/kustomization.yml": overlay("namespace.yml"),
            "kluctl/nginx/namespace.yml": UNQUOTED,
            "web/all.yaml": web,
        }
    )
    assert [each.name for each in there.findings] == ["web"]
    assert "skeleton/manifests/all.yaml is a template" in refusal(there, "skeleton").reason
    assert "kluctl/nginx/namespace.yml is a template" in refusal(there, "nginx").reason
    project = refusal(there, "kluctl")
    assert project.reason == "kluctl/.kluctl.yaml of Kluctl is not read"
    assert project.advice.startswith("kluctl render -t TARGET --print-all > FILE.yaml; then: ucp")


def test_applications_with_placeholders_are_templates() -> None:
    sources: dict[str, dict[str, str]] = {
        "web": {"repoURL": "<GITOPS_REPO_URL>", "path": "web"},
        "api": {"path": "registry/<CLUSTER_NAME>/api"},
        "jobs": {"repoURL": "${GIT_REPO}", "path": "jobs"},
    }
    there = found({f"{name}.yaml": application(name, each) for name, each in sources.items()})
    assert not there.findings
    assert refusal(there, "web").reason == "it is a template: its repoURL has <GITOPS_REPO_URL>"
    assert refusal(there, "api").reason == "it is a template: its path has <CLUSTER_NAME>"
    assert refusal(there, "jobs").reason == "it is a template: its repoURL has ${GIT_REPO}"


@pytest.mark.parametrize("text", ["{{ " + " " * 30_000, "{" * 30_000, "{{ a }}" + "{{" * 15_000])
def test_actions_without_an_end_are_read_within_seconds(text: str) -> None:
    began = time.process_time()
    assert fill(text, {"a": 1}, go=False).endswith(text[-9:])
    chart_of([text], [])
    assert time.process_time() - began < 3


def test_actions_are_filled_as_argo_cd_does() -> None:
    for text, filled in (
        ("{{a}}-{{ a }}", "1-1"),
        ("x {{- a -}} y", "x 1 y"),
        ("{{ a }}\n{{\na\n}}", "1\n1"),
        ("}} {{ a }} {{", "}} 1 {{"),
    ):
        assert fill(text, {"a": 1}, go=False) == filled


@pytest.mark.parametrize(
    "action", [f"{'(' * 1500}.a{')' * 1500}", f'"a"{8 * (" | replace `a` `" + "a" * 90 + "`")}']
)
def test_an_action_that_grows_or_nests_too_much_is_refused(action: str) -> None:
    with pytest.raises(NotImportable, match="which is not known here"):
        fill(f"{{{{ {action} }}}}", {"a": "a"}, go=True)


@pytest.mark.parametrize("action", ["replace `a` .b .b", "splitList `a` .b | join .b"])
def test_an_action_that_grows_at_once_takes_no_memory(action: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(NotImportable, match="which is not known here"):
            fill(f"{{{{ {action} }}}}", {"b": 10_000 * "a"}, go=True)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
