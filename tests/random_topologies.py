"""Random topologies, as files: all valid combinations of what the schema allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from k8s_ucp.errors import UsageError
from k8s_ucp.gitops.render.values import policies
from k8s_ucp.providers import PROVIDERS, cloud_providers, core_providers
from k8s_ucp.topology import Topology, parse
from k8s_ucp.topology.rules.combinations import environments_of, git_of, rendered_only

FILE = Path("/workspace/ucp.yaml")
_REGIONS = {
    "gke": ["europe-west9", "us-east1-b"],
    "eks": ["eu-west-3", "us-east-1"],
    "aks": ["francecentral", "westeurope"],
    "digitalocean": ["ams3", "fra1"],
}
_NAMES = ["stage", "prod", "qa", "eu", "us-1"]
_APPS = ["web", "api", "worker", "echo", "a1"]


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def written(**keys: Any) -> dict[str, Any]:
    """A mapping without the keys that have no value."""
    return {key: value for key, value in keys.items() if value is not None}


def versions(provider: str) -> st.SearchStrategy[Any]:
    if provider == "digitalocean":
        return st.just("1.33.1-do.0")
    return st.none() if provider == "existing" else maybe(st.just("1.35.4"))


@st.composite
def clusters(draw: st.DrawFn, provider: str, *, core: bool = False) -> dict[str, Any]:
    cloud = provider in cloud_providers()
    return written(
        provider=provider,
        context="mine" if provider == "existing" else None,
        region=draw(maybe(st.sampled_from(_REGIONS[provider]))) if cloud else None,
        size=draw(maybe(st.just("e2-standard-4"))) if provider == "gke" else None,
        version=draw(versions(provider)),
        network=draw(maybe(st.just("shared"))) if provider == "gke" and not core else None,
        autopilot=draw(maybe(st.booleans())) if provider == "gke" and not core else None,
        nodes=draw(maybe(st.integers(1, 9))) if provider == "embedded" and not core else None,
    )


@st.composite
def apps(draw: st.DrawFn, name: str, databases: list[str]) -> dict[str, Any]:
    database = draw(maybe(st.sampled_from(databases))) if databases else None
    hosts = draw(maybe(st.lists(st.sampled_from([name, f"{name}-2"]), unique=True, min_size=1)))
    common = written(name=name, hosts=hosts, database=database)
    if draw(st.booleans()):
        image = draw(st.sampled_from(["ealen/echo-server", "r.example.org:5000/a/b", "nginx"]))
        replicas = draw(maybe(st.integers(0, 9)))
        return {**common, **written(image=image, tag="1.0", replicas=replicas)}
    return {**common, "path": "ucp:echo-client", "hosts": []}


@st.composite
def database(draw: st.DrawFn, name: str, environments: list[str]) -> dict[str, Any]:
    provider = draw(st.sampled_from(["gcp", "aws", "local"]))
    where = st.lists(st.sampled_from(environments), unique=True, min_size=1)
    regions = {"gcp": "europe-west9", "aws": "eu-west-3"}
    return written(
        name=name,
        provider=provider,
        size=draw(maybe(st.sampled_from(["small", "medium", "large"]))),
        storageGB=draw(maybe(st.integers(10, 100))),
        version=draw(maybe(st.sampled_from(["15", "17"]))),
        region=draw(maybe(st.just(regions[provider]))) if provider in regions else None,
        environments=draw(maybe(where)) if environments else None,
    )


def guard_rails(environments: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    acting = st.sampled_from(["warn", "deny"])
    off = st.lists(st.sampled_from(policies.ALL), unique=True)
    return st.fixed_dictionaries({"off": off}, optional=dict.fromkeys(environments, acting))


CROSSPLANE = st.fixed_dictionaries(
    {},
    optional={
        "pollInterval": st.just("10m"),
        "syncInterval": st.just("30m"),
        "maxReconcileRate": st.integers(1, 10000),
        "leaderElection": st.booleans(),
        "rbacManager": st.booleans(),
        "realtimeCompositions": st.booleans(),
        "limits": st.just({"cpu": "500m", "memory": "2Gi"}),
        "packages": st.just(
            {
                "providers": ["r.example.org/crossplane/provider-helm:v1.0.0"],
                "functions": [f"r.example.org/function-quota@sha256:{'0' * 64}"],
            }
        ),
    },
)
RECONCILER = st.fixed_dictionaries(
    {},
    optional={
        "image": st.just(f"r.example.org/ucp@sha256:{'0' * 64}"),
        "sourceNamespaces": st.just(["ucp-clusters", "crossplane-system", "databases"]),
        "sourcesByName": st.booleans(),
        "tokenLifetime": st.just("1h"),
    },
)


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    provider = draw(st.sampled_from(sorted(core_providers())))
    core = PROVIDERS[provider]
    git = draw(st.sampled_from(git_of(core)))
    names = draw(st.lists(st.sampled_from(_NAMES), unique=True, max_size=4))
    environments = []
    for place, name in enumerate(names):
        where = draw(st.sampled_from([*environments_of(core), *rendered_only(core)]))
        environments.append(
            written(
                name=name,
                cluster=draw(clusters(where)),
                promotesFrom=draw(maybe(st.sampled_from(names[:place]))) if place else None,
                access=draw(maybe(st.sampled_from(["admin", "scoped"]))),
                deletionProtection=draw(maybe(st.booleans())),
                managementPolicies=draw(maybe(st.just(["Observe", "Create", "Update"])))
                if where in cloud_providers()
                else None,
                state=draw(maybe(st.sampled_from(["running", "stopped"]))),
            )
        )
    databases = [
        draw(database(name, names))
        for name in draw(st.lists(st.sampled_from(["quotes", "orders"]), unique=True))
    ]
    # An app runs in every environment, so its database must, too.
    known = [each["name"] for each in databases if "environments" not in each]
    wanted = draw(st.lists(st.sampled_from(_APPS), unique=True, max_size=4))
    found = [draw(apps(name, known)) for name in wanted]
    if "orders" in known and draw(st.booleans()):
        quote = {"name": "quote", "path": "ucp:quote", "database": "orders", "hosts": ["quote"]}
        found.append(quote)
    mirrors = [
        {
            "name": "m",
            "source": {"namespace": "ucp-clusters", "name": "registry-login"},
            "targets": {"namespace": "web"},
        }
    ]
    addons = {
        "ingress": draw(st.sampled_from(["traefik", "nginx", "gateway", "none"])),
        **{
            name: draw(st.booleans())
            for name in ("prometheus", "loki", "external-dns", "argo-rollouts", "velero")
        },
    }
    install = f"https://example.org/k8s_ucp.whl#sha256={'0' * 64}"
    ci = {"provider": draw(st.sampled_from(["github", "gitlab"])), "install": install}
    remote = {"core": "https://g.example.org/core.git", "apps": "git@g.example.org:a/apps.git"}
    return written(
        domain=draw(maybe(st.just("shop.example.net"))),
        core=draw(clusters(provider, core=True)),
        git={
            "provider": git,
            **(remote if git == "url" else {}),
            **written(
                branch=draw(maybe(st.sampled_from(["trunk", "release/1.x"]))),
                poll=draw(maybe(st.just("1m30s"))),
            ),
        },
        environments=environments,
        apps=found,
        databases=databases,
        mirrors=draw(maybe(st.just(mirrors))),
        addons=addons,
        guardRails=draw(maybe(guard_rails(names))),
        crossplane=draw(maybe(CROSSPLANE)),
        reconciler=draw(maybe(RECONCILER)),
        images=draw(maybe(st.just({"mirror": "r.example.org:5000/copies"}))),
        credentials={"gcp": {"project": "my-project"}},
        ci=draw(maybe(st.just(ci))),
    )


@st.composite
def topologies(draw: st.DrawFn) -> tuple[Topology, bytes]:
    """Draw a topology and its file."""
    name = draw(st.sampled_from(["demo", "a", "shop-2"]))
    content = {
        "apiVersion": "k8s-ucp.io/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": draw(specs()),
    }
    text = json.dumps(content, indent=1)
    try:
        return parse(text, FILE), text.encode()
    except UsageError as error:
        raise AssertionError(f"{error.message}\n{text}") from error
