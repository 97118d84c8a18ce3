"""Secrets that request a generated password: parsing and filling them. Pure.

The repository (or a Composition) declares it with the label `k8s-ucp.io/generate: password` and
without the key. The key has a field manager of its own, so that neither Argo CD nor Crossplane
takes it away; one that is there is never changed.
"""

from __future__ import annotations

import base64
import secrets
import string

from k8s_ucp import names
from k8s_ucp.kube import SECRET, Object

KEY = "password"
LENGTH = 40
"""Letters and digits only: clouds differ in what else they take."""
MANAGER = "k8s-ucp-passwords"


def generate() -> str:
    """A new password."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(LENGTH))


def lacks(secret: Object) -> bool:
    """It asks for a password, has none, and isn't on its way out."""
    metadata = secret["metadata"]
    asks = (metadata.get("labels") or {}).get(names.GENERATE) == KEY
    return asks and "deletionTimestamp" not in metadata and KEY not in (secret.get("data") or {})


def filled(secret: Object, password: str) -> Object:
    """What to apply: the password, to this very version of the Secret and no other."""
    metadata = secret["metadata"]
    data = {KEY: base64.b64encode(password.encode()).decode()}
    item = SECRET.object(metadata["name"], metadata["namespace"], data=data)
    item["metadata"] |= {each: metadata[each] for each in ("uid", "resourceVersion")}
    return item


def without_values(secret: Object) -> Object:
    """For the watch: which keys there are, not what is in them."""
    return {**secret, "data": dict.fromkeys(secret.get("data") or {}, "")}
