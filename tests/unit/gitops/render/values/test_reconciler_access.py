"""RBAC of the reconciler on the core cluster: all rules are listed here, and none is broad."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.gitops.render.repositories import render
from k8s_ucp.topology import Environment, Topology
from k8s_ucp.topology.parts import Addons, CoreCluster, Mirror, ReconcilerSettings
from tests.unit.gitops.topologies import FACTS, demo

FILE = "platform/reconciler/access.yaml"

SOURCES = {
    " secrets configmaps": "get list watch",
    " events": "create patch",
    "k8s-ucp.io syncers": "get list watch patch",
    "k8s-ucp.io syncers/status": "patch",
    "container.gcp.m.upbound.io clusters": "get",
    "containerservice.azure.m.upbound.io kubernetesclusters": "get",
    "eks.aws.m.upbound.io clusters clusterauths": "get",
    "kubernetes.digitalocean.m.crossplane.io clusters": "get",
}
RULES = {
    "ucp-clusters/k8s-ucp-reconciler": {
        "k8s-ucp.io localclusters": "get list watch patch",
        "k8s-ucp.io localclusters/status": "patch",
        " secrets": "get list watch create patch delete",
        " configmaps": "get list watch create",
        " configmaps (k8s-ucp-registrations k8s-ucp-mirrors-left)": "patch",
        "coordination.k8s.io leases": "get create patch",
    },
    "argocd/k8s-ucp-reconciler": {
        " secrets": "get list watch create patch delete",
        "argoproj.io applications": "get list watch patch delete",
        "argoproj.io applicationsets (applications applications-protected)": "get patch",
    },
    "crossplane-system/k8s-ucp-reconciler-credentials": {
        " secrets (gcp-creds aws-creds azure-creds do-creds)": "get",
    },
    "ucp-clusters/k8s-ucp-reconciler-sources": SOURCES,
    "crossplane-system/k8s-ucp-reconciler-sources": SOURCES,
}


def objects(topology: Topology) -> list[dict[str, Any]]:
    text = render(topology, FACTS).core[FILE].decode()
    return [each for each in YAML(typ="safe", pure=True).load_all(text) if each]


def roles(topology: Topology) -> dict[str, dict[str, str]]:
    found = {}
    for each in objects(topology):
        if each["kind"] == "Role":
            name = f"{each['metadata']['namespace']}/{each['metadata']['name']}"
            found[name] = {shown(rule): " ".join(rule["verbs"]) for rule in each["rules"]}
    return found


def shown(rule: dict[str, Any]) -> str:
    named = f" ({' '.join(rule['resourceNames'])})" if "resourceNames" in rule else ""
    return f"{' '.join(rule['apiGroups'])} {' '.join(rule['resources'])}{named}"


def mirror(namespace: str) -> Mirror:
    return Mirror.model_validate(
        {
            "name": f"from-{namespace}",
            "source": {"namespace": namespace, "name": "db"},
            "targets": {"namespace": "echo"},
        }
    )


WIDE = demo(
    environments=(
        Environment.model_validate({"name": "stage"}),
        Environment.model_validate({"name": "prod", "cluster": {"provider": "gke"}}),
        Environment.model_validate({"name": "eu", "cluster": {"provider": "eks"}}),
    ),
    mirrors=(mirror("databases"), mirror("crossplane-system"), mirror("default")),
    reconciler=ReconcilerSettings.model_validate({"sourceNamespaces": ["team-a"]}),
)

PODS = demo(
    core=CoreCluster.model_validate({"provider": "kind"}),
    environments=(Environment.model_validate({"name": "stage", "cluster": {"provider": "kind"}}),),
    addons=Addons(prometheus=True),
    mirrors=(mirror("databases"),),
    reconciler=ReconcilerSettings.model_validate({"sourcesByName": True}),
)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    else:
        yield str(value)


def test_the_roles_have_exactly_the_listed_rules() -> None:
    assert roles(demo()) == RULES


@pytest.mark.parametrize("topology", [demo(), WIDE], ids=["demo", "wide"])
def test_no_rule_uses_wildcards_or_cluster_scope(topology: Topology) -> None:
    found = objects(topology)
    assert {each["kind"] for each in found} <= {
        *("ServiceAccount", "Role", "RoleBinding", "Namespace"),
    }, "nothing that counts in every namespace"
    for each in found:
        assert not [text for text in texts(each) if "*" in text or "admin" in text]


def test_every_role_is_bound_only_to_the_reconcilers_service_account() -> None:
    found = objects(WIDE)
    bound = {
        (each["metadata"]["namespace"], each["roleRef"]["name"])
        for each in found
        if each["kind"] == "RoleBinding"
    }
    assert bound == {
        (each["metadata"]["namespace"], each["metadata"]["name"])
        for each in found
        if each["kind"] == "Role"
    }
    subjects = [each["subjects"] for each in found if each["kind"] == "RoleBinding"]
    identity = {
        "kind": "ServiceAccount",
        "name": "k8s-ucp-reconciler",
        "namespace": "ucp-clusters",
    }
    assert all(each == [identity] for each in subjects)


def test_the_topology_determines_which_namespaces_can_be_read() -> None:
    found = roles(WIDE)
    assert {each.partition("/")[0] for each in found if each.endswith("-sources")} == {
        *("team-a", "ucp-clusters"),
    }
    assert {each.partition("/")[0] for each in found if each.endswith("-mirrors")} == {
        *("databases", "crossplane-system", "default"),
    }
    assert found["databases/k8s-ucp-reconciler-mirrors"] == {
        " secrets configmaps": "get list watch"
    }
    assert {each["metadata"]["name"] for each in objects(WIDE) if each["kind"] == "Namespace"} == {
        *("databases", "team-a"),
    }


def test_no_other_file_of_the_core_repository_grants_it_more_except_monitoring() -> None:
    """The exception: Secrets in the namespace of the monitoring password that it generates."""
    found = {}
    for topology in (demo(), WIDE, PODS):
        for path, content in render(topology, FACTS).core.items():
            if not path.endswith(".yaml") or path == FILE:
                continue
            items = [each for each in YAML(typ="safe", pure=True).load_all(content) if each]
            for each in items:
                subjects = each.get("subjects") or []
                if "k8s-ucp-reconciler" in [str(one.get("name")) for one in subjects]:
                    place = f"{each['kind']} {each['metadata']['namespace']}"
                    rules = [
                        rule
                        for role in items
                        if role["metadata"]["name"] == each["roleRef"]["name"]
                        for rule in role.get("rules") or []
                    ]
                    found[path, place] = {shown(rule): " ".join(rule["verbs"]) for rule in rules}
    assert found == {
        ("platform/reconciler/monitoring.yaml", "RoleBinding monitoring"): {
            " secrets": "get list watch patch"
        }
    }


def test_a_pod_gets_as_arguments_what_a_process_reads_in_the_topology() -> None:
    text = render(PODS, FACTS).core["platform/reconciler/workloads/deployment.yaml"].decode()
    deployment = next(iter(YAML(typ="safe", pure=True).load_all(text)))
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    told = list(itertools.pairwise(arguments))
    assert "--sources-by-name" in arguments
    assert [value for name, value in told if name == "--password-namespace"] == [
        *("ucp-clusters", "monitoring"),
    ]
    assert [value for name, value in told if name == "--mirror-namespace"] == ["databases"]


def test_owners_of_clusters_can_be_read_after_the_last_environment_of_a_cloud_was_removed() -> None:
    """Otherwise nothing proves that they are gone, and the cluster stays registered for ever."""
    found = roles(WIDE)["team-a/k8s-ucp-reconciler-sources"]
    left = roles(demo())["ucp-clusters/k8s-ucp-reconciler-sources"]
    owners = {kind: verbs for kind, verbs in found.items() if kind in SOURCES and ".m." in kind}
    assert owners == {kind: verbs for kind, verbs in left.items() if ".m." in kind}
    assert set(owners.values()) == {"get"}
