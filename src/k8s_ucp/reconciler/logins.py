"""From a source's Secret to a connection with the identity that its kubeconfig names."""

from __future__ import annotations

from k8s_ucp.kube import Kube, Object
from k8s_ucp.reconciler.authenticators import Login, NoAccess, choose, read
from k8s_ucp.reconciler.owners import Owners
from k8s_ucp.reconciler.sources import Source, describe, owner_of
from k8s_ucp.reconciler.views import Views


class Logins:
    """Reads sources; safe to share between threads."""

    def __init__(self, views: Views, owners: Owners) -> None:
        self._views = views
        self._owners = owners

    def describe(self, key: str, owner: Object | None) -> Source | None:
        """What the source declares; None where there is no Secret, or `owner` isn't its owner."""
        secret = self._views.source(key)
        ref = owner_of(secret) if secret else None
        if secret is None or owner is None or ref is None or ref.uid != owner["metadata"]["uid"]:
            return None
        return describe(secret, owner)

    def of(self, key: str) -> Login | None:
        """How to get in; None where the source isn't there. Raises NoAccess, KubeError."""
        secret = self._views.source(key)
        ref = owner_of(secret) if secret else None
        source = self.describe(key, self._owners.find(ref)) if ref else None
        return login_of(source) if source else None

    def open(self, login: Login) -> Kube:
        """A connection as whoever the kubeconfig names. Raises NoAccess, KubeError."""
        return Kube(choose(login).connect(login))


def login_of(source: Source) -> Login:
    """What its kubeconfig says. Raises NoAccess."""
    return read(source.kubeconfig, source.facts)


def login_or_why(source: Source) -> Login | NoAccess:
    """Like login_of, for decisions: the reason instead of an error."""
    try:
        return login_of(source)
    except NoAccess as error:
        return error
