"""What an API server writes into an empty datastore, kept once and given to each new cluster.

Roles, bindings, priority classes, flow schemas and APIServices: some 170 objects, the same in every
cluster of that version, and written one by one at a seventh of the CPU that a new control plane
takes. An API server that finds them compares, and writes nothing. They hold no secret; what
identifies a cluster (namespaces, keys, tokens, configuration) is not among them, and each object
gets a UID of its own.
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
"""Of the datastore's keys."""
PROGRAMS = ("kube-apiserver", "etcd")
_UID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def key(programs: Mapping[str, Path]) -> str:
    """Of the programs whose objects these are, by their entries in the cache, which never change.

    programs: at least those of PROGRAMS.
    """
    entries = "\n".join(programs[each].parent.parent.name for each in PROGRAMS)
    return "defaults-" + hashlib.sha256(entries.encode()).hexdigest()[:32]


def sow(home: Path, cache: Path, key: str) -> bool:
    """Write the objects while the API server starts: it looks for them a second after etcd answers.

    home: where the new cluster's etcd works. What it has made by then stays. False where none are
    kept: it makes all of them.
    """
    objects = seeds.find_objects(cache, key)
    if not objects or not all(name.startswith(PREFIXES) for name in objects):
        return False
    with contextlib.suppress(UcpError):  # What is missing the API server makes.
        datastore.write(home, {name: renewed(each) for name, each in objects.items()}, absent=True)
    return True


def keep(home: Path, cache: Path, key: str) -> None:
    """Keep the objects of a cluster that was just made, and that nobody else has access to yet."""
    with contextlib.suppress(UcpError, OSError):  # It is a gain of later clusters alone.
        seeds.keep_objects(cache, key, datastore.read(home, PREFIXES))


def renewed(value: str) -> str:
    """The same object with a UID of its own: protobuf or JSON, both hold it as text."""
    return base64.b64encode(_UID.sub(_fresh, base64.b64decode(value))).decode()


def _fresh(_: re.Match[bytes]) -> bytes:
    return str(uuid.uuid4()).encode()
