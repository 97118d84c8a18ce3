"""A team's limits at real API servers: what Argo CD may apply for it, whatever its project allows,
and what its members may do with their group's permissions.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.gitops.manifests.kustomize import build
from k8s_ucp.gitops.manifests.yaml_text import load_all
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.render.repositories import render, render_team
from k8s_ucp.gitops.render.values.claims import ClaimRequest, claim
from k8s_ucp.kube import Kube, KubeError, Object
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Team, Topology
from tests.control_planes import control_planes, eventually, kind_of_any_fields, made, namespace
from tests.unit.gitops.topologies import FACTS, demo

pytestmark = pytest.mark.engines

SHOP, OTHER = Team(name="shop"), Team(name="rival")
URLS = {"shop": "file:///work/gitops/demo/team-shop.git", "rival": "file:///rival.git"}
MARK = "argocd.argoproj.io/tracking-id"


def teams() -> Topology:
    return demo(teams=(SHOP, OTHER))


def objects(toolbox: Toolbox, folder: Path) -> list[Any]:
    """Objects of the core repository for both teams, for the core and for an environment."""
    render_to(folder, render(teams(), replace(FACTS, team_urls=URLS)))
    roots = ("teams", "teams/shop/environments/open")
    return [
        each
        for root in roots
        for each in load_all(build(toolbox.path("kustomize"), folder / "core" / root))
        if each
    ]


@pytest.fixture(scope="module")
def both(
    serving_core: Kube, tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox
) -> Iterator[tuple[Kube, Kube]]:
    """Return (a core, an environment), each with the team's namespace and fence."""
    found = objects(toolbox, tmp_path_factory.mktemp("teams"))
    # Those of the environment come last: their policy has the same name as that of the core.
    cut = [place for place, each in enumerate(found) if each["kind"] == "Namespace"][-1]
    with control_planes(tmp_path_factory.mktemp("app"), toolbox) as planes:
        app = made(planes.provider(), "demo-stage")
        app.apply(namespace("apps"))
        app.apply(ROUTES)
        for kube, items in ((serving_core, found[:cut]), (app, found[cut:])):
            for each in items:
                kube.apply(each)
        probe = marked(config_map("probe", "apps"))
        for kube in (serving_core, app):
            eventually(partial(is_refused, kube, probe))
        eventually(lambda: not is_refused(app, route(OWN_HOST)))
        yield serving_core, app
        app.close()


def marked(item: Object, application: str = "team-shop.claims") -> Object:
    """An object as Argo CD applies it for an Application, with the tracking annotation."""
    item = copy.deepcopy(item)
    about = item["metadata"]
    place = f"{item['apiVersion'].rpartition('/')[0]}/{item['kind']}"
    mark = f"{application}:{place}:{about.get('namespace', '')}/{about['name']}"
    about.setdefault("annotations", {})[MARK] = mark
    return item


def refusal(kube: Kube, item: Object) -> str:
    """Error of a rejected object; empty if it is accepted."""
    try:
        kube.apply(item, dry_run=True)
    except KubeError as error:
        return error.message
    return ""


def is_refused(kube: Kube, item: Object) -> bool:
    """Return whether it is refused; a policy takes effect after a moment."""
    return refusal(kube, item) != ""


def thing(api: str, kind: str, name: str, namespace: str | None = None, **more: Any) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def config_map(name: str, namespace: str) -> Object:
    return thing("v1", "ConfigMap", name, namespace)


def postgres(**metadata: Any) -> Object:
    found: Any = claim(SHOP, teams().spec.environments[0], ClaimRequest("database", "orders"))
    return {**found, "metadata": {**found["metadata"], **metadata}}


