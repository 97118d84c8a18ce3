"""Rules of `ucp check`: each with inputs that violate it, and inputs that don't."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.gitops.check.files import (
    Tree,
    find_core_faults,
    find_environment_faults,
    find_file_faults,
    find_topology_faults,
)
from k8s_ucp.gitops.check.kinds import find_misfits, foreign_kinds, version
from k8s_ucp.gitops.check.objects import (
    Mirrored,
    find_faults,
    hosts,
    is_moving,
    mirrored_in,
    missing,
    unpinned_image,
)
from k8s_ucp.gitops.check.repositories import (
    find_host_faults,
    find_node_port_faults,
    find_repeated_faults,
)
from k8s_ucp.gitops.check_hook import changed_apps
from k8s_ucp.gitops.manifests.build_many import Built, objects
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.topology import parse

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: IMAGE
          env:
            - {name: A, valueFrom: {secretKeyRef: {name: SECRET, key: KEY}}}
"""
SERVICE = """\
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
"""
INGRESS = """\
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules:
    - host: a.example.org
      http:
        paths:
          - {path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}
"""


ROUTE = """\
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: traefik-gateway, namespace: traefik}]
  hostnames: [a.example.org]
  rules:
    - matches: [{path: {type: PathPrefix, value: /}}]
      backendRefs: [{name: web, port: 80}]
"""


def faults(text: str, mirrored: Mirrored | None = None, **values: str) -> list[str]:
    defaults = {"IMAGE": "a/b:1.0", "SECRET": "s", "KEY": "k"}
    for name, value in {**defaults, **values}.items():
        text = text.replace(name, value)
    return [each.message for each in find_faults(objects(text), mirrored)]


def test_object_that_sops_encrypts_is_reported_as_that() -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nsops: {mac: x, age: []}\n"
    [fault] = faults(secret)
    assert "unknown field sops: SOPS encrypts this object" in fault and "fromOutside" in fault
    assert faults(secret.replace("mac", "any")) == ["Secret db: unknown field sops"]


def test_data_of_generators_need_not_be_yaml() -> None:
    generators = "configMapGenerator: [{name: c, files: [a.yaml, k=../more/b.yaml]}]\n"
    files = {
        "apps/web/base/kustomization.yaml": generators,
        **{
            f"apps/web/{each}": "a: {{ b }}: c" for each in ("base/a.yaml", "more/b.yaml", "c.yaml")
        },
    }
    tree = Tree({path: text.encode() for path, text in files.items()})
    found = [each.path for each in find_file_faults(tree) if each.rule == "yaml-invalid"]
    assert found == ["apps/web/c.yaml"]


def test_valid_objects_have_no_faults() -> None:
    assert faults(DEPLOYMENT + SERVICE + INGRESS) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("replicas", "replcas", None),
        ("selector: {matchLabels", "selectr: {matchLabels", "unknown field spec.selectr"),
        ("  selector: {matchLabels: {app: web}}\n", "", "spec.selector is missing"),
        ("image: IMAGE", "image: 1", "image must be text, not 1"),
        ("port: 80", "port: http", "spec.ports[0].port must be a whole number"),
        ("port: 80", "port: 8e+01", None),
        ("port: 80", "port: 8.5", "must be a whole number"),
        ("pathType: Prefix", "pathType: prefix", "must be one of"),
        ("containers:\n        - name: web", "containers:\n          name: web", "must be a list"),
        ("apiVersion: apps/v1", "apiVersion: apps/v1beta1", "has no apps/v1beta1 Deployment"),
        ("kind: Ingress", "kind: Ingres", "has no networking.k8s.io/v1 Ingres"),
        ("service: {name: web", "service: {name: wbe", "references the Service wbe"),
        ("port: {name: http}", "port: {number: 81}", "references the port 81"),
        ("selector: {app: web}, ports", "selector: {app: wbe}, ports", "no pod in the overlay"),
        (
            "      containers:",
            "      serviceAccount: old\n      serviceAccountName: web\n      containers:",
            "serviceAccountName is web, but serviceAccount is old",
        ),
        ("      containers:", "      serviceAccount: web\n      containers:", None),
    ],
)
def test_faults_of_objects_are_found(old: str, new: str, words: str | None) -> None:
    text = (DEPLOYMENT + SERVICE + INGRESS).replace(old, new)
    found = faults(text)
    if words is None:
        assert not found
    else:
        assert any(words in each for each in found), found


