"""Flux HelmReleases that kustomizations change, as kustomize and Flux build them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.imports.environment_mapping import request_of
from k8s_ucp.gitops.imports.findings import Discovery, RemoteSource
from k8s_ucp.gitops.imports.flux.builds import Build
from k8s_ucp.gitops.imports.flux.outside_files import with_files_inside
from k8s_ucp.gitops.manifests.yaml_text import documents, dump_all
from tests.unit.gitops.imports.repository_files import (
    CHART,
    CONFIG,
    URL,
    flux,
    found,
    overlay,
    place,
    refusal,
)

CHARTS = flux("HelmRepository", "charts", {"url": "https://c.example.org"})
RELEASE: dict[str, Any] = {
    "chart": {"spec": {"chart": "web", "sourceRef": {"kind": "HelmRepository", "name": "charts"}}},
    "values": {"host": "local", "replicas": 1},
}
OURS = ("stage", "prod")
OTHERS = "https://git.example.org/others"


def release(values: Mapping[str, Any], version: str = "1.0.0", **more: Any) -> dict[str, Any]:
    """The HelmRelease as kustomize builds it from the base and a patch."""
    chart = {"spec": {**RELEASE["chart"]["spec"], "version": version}}
    spec = {"chart": chart, "values": {**RELEASE["values"], **values}, **more}
    [content] = documents(flux("HelmRelease", "web", spec).encode(), "")
    return dict(content)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def output(*objects: Mapping[str, Any]) -> str:
    """What kustomize builds, with the chart's source."""
    return f"{CHARTS}---\n{dump_all(objects)}"


def patched(*environments: str) -> dict[str, str]:
    """A base with a release, and overlays that patch it."""
    files = {
        "apps/base/web/kustomization.yaml": overlay("charts.yaml", "release.yaml"),
        "apps/base/web/charts.yaml": CHARTS,
        "apps/base/web/release.yaml": flux("HelmRelease", "web", RELEASE),
    }
    for each in environments:
        files[f"apps/{each}/patch.yaml"] = flux("HelmRelease", "web", {"values": {"host": each}})
        content = {"resources": ["../base/web"], "patches": [{"path": "patch.yaml"}]}
        files[f"apps/{each}/kustomization.yaml"] = dump_all([content])
    return files


def patched_inline(changed: str, *unchanged: str) -> dict[str, str]:
    """The same with a patch in one overlay, which is in no file of its own."""
    files = patched()
    for each in (changed, *unchanged):
        files[f"apps/{each}/kustomization.yaml"] = overlay("../base/web")
    patch = {"patch": "- {op: replace, path: /spec/values/host, value: x}"}
    content = {"resources": ["../base/web"], "patches": [{**patch, "target": {"name": "web"}}]}
    files[f"apps/{changed}/kustomization.yaml"] = dump_all([content])
    return files


def makes(by_folder: Mapping[str, list[dict[str, Any]]]) -> Build:
    """A fake of `kustomize build` that returns these objects by folder."""

    def build(files: Mapping[str, bytes], folder: str) -> str:
        assert f"{folder}/kustomization.yaml" in files
        return CHARTS + "---\n" + dump_all(by_folder[folder])

    return build


def of_flux(name: str, spec: Mapping[str, Any]) -> str:
    head = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"}
    return dump_all([{**head, "metadata": {"name": name}, "spec": spec}])


def test_a_release_that_overlays_patch_is_one_app_with_values_per_environment() -> None:
    build = makes(
        {
            "apps/stage": [release({"host": "stage"})],
            "apps/prod": [release({"host": "prod", "replicas": 3})],
        }
    )
    there = found(patched(*OURS), build=build)
    [web] = there.findings
    assert (web.name, web.environments) == ("web", ("prod", "stage"))
    assert web.remote == RemoteSource("https://c.example.org", "1.0.0", "web")
    assert web.values == {
        "stage": b"host: stage\nreplicas: 1\n",
        "prod": b"host: prod\nreplicas: 3\n",
    }
    assert not there.refusals
    [first, *_] = [each for each in found(patched(*OURS)).refusals if each.name == "web"]
    assert "patched by kustomizations" in first.reason
    assert first.advice.endswith(", which lacks what the kustomizations change")


