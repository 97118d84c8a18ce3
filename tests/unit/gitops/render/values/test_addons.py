"""Add-ons: pinned charts, the clusters they are deployed to, and their switches in the topology."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ruamel.yaml import YAML

from k8s_ucp.gitops.render.repositories import RenderInputs, render
from k8s_ucp.gitops.render.values import addons
from k8s_ucp.steps.preparation.publish_repositories import warnings
from k8s_ucp.topology import Topology
from k8s_ucp.topology.parts import Addons, CoreCluster
from k8s_ucp.topology.rules.combinations import find_unstartable
from k8s_ucp.topology.rules.names import PLATFORM_APPLICATIONS, taken_namespace
from tests.unit.gitops.topologies import FACTS, demo, on_clouds

EVERYTHING = {
    "ingress": "gateway",
    "prometheus": True,
    "loki": True,
    "external-dns": True,
    "velero": True,
}


def with_addons(**wanted: Any) -> Topology:
    return on_clouds(addons={each.replace("_", "-"): value for each, value in wanted.items()})


def documents(core: dict[str, bytes], path: str) -> list[Any]:
    return [each for each in YAML(typ="safe").load_all(core[path].decode()) if each]


def applications(topology: Topology, inputs: RenderInputs = FACTS) -> dict[tuple[str, str], Any]:
    """The Applications and ApplicationSets of add-ons."""
    core = render(topology, inputs).core
    folder = f"bootstrap/{topology.spec.core.provider}"
    listed = documents(core, f"{folder}/kustomization.yaml")[0]["resources"]
    found = [
        each
        for name in listed
        if f"{folder}/{name}" in core
        for each in documents(core, f"{folder}/{name}")
    ]
    return {
        (each["kind"], each["metadata"]["name"]): each
        for each in found
        if each["metadata"]["name"].startswith("platform-")
    }


def sources(item: Any) -> list[Any]:
    spec = item["spec"]["template"]["spec"] if item["kind"] == "ApplicationSet" else item["spec"]
    return list(spec.get("sources") or [spec["source"]])


def test_no_addon_is_enabled_by_default() -> None:
    assert applications(on_clouds()) == {}
    project = documents(render(demo(), FACTS).core, "projects/infrastructure.yaml")[0]
    assert project["spec"]["sourceRepos"] == [FACTS.core_url]


def test_each_addon_is_deployed_to_its_clusters() -> None:
    found = set(applications(with_addons(**EVERYTHING)))
    assert found == {
        ("Application", "platform-gateway-api"),
        ("ApplicationSet", "platform-gateway-api"),
        ("Application", "platform-traefik"),
        ("ApplicationSet", "platform-traefik"),
        ("Application", "platform-prometheus"),
        ("Application", "platform-loki"),
        ("Application", "platform-alloy"),
        ("ApplicationSet", "platform-external-dns"),
        ("Application", "platform-velero"),
        ("ApplicationSet", "platform-velero"),
    }


def test_every_chart_is_pinned_and_permitted_by_its_project() -> None:
    topology = with_addons(**EVERYTHING)
    project = documents(render(topology, FACTS).core, "projects/infrastructure.yaml")[0]
    for item in applications(topology).values():
        chart, values = sources(item)
        assert re.fullmatch(r"v?\d+\.\d+\.\d+", chart["targetRevision"])
        assert chart["repoURL"] in project["spec"]["sourceRepos"]
        assert values == {"repoURL": FACTS.core_url, "targetRevision": "main", "ref": "core"}


def test_every_cluster_has_a_values_file() -> None:
    topology = with_addons(**EVERYTHING)
    core = render(topology, FACTS).core
    for (kind, _), item in applications(topology).items():
        (file,) = sources(item)[0]["helm"]["valueFiles"]
        providers = ["kind"]
        if kind == "ApplicationSet":
            selector = item["spec"]["generators"][0]["clusters"]["selector"]["matchExpressions"]
            providers = selector[1]["values"]
            assert providers == ["aks", "digitalocean", "eks", "gke", "kind"]
        for each in providers:
            path = re.sub(r"\{\{.*\}\}", each, file).removeprefix("$core/")
            assert isinstance(documents(core, path)[0], dict)


def test_dns_records_are_owned_and_deleted_only_by_the_cluster_of_their_hosts() -> None:
    topology = with_addons(external_dns=True)
    core = render(topology, FACTS).core
    for provider, name in (("gke", "google"), ("eks", "aws"), ("kind", "google")):
        values = documents(core, f"platform/external-dns/values/{provider}.yaml")[0]
        assert (values["policy"], values["registry"]) == ("sync", "txt")
        assert values["provider"]["name"] == name
    item = applications(topology)["ApplicationSet", "platform-external-dns"]
    parameters = {each["name"]: each["value"] for each in sources(item)[0]["helm"]["parameters"]}
    environment = '{{ index .metadata.labels "k8s-ucp.io/environment" }}'
    # With the same owner, each of two clusters would delete the other's records.
    assert parameters == {
        "txtOwnerId": f"ucp-shop-{environment}",
        "domainFilters[0]": f"{environment}.example.org",
    }


def test_each_cluster_stores_its_backups_in_its_own_folder() -> None:
    """A restore in one environment must not offer the backups of another."""
    topology = with_addons(velero=True)
    found = applications(topology)
    prefix = "configuration.backupStorageLocation[0].prefix"
    environment = '{{ index .metadata.labels "k8s-ucp.io/environment" }}'
    for item, wanted in (
        (found["ApplicationSet", "platform-velero"], environment),
        (found["Application", "platform-velero"], "core"),
    ):
        parameters = sources(item)[0]["helm"]["parameters"]
        assert parameters == [{"name": prefix, "value": wanted, "forceString": True}]
    values = documents(render(topology, FACTS).core, "platform/velero/values/eks.yaml")[0]
    # If the template has no labels, Velero copies those of the Schedule, which are the chart's.
    assert values["schedules"]["daily"]["template"]["metadata"]["labels"] == {
        "k8s-ucp.io/topology": "shop",
        "k8s-ucp.io/provider": "eks",
    }


def test_external_dns_has_the_region_that_its_client_for_aws_requires() -> None:
    """Without one it ends with "Missing Region", although Route 53 has one endpoint for all."""
    core = render(with_addons(external_dns=True), FACTS).core
    for provider, wanted in (("eks", ["us-east-1"]), ("gke", [])):
        values = documents(core, f"platform/external-dns/values/{provider}.yaml")[0]
        found = [each["value"] for each in values["env"] if each["name"] == "AWS_REGION"]
        assert found == wanted


def test_velero_takes_no_snapshots_where_they_need_the_clusters_region() -> None:
    core = render(with_addons(velero=True), FACTS).core
    values = documents(core, "platform/velero/values/eks.yaml")[0]
    assert values["snapshotsEnabled"] is False
    assert values["configuration"]["defaultVolumesToFsBackup"] is True
    assert values["deployNodeAgent"] is True, "it copies the volumes"
    assert "volumeSnapshotLocation" not in values["configuration"]
    values = documents(core, "platform/velero/values/gke.yaml")[0]
    assert [each["provider"] for each in values["configuration"]["volumeSnapshotLocation"]] == [
        "gcp"
    ]


def test_veleros_plugin_for_aws_is_a_fixed_version() -> None:
    values = documents(
        render(with_addons(velero=True), FACTS).core, "platform/velero/values/eks.yaml"
    )[0]
    [plugin] = values["initContainers"]
    image, _, tag = plugin["image"].rpartition(":v")
    assert image == "velero/velero-plugin-for-aws"
    assert tuple(map(int, tag.split("."))) >= (1, 14, 3)


@pytest.mark.parametrize(
    ("folders", "core", "environments"),
    [(("core", "stage"), "core", "environment"), (("kind", "gke"), "kind", "provider")],
    ids=["rendered-now", "rendered-before"],
)
def test_vendored_manifests_of_velero_are_found_in_new_and_old_folders(
    folders: tuple[str, ...], core: str, environments: str
) -> None:
    """Older versions vendored a folder per provider, which works until it is rendered again."""
    vendored = {f"platform/velero/vendored/{each}/manifests.yaml": b"a: b\n" for each in folders}
    inputs = RenderInputs(**{**FACTS.__dict__, "vendored": vendored})
    found = applications(with_addons(velero=True), inputs)
    (source,) = sources(found["Application", "platform-velero"])
    assert source["path"] == f"platform/velero/vendored/{core}"
    (source,) = sources(found["ApplicationSet", "platform-velero"])
    assert source["path"] == (
        f'platform/velero/vendored/{{{{ index .metadata.labels "k8s-ucp.io/{environments}" }}}}'
    )


def test_sync_waves_install_crds_before_the_addons_that_use_them() -> None:
    found = applications(with_addons(**EVERYTHING))
    waves = {
        name: int(item["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"])
        for (_, name), item in found.items()
    }
    assert waves["platform-gateway-api"] < waves["platform-traefik"] < 0
    assert waves["platform-prometheus"] < waves["platform-loki"]


def test_a_draining_cluster_loses_its_addons() -> None:
    found = applications(with_addons(**EVERYTHING))
    for (kind, _), item in found.items():
        if kind != "ApplicationSet":
            continue
        selector = item["spec"]["generators"][0]["clusters"]["selector"]
        assert selector["matchLabels"] == {"k8s-ucp.io/topology": "shop"}
        assert {"key": "k8s-ucp.io/environment", "operator": "Exists"} in selector[
            "matchExpressions"
        ]
        labels = item["spec"]["template"]["metadata"]["labels"]
        assert labels["k8s-ucp.io/environment"]


def test_no_password_is_a_charts_default() -> None:
    core = render(with_addons(**EVERYTHING), FACTS).core
    values = documents(core, "platform/prometheus/values/kind.yaml")[0]
    assert values["grafana"]["admin"]["existingSecret"] == "grafana-admin"
    secret = next(
        each
        for each in documents(core, "platform/reconciler/monitoring.yaml")
        if each["kind"] == "Secret"
    )
    assert secret["metadata"]["labels"] == {"k8s-ucp.io/generate": "password"}
    assert secret["stringData"] == {"username": "admin"}
    assert addons.password_namespaces(with_addons(prometheus=True)) == (
        "ucp-clusters",
        "monitoring",
    )
    assert "platform/reconciler/monitoring.yaml" not in render(demo(), FACTS).core


@pytest.mark.parametrize("name", ["prometheus", "loki"])
def test_an_embedded_core_cannot_run_addons_that_need_pods(name: str) -> None:
    topology = demo(addons={name: True})
    (problem,) = find_unstartable(topology)
    assert f"{name} runs as pods of the core cluster" in problem.message
    assert applications(topology) == {}


def test_embedded_environments_use_argo_rollouts_of_the_host() -> None:
    assert applications(demo(addons={"argo-rollouts": True})) == {}
    found = applications(with_addons(argo_rollouts=True))
    assert set(found) == {("ApplicationSet", "platform-argo-rollouts")}


def test_nginx_is_rendered_with_a_warning() -> None:
    topology = with_addons(ingress="nginx")
    assert "no security fixes" in warnings(topology)[0]
    assert warnings(with_addons(ingress="traefik")) == []
    text = render(topology, FACTS).core["platform/ingress-nginx/values/kind.yaml"].decode()
    assert "no more security fixes" in text


def test_vendored_manifests_replace_the_chart() -> None:
    vendored = {
        "platform/traefik/vendored/kind/manifests.yaml": b"kind: Service\n",
        "platform/external-dns/vendored/stage/manifests.yaml": b"kind: Service\n",
    }
    inputs = RenderInputs(**{**FACTS.__dict__, "vendored": vendored})
    topology = with_addons(ingress="traefik", external_dns=True)
    core = render(topology, inputs).core
    assert core["platform/traefik/vendored/kind/manifests.yaml"] == b"kind: Service\n"
    found = applications(topology, inputs)
    (source,) = sources(found["Application", "platform-traefik"])
    assert source["path"] == "platform/traefik/vendored/kind"
    (source,) = sources(found["ApplicationSet", "platform-external-dns"])
    assert source["path"] == (
        'platform/external-dns/vendored/{{ index .metadata.labels "k8s-ucp.io/environment" }}'
    )


@pytest.mark.parametrize(
    ("core", "ingress", "expected"),
    [
        ("kind", "traefik", "traefik"),
        ("kind", "gateway", "traefik"),
        ("kind", "nginx", "nginx"),
        ("kind", "none", None),
        ("kind", None, None),
        # A cloud's load balancer would expose the page to the internet.
        ("gke", "traefik", None),
        ("embedded", "traefik", None),
    ],
)
def test_only_a_core_on_this_machine_exposes_argocd_through_its_ingress(
    core: str, ingress: str | None, expected: str | None
) -> None:
    topology = demo(
        core=CoreCluster.model_validate({"provider": core}),
        addons=Addons.model_validate({"ingress": ingress}),
    )
    files = render(topology, FACTS).core
    assert addons.leads_to_argocd(topology) is bool(expected)
    assert ("platform/argocd/ingress.yaml" in files) is bool(expected)
    if expected:
        (ingress_object,) = documents(files, "platform/argocd/ingress.yaml")
        assert ingress_object["spec"]["ingressClassName"] == expected
        (rule,) = ingress_object["spec"]["rules"]
        assert "host" not in rule
        assert rule["http"]["paths"][0]["backend"]["service"] == {
            "name": "argocd-server",
            "port": {"name": "http"},
        }


def test_apps_cannot_be_named_like_applications_of_the_platform() -> None:
    """On app clusters these names grant permissions."""
    assert {f"platform-{each.name}" for each in addons.ALL} < PLATFORM_APPLICATIONS
    sets = render(demo(), FACTS).core["applications/unprotected.yaml"].decode()
    for name in PLATFORM_APPLICATIONS:
        assert taken_namespace(name)
        assert f'- path: "apps/{name}/overlays/*"\n                  exclude: true' in sets
    assert taken_namespace("platform") is None