@pytest.mark.parametrize(
    ("rule", "known"),
    [
        ("{apiGroups: [''], resources: [pods], verbs: [create]}", True),
        ("{apiGroups: ['*'], resources: ['*'], verbs: ['*']}", True),
        ("{apiGroups: [''], resources: [pods], verbs: [get, list]}", False),
        ("{apiGroups: [''], resources: [secrets], verbs: [create]}", False),
    ],
)
def test_a_service_may_select_pods_that_an_operator_can_create(rule: str, known: bool) -> None:
    service = SERVICE.replace("selector: {app: web}", "selector: {app: made}")
    head = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
    role = f"{head}metadata: {{name: operator}}\nrules: [{rule}]\n"
    assert ("no pod in the overlay" in str(faults(DEPLOYMENT + service + role))) is not known


def test_missing_lists_referenced_objects_that_nothing_provides() -> None:
    ignored = DEPLOYMENT.replace(
        "{name: web}\n",
        "{name: web, annotations: {k8s-ucp.io/ignore: 'reference-missing-object: x'}}\n",
        1,
    )
    for text, mirrored, wanted in (
        (DEPLOYMENT, Mirrored(), {"Secret/SECRET"}),
        (DEPLOYMENT, Mirrored().and_also(["Secret/SECRET"]), set()),
        (DEPLOYMENT, None, set()),
        (ignored, Mirrored(), set()),
    ):
        assert missing(objects(text), mirrored) == wanted


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{name: web, port: 80}", "{name: web, port: 80, kind: Service}", None),
        ("{name: web, port: 80}", "{name: far, port: 1, namespace: other}", None),
        ("{name: web, port: 80}", "{name: api@internal, kind: TraefikService}", None),
        ("{name: web, port: 80}", "{name: wbe, port: 80}", "references the Service wbe"),
        ("{name: web, port: 80}", "{name: web, port: 81}", "references the port 81"),
        ("{name: web, port: 80}", "{name: web}", "references the port None"),
        ("parentRefs: [{name: traefik-gateway, namespace: traefik}]", "", "has no Gateway"),
    ],
)
def test_faults_of_http_routes_are_found(old: str, new: str, words: str | None) -> None:
    assert ROUTE.count(old) == 1
    found = faults(DEPLOYMENT + SERVICE + ROUTE.replace(old, new))
    assert (words is None) == (not found)
    assert words is None or words in found[0]


def test_references_are_checked_only_if_the_set_of_objects_is_complete() -> None:
    assert "references the Service web" in faults(INGRESS)[0]
    assert list(find_faults(objects(INGRESS), None, whole=False)) == []
    wrong = objects(INGRESS.replace("pathType: Prefix", "pathType: prefix"))
    assert "must be one of" in next(find_faults(wrong, None, whole=False)).message


def test_an_object_with_generate_name_is_reported_by_its_prefix() -> None:
    hook = DEPLOYMENT.replace("name: web}\nspec:\n  sel", "generateName: web-}\nspec:\n  sel")
    said = faults(f"{hook}---\n{hook}", IMAGE="nginx:latest")
    assert said == 2 * ["Deployment web-*: the image nginx has the mutable tag latest"]


def test_a_duplicate_object_is_found() -> None:
    assert faults(SERVICE + SERVICE) == ["duplicate object Service web"]


@pytest.mark.parametrize("image", ["a/b", "r:5000/b", "b:latest", "b:main", "b:latest-alpine"])
def test_unpinned_images_are_found(image: str) -> None:
    assert unpinned_image(image)
    assert faults(DEPLOYMENT, IMAGE=image)


