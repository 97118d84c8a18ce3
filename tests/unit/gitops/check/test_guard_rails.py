"""Guard rails in `ucp check`; tests/integration/gitops tests that API servers decide the same."""

from __future__ import annotations

import time
from typing import Any, get_args

import pytest

from k8s_ucp.check_rules import RULES
from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.guard_rails import OWN_URL, URL, GuardRailRules
from k8s_ucp.gitops.manifests.yaml_text import load_all
from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.gitops.render.values import policies
from k8s_ucp.topology.parts import Policy
from tests.unit.gitops.topologies import FACTS, demo

RAILS = {"stage": "warn", "prod": "deny"}
REQUESTS = {"requests": {"cpu": "10m"}, "limits": {"memory": "16Mi"}}


def faults(item: dict[str, Any], environment: str = "prod", **rails: Any) -> list[Fault]:
    topology = demo(guardRails={**RAILS, **rails})
    return list(GuardRailRules(topology).faults(environment, "web", [item]))


def container(**more: Any) -> dict[str, Any]:
    return {"name": "main", "image": "a:1", "resources": REQUESTS, **more}


def deployment(main: dict[str, Any], **pod: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"containers": [main], **pod}}}
    return {"kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def pod(main: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": deployment(main, **spec)["spec"]["template"]["spec"],
    }


def ingress(*hosts: str) -> dict[str, Any]:
    paths = {"paths": [{"path": "/", "pathType": "Prefix"}]}
    rules = [{"host": host, "http": paths} for host in hosts]
    return {"kind": "Ingress", "metadata": {"name": "web"}, "spec": {"rules": rules}}


def running(command: str) -> dict[str, Any]:
    return {"livenessProbe": {"exec": {"command": ["sh", "-c", command]}}}


BAD: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "no requests": ("required-requests", {"resources": {}}, {}, "cpu and memory"),
    "one request": (
        "required-requests",
        {"resources": {"requests": {"cpu": 1}}},
        {},
        "no request of memory",
    ),
    "a sidecar": (
        "required-requests",
        {},
        {"initContainers": [{"name": "side", "restartPolicy": "Always"}]},
        "container side has no request",
    ),
    "a host": (
        "no-remote-probes",
        {"readinessProbe": {"httpGet": {"port": 1, "host": "db"}}},
        {},
        "readinessProbe that depends on db",
    ),
    "the node": (
        "no-remote-probes",
        {"startupProbe": {"tcpSocket": {"port": 1, "host": "127.0.0.1"}}},
        {},
        "127.0.0.1",
    ),
    "a command": ("no-remote-probes", running("wget 'http://db:80/x'"), {}, "http://db:80"),
    "a port": ("no-host-ports", {"ports": [{"hostPort": 80}]}, {}, "80"),
    "a capability": (
        "no-added-capabilities",
        {"securityContext": {"capabilities": {"add": ["CHOWN", "BPF"]}}},
        {},
        "capabilities: BPF",
    ),
    "privileged": ("no-host-access", {"securityContext": {"privileged": True}}, {}, "privileged"),
    "the network": ("no-host-access", {}, {"hostNetwork": True}, "hostNetwork"),
    "the files": (
        "no-host-access",
        {},
        {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]},
        "volume root",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_pods_and_pod_templates_that_violate_a_rule_are_found(case: str) -> None:
    rule, main, spec, words = BAD[case]
    for make in (pod, deployment):
        item = make(container(**main), **spec)
        (fault,) = faults(item)
        assert (fault.rule, fault.denied) == (rule, True)
        assert words in fault.message
        assert fault.object == f"{item['kind']}/web"
        (warned,) = faults(item, "stage")
        assert (warned.rule, warned.denied) == (rule, False)
        assert not faults(item, "dev")
        assert not faults(item, off=[rule])


