"""The table of clouds: the one place where a cloud is added.

A provider of clusters (gke) is different from the cloud that bills it (gcp): databases and the
platform's own kinds name clouds. Access to a cloud's clusters is a separate module, which the row
names: `reconciler/access/authenticators/<name>.py`. Pure.
"""

from __future__ import annotations

import configparser
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

CONTRIB = "xpkg.crossplane.io/crossplane-contrib"
"""Repository of Crossplane packages."""


@dataclass(frozen=True)
class CredentialForm:
    """Format of a credential. normalize: raises ValueError, which does not contain the text."""

    expected: str
    normalize: Callable[[str], str]


@dataclass(frozen=True)
class CloudServices:
    """Packages and fields for the platform's own kinds (api/): databases and machines."""

    packages: tuple[str, ...]
    region: str
    """Default for a database whose environment is in another cloud."""
    access: tuple[str, ...] = ()
    """Fields in `databases/base/<cloud>-access` that get an environment's suffix; databases need
    that base for access to a network. Empty if there is no such base."""
    longest_database: int | None = None
    """Maximum length of a database's name in the cloud, if shorter than any that can occur."""


@dataclass(frozen=True)
class CloudInfo:
    """Properties of a cloud, on which all other code bases its decisions."""

    name: str
    family: str
    """The Crossplane package on which the cloud's other packages depend, without version."""
    version: str
    """Version of all its packages."""
    api_version: str
    """API version of its ProviderConfigs."""
    secret: str
    """Secret in crossplane-system with its credential, key `creds`."""
    file: str
    """Default file of its credential, below creds/."""
    credential: CredentialForm
    authenticator: str
    """`module:class` that authenticates to its clusters."""
    plugins: tuple[str, ...]
    """Credential plugins that kubeconfigs of its clusters use."""
    services: CloudServices | None = None
    """None: the platform's own kinds are not available on it."""
    simulated: bool = False
    """Whether it can be simulated on this machine: `ucp start --cloud local`."""
    needs_project: bool = False
    dns: str = ""
    """Its name in external-dns; empty if external-dns can't use Crossplane's credential."""
    velero_plugin: str = ""
    """Image of the Velero plugin for backups there, with the cloud's name: v1.14.x is for Velero
    v1.18.x, according to the plugins' own tables (verified for v1.14.2)."""
    velero_copies_volumes: bool = False
    """Velero copies volumes to the bucket instead of taking snapshots, for which its plugin there
    needs the cluster's region."""


def read_object(text: str, *keys: str) -> Mapping[str, Any]:
    """Parse JSON with text values for these keys. Raises ValueError, without the text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is not valid JSON") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    _need(value, *keys)
    return value


def _need(value: Mapping[str, object], *keys: str) -> None:
    missing = [each for each in keys if not (isinstance(value.get(each), str) and value[each])]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")


def _gcp(text: str) -> str:
    if read_object(text).get("type") != "service_account":
        raise ValueError("its type is not service_account")
    read_object(text, "client_email", "private_key", "project_id", "token_uri")
    return text


def _aws(text: str) -> str:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error:
        raise ValueError("it is not a valid INI file") from None
    if not parser.has_section("default"):
        raise ValueError("it has no section [default]")
    _need(dict(parser["default"]), "aws_access_key_id", "aws_secret_access_key")
    return text


def _azure(text: str) -> str:
    read_object(text, "clientId", "clientSecret", "subscriptionId", "tenantId")
    return text


def is_token(text: str) -> bool:
    """Whether a text can be a token, which goes into an HTTP header: one printable ASCII word."""
    return len(text.split()) == 1 and text.isascii() and text.isprintable()


def _digitalocean(text: str) -> str:
    text = text.strip()
    if text.startswith("{"):
        read_object(text, "token")
        return text
    if len(text) < 32 or not is_token(text):
        raise ValueError("it is not a valid token")
    return json.dumps({"token": text})


_AUTHENTICATORS = "k8s_ucp.reconciler.access.authenticators"
_ROWS = (
    CloudInfo(
        "gcp",
        family=f"{CONTRIB}/provider-family-gcp",
        version="v3.0.0",
        api_version="gcp.m.upbound.io/v1beta1",
        secret="gcp-creds",  # noqa: S106 (a name)
        file="gcp.json",
        credential=CredentialForm(
            "the JSON key of a service account (gcloud iam service-accounts keys create)", _gcp
        ),
        authenticator=f"{_AUTHENTICATORS}.gcp:Gcp",
        plugins=("gke-gcloud-auth-plugin", "gcloud", "gcp"),
        services=CloudServices(
            ("provider-gcp-compute", "provider-gcp-servicenetworking", "provider-gcp-sql"),
            region="europe-west9",
            access=(
                "spec/forProvider/networkRef/name",
                "spec/forProvider/reservedPeeringRangesRefs/name",
            ),
        ),
        needs_project=True,
        dns="google",
        velero_plugin="velero/velero-plugin-for-gcp:v1.14.0",
    ),
    CloudInfo(
        "aws",
        family=f"{CONTRIB}/provider-family-aws",
        version="v2.6.0",
        api_version="aws.m.upbound.io/v1beta1",
        secret="aws-creds",  # noqa: S106 (a name)
        file="aws.ini",
        credential=CredentialForm(
            "an INI file with [default], aws_access_key_id and aws_secret_access_key", _aws
        ),
        authenticator=f"{_AUTHENTICATORS}.aws:Aws",
        plugins=("aws", "aws-iam-authenticator"),
        simulated=True,
        services=CloudServices(
            ("provider-aws-ec2", "provider-aws-rds"), region="eu-west-3", longest_database=63
        ),
        dns="aws",
        velero_plugin="velero/velero-plugin-for-aws:v1.14.3",
        velero_copies_volumes=True,
    ),
    CloudInfo(
        "azure",
        family=f"{CONTRIB}/provider-family-azure",
        version="v2.7.0",
        api_version="azure.m.upbound.io/v1beta1",
        secret="azure-creds",  # noqa: S106 (a name)
        file="azure.json",
        credential=CredentialForm(
            "JSON with clientId, clientSecret, subscriptionId and tenantId "
            "(az ad sp create-for-rbac --sdk-auth)",
            _azure,
        ),
        authenticator=f"{_AUTHENTICATORS}.azure:Azure",
        plugins=("kubelogin", "azure"),
    ),
    CloudInfo(
        "digitalocean",
        # One package with all services, published in this registry only.
        family="xpkg.upbound.io/crossplane-contrib/provider-upjet-digitalocean",
        version="v1.0.1",
        api_version="digitalocean.m.crossplane.io/v1beta1",
        secret="do-creds",  # noqa: S106 (a name)
        file="digitalocean.token",
        credential=CredentialForm("an API token, or JSON with token", _digitalocean),
        authenticator=f"{_AUTHENTICATORS}.digitalocean:DigitalOcean",
        plugins=("doctl",),
        dns="digitalocean",
    ),
)

CLOUDS = {each.name: each for each in _ROWS}
"""By name, in the order in which messages and repositories list them."""


def database_providers() -> tuple[str, ...]:
    """Providers of databases: clouds, and `local`, which is a connection that leads nowhere."""
    return (*(each.name for each in CLOUDS.values() if each.services), "local")
