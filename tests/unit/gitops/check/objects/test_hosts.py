"""Hosts and paths that objects claim."""

from __future__ import annotations

from k8s_ucp.gitops.check.objects.hosts import hosts
from k8s_ucp.gitops.manifests.build_many import objects
from tests.unit.gitops.check.examples import INGRESS, ROUTE


def test_hosts_and_paths_of_ingresses_and_routes_are_listed() -> None:
    assert list(hosts(objects(INGRESS)[0])) == [("a.example.org", "/")]
    [empty] = objects(INGRESS.replace("a.example.org", '""').replace("path: /,", "path: ,"))
    assert list(hosts(empty)) == [("*", "/")]
    route = {"kind": "HTTPRoute", "spec": {"hostnames": ["b.example.org"]}}
    assert list(hosts(route)) == [("b.example.org", "/")]
    assert list(hosts(objects(ROUTE)[0])) == [("a.example.org", "/")]
    by_header = ROUTE.replace(
        "value: /}}]", "value: /a}}, {path: {value: /a}, headers: [{name: x, value: v}]}]"
    )
    header, plain = '{"headers": [{"name": "x", "value": "v"}]}', "/a"
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