@pytest.mark.parametrize(
    ("main", "spec"),
    [
        ({}, {}),
        ({"resources": {}}, {"resources": REQUESTS}),
        ({}, {"initContainers": [{"name": "first"}]}),
        ({"readinessProbe": {"httpGet": {"port": 1, "httpHeaders": [{"name": "Host"}]}}}, {}),
        (running('curl "https://u:p@localhost:92/x" http://$HOSTNAME/ http://[::1]:8/'), {}),
        (running("curl --unix-socket /a http+unix://%2Fa/x http://127.0.0.1:9${path}"), {}),
        ({"ports": [{"containerPort": 80}]}, {}),
        ({"securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"]}}}, {}),
        ({"securityContext": None, "ports": None, "livenessProbe": None}, {"volumes": None}),
    ],
)
def test_pods_that_the_policies_admit_have_no_faults(
    main: dict[str, Any], spec: dict[str, Any]
) -> None:
    assert faults(deployment(container(**main), **spec)) == []


def test_a_localhost_probe_with_host_network_violates_only_no_host_access() -> None:
    probe = {"readinessProbe": {"tcpSocket": {"port": 1, "host": "localhost"}}}
    item = deployment(container(**probe), hostNetwork=True)
    assert {each.rule for each in faults(item)} == {"no-host-access"}


def test_platform_namespaces_are_exempt() -> None:
    item = pod(container(resources={}))
    item["metadata"]["namespace"] = "monitoring"
    assert faults(item) == []


def test_a_host_of_another_app_is_found() -> None:
    (fault,) = faults(ingress("free.example.org", "echo.prod.example.org"))
    assert fault.rule == "no-taken-hosts"
    assert fault.message.endswith("ucp.yaml gives the host echo.prod.example.org to echo")
    topology = demo(guardRails=RAILS)
    rails = GuardRailRules(topology)
    assert not list(rails.faults("prod", "echo", [ingress("echo.prod.example.org")]))


ALIAS = "nginx.ingress.kubernetes.io/server-alias"
RECORD = "external-dns.alpha.kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("kind", "spec", "annotations"),
    [
        ("Ingress", {"tls": [{"hosts": ["a.example.org", "echo.prod.example.org"]}, {}]}, {}),
        ("Ingress", {}, {ALIAS: "a.example.org, echo.prod.example.org"}),
        ("HTTPRoute", {"hostnames": ["a.example.org"]}, {RECORD: "Echo.prod.example.org."}),
        ("Service", {}, {RECORD: "echo.prod.example.org"}),
    ],
)
def test_a_host_of_another_app_without_a_route_is_found(
    kind: str, spec: dict[str, Any], annotations: dict[str, str]
) -> None:
    metadata = {"name": "web", "annotations": annotations}
    (fault,) = faults({"kind": kind, "metadata": metadata, "spec": spec})
    assert fault.message.endswith("ucp.yaml gives the host echo.prod.example.org to echo")


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        (
            "IngressRoute",
            "Host(`a.example.org`) && PathPrefix(`/x`) || host(`Echo.Prod.example.org`)",
        ),
        ("IngressRoute", 'PathPrefix("/x") && Host("a.example.org", "echo.prod.example.org")'),
        ("IngressRouteTCP", "HostSNI(`echo.prod.example.org`)"),
        ("IngressRoute", "Host(`echo.prod.example.org.`)"),
        ("IngressRoute", "Host(`*.prod.example.org`)"),
        ("IngressRoute", r"PathPrefix(`/x`) || HostRegexp( `^[a-z]+\.prod\.example\.org$`)"),
        ("IngressRouteTCP", 'HostSNIRegexp("prod")'),
    ],
)
def test_a_host_of_another_app_in_a_route_of_traefik_is_found(kind: str, match: str) -> None:
    item = {"kind": kind, "metadata": {"name": "web"}, "spec": {"routes": [{}, {"match": match}]}}
    (fault,) = faults(item)
    assert fault.message.endswith("ucp.yaml gives the host echo.prod.example.org to echo")
    assert not faults({**item, "spec": {"routes": [{"match": "PathPrefix(`/`)"}, {"match": None}]}})


