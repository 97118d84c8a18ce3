"""Applying whole files of objects to a fresh API server, fast.

The engines' kinds are megabytes of YAML: reading them in Python and writing them as JSON again
takes longer than the server takes to store them. Server-side apply reads YAML itself, so only the
head of each document is looked at here and its text goes through as it is, side by side.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from k8s_ucp import yaml_io
from k8s_ucp.errors import DeadlineExceeded, UcpError
from k8s_ucp.kube import FIELD_MANAGER, Forbidden, Invalid, Kube, KubeError, NotFound, Object

WORKERS = 2
APPLY_SECONDS = 60.0
SERVED_SECONDS = 60.0
POLL_SECONDS = 0.05

_CRD = "CustomResourceDefinition"
_NO_DRY_RUN = "does not support dry run"
"""What the server says of webhooks that have side effects."""
_NO_FIELD = "field not declared in schema"
_SEPARATOR = re.compile(r"^---(?:[ \t].*)?\n", re.M)
_TOP_LEVEL = re.compile(r"^(?=[A-Za-z])", re.M)
_HEAD = ("apiVersion:", "kind:", "metadata:")
_WORD = r"([A-Za-z0-9][-A-Za-z0-9_./]*)[ \t]*$"
_PLAIN = {
    "api_version": re.compile(rf"^apiVersion: {_WORD}", re.M),
    "kind": re.compile(rf"^kind: {_WORD}", re.M),
    "name": re.compile(rf"^  name: {_WORD}", re.M),
    "namespace": re.compile(rf"^  namespace: {_WORD}", re.M),
}
"""How generated files write them; a YAML parser reads what is written otherwise."""


@dataclass(frozen=True)
class Manifest:
    """One object as text. source: the file it is from, for messages."""

    api_version: str
    kind: str
    name: str
    namespace: str | None
    text: str
    source: str = ""

    @property
    def is_crd(self) -> bool:
        return self.kind == _CRD


def read(files: Mapping[str, bytes]) -> list[Manifest]:
    """The objects of YAML files by name, in the order of the names. Raises UcpError."""
    found = []
    for source in sorted(files):
        text = files[source].decode("utf-8")
        found += [_parse(each, source) for each in _SEPARATOR.split(text) if _is_content(each)]
    return found


def written(item: Object, source: str) -> Manifest:
    """An object that no file holds."""
    metadata = item["metadata"]
    return Manifest(
        item["apiVersion"],
        item["kind"],
        metadata["name"],
        metadata.get("namespace"),
        json.dumps(item, sort_keys=True),
        source,
    )


def digest(manifests: Iterable[Manifest]) -> str:
    """Tells whether anything changed since these were applied last."""
    whole = hashlib.sha256()
    for each in sorted(manifests, key=lambda each: (each.kind, each.namespace or "", each.name)):
        whole.update(each.text.encode())
        whole.update(b"\0")
    return whole.hexdigest()


def apply_all(kube: Kube, manifests: Sequence[Manifest], *, timeout: float = APPLY_SECONDS) -> None:
    """Apply objects side by side, the big ones first; their kinds and namespaces must exist.

    timeout: seconds for one object. Raises KubeError of the first that failed.
    """
    ordered = sorted(manifests, key=lambda each: -len(each.text))
    with ThreadPoolExecutor(min(WORKERS, max(1, len(ordered)))) as pool:
        pending = [pool.submit(_apply, kube, each, timeout) for each in ordered]
        try:
            for done in pending:
                done.result()
        except BaseException:
            # A server that doesn't respond would take the timeout of each of them.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def refused(kube: Kube, manifests: Iterable[Manifest], *, dry_run: bool = True) -> list[str]:
    """What the server says against these objects, in words; nothing is changed by a dry run.

    It knows its kinds' fields and its own policies. Those whose kind isn't there are left out.
    """
    found = []
    dry = {"dryRun": "All"} if dry_run else {}
    for each in manifests:
        try:
            _apply(kube, each, APPLY_SECONDS, fieldValidation="Strict", **dry)
        except NotFound:
            continue
        except KubeError as error:
            if _NO_DRY_RUN in error.message:
                continue
            # A field that a kind hasn't is an inner error for the server.
            if not isinstance(error, Invalid | Forbidden) and _NO_FIELD not in error.message:
                raise
            reason = error.message.split(f": {error.status} ", 1)[-1]
            found.append(f"{each.kind} {each.name}: {reason}")
    return found


def wait_served(
    kube: Kube, manifests: Iterable[Manifest], *, timeout: float = SERVED_SECONDS
) -> None:
    """Wait until the API server serves the kinds that CRDs among the manifests define.

    Raises DeadlineExceeded naming those it doesn't serve.
    """
    wanted: dict[str, set[str]] = {}
    for each in manifests:
        if each.is_crd:
            plural, _, group = each.name.partition(".")
            wanted.setdefault(group, set()).add(plural)
    until = time.monotonic() + timeout
    while True:
        wanted = {
            group: missing
            for group, plurals in wanted.items()
            if (missing := plurals - _served(kube, group))
        }
        if not wanted:
            return
        if time.monotonic() > until:
            names = [f"{plural}.{group}" for group in wanted for plural in sorted(wanted[group])]
            raise DeadlineExceeded(f"{', '.join(names)} to be served", timeout, "not served yet")
        time.sleep(POLL_SECONDS)


def _served(kube: Kube, group: str) -> set[str]:
    """Plurals that discovery lists in any version of a group."""
    try:
        versions = kube.request("GET", f"/apis/{group}")["versions"]
        return {
            resource["name"]
            for version in versions
            for resource in kube.request("GET", f"/apis/{version['groupVersion']}")["resources"]
        }
    except NotFound:
        return set()


def _apply(kube: Kube, manifest: Manifest, timeout: float, **query: str) -> None:
    try:
        kube.request(
            "PATCH",
            _path(kube, manifest),
            query={"fieldManager": FIELD_MANAGER, "force": "true", **query},
            body=manifest.text,
            content="application/apply-patch+yaml",
            timeout=timeout,
        )
    except KubeError as error:
        if manifest.source:
            error.args = (f"{manifest.source}: {error.message}",)
            error.message = f"{manifest.source}: {error.message}"
        raise


def _path(kube: Kube, manifest: Manifest) -> str:
    kind = kube.kind_of(manifest.api_version, manifest.kind)
    return kind.path(manifest.namespace, manifest.name)


def _is_content(text: str) -> bool:
    return any(line.strip() and not line.startswith("#") for line in text.splitlines())


def _parse(text: str, source: str) -> Manifest:
    head = "".join(part for part in _TOP_LEVEL.split(text) if part.startswith(_HEAD))
    plain = {field: pattern.search(head) for field, pattern in _PLAIN.items()}
    if all(plain[field] for field in ("api_version", "kind", "name")):
        found = {field: match[1] if match else None for field, match in plain.items()}
        return Manifest(**found, text=text, source=source)  # type: ignore[arg-type]
    try:
        read = yaml_io.load(head)
        metadata = read["metadata"]
        return Manifest(
            str(read["apiVersion"]),
            str(read["kind"]),
            str(metadata["name"]),
            metadata.get("namespace"),
            text,
            source,
        )
    except (yaml_io.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise UcpError(f"{source}: a document is not a Kubernetes object") from error


def only_yaml(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files with objects of Kubernetes, out of folders that hold nothing else."""
    return {
        path: text
        for path, text in files.items()
        if path.endswith(".yaml") and not path.endswith("kustomization.yaml")
    }
