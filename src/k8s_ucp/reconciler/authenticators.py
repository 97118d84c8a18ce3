"""How we get into an app cluster: one authenticator for each way of proving who we are.

A kubeconfig is only read: exec plugins are recognised and mapped to the authenticator that does
the same without running anything, files it names are never opened. A new way (gcp, aws, azure,
digitalocean) is a class with `recognises` and `connect`, and a line in AUTHENTICATORS.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from k8s_ucp.errors import UcpError
from k8s_ucp.kube import current_context

LARGEST = 1_000_000
"""Bytes of a kubeconfig: a Secret can't hold more."""
LARGEST_YAML = 250_000
MOST_BRACKETS = 2_000

# Programs that kubeconfigs ask for, and the authenticator that stands for each.
EXEC_PLUGINS = {
    "gke-gcloud-auth-plugin": "gcp",
    "gcloud": "gcp",
    "aws": "aws",
    "aws-iam-authenticator": "aws",
    "kubelogin": "azure",
    "doctl": "digitalocean",
}


class NoAccess(UcpError):
    """A kubeconfig can't be used. reason: one word for the condition."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True)
class Login:
    """What a kubeconfig says, reduced to its current context."""

    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the owner tells: provider, region, names of credentials."""

    @property
    def server(self) -> str:
        return str(self.cluster["server"])

    @property
    def authority(self) -> str | None:
        """CA certificates, base64; None: the system's."""
        found = self.cluster.get("certificate-authority-data")
        return str(found) if found else None


class Authenticator(Protocol):
    """One way of getting in."""

    @property
    def name(self) -> str: ...

    def recognises(self, login: Login) -> bool:
        """This is the way for such a kubeconfig."""

    def connect(self, login: Login) -> dict[str, Any]:
        """A kubeconfig with inlined credentials that Kube can use now. Raises NoAccess."""


class Static:
    """A token or a client certificate in the kubeconfig itself."""

    name = "static"

    def recognises(self, login: Login) -> bool:
        user = login.user
        return bool(
            user.get("token")
            or (user.get("client-certificate-data") and user.get("client-key-data"))
        )

    def connect(self, login: Login) -> dict[str, Any]:
        kept = ("token", "client-certificate-data", "client-key-data")
        user = {name: login.user[name] for name in kept if login.user.get(name)}
        return kubeconfig(login.cluster, user)


AUTHENTICATORS: tuple[Authenticator, ...] = (Static(),)


def choose(login: Login, known: tuple[Authenticator, ...] = AUTHENTICATORS) -> Authenticator:
    """The first authenticator that recognises the kubeconfig.

    Raises NoAccess that names what is missing.
    """
    for each in known:
        if each.recognises(login):
            return each
    plugin = login.user.get("exec") or login.user.get("auth-provider")
    if isinstance(plugin, Mapping):
        command = str(plugin.get("command") or plugin.get("name") or "?")
        name = command.rsplit("/", 1)[-1]
        way = EXEC_PLUGINS.get(name)
        raise NoAccess(
            "AuthenticatorMissing",
            f"the kubeconfig wants the program {name!r}, which is never run"
            + (f"; it would take the authenticator {way}, which isn't available" if way else ""),
        )
    raise NoAccess(
        "CredentialsMissing",
        "the kubeconfig's user holds neither a token nor a client certificate with its key",
    )


def read(content: bytes, facts: Mapping[str, str] | None = None) -> Login:
    """Understand a kubeconfig from a Secret. Raises NoAccess that says what is wrong with it."""
    if len(content) > LARGEST:
        raise NoAccess("KubeconfigInvalid", f"the kubeconfig is larger than {LARGEST} bytes")
    parsed = _parsed(content)
    if not isinstance(parsed, dict):
        raise NoAccess("KubeconfigInvalid", "the kubeconfig is not a mapping")
    try:
        cluster, user = current_context(_with_plugins_hidden(parsed))
    except UcpError as error:
        raise NoAccess("KubeconfigInvalid", error.message) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise NoAccess("KubeconfigInvalid", "the kubeconfig has parts of a wrong type") from error
    user = {**user, **_plugins(parsed)}
    address = urlsplit(str(cluster["server"]))
    if address.scheme != "https" or not address.hostname:
        raise NoAccess("KubeconfigInvalid", "the server's address doesn't begin with https://")
    if cluster.get("insecure-skip-tls-verify"):
        raise NoAccess(
            "KubeconfigInvalid",
            "insecure-skip-tls-verify is set: a token would go to a server that nobody checked",
        )
    _check_encoded(cluster, "certificate-authority-data")
    for name in ("client-certificate-data", "client-key-data"):
        _check_encoded(user, name)
    return Login(cluster, user, dict(facts or {}))


def kubeconfig(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """A kubeconfig with one context of the given parts."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "app", "cluster": dict(cluster)}],
        "users": [{"name": "us", "user": dict(user)}],
        "contexts": [{"name": "app", "context": {"cluster": "app", "user": "us"}}],
        "current-context": "app",
    }


def _parsed(content: bytes) -> Any:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise NoAccess("KubeconfigInvalid", "the kubeconfig is not text") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if len(text) > LARGEST_YAML or text.count("[") + text.count("{") > MOST_BRACKETS:
        # The YAML reader takes minutes for what somebody made to take minutes.
        raise NoAccess("KubeconfigInvalid", "the kubeconfig is too large or nested for YAML")
    try:
        return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        # The parser's message quotes the text, which may be a credential.
        raise NoAccess("KubeconfigInvalid", "the kubeconfig is neither YAML nor JSON") from error


_PLUGINS = ("exec", "auth-provider")


def _with_plugins_hidden(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """current_context refuses plugins with the same words for all; `choose` has better ones."""
    users = parsed.get("users")
    if not isinstance(users, list):
        return dict(parsed)
    hidden = [
        {**each, "user": {k: v for k, v in each["user"].items() if k not in _PLUGINS}}
        if isinstance(each, dict) and isinstance(each.get("user"), dict)
        else each
        for each in users
    ]
    return {**parsed, "users": hidden}


def _plugins(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """The plugins of the current context's user."""
    current = parsed.get("current-context")
    wanted = [
        each["context"].get("user")
        for each in parsed["contexts"]
        if isinstance(each, dict) and each.get("name") == current and each.get("context")
    ]
    for each in parsed.get("users") or []:
        if isinstance(each, dict) and wanted and each.get("name") == wanted[0]:
            user = each.get("user") or {}
            return {name: user[name] for name in _PLUGINS if user.get(name)}
    return {}


def _check_encoded(part: Mapping[str, Any], name: str) -> None:
    if part.get(name):
        try:
            base64.b64decode(str(part[name]), validate=True)
        except (binascii.Error, ValueError) as error:
            raise NoAccess("KubeconfigInvalid", f"{name} is not base64") from error