def test_a_wildcard_claims_the_hosts_of_one_label() -> None:
    (fault,) = faults(ingress("*.prod.example.org"))
    assert fault.message.endswith("ucp.yaml gives the host echo.prod.example.org to echo")
    assert not faults(ingress("*.example.org", "*.echo.prod.example.org"))
    route = {"kind": "HTTPRoute", "metadata": {"name": "web"}}
    # Its Gateway prefers the exact host.
    assert not faults({**route, "spec": {"hostnames": ["*.prod.example.org"]}})


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"^x\.prod", "[", "(e|o)", f"{'a+' * 40}$", "^([a-z]+)+$"),
        *("a{99999999999}", f"a{{{'9' * 5000}}}"),
    ],
)
def test_patterns_for_other_hosts_or_of_any_cost_have_no_faults(pattern: str) -> None:
    spec = {"routes": [{"match": f"HostRegexp(`{pattern}`)"}]}
    assert not faults({"kind": "IngressRoute", "metadata": {"name": "web"}, "spec": spec})


def test_a_host_that_an_ignore_entry_shares_is_allowed() -> None:
    ignore = [{"rule": "host-taken", "app": "web", "reason": "one front"}]
    apps = [{"name": "web", "image": "a", "tag": "1"}]
    apps.append({"name": "echo", "image": "a", "tag": "1", "hosts": ["echo"]})
    topology = demo(apps=apps, guardRails=RAILS, checks={"ignore": ignore})
    rails, item = GuardRailRules(topology), ingress("echo.prod.example.org")
    assert not list(rails.faults("prod", "web", [item]))
    assert [each.rule for each in rails.faults("prod", "other", [item])] == ["no-taken-hosts"]


def test_a_host_repeated_in_one_object_is_found() -> None:
    (fault,) = faults(ingress("a.example.org", "a.example.org"))
    assert fault.message == "Ingress web: has the host and path a.example.org/ twice"


def test_service_account_token_secrets_are_found() -> None:
    item = {"kind": "Secret", "metadata": {"name": "x"}}
    (fault,) = faults({**item, "type": "kubernetes.io/service-account-token"})
    assert fault.rule == "no-lasting-tokens"
    assert not faults({**item, "type": "Opaque"})


def test_without_a_topology_no_rule_is_evaluated() -> None:
    assert not list(GuardRailRules(None).faults("prod", "web", [pod(container(resources={}))]))


def test_every_policy_has_a_rule_except_those_checked_elsewhere() -> None:
    """Pinned images have several rules; the other two policies don't concern repositories."""
    elsewhere = {"pinned-images", "no-ephemeral-containers", "no-release-deletion"}
    assert set(get_args(Policy)) - set(RULES) == elsewhere


def test_the_check_and_the_policy_look_at_the_same_annotations_and_patterns() -> None:
    found = render(demo(guardRails=RAILS), FACTS).core["policies/base/no-taken-hosts.yaml"]
    assert found.decode().count(str([*policies.HOST_ANNOTATIONS])) == 2
    (policy,) = load_all(found.decode())
    expressions = [each["expression"] for each in policy["spec"]["variables"]]
    assert any(f"findAll(r'{policies.HOST_PATTERN}')" in each for each in expressions)


def test_a_long_word_of_a_probe_is_read_within_seconds() -> None:
    """The time limit of the push hook can't interrupt the search of a pattern."""
    began = time.process_time()
    assert not faults(deployment(container(livenessProbe={"exec": {"command": ["a" * 60_000]}})))
    assert time.process_time() - began < 3


def test_the_check_and_the_policy_use_the_same_url_patterns() -> None:
    found = render(demo(guardRails=RAILS), FACTS).core["policies/base/no-remote-probes.yaml"]
    assert f"findAll(r'{URL}')" in found.decode()
    assert f"matches(r'{OWN_URL}')" in found.decode()