def test_a_kustomization_that_cannot_be_built_is_refused_with_the_reason() -> None:
    def build(files: Mapping[str, bytes], folder: str) -> str:
        raise UcpError("kustomize failed to build it: no such field")

    assert "no such field" in refusal(found(patched("stage"), build=build), "web").reason
    files = patched("stage")
    content = {"resources": ["../base/web", "https://git.example.org/x"], "namePrefix": "a-"}
    files["apps/stage/kustomization.yaml"] = dump_all([content])
    reason = refusal(found(files, build=makes({})), "web").reason
    assert "loads https://git.example.org/x, which is not in the repository" in reason


def test_an_app_with_different_versions_starts_with_that_of_the_last_environment() -> None:
    build = makes({"apps/stage": [release({}, "2.0.0")], "apps/prod": [release({}, "1.0.0")]})
    [web] = found(patched(*OURS), build=build).findings
    assert web.versions == {"stage": "2.0.0", "prod": "1.0.0"}
    same = {each: each for each in OURS}
    request = request_of(web, place({}), same, OURS, pinned=False)
    assert request.version == "1.0.0"
    assert request.notes == (
        "stage has version 2.0.0 of the chart and begins with version 1.0.0 of prod; then: "
        "ucp promote web --env stage --chart-version 2.0.0",
    )
    web = replace(web, versions={"": None, "stage": ">=2.0.0"})
    request = request_of(web, place({}), same, OURS, pinned=False)
    assert request.version is None
    assert "begins with version (newest) of prod" in request.notes[-1]
    assert request.notes[-1].endswith("--chart-version VERSION")


def test_values_are_read_from_configmaps_and_never_from_secrets() -> None:
    files = patched("stage")
    files["apps/stage/secret.yaml"] = CONFIG
    generated = config_map("web-values-1a2b", **{"values.yaml": "host: map\nmore: yes\n"})
    named = {"kind": "ConfigMap", "name": "web-values-1a2b"}
    built = release({"host": "own"}, valuesFrom=[named])
    [web] = found(files, build=makes({"apps/stage": [generated, built]})).findings
    assert web.values == {"stage": b"host: own\nmore: true\nreplicas: 1\n"}
    for other, reason in (
        ({"kind": "Secret", "name": "web"}, "uses valuesFrom Secret web, which is not read"),
        ({**named, "name": "lost"}, "the ConfigMap lost of its valuesFrom does not exist"),
        (
            {**named, "valuesKey": "no"},
            "the ConfigMap web-values-1a2b of its valuesFrom has no values",
        ),
        ({**named, "targetPath": "a[x]"}, "the targetPath a[x] of its valuesFrom is not read"),
    ):
        built = release({}, valuesFrom=[other])
        there = found(files, build=makes({"apps/stage": [generated, built]}))
        assert reason in refusal(there, "web").reason


def test_a_value_of_a_configmap_is_set_at_its_target_path() -> None:
    flat = config_map("flat", **{"size": "3", "tag": '"3"', "values.yaml": "image: {name: web}\n"})
    references = [
        {"kind": "ConfigMap", "name": "flat"},
        {"kind": "ConfigMap", "name": "flat", "valuesKey": "size", "targetPath": "image.size"},
        {"kind": "ConfigMap", "name": "flat", "valuesKey": "tag", "targetPath": "image.tag"},
    ]
    built = release({}, valuesFrom=references)
    [web] = found(patched("stage"), build=makes({"apps/stage": [flat, built]})).findings
    assert isinstance(web.values, dict)
    [values] = documents(web.values["stage"], "values")
    assert values["image"] == {"name": "web", "size": 3, "tag": "3"}


