"""Source files and lines of findings about built manifests."""

from __future__ import annotations

import time
from typing import Any

import pytest

from k8s_ucp.gitops.check import locations
from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.locations import Locations
from k8s_ucp.gitops.check.tree import Tree
from k8s_ucp.gitops.manifests.yaml_text import nodes

OVERLAY = "apps/web/overlays/stage"
TWICE = "apps/twice/overlays/stage"
FILES = {
    f"{OVERLAY}/kustomization.yaml": (
        "resources:\n  - ../../base\nimages:\n  - name: a/moved\n    newTag: latest\n"
    ),
    "apps/web/base/kustomization.yaml": "resources: [web.yaml, 'https://g/x//y?ref=main']\n",
    "apps/web/base/web.yaml": (
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---\n"
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n"
        "  replcas: 1\n  template:\n    spec:\n      containers:\n"
        "        - name: one\n          image: a/b\n"
        "        - name: two\n          ports:\n            - containerPort: x\n"
    ),
    "apps/chart/overlays/stage/Chart.yaml": "name: chart\n",
    "apps/chart/overlays/stage/values.yaml": "image: {repository: a/b}\n",
    ".github/workflows/a.yml": "steps:\n  - uses: actions/checkout@v4\n",
    "apps/twice/overlays/stage/kustomization.yaml": "resources: [two.yaml]\n",
    "apps/twice/overlays/stage/two.yaml": (
        "apiVersion: v1\nkind: Secret\n---\napiVersion: v1\nkind: ConfigMap\nkind: Service\n"
    ),
    "ucp.yaml": "kind: Topology\n",
    "bad.yaml": "a:\n  - [\n",
}
LOCATIONS = Locations(Tree({path: text.encode() for path, text in FILES.items()}))
WEB = "apps/web/base/web.yaml"
DEPLOYMENT = "Deployment/web"


@pytest.mark.parametrize(
    ("fault", "place"),
    [
        (
            Fault("image-moving-tag", "", OVERLAY, DEPLOYMENT, value="a/moved:latest"),
            (f"{OVERLAY}/kustomization.yaml", 5),
        ),
        (Fault("image-untagged", "", OVERLAY, DEPLOYMENT, value="a/b"), (WEB, 14)),
        (Fault("field-unknown", "", OVERLAY, DEPLOYMENT, field="spec.replcas"), (WEB, 9)),
        (
            Fault(
                "field-invalid",
                "",
                OVERLAY,
                DEPLOYMENT,
                field="spec.template.spec.containers[1].ports[0].containerPort",
            ),
            (WEB, 17),
        ),
        (
            Fault("field-invalid", "", OVERLAY, DEPLOYMENT, field="spec.template.spec.volumes[9]"),
            (WEB, 11),
        ),
        (Fault("object-duplicate", "", OVERLAY, DEPLOYMENT), (WEB, 5)),
        (Fault("object-duplicate", "", WEB, "Service/web"), (WEB, 1)),
        (
            Fault("base-unpinned", "", "apps/web/base", value="https://g/x//y?ref=main"),
            ("apps/web/base/kustomization.yaml", 1),
        ),
        (
            Fault("object-duplicate", "", OVERLAY, "Job/from-elsewhere"),
            (f"{OVERLAY}/kustomization.yaml", 1),
        ),
        (
            Fault("image-untagged", "", "apps/chart/overlays/stage", DEPLOYMENT, value="a/b"),
            ("apps/chart/overlays/stage/values.yaml", 1),
        ),
        (
            Fault("object-duplicate", "", "apps/chart/overlays/stage", DEPLOYMENT),
            ("apps/chart/overlays/stage/Chart.yaml", 1),
        ),
        (
            Fault("action-unpinned", "", ".github/workflows/a.yml", value="actions/checkout@v4"),
            (".github/workflows/a.yml", 2),
        ),
        (Fault("topology-invalid", "7: no", "ucp.yaml"), ("ucp.yaml", 7)),
        (Fault("yaml-invalid", 'in "<file>", line 3, column 1', "bad.yaml"), ("bad.yaml", 3)),
        (Fault("check-failed", "no", "."), (".", 1)),
        (
            Fault("build-failed", 'json: unknown field "newTag"', OVERLAY),
            (f"{OVERLAY}/kustomization.yaml", 5),
        ),
        (
            Fault("build-failed", 'line 3: mapping key "kind" already defined at line 2', TWICE),
            (f"{TWICE}/two.yaml", 6),
        ),
        (
            Fault("build-failed", 'line 9: mapping key "kind" already defined at line 2', TWICE),
            (f"{TWICE}/kustomization.yaml", 1),
        ),
    ],
)
def test_a_fault_is_located_in_its_source_file(fault: Fault, place: tuple[str, int]) -> None:
    assert LOCATIONS.find(fault) == place


def test_only_files_that_mention_the_object_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def count(text: str) -> list[Any]:
        parsed.append(text)
        return nodes(text)

    monkeypatch.setattr(locations, "nodes", count)
    files = {"all/kustomization.yaml": "resources: [large.yaml, web.yaml]\n"}
    large = "kind: CustomResourceDefinition\nmetadata: {name: other}\n"
    web = "kind: Service\nmetadata: {name: web}\n"
    content = {path: text.encode() for path, text in files.items()}
    tree = Tree({**content, "all/large.yaml": large.encode(), "all/web.yaml": web.encode("utf-16")})

    found = Locations(tree).find(Fault("object-duplicate", "", "all", "Service/web"))

    assert found == ("all/web.yaml", 1)
    assert large not in parsed


def test_thousands_of_faults_in_one_object_are_located_quickly() -> None:
    text = "kind: Ingress\nmetadata: {name: big}\nspec:\n" + "".join(
        f"- {{host: h{number}, name: s{number}}}\n" for number in range(3000)
    )
    found = Locations(Tree({"apps/web/overlays/stage/big.yaml": text.encode()}))
    faults = [
        Fault("reference-missing-service", "", OVERLAY, "Ingress/big", value=f"s{number}")
        for number in range(3000)
    ]
    begin = time.process_time()
    lines = [found.find(fault)[1] for fault in faults]
    assert time.process_time() - begin < 5
    assert lines == [number + 4 for number in range(3000)]