RBAC = "rbac.authorization.k8s.io"
ADMIN = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
EVERYBODY = [{"kind": "Group", "apiGroup": RBAC, "name": "system:authenticated"}]
SOURCE = {"repoURL": URLS["shop"], "path": "apps", "targetRevision": "main"}
TO_ARGOCD = {"server": "https://kubernetes.default.svc", "namespace": "argocd"}
APPLICATION = {"project": "infrastructure", "source": SOURCE, "destination": TO_ARGOCD}
TEMPLATE = {"metadata": {"name": "escape"}, "spec": APPLICATION}
GENERATORS = {
    "list": {"list": {"elements": []}},
    "clusters": {"clusters": {}},
    "git": {"git": {"repoURL": URLS["shop"], "revision": "main", "directories": [{"path": "*"}]}},
    "matrix": {"matrix": {"generators": [{"list": {"elements": []}}, {"clusters": {}}]}},
    "merge": {
        "merge": {"mergeKeys": ["a"], "generators": [{"list": {"elements": []}}, {"clusters": {}}]}
    },
    "scmProvider": {"scmProvider": {"github": {"organization": "x"}}},
    "pullRequest": {"pullRequest": {"github": {"owner": "x", "repo": "y"}}},
    "plugin": {"plugin": {"configMapRef": {"name": "x"}}},
    "clusterDecisionResource": {"clusterDecisionResource": {"configMapRef": "x"}},
}
SYNCER = {
    "data": [
        {
            "sourceName": "kubeconfig",
            "sourceNamespace": "ucp-clusters",
            "targetCluster": "demo-stage",
            "targetNamespace": "team-shop",
        }
    ]
}
ON_THE_CORE = {
    "a ConfigMap of Argo CD": config_map("argocd-cm", "argocd"),
    "a Secret of a cluster": thing("v1", "Secret", "cluster", "argocd"),
    "an Application": thing("argoproj.io/v1alpha1", "Application", "x", "argocd", spec=APPLICATION),
    "an Application at home": thing(
        "argoproj.io/v1alpha1", "Application", "x", "team-shop", spec=APPLICATION
    ),
    "its own project": thing(
        "argoproj.io/v1alpha1",
        "AppProject",
        "team-shop.claims",
        "argocd",
        spec={"sourceRepos": ["*"], "destinations": [{"name": "*", "namespace": "*"}]},
    ),
    **{
        f"an ApplicationSet, {name}": thing(
            "argoproj.io/v1alpha1",
            "ApplicationSet",
            "x",
            "argocd",
            spec={"goTemplate": True, "generators": [each], "template": TEMPLATE},
        )
        for name, each in GENERATORS.items()
    },
    "a Syncer at home": thing("k8s-ucp.io/v1alpha1", "Syncer", "x", "team-shop", spec=SYNCER),
    "a Syncer": thing("k8s-ucp.io/v1alpha1", "Syncer", "x", "ucp-clusters", spec=SYNCER),
    "a cluster": thing(
        "k8s-ucp.io/v1alpha1",
        "LocalCluster",
        "demo-x",
        "team-shop",
        spec={"provider": "embedded", "machine": "x"},
    ),
    "a claim of a rival": postgres(namespace="team-rival"),
    "a claim of the platform": postgres(namespace="ucp-clusters"),
    "a claim by another's name": postgres(name="quotes-stage"),
    "a Role at home": thing(f"{RBAC}/v1", "Role", "x", "team-shop"),
    "a wider quota": thing(
        "v1", "ResourceQuota", "k8s-ucp-team", "team-shop", spec={"hard": {"pods": "9"}}
    ),
    "what isn't a claim": thing("v1", "ConfigMap", "x", "team-shop"),
    "a namespace": thing("v1", "Namespace", "mine"),
    "its own namespace": thing("v1", "Namespace", "team-shop"),
    "a binding to admin": thing(
        f"{RBAC}/v1", "ClusterRoleBinding", "x", roleRef=ADMIN, subjects=EVERYBODY
    ),
    "a ClusterRole": thing(f"{RBAC}/v1", "ClusterRole", "x"),
    "a Composition": thing(
        "apiextensions.crossplane.io/v1",
        "Composition",
        "x",
        spec={
            "compositeTypeRef": {"apiVersion": "k8s-ucp.io/v1alpha1", "kind": "Postgres"},
            "mode": "Pipeline",
            "pipeline": [{"step": "x", "functionRef": {"name": "x"}}],
        },
    ),
}


@pytest.mark.parametrize("case", ON_THE_CORE)
def test_fence_on_the_core_refuses(case: str, both: tuple[Kube, Kube]) -> None:
    for application in ("team-shop.claims", "team-shop.web.stage"):
        said = refusal(both[0], marked(ON_THE_CORE[case], application))
        assert "team-shop.k8s-ucp.io" in said, said


def test_fence_on_the_core_admits_claims_and_objects_of_others(both: tuple[Kube, Kube]) -> None:
    core, _ = both
    # The quota rejects new kinds until it has counted their objects.
    claimed = partial(refusal, core, marked(postgres()))
    eventually(lambda: claimed() == "", claimed)
    # The exact name in the tracking annotation decides, including the dot.
    assert refusal(core, marked(config_map("x", "apps"), "team-shopping.claims")) == ""
    assert refusal(core, config_map("x", "apps")) == ""


BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
INGRESS = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}
CONTAINER = {"name": "web", "image": "web:1"}
PORTS: dict[str, Any] = {"ports": [{"port": 80}], "selector": {"app": "web"}}


OWN_HOST = "web.shop.stage.example.org"
GATEWAY_API = "gateway.networking.k8s.io"
ROUTES = kind_of_any_fields(GATEWAY_API, "HTTPRoute", "v1")