@pytest.mark.parametrize(
    "image", ["a/b:1", "r:5000/b:v2", "b:main-3f2a91c", "b:2024-stable", f"b@sha256:{'0' * 64}"]
)
def test_pinned_images_are_accepted(image: str) -> None:
    assert not unpinned_image(image)


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("${REGISTRY}/web:1.0.0", ", a placeholder that nothing replaces"),
        ("example.org/web:{{ tag }}", ", a placeholder that nothing replaces"),
        ("example.org/web:<version>", ", a placeholder that nothing replaces"),
        ("Web:1.0.0", ""),
        ("example.org/team/Web:1.0.0", ""),
        ("https://example.org/web:1.0.0", ""),
        (":1.0.0", ""),
    ],
)
def test_invalid_image_names_are_found(image: str, why: str) -> None:
    said = f"Deployment web: the image {image} is not a valid name{why}"
    assert faults(DEPLOYMENT, IMAGE=f'"{image}"') == [said]


@pytest.mark.parametrize(
    "image",
    [
        "Team/a__b:V1.2_3",
        "r.example.org:5000/a/b-c.d:1",
        f"[::1]:5000/b@sha256:{'0' * 64}",
        "auto:1",
    ],
)
def test_valid_image_names_are_accepted(image: str) -> None:
    assert not faults(DEPLOYMENT, IMAGE=f'"{image}"')


def test_secrets_and_keys_that_nothing_provides_are_found() -> None:
    assert "neither the overlay nor a mirror" in faults(DEPLOYMENT, Mirrored())[0]
    assert not faults(DEPLOYMENT, None)
    assert not faults(DEPLOYMENT, Mirrored({("Secret", "s"): frozenset()}))
    brought = Mirrored({("Secret", "s"): frozenset({"endpoint"})})
    assert "the key k of the Secret s, which has endpoint" in faults(DEPLOYMENT, brought)[0]
    outside = DEPLOYMENT.replace(
        "name: web}\nspec", "name: web, annotations: {k8s-ucp.io/from-outside: Secret/s}}\nspec", 1
    )
    assert not faults(outside, Mirrored())
    assert not faults(DEPLOYMENT, Mirrored().and_also(["Secret/s"]))
    assert faults(DEPLOYMENT, Mirrored().and_also(["ConfigMap/s"]))
    assert faults(DEPLOYMENT, brought.and_also(["Secret/s"])), "its keys are known"
    own = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {other: x}\n"
    assert "which has other" in faults(DEPLOYMENT + own)[0]
    external = (
        "---\napiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: s}\n"
    )
    assert not faults(DEPLOYMENT + external, Mirrored())


def test_mirrored_in_lists_the_keys_that_syncers_provide() -> None:
    entry = {
        "sourceName": "quotes-stage-connection",
        "sourceNamespace": "ucp-clusters",
        "kinds": "secret",
        "targetCluster": "demo-stage",
        "targetNamespace": "quote",
        "targetName": "database",
    }
    syncer = {"kind": "Syncer", "metadata": {"name": "a"}, "spec": {"data": [entry]}}
    found = mirrored_in([syncer], "quote", "stage")
    assert found is not None
    assert "password" in found.keys["Secret", "database"]
    for app, environment in (("quote", "prod"), ("echo", "stage")):
        other = mirrored_in([syncer], app, environment)
        assert other is not None and not other.keys
    by_labels = {**entry, "sourceName": None}
    assert mirrored_in([{**syncer, "spec": {"data": [by_labels]}}], "quote", "stage") is None


def test_hosts_and_paths_of_ingresses_and_routes_are_listed() -> None:
    assert list(hosts(objects(INGRESS)[0])) == [("a.example.org", "/")]
    route = {"kind": "HTTPRoute", "spec": {"hostnames": ["b.example.org"]}}
    assert list(hosts(route)) == [("b.example.org", "/")]
    assert list(hosts(objects(ROUTE)[0])) == [("a.example.org", "/")]
    by_header = ROUTE.replace(
        "value: /}}]", "value: /a}}, {path: {value: /a}, headers: [{name: x, value: y}]}]"
    )
    header, plain = '{"headers": [{"name": "x", "value": "y"}]}', "/a"
    assert list(hosts(objects(by_header)[0])) == [
        ("a.example.org", plain),
        ("a.example.org", f"{plain} {header}"),
    ]


