"""Connects to app clusters with the identity of a source's kubeconfig."""

from __future__ import annotations

from dataclasses import replace
from pkgutil import resolve_name

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.kube import LARGEST_OF_OTHERS, Kube, Object
from k8s_ucp.reconciler.access.authenticators.base import (
    Authenticator,
    AuthInfo,
    NoAccess,
    Static,
    choose,
)
from k8s_ucp.reconciler.access.authenticators.cloud_access import CloudAccess
from k8s_ucp.reconciler.access.kubeconfig import read
from k8s_ucp.reconciler.access.kubeconfig_verification import proven
from k8s_ucp.reconciler.access.owners import Owners
from k8s_ucp.reconciler.access.shared_informers import SharedInformers
from k8s_ucp.reconciler.access.sources import KubeconfigSource, describe, owner_of

AUTHENTICATORS: tuple[Authenticator, ...] = (
    Static(),
    *(resolve_name(each.authenticator)() for each in CLOUDS.values()),
)
"""Of these, the first that recognizes a kubeconfig is used."""

ANSWER_SECONDS = 5.0
"""Timeout: a slower cluster counts as unreachable, and is tried again soon."""


class ClusterClients:
    """Reads sources, and connects to their clusters; safe to share between threads."""

    def __init__(self, informers: SharedInformers, owners: Owners, cloud: CloudAccess) -> None:
        self._informers = informers
        self._owners = owners
        self._cloud = cloud
        self._read: dict[str, tuple[bytes, AuthInfo | NoAccess]] = {}
        """Parsed kubeconfigs by source, with the content they were parsed from: YAML is slow to
        parse."""
        for each in informers.sources.values():
            each.listen(self._source_changed)

    def describe(self, key: str, owner: Object | None) -> KubeconfigSource | None:
        """The source's declaration; None if the Secret doesn't exist or isn't owned by `owner`.

        Raises KubeError.
        """
        secret = self._informers.source(key)
        ref = owner_of(secret) if secret else None
        if secret is None or owner is None or ref is None or ref.uid != owner["metadata"]["uid"]:
            return None
        return describe(secret, owner, self._owners.cluster_of(owner))

    def of(self, key: str) -> AuthInfo | None:
        """AuthInfo of a source; None if the source doesn't exist. Raises NoAccess, KubeError."""
        secret = self._informers.source(key)
        ref = owner_of(secret) if secret else None
        source = self.describe(key, self._owners.find(ref)) if ref else None
        return self.auth_info_of(source) if source else None

    def auth_info_of(self, source: KubeconfigSource) -> AuthInfo:
        """AuthInfo of a source, as far as its owner vouches for the kubeconfig. Raises NoAccess."""
        content, auth_info = self._read.get(source.key, (None, None))
        if auth_info is None or content != source.kubeconfig:
            try:
                auth_info = read(source.kubeconfig)
            except NoAccess as error:
                auth_info = error
            self._read[source.key] = (source.kubeconfig, auth_info)
            if self._informers.source(source.key) is None:
                # The Secret was deleted meanwhile; no further event would remove the entry.
                self._read.pop(source.key, None)
        if isinstance(auth_info, NoAccess):
            # A new one: the traceback of an exception grows each time it is raised.
            raise NoAccess(auth_info.reason, auth_info.message)
        return proven(source, replace(auth_info, cluster_info=source.known))

    def auth_info_or_why(self, source: KubeconfigSource) -> AuthInfo | NoAccess:
        """Like `auth_info_of`, for decisions: returns the error instead of raising it."""
        try:
            return self.auth_info_of(source)
        except NoAccess as error:
            return error

    def _source_changed(self, before: Object | None, after: Object | None) -> None:
        if before and not after:
            self._read.pop(f"{before['metadata']['namespace']}/{before['metadata']['name']}", None)

    def open(self, auth_info: AuthInfo) -> Kube:
        """A connection with the kubeconfig's identity. Raises NoAccess, KubeError."""
        config = choose(auth_info, AUTHENTICATORS).connect(auth_info, self._cloud)
        return Kube(config, longest=ANSWER_SECONDS, largest=LARGEST_OF_OTHERS)

    def refused(self) -> None:
        """Drop cached tokens after a cluster rejected our identity, since one may be the cause."""
        self._cloud.forget()
