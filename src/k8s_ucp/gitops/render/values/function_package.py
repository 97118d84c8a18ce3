"""The composition function as a Crossplane package that no registry serves. Pure.

For a package referenced by digest, Crossplane first checks its own cache. So the package, a few
lines of YAML, is in a ConfigMap that is mounted there; the program is in the reconciler's image.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct

NAME = "function-patch-and-transform"
"""Name of the package in Compositions."""
CONFIG_MAP = f"{NAME}-package"
CACHE = "/cache/xpkg"
"""Package cache in Crossplane's pod."""
_SOURCE = f"k8s-ucp.io/{NAME}"
"""Never pulled from there: the package's pull policy is Never."""
_CONTENT = f"""\
apiVersion: meta.pkg.crossplane.io/v1
kind: Function
metadata:
  name: {NAME}
spec:
  capabilities:
    - composition
""".encode()
_DIGEST = f"sha256:{hashlib.sha256(_CONTENT).hexdigest()}"
REFERENCE = f"{_SOURCE}@{_DIGEST}"

FILE = re.sub(r"[./:]", "-", f"{_SOURCE[:50]}-{_DIGEST[:12]}") + ".gz"
"""File name in the cache."""


def config_map(namespace: str) -> str:
    """The ConfigMap with the package in the format of Crossplane's cache, as YAML."""
    content = base64.b64encode(_gzip(_CONTENT)).decode()
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {CONFIG_MAP}\n"
        f"  namespace: {namespace}\nbinaryData:\n  {FILE}: {content}\n"
    )


def volumes() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """(volumes, mounts) of Crossplane's pod."""
    mount = {"name": CONFIG_MAP, "mountPath": f"{CACHE}/{FILE}", "subPath": FILE, "readOnly": True}
    return [{"name": CONFIG_MAP, "configMap": {"name": CONFIG_MAP}}], [mount]


def _gzip(content: bytes) -> bytes:
    """Stored without compression, so that the bytes don't depend on the version of zlib."""
    size = len(content)
    block = struct.pack("<BHH", 1, size, size ^ 0xFFFF) + content
    ends = struct.pack("<II", binascii.crc32(content), size)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block + ends