def test_values_in_a_secret_that_is_plain_in_the_repository_are_read() -> None:
    plain = {**config_map("plain"), "kind": "Secret", "data": {"values.yaml": "YTogMQo="}}
    text = {**config_map("text"), "kind": "Secret", "stringData": {"b": "2"}}
    references = [
        {"kind": "Secret", "name": "plain"},
        {"kind": "Secret", "name": "text", "valuesKey": "b", "targetPath": "b", "optional": True},
    ]
    built = release({"host": "own"}, valuesFrom=references)
    there = found(patched("stage"), build=makes({"apps/stage": [plain, text, built]}))
    [web] = there.findings
    assert web.values == {"stage": b"a: 1\nb: 2\nhost: own\nreplicas: 1\n"}
    assert not [each for each in web.notes if "Secret" in each]
    sealed = {**plain, "sops": {}}
    there = found(patched("stage"), build=makes({"apps/stage": [sealed, text, built]}))
    assert "uses valuesFrom Secret plain, which is not read" in refusal(there, "web").reason
    broken = {**plain, "data": {"values.yaml": "%"}}
    there = found(patched("stage"), build=makes({"apps/stage": [broken, text, built]}))
    assert "the Secret plain of its valuesFrom has no values" in refusal(there, "web").reason


def test_absent_optional_values_do_not_prevent_an_import() -> None:
    optional = [
        {"kind": "ConfigMap", "name": "lost", "optional": True},
        {"kind": "Secret", "name": "own", "optional": True},
    ]
    built = release({"host": "own"}, valuesFrom=optional)
    [web] = found(patched("stage"), build=makes({"apps/stage": [built]})).findings
    assert web.values == {"stage": b"host: own\nreplicas: 1\n"}
    assert "Flux would add the values in the Secret own, if it exists" in web.notes


def test_values_in_a_configmap_beside_a_release_require_no_build() -> None:
    spec = {**RELEASE, "valuesFrom": [{"kind": "ConfigMap", "name": "settings"}]}
    files = {
        "web/charts.yaml": CHARTS,
        "web/release.yaml": flux("HelmRelease", "web", spec),
        "web/settings.yaml": dump_all([config_map("settings", **{"values.yaml": "a: 1\n"})]),
    }
    [web] = found(files).findings
    assert web.values == {"": b"a: 1\nhost: local\nreplicas: 1\n"}


def deployed(spec: Mapping[str, Any], *objects: dict[str, Any]) -> tuple[Discovery, dict[str, Any]]:
    """Deploy a folder with a Flux Kustomization: (discovery, the kustomization that was built)."""
    files = patched()
    files["flux/web.yaml"] = of_flux("web", {"path": "./apps/base/web", **spec})
    files["parts/backup/kustomization.yaml"] = dump_all([{"kind": "Component"}])
    seen: dict[str, Any] = {}

    def build(given: Mapping[str, bytes], folder: str) -> str:
        seen.update(documents(given[f"{folder}/kustomization.yaml"], "")[0])
        assert "parts/backup/kustomization.yaml" in given or "components" not in seen
        return CHARTS + "---\n" + dump_all(objects)

    return found(files, build=build), seen


def test_settings_of_a_flux_kustomization_are_applied_to_its_folder() -> None:
    spec = {
        "targetNamespace": "shop",
        "components": ["../../../parts/backup"],
        "patches": [{"patch": "any"}],
        "postBuild": {"substitute": {"APP": "web", "NAME": "x"}},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "${APP}", "namespace": "shop"},
        "spec": {
            "size": "${SIZE:=5Gi}",
            "claim": "${CLAIM:-${NAME}}",
            "of": "${LOST}",
            "as": "$${APP}",
        },
    }
    script = config_map("script", text="echo ${APP}")
    script["metadata"]["annotations"] = {"kustomize.toolkit.fluxcd.io/substitute": "disabled"}
    sealed = {**config_map("sealed"), "sops": {}}
    built = release({"host": "${APP}.example.org"}, targetNamespace="shop")
    there, seen = deployed(spec, built, claim, script, sealed)
    assert seen["namespace"] == "shop"
    assert (seen["components"], seen["patches"]) == (spec["components"], spec["patches"])
    more, web = sorted(there.findings, key=lambda each: each.form != "kustomize")
    assert web.values == {"": b"host: web.example.org\nreplicas: 1\n"}
    assert "SOPS encrypts ConfigMap sealed: create it on the clusters" in web.notes
    assert (more.name, more.form, more.namespace) == ("web-more", "kustomize", "shop")
    [text] = [each.decode() for name, each in more.generated.items() if "objects" in name]
    assert "name: web\n" in text
    assert "size: 5Gi\n  claim: x\n  of: ${LOST}\n  as: ${APP}" in text
    assert "echo ${APP}" in text
    assert "sealed" not in text
    assert "${LOST} in it: write what they stand for" in more.notes[1]
    request = request_of(more, place(patched()), {}, OURS, pinned=False)
    assert request.files is not None
    assert sorted(request.files) == ["kustomization.yaml", "objects.yaml"]