def route(host: str, **backend: Any) -> Object:
    rules = [{"backendRefs": [{"name": "web", "port": 80, **backend}]}, {}]
    spec = {"hostnames": [host], "rules": rules}
    return thing(f"{GATEWAY_API}/v1", "HTTPRoute", "web", "team-shop", spec=spec)


SOMEBODYS = "`) || Host(`echo.stage.example.org"


def at_path(path: str, path_type: str = "Prefix") -> Object:
    return {"http": {"paths": [{"path": path, "pathType": path_type, "backend": BACKEND}]}}


def matching(**match: Any) -> Object:
    item = route(OWN_HOST)
    item["spec"]["rules"].append({"matches": [{}, {"path": {"value": "/"}}, match]})
    return item


def ingress(**spec: Any) -> Object:
    return thing("networking.k8s.io/v1", "Ingress", "web", "team-shop", spec=spec)


def service(**spec: Any) -> Object:
    return thing("v1", "Service", "web", "team-shop", spec={**PORTS, **spec})


ON_AN_ENVIRONMENT = {
    "another namespace": config_map("x", "apps"),
    "the system's namespace": config_map("x", "kube-system"),
    "a Secret": thing("v1", "Secret", "x", "team-shop"),
    "a Role": thing(f"{RBAC}/v1", "Role", "x", "team-shop"),
    "a RoleBinding": thing(
        f"{RBAC}/v1", "RoleBinding", "x", "team-shop", roleRef=ADMIN, subjects=EVERYBODY
    ),
    "a binding to admin": thing(
        f"{RBAC}/v1", "ClusterRoleBinding", "x", roleRef=ADMIN, subjects=EVERYBODY
    ),
    "its own namespace": thing("v1", "Namespace", "team-shop"),
    "a wider quota": thing("v1", "ResourceQuota", "k8s-ucp-team", "team-shop"),
    "no limits": thing("v1", "LimitRange", "k8s-ucp-team", "team-shop"),
    "somebody's host": ingress(rules=[{"host": "echo.stage.example.org", **INGRESS}]),
    "a host that ends alike": ingress(rules=[{"host": "a.xshop.stage.example.org", **INGRESS}]),
    "every host": ingress(rules=[INGRESS]),
    # external-dns creates records for these, too.
    "somebody's host in tls": ingress(
        rules=[{"host": OWN_HOST, **INGRESS}], tls=[{"hosts": [OWN_HOST, "echo.example.org"]}]
    ),
    "an alias": {
        **ingress(rules=[{"host": OWN_HOST, **INGRESS}]),
        "metadata": {
            "name": "web",
            "namespace": "team-shop",
            "annotations": {"nginx.ingress.kubernetes.io/server-alias": "echo.example.org"},
        },
    },
    "all traffic": ingress(defaultBackend=BACKEND),
    "a route of somebody's host": route("echo.stage.example.org"),
    "a route to traefik's API": route(
        OWN_HOST, group="traefik.io", kind="TraefikService", name="api@internal"
    ),
    # Traefik would read each as an expression with somebody's host.
    "somebody's host in a path matcher": {
        **ingress(rules=[{"host": OWN_HOST, **at_path("/", "ImplementationSpecific")}]),
        "metadata": {
            "name": "web",
            "namespace": "team-shop",
            "annotations": {
                "traefik.ingress.kubernetes.io/router.pathMatcher": f"{SOMEBODYS} && PathPrefix"
            },
        },
    },
    "somebody's host in a path": ingress(
        rules=[{"host": OWN_HOST, **at_path(f"/{SOMEBODYS}")}],
    ),
    "somebody's host in a route's path": matching(
        path={"type": "RegularExpression", "value": f"/{SOMEBODYS}"}
    ),
    "somebody's host in a header": matching(
        headers=[{"name": "a", "value": "b"}, {"name": "x", "value": SOMEBODYS}]
    ),
    "somebody's host in a query": matching(queryParams=[{"name": "x", "value": SOMEBODYS}]),
    "somebody's address": service(externalIPs=["10.0.0.1"]),
    "a port of the nodes": service(type="NodePort"),
    "another's Service": thing(
        "v1", "Service", "web", "team-shop", spec={"type": "ExternalName", "externalName": "a.b"}
    ),
    "a DNS record": {
        **service(),
        "metadata": {
            "name": "web",
            "namespace": "team-shop",
            "annotations": {"external-dns.alpha.kubernetes.io/hostname": "echo.example.org"},
        },
    },
}


@pytest.mark.parametrize("case", ON_AN_ENVIRONMENT)
def test_fence_on_an_environment_refuses(case: str, both: tuple[Kube, Kube]) -> None:
    said = refusal(both[1], marked(ON_AN_ENVIRONMENT[case], "team-shop.web.stage"))
    assert "team-shop.k8s-ucp.io" in said, said


