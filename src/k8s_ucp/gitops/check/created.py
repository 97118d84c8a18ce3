"""Objects that controllers create for the custom resources of an overlay. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from k8s_ucp.gitops.manifests.yaml_text import maps, part

Object = Mapping[str, Any]

_FIELDS: Mapping[str, Sequence[tuple[str, str]]] = {
    "AzureKeyVaultSecret": [
        ("Secret", "output.secret.name"),
        ("ConfigMap", "output.configMap.name"),
    ],
    "BitwardenSecret": [("Secret", "secretName")],
    "Bundle": [("ConfigMap", "")],
    "Certificate": [("Secret", "secretName")],
    "DopplerSecret": [("Secret", "managedSecret.name")],
    "ExternalSecret": [("Secret", "target.name"), ("Secret", "")],
    "InfisicalSecret": [("Secret", "managedSecretReference.secretName")],
    "KafkaUser": [("Secret", "")],
    "ObjectBucketClaim": [("Secret", ""), ("ConfigMap", "")],
    "OnePasswordItem": [("Secret", "")],
    "SealedSecret": [("Secret", "")],
    "VaultDynamicSecret": [("Secret", "destination.name")],
    "VaultPKISecret": [("Secret", "destination.name")],
    "VaultStaticSecret": [("Secret", "destination.name")],
}
"""{kind: [(kind of the object created, field of spec with its name; "": its own name)]}

Of several with the same kind, the first field that is set.
"""
_LISTS = {
    "SecretProviderClass": ("secretObjects", "secretName"),
    "SopsSecret": ("secretTemplates", "name"),
}
"""{kind: (list in spec, key with the name of a Secret)}"""
_NAMES: Mapping[tuple[str, str], Mapping[str, Sequence[str]]] = {
    ("postgresql.cnpg.io", "Cluster"): {
        "Secret": ["{}-app", "{}-superuser", "{}-ca", "{}-server", "{}-replication"],
        "Service": ["{}-rw", "{}-ro", "{}-r"],
    },
    ("acid.zalan.do", "postgresql"): {"Service": ["{}", "{}-repl"]},
    ("kafka.strimzi.io", "Kafka"): {
        "Secret": ["{}-cluster-ca-cert", "{}-clients-ca-cert"],
        "Service": ["{}-kafka-bootstrap", "{}-kafka-brokers"],
    },
    ("elasticsearch.k8s.elastic.co", "Elasticsearch"): {
        "Secret": ["{}-es-elastic-user", "{}-es-http-certs-public"],
        "Service": ["{}-es-http"],
    },
    ("kibana.k8s.elastic.co", "Kibana"): {"Service": ["{}-kb-http"]},
    ("rabbitmq.com", "RabbitmqCluster"): {
        "Secret": ["{}-default-user"],
        "Service": ["{}", "{}-nodes"],
    },
    ("serving.knative.dev", "Service"): {"Service": ["{}"]},
}
"""{(API group, kind): {kind of the objects created: patterns of their names}}"""


def created_by(objects: Iterable[Object]) -> set[tuple[str, str]]:
    """(kind, name) of the Secrets, ConfigMaps and Services that controllers create for these."""
    return {made for each in objects for made in _created(each)}


def _created(item: Object) -> Iterator[tuple[str, str]]:
    spec, name = part(item, "spec"), str(part(item, "metadata").get("name"))
    kind, group = str(item.get("kind")), group_of(item)
    found: dict[str, str] = {}
    for made, field in _FIELDS.get(kind, ()):
        found.setdefault(made, name if not field else _text(spec, field))
        found = {each: text for each, text in found.items() if text}
    yield from found.items()
    if kind in _LISTS:
        listed, key = _LISTS[kind]
        yield from (("Secret", str(each.get(key))) for each in maps(spec, listed))
    for made, patterns in _NAMES.get((group, kind), {}).items():
        yield from ((made, each.format(name)) for each in patterns)
    if kind == "Canary" and group == "flagger.app":
        service = _text(spec, "service.name") or _text(spec, "targetRef.name")
        yield from (("Service", f"{service}{end}") for end in ("", "-canary", "-primary"))
    if secret := _text(spec, "writeConnectionSecretToRef.name"):
        yield "Secret", secret


def _text(spec: Object, field: str) -> str:
    *above, last = field.split(".")
    for each in above:
        spec = part(spec, each)
    return str(spec.get(last) or "")


def group_of(item: Object) -> str:
    """The API group; "" for the core's."""
    group, slash, _ = str(item.get("apiVersion")).partition("/")
    return group if slash else ""