def test_objects_beside_a_release_in_default_go_to_its_own_namespace() -> None:
    spec = {"targetNamespace": "default"}
    built = release({"host": "x"}, targetNamespace="default")
    inside = config_map("settings")
    inside["metadata"]["namespace"] = "default"
    there, _ = deployed(spec, built, inside)
    [more] = [each for each in there.findings if each.form == "kustomize"]
    assert more.namespace == "web"
    [text] = [each.decode() for name, each in more.generated.items() if "kustomization" in name]
    assert "namespace: web\n" in text
    assert "as those of web do: no app may write to default" in more.notes[1]
    # Another namespace stays what it is.
    outside = config_map("settings")
    outside["metadata"]["namespace"] = "other"
    there, _ = deployed(spec, built, inside, outside)
    [more] = [each for each in there.findings if each.form == "kustomize"]
    assert more.namespace == "default"


def test_variables_that_clusters_may_substitute_are_left_unresolved() -> None:
    spec = {"postBuild": {"substituteFrom": [{"kind": "Secret", "name": "settings"}]}}
    there, _ = deployed(spec, release({"host": "${HOST:=usual}"}))
    [web] = there.findings
    assert "${HOST:=usual}" in web.notes[0]


def variables_of(path: str, host: str) -> dict[str, str]:
    return {path: dump_all([config_map("settings", HOST=host)])}


@pytest.mark.parametrize(
    ("files", "host"),
    [
        (variables_of("vars.yaml", "web.example.org"), "web.example.org"),
        (
            variables_of("clusters/stage/vars.yaml", "stage.example.org")
            | variables_of("clusters/prod/vars.yaml", "prod.example.org"),
            "prod.example.org",
        ),
        (variables_of("a.yaml", "a") | variables_of("b.yaml", "b"), "${HOST:=usual}"),
    ],
)
def test_variables_come_from_config_maps_of_the_repository(
    files: dict[str, str], host: str
) -> None:
    """Of several with the name, the one of the environment counts; else nobody knows which."""
    post_build = {
        "substituteFrom": [{"kind": "ConfigMap", "name": "settings"}],
        "substitute": {"TAG": "2"},
    }
    files |= patched()
    files["clusters/prod/web.yaml"] = of_flux(
        "web", {"path": "./apps/base/web", "postBuild": post_build}
    )
    made = release({"host": "${HOST:=usual}", "tag": "${TAG}"})
    [web] = found(files, build=makes({"apps/base/web": [made]})).findings
    [text] = web.values.values()
    assert text == f"host: {host}\nreplicas: 1\ntag: 2\n".encode()


def test_flux_generates_the_kustomization_of_a_folder_that_has_none() -> None:
    files = {
        "system/charts.yaml": CHARTS,
        "system/web/release.yaml": flux("HelmRelease", "web", RELEASE),
        "system/web/README.yaml": "not: an object\n",
        "system/more/kustomization.yaml": overlay("deeper"),
        "system/more/deeper/kustomization.yaml": overlay("own.yaml"),
        "system/more/deeper/own.yaml": CONFIG,
        "flux.yaml": of_flux("web", {"path": "./system", "targetNamespace": "shop"}),
    }
    seen: list[Any] = []

    def build(given: Mapping[str, bytes], folder: str) -> str:
        seen.extend(documents(given[f"{folder}/kustomization.yaml"], ""))
        return CHARTS + "---\n" + dump_all([release({"built": True})])

    [web] = [each for each in found(files, build=build).findings if each.form == "helm"]
    assert seen == [{"resources": ["charts.yaml", "more", "web/release.yaml"], "namespace": "shop"}]
    assert web.where == "system/web/release.yaml:1"
    assert web.values == {"": b"host: local\nreplicas: 1\nbuilt: true\n"}


