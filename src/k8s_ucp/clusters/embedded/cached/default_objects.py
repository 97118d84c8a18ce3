"""Caches the objects that an API server writes into an empty datastore, for new clusters.

Roles, bindings, priority classes, flow schemas and APIServices: some 170 objects, the same in every
cluster of a version. Writing them one by one takes a seventh of the CPU that a new control plane
needs; an API server that finds them only compares. They contain no secrets and nothing that
identifies a cluster (namespaces, keys, tokens, configuration), and each object gets its own UID.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import uuid
from collections.abc import Mapping
from pathlib import Path

from k8s_ucp.clusters import seeds
from k8s_ucp.clusters.embedded import datastore
from k8s_ucp.errors import UcpError

PREFIXES = (
    "/registry/apiregistration.k8s.io/apiservices/",
    "/registry/clusterrolebindings/",
    "/registry/clusterroles/",
    "/registry/flowschemas/",
    "/registry/priorityclasses/",
    "/registry/prioritylevelconfigurations/",
    "/registry/rolebindings/",
    "/registry/roles/",
)
"""Prefixes of keys in etcd."""
PROGRAMS = ("kube-apiserver", "etcd")
_UID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def key(programs: Mapping[str, Path]) -> str:
    """Key of the cached objects, from the immutable cache entries of the programs that wrote them.

    programs: at least those of PROGRAMS.
    """
    entries = "\n".join(programs[each].parent.parent.name for each in PROGRAMS)
    return "defaults-" + hashlib.sha256(entries.encode()).hexdigest()[:32]


def write_cached_objects(home: Path, cache: Path, key: str) -> bool:
    """Write the objects while the API server starts: it reads them a second after etcd responds.

    home: working folder of the new cluster's etcd. Objects that already exist are kept. Returns
    False if none are cached; then the API server creates all of them.
    """
    objects = seeds.find_objects(cache, key)
    if not objects or not all(name.startswith(PREFIXES) for name in objects):
        return False
    with contextlib.suppress(UcpError):  # The API server creates whatever is missing.
        datastore.write(home, {name: renewed(each) for name, each in objects.items()}, absent=True)
    return True


def keep(home: Path, cache: Path, key: str) -> None:
    """Cache the objects of a cluster that was just created and that nobody else can access yet."""
    with contextlib.suppress(UcpError, OSError):  # Only later clusters benefit from the cache.
        seeds.keep_objects(cache, key, datastore.read(home, PREFIXES))


def renewed(value: str) -> str:
    """A stored object with a new UID, which is plain text in both protobuf and JSON."""
    return base64.b64encode(_UID.sub(_fresh, base64.b64decode(value))).decode()


def _fresh(_: re.Match[bytes]) -> bytes:
    return str(uuid.uuid4()).encode()