def test_hosts_of_routes_of_traefik_are_listed() -> None:
    matches = ["Host(`a.example.org`, `b.example.org`)", "Path(`/x`)", 'Host("B.example.org")']
    route = {"kind": "IngressRoute", "spec": {"routes": [{"match": each} for each in matches]}}
    assert [host for host, _ in hosts(route)] == ["a.example.org", *(2 * ["b.example.org"])]
    assert len(set(hosts(route))) == 3, "different matches of a host are no conflict"
    assert not list(hosts({"kind": "IngressRoute", "spec": {"routes": [{"match": 5}, None]}}))


def test_a_host_used_by_two_apps_of_an_environment_is_found() -> None:
    ingress = objects(INGRESS)
    folders = [f"apps/{each}/overlays/{env}" for each in ("a", "b") for env in ("stage", "prod")]
    alone = {each: ingress for each in folders if "/a/" in each}
    files = tree({f"{each}/kustomization.yaml": "" for each in folders})
    assert list(find_host_faults(files, Built(alone))) == []
    found = list(find_host_faults(files, Built(dict.fromkeys(folders, ingress))))
    assert {(each.path, each.rule) for each in found} == {
        (f"apps/b/overlays/{env}", rule)
        for env in ("stage", "prod")
        for rule in ("host-taken", "host-path-duplicate")
    }


def test_a_node_port_used_by_two_services_of_an_environment_is_found() -> None:
    def service(name: str, *ports: str) -> list[dict[str, object]]:
        listed = ", ".join(f"{{port: 80, {each}}}" for each in ports)
        return objects(
            f"apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n"
            f"spec: {{type: NodePort, ports: [{listed}]}}\n"
        )

    a, b, c = (f"apps/{each}/overlays/stage" for each in "abc")
    prod = "apps/c/overlays/prod"
    files = tree({f"{each}/kustomization.yaml": "" for each in (a, b, c, prod)})
    built = {
        a: service("web", "nodePort: 31000", "nodePort: 31000, protocol: UDP"),
        b: service("web", "nodePort: 31000, protocol: TCP", "name: none", "nodePort: 31001"),
        c: service("x", "nodePort: 31002") + service("y", "nodePort: 31002"),
        prod: service("web", "nodePort: 31000"),
    }
    assert [str(each.message) for each in find_node_port_faults(files, Built(built))] == [
        f"the node port 31000 is already used by Service/web of {a}",
        "the node port 31002 is already used by Service/x",
    ]


def tree(files: Mapping[str, str]) -> Tree:
    return Tree({path: text.encode() for path, text in files.items()})