def test_releases_for_the_clusters_of_environments_are_imported_from_a_hub() -> None:
    files = patched(*OURS)
    config = {"kubeConfig": {"secretRef": {"name": "cluster-kubeconfig"}}}
    made = {f"apps/{each}": [release({"host": each}, **config)] for each in OURS}
    [web] = found(files, build=makes(made)).findings
    assert web.environments == ("prod", "stage")
    assert "Secret cluster-kubeconfig (kubeConfig)" in web.notes[0]


def test_a_folder_with_releases_of_another_folder_is_not_suggested() -> None:
    """Its objects would be Flux's, which no cluster here knows."""
    files = patched("prod")
    files["flux.yaml"] = of_flux("apps", {"path": "./apps/prod"})
    there = found(files, build=makes({"apps/prod": [release({})]}))
    assert [each.name for each in there.findings] == ["web"]
    assert not there.refusals


def test_a_version_that_only_clusters_know_is_named() -> None:
    chart = {**RELEASE["chart"]["spec"], "version": "${VERSION}"}
    files = {"a.yaml": CHARTS, "b.yaml": flux("HelmRelease", "web", {"chart": {"spec": chart}})}
    [only] = found(files).refusals
    assert "its chart https://c.example.org web ${VERSION} has variables" in only.reason


@pytest.mark.parametrize("environments", [OURS, ("prod",)])
def test_objects_beside_a_release_become_an_app_with_an_overlay_per_environment(
    environments: tuple[str, ...],
) -> None:
    build = makes(
        {f"apps/{each}": [release({}), config_map("own", env=each)] for each in environments}
    )
    more, _ = sorted(
        found(patched(*environments), build=build).findings,
        key=lambda each: each.name != "web-more",
    )
    assert more.overlays == {each: f"apps/{each}/beside-releases/{each}" for each in environments}


def test_folders_of_other_repositories_are_refused_with_the_command_that_adds_them() -> None:
    there = found(
        {
            "a.yaml": flux(
                "GitRepository", "far", {"url": "https://git.example.org/far", "ref": {"tag": "1"}}
            ),
            "b.yaml": of_flux(
                "far", {"path": "./all", "sourceRef": {"kind": "GitRepository", "name": "far"}}
            ),
            "c.yaml": flux("OCIRepository", "oci", {"url": "oci://r/manifests"}),
            "d.yaml": of_flux("oci", {"sourceRef": {"kind": "OCIRepository", "name": "oci"}}),
        }
    )
    assert {each.name: each.advice for each in there.refusals} == {
        "far": "ucp app add far https://git.example.org/far --path all --ref 1",
        "oci": "flux pull artifact oci://r/manifests -o DIR; then: ucp app add oci DIR",
    }


def test_flux_system_is_not_an_app() -> None:
    folder = "clusters/prod/flux-system"
    files = {
        f"{folder}/kustomization.yaml": overlay("gotk-components.yaml"),
        f"{folder}/gotk-components.yaml": CONFIG,
    }
    assert not found(files).findings


def test_config_map_with_a_hash_that_its_reference_lacks_is_found() -> None:
    """kustomize adds it to no reference in another namespace, which Flux sets afterwards."""
    files = patched("stage")
    built = release({"host": "stage"}, valuesFrom=[{"kind": "ConfigMap", "name": "more"}])
    hashed = config_map("more-abcdefgh12", **{"values.yaml": "size: 1\n"})
    [web] = found(files, build=lambda *_: output(built, hashed)).findings
    assert b"size: 1" in dict(web.values)["stage"]
    other = config_map("more-other-abcdefgh12", **{"values.yaml": "size: 1\n"})
    there = found(files, build=lambda *_: output(built, other))
    assert "ConfigMap more of its valuesFrom does not exist" in refusal(there, "web").reason


