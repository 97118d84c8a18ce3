"""Faults of the objects of an overlay."""

from __future__ import annotations

import pytest

from k8s_ucp.gitops.check.objects.faults import find_faults
from k8s_ucp.gitops.check.objects.images import unpinned_image
from k8s_ucp.gitops.check.objects.mirrored import Mirrored
from k8s_ucp.gitops.check.objects.references import missing
from k8s_ucp.gitops.manifests.build_many import objects
from tests.unit.gitops.check.examples import DEPLOYMENT, INGRESS, ROUTE, SERVICE


def faults(
    text: str, mirrored: Mirrored | None = None, neighbors: str = "", **values: str
) -> list[str]:
    defaults = {"IMAGE": "a/b:1.0", "SECRET": "s", "KEY": "k"}
    for name, value in {**defaults, **values}.items():
        text = text.replace(name, value)
    others = objects(neighbors)
    return [each.message for each in find_faults(objects(text), mirrored, neighbors=others)]


def test_object_that_sops_encrypts_is_reported_as_that() -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nsops: {mac: x, age: []}\n"
    [fault] = faults(secret)
    assert "unknown field sops: SOPS encrypts this object" in fault and "fromOutside" in fault
    assert faults(secret.replace("mac", "any")) == ["Secret db: unknown field sops"]


def test_an_object_without_kind_or_version_is_found() -> None:
    text = "kind: Role\nmetadata: {name: a}\n---\napiVersion: a.org/v1\nmetadata: {name: b}\n"
    assert faults(text) == [
        "Role a: apiVersion is missing; each item of a list needs its own",
        "object b: kind is missing; each item of a list needs its own",
    ]


def test_valid_objects_have_no_faults() -> None:
    assert faults(DEPLOYMENT + SERVICE + INGRESS) == []


def test_a_service_account_that_nothing_creates_is_found() -> None:
    containers = "      containers:"
    text = DEPLOYMENT.replace(containers, f"      serviceAccountName: app\n{containers}")
    account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: app}\n"
    custom = account.replace("v1\nkind: ServiceAccount", "example.org/v1\nkind: Operated")
    role = account.replace("v1\nkind: ServiceAccount", "rbac.authorization.k8s.io/v1\nkind: Role")
    message = (
        "Deployment web: uses the ServiceAccount app, which neither the overlay nor another app has"
    )

    assert faults(text) == [message]
    assert faults(text + role) == [message]
    assert faults(text + account) == []
    assert faults(text + custom) == []
    assert faults(text, neighbors=account) == []


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
        ("apiVersion: apps/v1", "apiVersion: extensions/v1beta1", "has no extensions/v1beta1 Dep"),
        ("kind: Ingress", "kind: Ingres", "has no networking.k8s.io/v1 Ingres"),
        ("service: {name: web", "service: {name: wbe", "references the Service wbe"),
        ("port: {name: http}", "port: {number: 81}", "references the port 81"),
        ("selector: {app: web}, ports", "selector: {app: wbe}, ports", "no pod in the overlay"),
        (
            "      containers:",
            "      serviceAccount: old\n      serviceAccountName: web\n      containers:",
            "serviceAccountName is web, but serviceAccount is old",
        ),
        ("      containers:", "      serviceAccount: default\n      containers:", None),
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


def test_a_reference_means_the_object_in_its_own_namespace() -> None:
    """A kustomization can build one app for several namespaces."""
    whole = DEPLOYMENT + SERVICE + INGRESS
    dev = whole.replace("metadata: {name: web", "metadata: {namespace: dev, name: web")
    dev = dev.replace("app: web", "app: dev").replace("name: http", "name: dev")
    assert faults(dev) == faults(whole) == []
    assert faults(f"{dev}---\n{whole}") == faults(f"{whole}---\n{dev}") == []


AUTOSCALER = """
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
"""


def test_what_another_app_creates_in_the_namespace_can_be_scaled_served_and_selected() -> None:
    neighbors = objects(DEPLOYMENT + SERVICE)
    own = DEPLOYMENT.replace("web", "own") + SERVICE.replace("name: web", "name: alias")
    for text, words in (
        (AUTOSCALER, "scales Deployment web, which does not exist"),
        (INGRESS, "references the Service web"),
        (own, "which no pod in the overlay has"),
    ):
        assert any(words in each for each in faults(text))
        assert list(find_faults(objects(text), None, neighbors=neighbors)) == [
            each for each in find_faults(objects(text), None) if words not in each.message
        ]


