"""Rules across keys: required keys, references to names, supported combinations."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s_ucp.errors import UsageError
from k8s_ucp.topology import Topology, parse
from k8s_ucp.topology.rules.combinations import find_unstartable

FILE = Path("/work space/ucp.yaml")
HEAD = "apiVersion: k8s-ucp.io/v1alpha1\nkind: Topology\nmetadata: {name: demo}\nspec:\n"
STAGE = "  environments: [{name: stage}]\n"


def refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse(HEAD + text, FILE)
    return caught.value.message


def accepted(text: str) -> Topology:
    return parse(HEAD + text, FILE)


WRONG = {
    "an app of nothing": ("  apps: [{name: a}]\n", 5, "requires the key 'image' (or 'path'"),
    "an image without a tag": ("  apps: [{name: a, image: b}]\n", 5, "requires the key 'tag'"),
    "a tag of nothing": ("  apps: [{name: a, path: b, tag: c}]\n", 5, "requires"),
    "a repo that moves": (
        "  apps: [{name: a, repo: 'https://x/y.git'}]\n",
        5,
        "requires the key 'revision'",
    ),
    "a revision of nothing": ("  apps: [{name: a, path: b, revision: c}]\n", 5, "requires 'repo'"),
    "a path that leaves": (
        "  apps: [{name: a, path: b/../../c}]\n",
        5,
        "spec.apps[0].path: 'b/../../c' must not contain",
    ),
    "a path from the root": (
        "  apps: [{name: a, path: /etc}]\n",
        5,
        "a path relative to the folder",
    ),
    "an app that isn't shipped": ("  apps: [{name: a, path: 'ucp:qoute'}]\n", 5, "ucp:quote"),
    "a host twice": (
        "  apps:\n    - {name: a, image: b, tag: c, hosts: [x]}\n"
        "    - {name: b, image: b, tag: c, hosts: [y, x]}\n",
        7,
        "duplicate host 'x': a",
    ),
    "an app in a namespace of the platform": (
        "  apps: [{name: velero, image: b, tag: c}]\n",
        5,
        "its namespace is reserved for the platform",
    ),
    "an app whose Service no API server takes": (
        "  apps: [{name: 1web, image: b, tag: c}]\n",
        5,
        "can't be named '1web': its Service has this name",
    ),
    "an environment that YAML reads as a number": (
        "  environments: [{name: '2024'}]\n",
        5,
        "can't be named '2024', which YAML does not read as text",
    ),
    "a mirror called like the one of a database": (
        "  databases: [{name: quotes, provider: local}]\n"
        "  apps: [{name: web, image: b, tag: c, database: quotes}]\n"
        "  mirrors: [{name: web-database, source: {namespace: a, name: b}, targets: "
        "{namespace: web}}]\n",
        7,
        "the mirror of the database of the app web has this name; choose another name",
    ),
    "a mirror called like the one of local databases": (
        "  mirrors: [{name: local-databases, source: {namespace: a, name: b}, targets: "
        "{namespace: web}}]\n",
        5,
        "the mirror of the passwords of local databases",
    ),
    "an image of a database in a cloud": (
        "  databases: [{name: quotes, provider: aws, image: 'postgres:17.7'}]\n",
        5,
        "'image' is valid for provider local only",
    ),
    "an image of a database without a tag": (
        "  databases: [{name: quotes, provider: local, image: postgres}]\n",
        5,
        "an image with its tag or digest",
    ),
    "a local database whose name is none of a Service": (
        "  core: {provider: kind}\n"
        "  environments: [{name: stage, cluster: {provider: kind}}]\n"
        "  databases: [{name: 1st, provider: local}]\n",
        7,
        "must begin with a letter",
    ),
    "a mirror to a namespace of Kubernetes": (
        "  mirrors: [{name: m, source: {namespace: a, name: b}, targets: "
        "{namespace: kube-system}}]\n",
        5,
        "copies in namespace 'kube-system' are not allowed",
    ),
    "a mirror whose file means something else": (
        "  mirrors: [{name: kustomization, source: {namespace: a, name: b}, targets: "
        "{namespace: web}}]\n",
        5,
        "its file name is reserved",
    ),
    "a database whose file means something else": (
        "  databases: [{name: kustomization, provider: local}]\n",
        5,
        "its file name is reserved",
    ),
    "a credential in the URL of an app": (
        "  apps: [{name: a, repo: 'https://me:hunter2@x/y.git', revision: v1}]\n",
        5,
        "contains a user or password",
    ),
    "a policy that isn't there": (
        "  guardRails: {off: [pinned-image]}\n",
        5,
        "did you mean 'pinned-images'?",
    ),
    "a version that Postgres doesn't have": (
        "  databases: [{name: a, provider: gcp, version: 16-alpine}]\n",
        5,
        "is not a version of Postgres such as 16",
    ),
    "a label that Kubernetes doesn't take": (
        "  mirrors: [{name: m, source: {namespace: a, labels: {app: 'a b'}}, targets: "
        "{namespace: web}}]\n",
        5,
        "is not the value of a label",
    ),
    "a key that no Secret has": (
        "  mirrors: [{name: m, source: {namespace: a, name: b}, targets: "
        "{namespace: web, keys: {a: ../b}}}]\n",
        5,
        "is not a key of a Secret",
    ),
    "a branch that is two": (
        "  git: {branch: main..other}\n",
        5,
        "is not a branch",
    ),
    "a package that moves": (
        "  crossplane: {packages: {providers: ['x.org/provider-a:latest']}}\n",
        5,
        "is not a Crossplane package with version or digest",
    ),
    "a package twice": (
        "  crossplane: {packages: {functions: ['x.org/f:v1.0.0', 'y.org/f:v1.0.1']}}\n",
        5,
        "duplicate package f",
    ),
    "a limit that is none": (
        "  crossplane: {limits: {memory: 2 GB}}\n",
        5,
        "is not a quantity such as 500m or 2Gi",
    ),
    "no such database": (
        "  databases: [{name: quotes, provider: local}]\n"
        "  apps: [{name: a, image: b, tag: c, database: quote}]\n",
        6,
        "unknown database 'quote': did you mean 'quotes'?",
    ),
    "a database elsewhere": (
        "  environments: [{name: stage}, {name: prod}]\n"
        "  databases: [{name: quotes, provider: local, environments: [stage]}]\n"
        "  apps: [{name: a, image: b, tag: c, database: quotes}]\n",
        7,
        "runs on prod, where the database quotes does not exist",
    ),
    "no such environment of a database": (
        STAGE + "  databases: [{name: quotes, provider: local, environments: [stag]}]\n",
        6,
        "did you mean 'stage'?",
    ),
    "no such environment of a mirror": (
        STAGE + "  mirrors:\n    - name: a\n      source: {namespace: b, name: c}\n"
        "      targets: {namespace: b, environments: [live]}\n",
        9,
        "unknown environment 'live': available: stage",
    ),
    "a mirror of nothing": (
        "  mirrors: [{name: a, source: {namespace: b}, targets: {namespace: b}}]\n",
        5,
        "requires exactly one of 'name' and 'labels'",
    ),
    "a guard rail nowhere": (
        STAGE + "  guardRails: {prod: warn}\n",
        6,
        "unknown environment 'prod'",
    ),
    "a guard rail of no level": (STAGE + "  guardRails: {stage: wran}\n", 6, "'warn'?"),
    "no context": (
        "  environments: [{name: a, cluster: {provider: existing}}]\n",
        5,
        "requires the key 'context'",
    ),
    "a context of nobody": (
        "  core: {context: a}\n",
        5,
        "'context' is valid for provider existing",
    ),
    "autopilot elsewhere": (
        "  environments: [{name: a, cluster: {provider: eks, autopilot: true}}]\n",
        5,
        "is valid for provider gke",
    ),
    "nodes elsewhere": (
        "  environments: [{name: a, cluster: {provider: kind, nodes: 3}}]\n",
        5,
        "'nodes' is valid for provider embedded only",
    ),
    "gcp without a project": (
        "  environments: [{name: a, cluster: {provider: gke}}]\n",
        5,
        "requires the key 'project'",
    ),
    "an endpoint of what is simulated": (
        "  clouds: {aws: {simulated: true}}\n"
        "  credentials: {aws: {endpoint: 'https://a.example.org'}}\n",
        6,
        "is not supported with a simulated aws",
    ),
    "a password in clear text": (
        "  credentials: {aws: {endpoint: 'http://a.example.org'}}\n",
        5,
        "https://host[:port], or http:// on the loopback",
    ),
    "a port that is none": (
        "  credentials: {aws: {endpoint: 'https://a.example.org:99999'}}\n",
        5,
        "Port out of range 0-65535",
    ),
    "digitalocean without a version": (
        "  environments: [{name: a, cluster: {provider: digitalocean}}]\n",
        5,
        "requires the key 'version'",
    ),
    "a network elsewhere": (
        "  environments: [{name: a, cluster: {provider: aks, network: n}}]\n",
        5,
        "'network' is valid for provider gke",
    ),
    "two sources of a credential": (
        "  credentials: {gcp: {file: creds/a.json, env: A}}\n",
        5,
        "requires exactly one of the keys file, env, onepassword",
    ),
    "two sources of git's credential": (
        "  git: {provider: url, core: 'https://g/c', apps: 'https://g/a', auth: forge}\n"
        "  credentials: {forge: {file: creds/a, env: A}}\n",
        6,
        "requires exactly one of the keys file, env, onepassword",
    ),
    "a credential of nothing": (
        "  credentials: {gpc: {env: A}}\n",
        5,
        "did you mean 'gcp'? it is not used",
    ),
    "git with a cloud's credential": (
        "  git: {provider: url, core: 'https://g/c', apps: 'https://g/a', auth: aws}\n",
        5,
        "'aws' is the credential of a cloud",
    ),
    "a credential for local git": ("  git: {auth: forge}\n", 5, "do not use credentials"),
    "a credential to read local git with": (
        "  git: {readAuth: forge}\n",
        5,
        "spec.git.readAuth: local repositories do not use credentials",
    ),
    "git read with a cloud's credential": (
        "  git: {provider: url, core: 'https://g/c', apps: 'https://g/a', readAuth: gcp}\n",
        5,
        "'gcp' is the credential of a cloud",
    ),
    "a credential for SSH": (
        "  git: {provider: url, core: 'git@g:c', apps: 'https://g/a', auth: forge}\n",
        5,
        "spec.git.core git@g:c is not an http(s) URL",
    ),
    "local git and a core elsewhere": (
        "  core: {provider: gke}\n",
        4,
        "git: local is not reachable from a gke core",
    ),
    "a reconciler by tag": ("  reconciler: {image: 'a/b:1'}\n", 5, "by digest"),
    "an install without a hash": (
        "  ci: {provider: github, install: 'https://x/y.whl'}\n",
        5,
        "with a sha256 checksum",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_error_names_the_line_and_the_fix(case: str) -> None:
    text, line, expected = WRONG[case]
    message = refused(text)
    assert message.startswith(f"ucp.yaml:{line}: "), message
    assert expected in message


def test_a_path_is_accepted_as_people_write_it() -> None:
    spec = accepted(
        "  apps: [{name: a, path: ./services/a/, overlays: {stage: ./eu}}]\n" + STAGE
    ).spec
    assert spec.apps[0].path == "services/a"
    assert spec.apps[0].overlays == {"stage": "eu"}


def test_a_topology_that_uses_every_feature_is_accepted() -> None:
    spec = accepted(
        """\
  domain: example.org
  core: {provider: kind, version: "1.35"}
  git: {provider: url, core: "https://g/c.git", apps: "git@g:a.git", branch: main, poll: 1m}
  environments:
    - {name: stage, cluster: {provider: kind}}
    - name: prod
      cluster: {provider: gke, region: europe-west9, size: e2-medium, network: n, autopilot: true}
      promotesFrom: stage
      access: scoped
      deletionProtection: true
      managementPolicies: [Observe, Create, Update, LateInitialize]
  apps:
    - {name: echo, image: ealen/echo-server, tag: 0.9.2, hosts: [echo], replicas: 2}
    - {name: quote, path: "ucp:quote", database: quotes, hosts: [quote]}
    - {name: own, path: services/own}
    - {name: far, repo: "https://g/far.git", path: deploy/base, revision: v1.2.0}
  databases: [{name: quotes, provider: gcp, size: small, storageGB: 10, version: "16"}]
  mirrors:
    - {name: m, source: {namespace: a, labels: {b: c}}, targets: {namespace: d, keys: {e: f}}}
  addons: {ingress: traefik, prometheus: true, external-dns: true, argo-rollouts: true}
  guardRails: {stage: warn, prod: deny, off: [no-host-access]}
  crossplane: {rbacManager: false, version: 2.4.0}
  argocd: {version: v3.5.7}
  credentials:
    gcp: {file: creds/gcp.json, project: p}
    aws: {onepassword: "op://a/b/c"}
    azure: {env: A}
  images: {mirror: "r.example.org:5000/m", archives: [images/a.tar], nodeImage: "kindest/node:v1"}
  ci:
    provider: gitlab
    install: https://x.org/k8s_ucp-1.0-py3-none-any.whl#sha256=%s
  tools: {source: releases}