def test_files_outside_of_a_kustomization_are_copied_into_it() -> None:
    """Flux allows them; kustomize would then also read files of this machine."""
    content = {
        "resources": ["../base/web", "../shared/one.yaml"],
        "patches": [{"path": "../shared/patch.yaml"}, {"patch": "x", "target": {"kind": "A"}}],
        "configMapGenerator": [
            {"name": "c", "files": ["../shared/one.yaml", "k=../shared/two.yaml", "own.yaml"]},
            {"name": "d", "envs": ["../shared/some.env"], "literals": ["a=/etc/passwd"]},
        ],
        "secretGenerator": [{"name": "s", "files": ["/etc/passwd", "../../../etc/passwd"]}],
    }
    files = {
        "apps/stage/kustomization.yaml": dump_all([content]).encode(),
        "apps/stage/own.yaml": b"o",
        **{f"apps/shared/{each}": b"x" for each in ("one.yaml", "two.yaml", "patch.yaml")},
        "apps/shared/some.env": b"a=1",
    }
    inside = with_files_inside(files)
    [read] = documents(inside["apps/stage/kustomization.yaml"], "")
    copies = "from-outside/apps/shared"
    assert read == {
        "resources": ["../base/web", f"{copies}/one.yaml"],
        "patches": [{"path": f"{copies}/patch.yaml"}, {"patch": "x", "target": {"kind": "A"}}],
        "configMapGenerator": [
            {
                "name": "c",
                "files": [f"one.yaml={copies}/one.yaml", f"k={copies}/two.yaml", "own.yaml"],
            },
            {"name": "d", "envs": [f"{copies}/some.env"], "literals": ["a=/etc/passwd"]},
        ],
        "secretGenerator": [{"name": "s", "files": ["/etc/passwd", "../../../etc/passwd"]}],
    }
    assert inside[f"apps/stage/{copies}/two.yaml"] == b"x"
    assert files.items() - inside.items() == {
        ("apps/stage/kustomization.yaml", files["apps/stage/kustomization.yaml"])
    }


def test_clusters_that_deploy_one_release_are_proposed_as_environments() -> None:
    files = patched()
    for each in ("main", "spare"):
        deploy = {"path": "./apps/base/web", "postBuild": {"substitute": {"HOST": each}}}
        files[f"clusters/{each}/web.yaml"] = flux("Kustomization", "web", deploy)

    def build(files: Mapping[str, bytes], folder: str) -> str:
        return output(release({"host": "${HOST}"}))

    there = found(files, build=build)
    assert {each.advice.partition(";")[0] for each in there.refusals} == {
        "--map main=ENV --map spare=ENV, if these are environments"
    }
    assert len(there.refusals) == len(set(there.refusals)) == 1
    [web] = found(files, build=build, environments=["main", "spare"]).findings
    assert web.environments == ("main", "spare")


def test_values_files_of_a_chart_in_the_repository_are_merged() -> None:
    """They replace the chart's own values.yaml, so they have to contain it."""
    chart: dict[str, Any] = {
        "chart": "./charts/web",
        "sourceRef": {"kind": "GitRepository", "name": "own"},
        "valuesFiles": ["charts/web/values.yaml", "./charts/web/values-small.yaml"],
    }

    def release_of(**more: Any) -> str:
        spec = {"chart": {"spec": {**chart, **more}}, "values": {"host": "shop"}}
        return flux("HelmRelease", "web", spec)

    files = {
        "own.yaml": flux("GitRepository", "own", {"url": URL}),
        "charts/web/Chart.yaml": CHART,
        "charts/web/values.yaml": "host: any\nreplicas: 2\n",
        "charts/web/values-small.yaml": "host: small\nreplicas: 1\n",
    }
    [web] = found({**files, "release.yaml": release_of()}).findings
    assert (web.path, web.values) == ("charts/web", {"": b"host: shop\nreplicas: 1\n"})
    for listed, reason in (
        (["charts/web/values-small.yaml"], "without the chart's own charts/web/values.yaml"),
        ([*chart["valuesFiles"], "lost.yaml"], "lost.yaml of its valuesFiles does not exist"),
    ):
        there = found({**files, "release.yaml": release_of(valuesFiles=listed)})
        assert reason in refusal(there, "web").reason
    there = found({**files, "own.yaml": CHARTS, "release.yaml": release_of()})
    reason = "HelmRelease of Flux uses valuesFiles of a chart outside of this repository"
    assert refusal(there, "web").reason == reason