OVERLAY = "apps/web/overlays/stage/kustomization.yaml"
FILES: dict[str, tuple[dict[str, str], str]] = {
    "no YAML": ({"a.yaml": "a: ["}, "not valid YAML"),
    "a base that moves": (
        {OVERLAY: "resources: ['https://g/x//y?ref=main']"},
        "main is a branch",
    ),
    "a base of no version": ({OVERLAY: "resources: ['git@g:x.git//y']"}, "add ?ref="),
    "a chart that moves": (
        {"a.yaml": "kind: Application\nspec: {source: {chart: c, targetRevision: 1.x}}"},
        "the chart c has no exact version: 1.x",
    ),
    "a helm chart that moves": (
        {OVERLAY: "helmCharts: [{name: c}]"},
        "the chart c has no exact version: none",
    ),
    "a package that moves": (
        {"a.yaml": "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nspec: {package: x/y}"},
        "the package x/y has no tag",
    ),
    "a list that is none": ({OVERLAY: "resources: 5"}, "resources is not a list"),
    "charts that are no list": ({OVERLAY: "helmCharts: 5"}, "helmCharts is not a list"),
    "an action by tag": (
        {".github/workflows/a.yml": "steps:\n  - uses: actions/checkout@v4\n"},
        "actions/checkout@v4 is not pinned",
    ),
    "a GitHub pipeline for a local repository": (
        {".github/workflows/a.yml": "UCP_PROMOTE_REPO: file:///w/gitops/demo/apps.git\n"},
        "the pipeline promotes to file:///w/gitops/demo/apps.git",
    ),
    "a GitLab pipeline for a local repository": (
        {"ci/release.yml": 'p:\n  variables:\n    UCP_PROMOTE_REPO: "file:///w/apps.git"\n'},
        "the pipeline promotes to file:///w/apps.git",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_faults_of_files_are_found(case: str) -> None:
    files, words = FILES[case]
    found = list(find_file_faults(tree(files)))
    assert len(found) == 1
    assert words in found[0].message


def test_valid_files_have_no_faults() -> None:
    good = {
        OVERLAY: "resources: [../../base, 'https://g/x//y?ref=v1.0']\nhelmCharts: "
        "[{name: c, version: 1.2.3}]",
        "a.yaml": "kind: Application\nspec: {source: {chart: c, targetRevision: 1.2.3}}",
        ".github/workflows/a.yml": f"- uses: actions/checkout@{'a' * 40} # v4\n- uses: ./mine\n",
        ".github/workflows/b.yml": "UCP_PROMOTE_REPO: https://g/apps.git\n",
        "platform/argocd/engine/crds.yaml": "a: [",
    }
    assert list(find_file_faults(tree(good))) == []


def test_a_pipeline_of_blank_lines_does_not_take_minutes() -> None:
    blank = 150_000 * "\n"
    pipeline = f"{blank}UCP_PROMOTE_REPO: file:///w/apps.git\n- uses: a/b@v4\n\t  -  uses: c/d@v1\n"
    faults = find_file_faults(tree({".github/workflows/a.yml": f"a: |\n{pipeline}"}))
    assert {each.value for each in faults if each.rule != "yaml-invalid"} == {
        "a/b@v4",
        "c/d@v1",
        "file:///w/apps.git",
    }


def test_a_link_by_which_argo_cd_recognizes_an_app_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "apps/web/overlays/stage"
    folder.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("a: token\n")
    (folder / "mine.txt").write_text("resources: [far.yaml]\n")
    (folder / "kustomization.yaml").symlink_to("mine.txt")
    (folder / "far.yaml").symlink_to("mine.txt")
    found = Tree.of(tmp_path)
    assert found.overlays == [("apps/web/overlays/stage", "web", "stage")]
    assert "apps/web/overlays/stage/far.yaml" not in found.files
    for target in ("/etc/hostname", "kustomization.yaml", tmp_path / ".git" / "config", "none"):
        (folder / "kustomization.yaml").unlink()
        (folder / "kustomization.yaml").symlink_to(target)
        assert Tree.of(tmp_path).overlays == []


def test_what_argo_cd_applies_from_a_directory_is_read(tmp_path: Path) -> None:
    """JSON, hidden files, links, folders of any name, and lists of any kind."""
    folder, beside = tmp_path / "apps/web/overlays/stage", tmp_path / "apps/api/overlays/stage"
    for each in (folder / "node_modules", beside):
        each.mkdir(parents=True)
    ingress = "{kind: Ingress, metadata: {name: %s}, spec: {rules: [{host: %s.example.org}]}}\n"
    (folder / "a.json").write_text(
        json.dumps({"kind": "Ingress", "spec": {"rules": [{"host": "a"}]}})
    )
    (folder / ".b.yaml").write_text(ingress % ("b", "b"))
    (folder / "node_modules/c.yml").write_text(ingress % ("c", "c"))
    (folder / "d.yaml").write_text(f"kind: Any\nitems: [{ingress % ('d', 'd')}, 5]\n")
    (folder / "data.txt").write_text(ingress % ("e", "e"))
    (folder / "e.yaml").symlink_to("data.txt")
    (folder / "f.yaml").symlink_to("/etc/hostname")
    (folder / "package.json").write_text('{"name": "web"}')
    (folder / ".argocd-source.yaml").write_text("kind: none\n")
    (beside / "kustomization.yaml").write_text("resources: []\n")
    (beside / "far.yaml").symlink_to("../../../web/overlays/stage/data.txt")
    (beside / "g.json").write_text('{"kind": "Ingress"}')
    (tmp_path / "package.json").write_text('{"kind": "none"}')
    found = [
        (path.removeprefix("apps/web/overlays/stage/"), item)
        for path, item in Tree.of(tmp_path).plain()
    ]
    assert {path: [host for host, _ in hosts(item)] for path, item in found} == {
        "a.json": ["a"],
        ".b.yaml": ["b.example.org"],
        "node_modules/c.yml": ["c.example.org"],
        "d.yaml": ["d.example.org"],
        "e.yaml": ["e.example.org"],
    }


def test_settings_that_only_argo_cd_applies_are_listed() -> None:
    settings = ".argocd-source.yaml"
    kustomize = "kustomize: {patches: [{patch: '{}'}]}\n"
    files = {
        "apps/a/overlays/stage/kustomization.yaml": "",
        f"apps/a/overlays/stage/{settings}": kustomize,
        "apps/b/overlays/stage/Chart.yaml": "name: b\n",
        f"apps/b/overlays/stage/{settings}": "helm: {releaseName: b, fileParameters: []}\n",
        "apps/c/overlays/stage/c.yaml": "",
        f"apps/c/overlays/stage/{settings}": "directory: {recurse: true}\n",
        "apps/c/overlays/stage/.argocd-source-c-stage.yaml": "directory: {recurse: false}\n",
        "apps/d/overlays/stage/kustomization.yaml": "",
        f"apps/d/overlays/stage/{settings}": "directory: {recurse: true}\n",
        f"apps/d/base/{settings}": kustomize,
        f"apps/e/overlays/stage/{settings}": "a: [",
    }
    assert [(path.split("/")[1], key) for path, _, key in tree(files).settings] == [
        ("a", "kustomize"),
        ("b", "helm.fileParameters"),
        ("c", "directory"),
        ("d", "directory"),
    ]


def test_templates_of_a_chart_are_not_parsed_as_yaml() -> None:
    chart = {
        "apps/web/overlays/stage/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "apps/web/overlays/stage/values.yaml": "kind: nothing\n",
        "apps/web/overlays/stage/templates/a.yaml": "a: {{ .Values.a }}\n{{- end }}\n",
    }
    assert list(find_file_faults(tree(chart))) == []
    assert list(tree(chart).plain()) == []
    read = {"apps/web/overlays/stage/rules/a.yaml": "a: {{ .Values.a }}\n{{- end }}\n"}
    assert list(find_file_faults(tree(chart | read))) == [], "templates read it as text"
    for name in ("values.yaml", "crds/a.yaml"):
        broken = {f"apps/web/overlays/stage/{name}": "a: ["}
        assert [each.path for each in find_file_faults(tree(chart | broken))] == list(broken)
    beside = {"apps/web/templates/a.yaml": "a: {{ .Values.a }}\n{{- end }}\n"}
    assert [each.path for each in find_file_faults(tree(chart | beside))] == list(beside)


@pytest.mark.parametrize("text", ["environments: 5", "environments: {a: b}"])
def test_environments_that_are_not_a_list_are_found(text: str) -> None:
    found = [each.message for each in find_environment_faults(tree({"environments.yaml": text}))]
    assert found == ["environments is not a list"]


@pytest.mark.parametrize(
    "text", ["metadata:", "metadata: [a]", "metadata: {annotations: [a]}", "metadata: {labels: a}"]
)
def test_an_object_with_malformed_metadata_is_found(text: str) -> None:
    (found,) = find_faults(objects(f"kind: A\n{text}\n"), None)
    assert " must be a mapping" in found.message


def test_faults_of_environments_are_found() -> None:
    text = "environments: [{name: a}, {name: a}, {name: b, promotesFrom: c}]"
    system = "apps/kube-system/overlays/a/kustomization.yaml"
    files = {"environments.yaml": text, OVERLAY: "{}", system: "{}"}
    found = [each.message for each in find_environment_faults(tree(files))]
    assert sorted(found) == [
        "an app can't be named 'kube-system': its namespace is reserved for Kubernetes",
        "b promotes from c, which is not an environment",
        "duplicate environment a",
        "environments.yaml has no environment stage",
    ]


def test_overlays_with_the_same_application_name_are_found() -> None:
    """Argo CD drops both Applications, although each overlay is valid on its own."""
    paths = ("web/overlays/eu-stage", "web-eu/overlays/stage", "web/overlays/stage")
    files = {f"apps/{each}/kustomization.yaml": "{}" for each in paths}
    (found,) = find_environment_faults(tree(files))
    assert found.path == "apps/web-eu/overlays/stage"
    assert found.message.startswith(
        "the Application name 'web-eu-stage' is also used for apps/web/overlays/eu-stage,"
    )


def application(name: str, url: str, path: str, project: str = "infrastructure") -> str:
    return (
        f"kind: Application\nmetadata: {{name: {name}}}\n"
        f"spec: {{project: {project}, source: {{repoURL: {url}, path: {path}}}}}\n"
    )


def test_applications_with_missing_paths_or_projects_are_found() -> None:
    files: dict[str, str] = {
        "projects/infrastructure.yaml": "kind: AppProject\nmetadata: {name: infrastructure}\n",
        "bootstrap/root.yaml": application("root", "core", "bootstrap"),
        "projects/apps.yaml": "kind: AppProject\nmetadata: {name: applications}\n"
        "spec: {sourceRepos: [apps]}\n",
        "bootstrap/apps.yaml": application("one-more", "apps", "apps/one", "applications"),
        "bootstrap/a.yaml": application("a", "core", "platform/a"),
        "bootstrap/b.yaml": application("b", "elsewhere", "b", "infrastrcture"),
    }
    found = [each.message for each in find_core_faults(tree(files), tree({"x": ""}))]
    assert found == [
        "the Application one-more references the path apps/one, which does not exist",
        "the Application a references the path platform/a, which does not exist",
        "the Application b references the project infrastrcture, which does not exist",
    ]


def test_faults_of_ucp_yaml_in_the_core_repository_are_found() -> None:
    def faults_of(text: str) -> list[Any]:
        from pathlib import Path

        found = find_topology_faults(tree({"ucp.yaml": text}), lambda t: parse(t, Path("ucp.yaml")))
        return [(each.path, each.message) for each in found]

    assert faults_of("kind: Topology\n") == [
        ("ucp.yaml", "1: the file requires the key 'metadata'")
    ]
    assert faults_of("kind: Topology\nmetadata: {name: a}\n") == []


def test_roots_are_folders_that_no_kustomization_includes() -> None:
    files = {
        "apps/web/base/kustomization.yaml": "resources: [x.yaml]",
        OVERLAY: "resources: [../../base]",
        "clusters/kustomization.yml": "resources: [overlays/a]",
        "clusters/overlays/a/Kustomization": "{}",
        "plain/x.yaml": "kind: A",
        "clusters/base/b.yaml": "kind: B",
    }
    found = tree(files)
    assert found.roots == ["apps/web/overlays/stage", "clusters"]
    assert found.overlays == [("apps/web/overlays/stage", "web", "stage")]
    assert [path for path, _ in found.plain()] == ["plain/x.yaml"]


def test_variants_of_an_object_in_one_directory_are_found() -> None:
    """kustomize refuses them, but Argo CD applies one, and nobody knows which."""
    web = "kind: Service\napiVersion: v1\nmetadata: {name: web}\n"
    other = web.replace("name: web", "name: web, namespace: other")
    unnamed = "kind: Job\napiVersion: batch/v1\nmetadata: {generateName: job-}\n"
    place = "apps/web/overlays/stage"
    variants = {f"{place}/a.yaml": web, f"{place}/small/a.yaml": web, f"{place}/b.yaml": other}
    (found,) = find_repeated_faults(tree(variants))
    assert (found.path, found.object) == (f"{place}/small/a.yaml", "Service/web")
    assert found.message == f"Service/web is twice in this directory, also in {place}/a.yaml"
    (found,) = find_repeated_faults(tree({f"{place}/a.yaml": f"{web}---\n{web}"}))
    assert found.path == f"{place}/a.yaml"
    sound = {
        f"{place}/a.yaml": f"{web}---\n{unnamed}---\n{unnamed}",
        "apps/web/overlays/prod/a.yaml": web,
        "plain/a.yaml": f"{web}---\n{web}",
    }
    assert list(find_repeated_faults(tree(sound))) == []


def test_apps_are_checked_if_what_they_include_has_changed() -> None:
    files = {
        "apps/web/overlays/stage/kustomization.yaml": "resources: [../../base]\n",
        "apps/web/base/kustomization.yaml": "resources: ['../../../shared//']\n",
        "apps/api/overlays/stage/kustomization.yaml": "resources: [../../../web/base]\n",
        "apps/own/overlays/stage/kustomization.yaml": "resources: [https://g/x?ref=v1, a.yaml]\n",
        "shared/kustomization.yaml": "resources: [a.yaml]\npatches: [{path: ../p.yaml}]\n",
    }
    found = tree(files)
    assert found.apps_using(["shared/a.yaml"]) == {"web", "api"}
    assert found.apps_using(["shared/kustomization.yaml"]) == {"web", "api"}
    assert found.apps_using(["p.yaml", "README.md"]) == {"web", "api"}
    assert found.apps_using(["apps/web/base/kustomization.yaml"]) == {"web", "api"}
    assert found.apps_using(["a.yaml", "shared/other.yaml", "*"]) == set()


def test_submodules_with_apps_are_listed() -> None:
    text = '[submodule "a"]\n\tpath = apps/web/overlays/stage\n\turl = https://g/x\n'
    text += '[submodule "b"]\n  path="./apps/api"\r\n[submodule "c"]\n  path = docs\n'
    found = tree({".gitmodules": text}).submodules
    assert found == ["apps/api", "apps/web/overlays/stage"]
    assert tree({}).submodules == []


def test_changed_apps_are_derived_from_the_changed_paths() -> None:
    assert changed_apps(["apps/web/base/x", "README.md", "apps/a/overlays/b/c"]) == {"web", "a"}
    assert changed_apps(["apps/web/x", "*"]) is None
    assert changed_apps(['"apps/\\303\\244/x"']) is None


def test_the_schema_table_matches_the_pinned_kubernetes_version() -> None:
    assert version() == f"v{CATALOGUE['kubernetes'].version}", "make kinds"
    assert list(find_misfits({"apiVersion": "apps/v1", "kind": "Deployment", "x": 1}))
    assert not list(find_misfits({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "x": 1}))


def test_mutable_versions_are_recognized() -> None:
    assert is_moving("main") and is_moving("alpine-latest") and not is_moving("v1.2.3")


def test_apps_rendered_by_jsonnet_are_listed() -> None:
    place = "apps/{}/overlays/prod"
    files = {
        f"{place.format('made')}/lib/web.jsonnet": b"{}",
        f"{place.format('chart')}/Chart.yaml": b"name: chart",
        f"{place.format('chart')}/files/board.jsonnet": b"{}",
        f"{place.format('plain')}/web.yaml": b"kind: Other",
    }
    assert Tree(files).jsonnet == ["made"]


def test_foreign_kinds_lists_kinds_without_a_crd_among_the_objects() -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"group": "own.example", "names": {"kind": "Own"}},
    }
    others = [("own.example/v1", "Own"), ("argoproj.io/v1alpha1", "Rollout"), ("v1", "Pod")]
    objects = [crd, *({"apiVersion": version, "kind": kind} for version, kind in others)]
    assert foreign_kinds(objects) == ["Rollout.argoproj.io"]
    assert foreign_kinds(objects[1:]) == ["Own.own.example", "Rollout.argoproj.io"]
