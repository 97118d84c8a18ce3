"""What can be there only once."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.check.collisions import (
    find_host_faults,
    find_node_port_faults,
    find_repeated_faults,
)
from k8s_ucp.gitops.manifests.build_many import Built, Object, objects
from tests.unit.gitops.check.examples import INGRESS, tree


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
    paths = [each for each in found if each.rule == "host-path-duplicate"]
    assert {each.included_in for each in paths} == {"host-taken"}
    twice = {folders[0]: [*ingress, *ingress]}
    (own,) = find_host_faults(files, Built(twice))
    assert (own.rule, own.included_in) == ("host-path-duplicate", None)


def _route(kind: str, name: str, spec: str, annotations: str = "") -> list[Object]:
    return objects(
        f"apiVersion: v1\nkind: {kind}\n"
        f"metadata: {{name: {name}, annotations: {{{annotations}}}}}\nspec: {{{spec}}}\n"
    )


def _rules(*overlays: list[Object]) -> list[str]:
    """Rules of the findings. overlays: the objects of an app's overlay each."""
    built = {f"apps/{number}/overlays/stage": each for number, each in enumerate(overlays)}
    files = tree({f"{each}/kustomization.yaml": "" for each in built})
    return [each.rule for each in find_host_faults(files, Built(built))]


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        # Gateway API's own example: http redirects to https.
        ("sectionName: http", "sectionName: https", ""),
        ("port: 80", "port: 443", "sectionName: any"),
    ],
)
def test_routes_of_different_listeners_are_no_duplicates(one: str, other: str, common: str) -> None:
    def route(name: str, listener: str) -> list[Object]:
        refs = f"parentRefs: [{{name: gateway, {listener}}}]" if listener else ""
        return _route("HTTPRoute", name, f"hostnames: [a.example.org], {refs}")

    assert _rules(route("a", one) + route("b", other)) == []
    for second in (one, common, ""):
        assert _rules(route("a", one) + route("b", second)) == ["host-path-duplicate"]


def test_ingresses_of_different_classes_are_no_duplicates() -> None:
    def ingress(name: str, spec: str, annotations: str = "") -> list[Object]:
        return _route("Ingress", name, f"rules: [{{host: a.example.org}}], {spec}", annotations)

    inside = ingress("a", "ingressClassName: inside")
    assert _rules(inside + ingress("b", "ingressClassName: outside")) == []
    assert _rules(inside + ingress("b", "", "kubernetes.io/ingress.class: outside")) == []
    assert _rules(inside + ingress("b", "ingressClassName: inside")) == ["host-path-duplicate"]
    assert _rules(inside + ingress("b", "")) == ["host-path-duplicate"]
    plain, secure = (
        ingress(each, "", f"traefik.ingress.kubernetes.io/router.entrypoints: {each}")
        for each in ("web", "websecure")
    )
    assert _rules(plain + secure) == []
    # Another app's host stays the other app's.
    assert _rules(inside, ingress("b", "ingressClassName: outside")) == ["host-taken"]


def test_routes_of_different_entry_points_are_no_duplicates() -> None:
    def route(name: str, points: str) -> list[Object]:
        match = "routes: [{match: Host(`a.example.org`)}]"
        return _route("IngressRoute", name, f"{match}, {points}")

    plain = route("a", "entryPoints: [web]")
    assert _rules(plain + route("b", "entryPoints: [websecure]")) == []
    assert _rules(plain + route("b", "entryPoints: [web, websecure]")) == ["host-path-duplicate"]
    assert _rules(plain + route("b", "entryPoints: 5")) == ["host-path-duplicate"]


def test_apps_without_hosts_may_have_different_paths() -> None:
    def ingress(path: str) -> list[Object]:
        return _route("Ingress", "web", f"rules: [{{http: {{paths: [{{path: {path}}}]}}}}]")

    assert _rules(ingress("/a"), ingress("/b")) == []
    assert _rules(ingress("/a"), ingress("/a")) == ["host-path-duplicate"]


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
