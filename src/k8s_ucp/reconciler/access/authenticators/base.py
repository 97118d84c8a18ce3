"""Authentication to app clusters: protocols, and the choice of an authenticator.

Kubeconfigs are only read: exec plugins are mapped to the authenticator that does the same without
running a program, and files that they name are never opened. Each cloud has its own module with one
class, which its entry in clouds.py names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.errors import UcpError
from k8s_ucp.providers import PROVIDERS, cloud_providers

EXEC_PLUGINS = {program: name for name, each in CLOUDS.items() for program in each.plugins}
"""Credential plugins in kubeconfigs, and the authenticators that replace them."""


def cloud_of(provider: str) -> str | None:
    """The cloud whose credential is used for a kubeconfig without a user, by its provider."""
    return PROVIDERS[provider].cloud or None if provider in PROVIDERS else None


class NoAccess(UcpError):
    """A kubeconfig can't be used. reason: one word, for the condition."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True)
class ClusterInfo:
    """What a kubeconfig's owner declares about the cluster; empty: unknown."""

    provider: str = ""
    region: str = ""
    name: str = ""
    """Name of the cluster in the cloud."""
    id: str = ""
    trusted: bool = True
    """Whether our cloud credentials may be used for it; not for Secrets that are only labeled."""
    distrust: str = ""
    """Why it isn't trusted, except for labeled Secrets."""
    servers: tuple[str, ...] = ()
    """Addresses of the API server, public and private, from the owner's status."""
    authority: str = ""
    """CA certificates, base64, from the owner's status."""
    digest: str = ""
    """Digest of the kubeconfig, recorded by a LocalCluster's controller."""
    as_a_whole: bool = True
    """Whether the owner vouches for the whole kubeconfig, so that its plugin's arguments count."""


@dataclass(frozen=True)
class AuthInfo:
    """The current context of a kubeconfig."""

    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    cluster_info: ClusterInfo = field(default_factory=ClusterInfo)

    @property
    def server(self) -> str:
        return str(self.cluster["server"])

    @property
    def authority(self) -> str | None:
        """CA certificates, base64; None: use the system's."""
        found = self.cluster.get("certificate-authority-data")
        return str(found) if found else None

    @property
    def plugin(self) -> str | None:
        """Program of its credential plugin, without the folder."""
        for each in ("exec", "auth-provider"):
            wanted = self.user.get(each)
            if isinstance(wanted, Mapping):
                command = str(wanted.get("command") or wanted.get("name") or "?")
                return command.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".exe")
        return None

    @property
    def arguments(self) -> list[str]:
        """Arguments of the credential plugin; none if only the owner's status counts."""
        return self.plugin_args if self.cluster_info.as_a_whole else []

    @property
    def plugin_args(self) -> list[str]:
        """Arguments of the credential plugin, whether they are trusted or not."""
        wanted = self.user.get("exec")
        found = wanted.get("args") if isinstance(wanted, Mapping) else None
        return [str(each) for each in found] if isinstance(found, list) else []

    def argument(self, *flags: str) -> str:
        """The value of the first of these flags among the arguments; empty if there is none."""
        given = self.arguments
        for index, each in enumerate(given):
            name, separator, value = each.partition("=")
            if name in flags and separator:
                return value
            if each in flags and index + 1 < len(given):
                return given[index + 1]
        return ""

    @property
    def way(self) -> str | None:
        """The cloud authenticator that replaces its plugin, or that serves a missing user."""
        if self.plugin is not None:
            return EXEC_PLUGINS.get(self.plugin)
        return None if self.user else cloud_of(self.cluster_info.provider)


class Cloud(Protocol):
    """What authenticators need from outside."""

    def credential(self, cloud: str) -> str:
        """The cloud's credential, as text. Raises NoAccess, which names what is missing."""

    def fetch(
        self, url: str, *, form: Mapping[str, str] | None = None, bearer: str = ""
    ) -> dict[str, Any]:
        """POST a form, or GET; returns the JSON. Raises NoAccess (refused), Unreachable."""

    def send(
        self, method: str, url: str, headers: Mapping[str, str], *, body: bytes | None = None
    ) -> tuple[int, bytes]:
        """Send one request as given; returns status and content. Raises NoAccess, Unreachable."""

    def remembered(self, key: str, take: Callable[[], tuple[str, float]]) -> str:
        """A cached token, or else the one that `take` returns: (text, lifetime in seconds)."""

    def now(self) -> float:
        """Seconds since the epoch."""


class Authenticator(Protocol):
    """One way of authenticating."""

    @property
    def name(self) -> str: ...

    def recognizes(self, auth_info: AuthInfo) -> bool:
        """Whether it can authenticate with such a kubeconfig."""

    def connect(self, auth_info: AuthInfo, cloud: Cloud) -> dict[str, Any]:
        """A kubeconfig with inlined credentials, for Kube. Raises NoAccess, KubeError."""


class CloudAuthenticator:
    """Base class of those that use a cloud's credential; `name` is that of the cloud."""

    name: str

    def recognizes(self, auth_info: AuthInfo) -> bool:
        return auth_info.way == self.name


class Static:
    """A token or a client certificate in the kubeconfig itself."""

    name = "static"

    def recognizes(self, auth_info: AuthInfo) -> bool:
        user = auth_info.user
        return bool(
            user.get("token")
            or (user.get("client-certificate-data") and user.get("client-key-data"))
        )

    def connect(self, auth_info: AuthInfo, cloud: Cloud) -> dict[str, Any]:  # noqa: ARG002 (the shape)
        kept = ("token", "client-certificate-data", "client-key-data")
        user = {name: auth_info.user[name] for name in kept if auth_info.user.get(name)}
        return kubeconfig(auth_info.cluster, user)


def choose(auth_info: AuthInfo, known: tuple[Authenticator, ...]) -> Authenticator:
    """The first authenticator that recognizes the kubeconfig.

    Raises NoAccess, which names what is missing.
    """
    for each in known:
        if each.recognizes(auth_info):
            if each.name != Static.name and not auth_info.cluster_info.trusted:
                if auth_info.cluster_info.distrust:
                    raise NoAccess(
                        "SourceUnproven",
                        f"credentials of {each.name} are required,"
                        f" but {auth_info.cluster_info.distrust}",
                    )
                raise NoAccess(
                    "CredentialsMissing",
                    f"credentials of {each.name} are required, but are not used for a "
                    "source that is only labeled; add a token or a client certificate "
                    "to the kubeconfig",
                )
            return each
    if auth_info.plugin is not None:
        raise NoAccess(
            "AuthenticatorMissing",
            f"the kubeconfig uses the credential plugin {auth_info.plugin!r}, which ucp "
            "does not run; add a token or a client certificate to it, or use one of: "
            f"{', '.join(sorted(EXEC_PLUGINS))}",
        )
    raise NoAccess(
        "CredentialsMissing",
        "the kubeconfig's user has neither a token nor a client certificate with its "
        f"key, and its owner specifies no cloud ({', '.join(cloud_providers())}) whose "
        "credentials could be used",
    )


def kubeconfig(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """A kubeconfig with one context of the given cluster and user."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "app", "cluster": dict(cluster)}],
        "users": [{"name": "us", "user": dict(user)}],
        "contexts": [{"name": "app", "context": {"cluster": "app", "user": "us"}}],
        "current-context": "app",
    }