def test_fence_names_the_api_group_of_a_refused_kind(both: tuple[Kube, Kube]) -> None:
    secret = marked(thing("v1", "Secret", "x", "team-shop"), "team-shop.web.stage")
    said = refusal(both[1], secret)
    assert "teams may not create Secret" in said, said
    assert "in API group" not in said, said
    role = marked(thing(f"{RBAC}/v1", "Role", "x", "team-shop"), "team-shop.web.stage")
    assert f"teams may not create Role in API group {RBAC}" in refusal(both[1], role)


def test_fence_on_an_environment_admits_apps(both: tuple[Kube, Kube]) -> None:
    _, app = both
    files = render_team(teams(), SHOP, "service")
    for path in ("apps/shop/base/deployment.yaml", "apps/shop/base/service.yaml"):
        item = load_all(files[path].decode())[0]
        item["metadata"]["namespace"] = "team-shop"
        assert refusal(app, marked(item, "team-shop.shop.stage")) == "", path
    own = ingress(rules=[{"host": OWN_HOST, **INGRESS}], tls=[{"hosts": [OWN_HOST]}, {}])
    assert refusal(app, marked(own, "team-shop.web.stage")) == ""
    own["spec"]["rules"].append({"host": OWN_HOST, **at_path("/a\\.b", "ImplementationSpecific")})
    own["metadata"]["annotations"] = {
        "traefik.ingress.kubernetes.io/router.pathmatcher": "PathRegexp"
    }
    assert refusal(app, marked(own, "team-shop.web.stage")) == ""
    own_match = matching(headers=[{"name": "a", "value": "b"}], path={"value": "/a"})
    assert refusal(app, marked(own_match, "team-shop.web.stage")) == ""
    for backend in ({}, {"group": "", "kind": "Service"}):
        assert refusal(app, marked(route(OWN_HOST, **backend), "team-shop.web.stage")) == ""


def test_copied_tracking_annotations_are_admitted(both: tuple[Kube, Kube]) -> None:
    """Deployments' annotations are copied to ReplicaSets, and Services' to EndpointSlices."""
    web = marked(thing("apps/v1", "Deployment", "web", "team-shop"), "team-shop.shop.stage")
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": pod}
    made = thing("apps/v1", "ReplicaSet", "web-1", "team-shop", spec=spec)
    assert "team-shop.k8s-ucp.io" in refusal(both[1], marked(made, "team-shop.shop.stage"))
    made["metadata"]["annotations"] = dict(web["metadata"]["annotations"])
    assert refusal(both[1], made) == ""


def test_privileged_pod_is_refused(both: tuple[Kube, Kube]) -> None:
    container = {"name": "x", "image": "x:1", "securityContext": {"privileged": True}}
    pod = thing("v1", "Pod", "x", "team-shop", spec={"containers": [container]})
    assert "PodSecurity" in refusal(both[1], pod)


@pytest.mark.parametrize("name", ["system-cluster-critical", "system-node-critical"])
def test_pod_that_would_evict_those_of_others_is_refused(
    name: str, both: tuple[Kube, Kube]
) -> None:
    spec = {"containers": [CONTAINER], "priorityClassName": name}
    pod = thing("v1", "Pod", "x", "team-shop", spec=spec)
    # A quota takes effect after a moment, too.
    eventually(lambda: "k8s-ucp-team-critical" in refusal(both[1], pod))


@pytest.mark.parametrize(
    ("verb", "group", "resource", "namespace", "may"),
    [
        ("create", "k8s-ucp.io", "postgreses", "team-shop", True),
        ("delete", "k8s-ucp.io", "computes", "team-shop", True),
        ("create", "k8s-ucp.io", "postgreses", "team-rival", False),
        ("create", "k8s-ucp.io", "syncers", "team-shop", False),
        ("create", "k8s-ucp.io", "localclusters", "team-shop", False),
        ("get", "", "secrets", "team-shop", False),
        ("get", "", "secrets", "argocd", False),
        ("create", "argoproj.io", "applications", "argocd", False),
        ("create", RBAC, "rolebindings", "team-shop", False),
        ("update", "", "resourcequotas", "team-shop", False),
    ],
)
def test_members_of_a_team_can_edit_claims_only(
    verb: str, group: str, resource: str, namespace: str, may: bool, both: tuple[Kube, Kube]
) -> None:
    asked = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    answer = both[0].request(
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        body={
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": "ann", "groups": ["team-shop"], "resourceAttributes": asked},
        },
    )
    assert answer["status"].get("allowed", False) is may