def test_an_object_with_generate_name_is_reported_by_its_prefix() -> None:
    hook = DEPLOYMENT.replace("name: web}\nspec:\n  sel", "generateName: web-}\nspec:\n  sel")
    said = faults(f"{hook}---\n{hook}", IMAGE="nginx:latest")
    assert said == 2 * ["Deployment web-*: the image nginx has the mutable tag latest"]


def test_a_duplicate_object_is_found() -> None:
    assert faults(SERVICE + SERVICE) == ["duplicate object Service web"]


def test_a_crd_may_be_there_twice_as_of_a_chart_with_two_aliases() -> None:
    kind = """\
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec: {group: example.org, names: {kind: Widget, plural: widgets}, scope: Namespaced}
"""
    assert not [each for each in faults(kind + kind) if "duplicate" in each]
    other = kind.replace("Namespaced", "Cluster")
    duplicate = "duplicate object CustomResourceDefinition widgets.example.org"
    assert duplicate in faults(kind + other)


@pytest.mark.parametrize("image", ["a/b", "r:5000/b", "b:latest", "b:main", "b:latest-alpine"])
def test_unpinned_images_are_found(image: str) -> None:
    assert unpinned_image(image)
    assert faults(DEPLOYMENT, IMAGE=image)


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


@pytest.mark.parametrize(
    "custom",
    [
        "OnePasswordItem\nmetadata: {name: s}",
        "BitwardenSecret\nmetadata: {name: x}\nspec: {secretName: s}",
        "VaultStaticSecret\nmetadata: {name: x}\nspec: {destination: {create: true, name: s}}",
        "InfisicalSecret\nmetadata: {name: x}\nspec: {managedSecretReference: {secretName: s}}",
        "ExternalSecret\nmetadata: {name: x}\nspec: {target: {name: s}}",
        "SecretProviderClass\nmetadata: {name: x}\nspec: {secretObjects: [{secretName: s}]}",
        "Bucket\nmetadata: {name: x}\nspec: {writeConnectionSecretToRef: {name: s}}",
    ],
)
def test_a_secret_that_a_controller_creates_is_not_missing(custom: str) -> None:
    text = f"---\napiVersion: example.org/v1\nkind: {custom}\n"
    assert not faults(DEPLOYMENT + text, Mirrored())
    assert faults(DEPLOYMENT + text.replace(" s}", " other}"), Mirrored())


def test_services_and_pods_of_operators_are_not_missing() -> None:
    ingress = (
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web}}\n"
        "spec: {{defaultBackend: {{service: {{name: {0}, port: {{name: {1}}}}}}}}}\n"
    )
    database = "---\napiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {name: db}\n"
    knative = "---\napiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: hi}\n"
    canary = (
        "---\napiVersion: flagger.app/v1beta1\nkind: Canary\nmetadata: {name: web}\n"
        "spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}}\n"
    )
    for name, custom in (("db-rw", database), ("hi", knative), ("shop-canary", canary)):
        assert not faults(ingress.format(name, "http") + custom)
        assert faults(ingress.format("other", "http") + custom)
    assert not faults(ingress.format("ssl-redirect", "use-annotation"))
    service = (
        "---\napiVersion: v1\nkind: Service\nmetadata: {name: db}\n"
        "spec: {ports: [{port: 5432}], selector: {cnpg.io/cluster: db}}\n"
    )
    workload = DEPLOYMENT + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
    assert not faults(workload + service + database)
    assert "which no pod in the overlay has" in faults(workload + service)[-1]
    assert faults(workload + service.replace("cnpg.io/cluster", "app") + database)


@pytest.mark.parametrize(
    "text", ["metadata:", "metadata: [a]", "metadata: {annotations: [a]}", "metadata: {labels: a}"]
)
def test_an_object_with_malformed_metadata_is_found(text: str) -> None:
    (found,) = find_faults(objects(f"kind: A\n{text}\n"), None)
    assert " must be a mapping" in found.message