"""
        % ("0" * 64)
    ).spec
    assert spec.guard_rails.__pydantic_extra__ == {"stage": "warn", "prod": "deny"}
    assert spec.addons.external_dns


CLOUDS = ("gke", "eks", "aks", "digitalocean")
COMBINATIONS = {
    "embedded": ("embedded", "kind", "existing"),
    "kind": ("kind", "existing", *CLOUDS),
    "gke": ("existing", *CLOUDS),
    "existing": ("existing", *CLOUDS),
}
"""Providers of core clusters, and those of environments that each can start."""


@pytest.mark.parametrize("core", COMBINATIONS)
@pytest.mark.parametrize("provider", ["embedded", "kind", "existing", *CLOUDS])
def test_only_supported_combinations_of_cores_and_environments_are_accepted(
    core: str, provider: str
) -> None:
    needs = {"existing": ", context: c", "digitalocean": ", version: 1.33.1-do.0"}
    text = (
        f"  core: {{provider: {core}{needs.get(core, '')}}}\n"
        "  git: {provider: url, core: 'https://g/c', apps: 'https://g/a'}\n"
        "  environments: [{name: a, cluster: "
        f"{{provider: {provider}{needs.get(provider, '')}}}}}]\n"
        "  credentials: {gcp: {env: GCP, project: p}}\n"
    )
    environments = COMBINATIONS[core]
    if provider in environments:
        assert not list(find_unstartable(accepted(text)))
    elif core == "embedded":
        assert "provider: kind" in next(find_unstartable(accepted(text))).message
    else:
        assert f"use provider: {environments[0]}" in refused(text)


def test_git_accepts_one_credential_to_write_and_another_to_read() -> None:
    git = "provider: url, core: 'https://g/c', apps: 'https://g/a', auth: forge, readAuth: reader"
    spec = accepted(
        f"  git: {{{git}}}\n  credentials: {{forge: {{env: A}}, reader: {{env: B}}}}\n"
    ).spec
    assert (spec.git.auth, spec.git.read_auth) == ("forge", "reader")


@pytest.mark.parametrize(
    "name",
    ["y", "no", "on", "true", "null", "1", "08", "1e3", "1e-3", "0x1f", "0o7", "0b1", "2024-1-31"],
)
def test_an_environment_name_that_yaml_reads_as_another_type_is_refused(name: str) -> None:
    """kustomize and Argo CD read the name as a key of a ConfigMap."""
    assert "YAML does not read as text" in refused(f"  environments: [{{name: '{name}'}}]\n")
    accepted(f"  environments: [{{name: 'env-{name}'}}]\n")
    accepted(f"  environments: [{{name: '{name}x'}}]\n")
