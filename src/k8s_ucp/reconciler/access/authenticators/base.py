"""How we get into an app cluster: one authenticator for each way of proving who we are.

A kubeconfig is only read: exec plugins are recognised and mapped to the authenticator that does
the same without running anything, files it names are never opened. Each cloud is a file of its own
with one class, which its row names (clouds.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.errors import UcpError
from k8s_ucp.providers import PROVIDERS, cloud_providers

EXEC_PLUGINS = {program: name for name, each in CLOUDS.items() for program in each.plugins}
"""Programs that kubeconfigs ask for, and the authenticator that stands for each."""


def cloud_of(provider: str) -> str | None:
    """Whose authenticator stands for a kubeconfig without any user, by the cluster's provider."""
    return PROVIDERS[provider].cloud or None if provider in PROVIDERS else None


class NoAccess(UcpError):
    """A kubeconfig can't be used. reason: one word for the condition."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True)
class ClusterInfo:
    """What the object that vouches for a kubeconfig tells about the cluster; empty: nothing."""

    provider: str = ""
    region: str = ""
    name: str = ""
    """As the cloud knows it."""
    id: str = ""
    trusted: bool = True
    """Our cloud credentials may be used on its word. Not on that of a label."""
    distrust: str = ""
    """Why not, where it is no label's word."""
    servers: tuple[str, ...] = ()
    """Addresses of the API server, public and private, as the cloud told the owner."""
    authority: str = ""
    """CA certificates, base64, as the cloud told the owner."""
    digest: str = ""
    """What a LocalCluster's controller wrote down of the kubeconfig that it made."""
    as_a_whole: bool = True
    """The kubeconfig itself is vouched for, so that the arguments of its plugin count."""


@dataclass(frozen=True)
class AuthInfo:
    """What a kubeconfig says, reduced to its current context."""

    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    cluster_info: ClusterInfo = field(default_factory=ClusterInfo)

    @property
    def server(self) -> str:
        return str(self.cluster["server"])

    @property
    def authority(self) -> str | None:
        """CA certificates, base64; None: the system's."""
        found = self.cluster.get("certificate-authority-data")
        return str(found) if found else None

    @property
    def plugin(self) -> str | None:
        """The program that it wants, without its folder."""
        for each in ("exec", "auth-provider"):
            wanted = self.user.get(each)
            if isinstance(wanted, Mapping):
                command = str(wanted.get("command") or wanted.get("name") or "?")
                return command.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".exe")
        return None

    @property
    def arguments(self) -> list[str]:
        """Of the program that it wants; none where only the owner's word counts."""
        return self.said if self.cluster_info.as_a_whole else []

    @property
    def said(self) -> list[str]:
        """The same, whoever wrote them."""
        wanted = self.user.get("exec")
        found = wanted.get("args") if isinstance(wanted, Mapping) else None
        return [str(each) for each in found] if isinstance(found, list) else []

    def argument(self, *flags: str) -> str:
        """The value of the first of these flags among the arguments; empty where there is none."""
        given = self.arguments
        for place, each in enumerate(given):
            name, separator, value = each.partition("=")
            if name in flags and separator:
                return value
            if each in flags and place + 1 < len(given):
                return given[place + 1]
        return ""

    @property
    def way(self) -> str | None:
        """The cloud authenticator that stands for its plugin, or for having no user at all."""
        if self.plugin is not None:
            return EXEC_PLUGINS.get(self.plugin)
        return None if self.user else cloud_of(self.cluster_info.provider)


class Cloud(Protocol):
    """What authenticators need of the world."""

    def credential(self, cloud: str) -> str:
        """The cloud's credential, as text. Raises NoAccess that names what is missing."""

    def fetch(
        self, url: str, *, form: Mapping[str, str] | None = None, bearer: str = ""
    ) -> dict[str, Any]:
        """POST a form, or GET; the JSON answer. Raises NoAccess (refused), Unreachable."""

    def send(
        self, method: str, url: str, headers: Mapping[str, str], *, body: bytes | None = None
    ) -> tuple[int, bytes]:
        """One request as it is: status and content. Raises NoAccess, Unreachable."""

    def remembered(self, key: str, take: Callable[[], tuple[str, float]]) -> str:
        """A token that was taken a while ago, or the one that `take` gets: (text, seconds)."""

    def now(self) -> float:
        """Seconds since the epoch."""


class Authenticator(Protocol):
    """One way of getting in."""

    @property
    def name(self) -> str: ...

    def recognises(self, auth_info: AuthInfo) -> bool:
        """This is the way for such a kubeconfig."""

    def connect(self, auth_info: AuthInfo, cloud: Cloud) -> dict[str, Any]:
        """A kubeconfig with inlined credentials, for Kube. Raises NoAccess, KubeError."""


class CloudAuthenticator:
    """The base of those that use the credential of a cloud, whose name is theirs."""

    name: str

    def recognises(self, auth_info: AuthInfo) -> bool:
        return auth_info.way == self.name


class Static:
    """A token or a client certificate in the kubeconfig itself."""

    name = "static"

    def recognises(self, auth_info: AuthInfo) -> bool:
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
    """The first authenticator that recognises the kubeconfig.

    Raises NoAccess that names what is missing.
    """
    for each in known:
        if each.recognises(auth_info):
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
    """A kubeconfig with one context of the given parts."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "app", "cluster": dict(cluster)}],
        "users": [{"name": "us", "user": dict(user)}],
        "contexts": [{"name": "app", "context": {"cluster": "app", "user": "us"}}],
        "current-context": "app",
    }
