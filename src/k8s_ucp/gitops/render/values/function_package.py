"""Our composition function as a package of Crossplane that no registry serves. Pure.

Crossplane looks for a package that is named by digest in its own cache first. So the package, a
few lines of YAML, lies in a ConfigMap that is mounted there; the program is the reconciler's image.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct

NAME = "function-patch-and-transform"
"""As the package is called that Compositions name."""
CONFIG_MAP = f"{NAME}-package"
CACHE = "/cache/xpkg"
"""Where Crossplane's pod keeps packages."""
_SOURCE = f"k8s-ucp.io/{NAME}"
"""Nobody is asked for it: the package's pull policy is Never."""
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
"""Its name in the cache."""


def config_map(namespace: str) -> str:
    """The package as Crossplane caches it, as YAML."""
    content = base64.b64encode(_gzip(_CONTENT)).decode()
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {CONFIG_MAP}\n"
        f"  namespace: {namespace}\nbinaryData:\n  {FILE}: {content}\n"
    )


def volumes() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """(volumes, where they are mounted) of Crossplane's pod."""
    mount = {"name": CONFIG_MAP, "mountPath": f"{CACHE}/{FILE}", "subPath": FILE, "readOnly": True}
    return [{"name": CONFIG_MAP, "configMap": {"name": CONFIG_MAP}}], [mount]


def _gzip(content: bytes) -> bytes:
    """Stored, not compressed: the same bytes whichever zlib is here."""
    size = len(content)
    block = struct.pack("<BHH", 1, size, size ^ 0xFFFF) + content
    ends = struct.pack("<II", binascii.crc32(content), size)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block + ends