def listed_beside_an_app() -> dict[str, str]:
    """A kustomization that only lists a folder with a release, and an app with a namespace."""
    api = {"namespace": "api", "resources": ["all.yaml"]}
    return {
        "all/kustomization.yaml": overlay("charts", "../api"),
        "all/charts/kustomization.yaml": overlay("charts.yaml", "release.yaml"),
        "all/charts/charts.yaml": CHARTS,
        "all/charts/release.yaml": flux("HelmRelease", "web", RELEASE),
        "api/kustomization.yaml": dump_all([api]),
        "api/all.yaml": CONFIG,
    }


def test_apps_listed_beside_a_release_are_not_its_objects_too() -> None:
    there = found(listed_beside_an_app(), build=makes({}))
    assert [each.name for each in there.findings] == ["api", "web"]
    assert not there.refusals


def test_a_root_is_not_built_if_flux_deploys_the_release_in_it() -> None:
    files = listed_beside_an_app()
    files["all/kustomization.yaml"] = overlay("charts", "../api", "more.yaml")
    files["all/more.yaml"] = CONFIG
    files["flux.yaml"] = of_flux("charts", {"path": "./all/charts"})
    there = found(files, build=makes({}))
    assert "web" in [each.name for each in there.findings]
    assert "web-more" not in [each.name for each in there.findings]


def test_an_app_that_cannot_be_built_holds_up_no_release_in_the_same_list() -> None:
    files = listed_beside_an_app()
    files["api/kustomization.yaml"] = overlay("https://git.example.org/api//base?ref=v1")
    files["all/charts/kustomization.yaml"] = dump_all(
        [{"namespace": "shop", "resources": ["charts.yaml", "release.yaml"]}]
    )
    files["flux.yaml"] = of_flux("all", {"path": "./all", "postBuild": {"substitute": {"A": "b"}}})
    there = found(files, build=makes({"all/charts": [release({"host": "${A}"})]}))
    [web] = [each for each in there.findings if each.name == "web"]
    assert web.values == {"": b"host: b\nreplicas: 1\n"}
    assert "web" not in [each.name for each in there.refusals]


def test_an_invalid_file_in_a_folder_that_flux_patches_does_not_end_the_import() -> None:
    files = {
        "apps/charts.yaml": CHARTS,
        "apps/release.yaml": flux("HelmRelease", "web", RELEASE),
        "apps/broken.yaml": CONFIG + "data: *nothing\n",
        "clusters/all.yaml": of_flux("all", {"path": "./apps", "targetNamespace": "shop"}),
    }
    there = found(files, build=makes({"apps": [release({"host": "built"})]}))
    [web] = there.findings
    assert web.values == {"": b"host: built\nreplicas: 1\n"}


def test_a_fork_is_read_although_flux_names_the_original_repository() -> None:
    """A Kustomization's settings were left out, and each was listed as one of another place."""
    by = {"kind": "GitRepository", "name": "all"}
    files = {
        "apps/web/charts.yaml": CHARTS,
        "apps/web/release.yaml": flux("HelmRelease", "web", RELEASE),
        "clusters/source.yaml": flux("GitRepository", "all", {"url": f"{OTHERS}/platform.git"}),
        "clusters/web.yaml": of_flux(
            "web", {"path": "./apps/web", "targetNamespace": "shop", "sourceRef": by}
        ),
    }
    there = found(files, build=makes({"apps/web": [release({})]}))
    assert [each.name for each in there.findings] == ["web"]
    assert there.refusals == ()
    assert there.notes == (
        "git.example.org/others/platform is taken for this repository: what deploys its folders "
        "names it",
    )
    files["clusters/source.yaml"] = flux("GitRepository", "all", {"url": f"{OTHERS}/library"})
    there = found(files, build=makes({}))
    assert "another repository" in refusal(there, "web").reason


@pytest.mark.parametrize(("changed", "unchanged"), [("production", "staging"), ("staging", "dev")])
def test_no_environment_is_lost_beside_one_whose_patch_is_in_its_kustomization(
    changed: str, unchanged: str
) -> None:
    build = makes({f"apps/{changed}": [release({"host": "x"})], f"apps/{unchanged}": [release({})]})
    [only] = found(patched_inline(changed, unchanged), build=build).findings
    values = {name: documents(each, "")[0] for name, each in only.values.items()}
    assert values == {
        changed: {"host": "x", "replicas": 1},
        unchanged: {"host": "local", "replicas": 1},
    }
