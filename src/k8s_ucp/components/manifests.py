"""Applies whole files of objects to a new API server, fast.

The engines' CRDs are megabytes of YAML: parsing them in Python and serializing them as JSON takes
longer than the server takes to store them. Server-side apply accepts YAML, so only the head of each
document is parsed here, and its text is sent unchanged, in parallel.
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
from k8s_ucp.gitops.manifests.yaml_text import plain_text
from k8s_ucp.kube import (
    FIELD_MANAGER,
    Forbidden,
    Invalid,
    Kube,
    KubeError,
    NotFound,
    Object,
    api_resources,
    group_versions,
)

WORKERS = 2
APPLY_SECONDS = 60.0
SERVED_SECONDS = 60.0
POLL_SECONDS = 0.05

_CRD = "CustomResourceDefinition"
_NO_DRY_RUN = "does not support dry run"
"""In the server's error if a webhook has side effects."""
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
"""The format of generated files; other documents are parsed as YAML."""


@dataclass(frozen=True)
class Manifest:
    """One object as text. source: the file that it is from, for messages."""

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
    """Objects of YAML files, sorted by file name. files: name -> content. Raises UcpError."""
    found = []
    for source in sorted(files):
        text = plain_text(files[source], source)
        found += [_parse(each, source) for each in _SEPARATOR.split(text) if _is_content(each)]
    return found


def written(item: Object, source: str) -> Manifest:
    """A manifest of an object that is in no file."""
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
    """A hash that changes if any of these manifests does."""
    hashed = hashlib.sha256()
    for each in sorted(manifests, key=lambda each: (each.kind, each.namespace or "", each.name)):
        hashed.update(each.text.encode())
        hashed.update(b"\0")
    return hashed.hexdigest()


def apply_all(kube: Kube, manifests: Sequence[Manifest]) -> None:
    """Apply objects in parallel, large ones first; their kinds and namespaces must exist.

    Raises the first KubeError.
    """
    ordered = sorted(manifests, key=lambda each: -len(each.text))
    with ThreadPoolExecutor(min(WORKERS, max(1, len(ordered)))) as pool:
        pending = [pool.submit(_apply, kube, each) for each in ordered]
        try:
            for done in pending:
                done.result()
        except BaseException:
            # Otherwise each of them would time out if the server does not respond.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def refused(kube: Kube, manifests: Iterable[Manifest], *, dry_run: bool = True) -> list[str]:
    """The server's reasons for rejecting these objects; a dry run changes nothing.

    The server validates fields and applies its admission policies. Objects of unknown kinds are
    skipped.
    """
    found = []
    dry = {"dryRun": "All"} if dry_run else {}
    for each in manifests:
        try:
            _apply(kube, each, fieldValidation="Strict", **dry)
        except NotFound:
            continue
        except KubeError as error:
            if _NO_DRY_RUN in error.message:
                continue
            # The server reports an unknown field as an internal error.
            if not isinstance(error, Invalid | Forbidden) and _NO_FIELD not in error.message:
                raise
            reason = error.message.split(f": {error.status} ", 1)[-1]
            found.append(f"{each.kind} {each.name}: {reason}")
    return found


def wait_served(
    kube: Kube, manifests: Iterable[Manifest], *, timeout: float = SERVED_SECONDS
) -> None:
    """Wait until the API server serves the kinds of the CRDs among the manifests.

    Raises DeadlineExceeded with those that it doesn't serve.
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
        return {
            each.kind.plural
            for version in group_versions(kube, group)
            for each in api_resources(kube, version)
        }
    except NotFound:
        return set()


def _apply(kube: Kube, manifest: Manifest, **query: str) -> None:
    try:
        kube.request(
            "PATCH",
            _path(kube, manifest),
            query={"fieldManager": FIELD_MANAGER, "force": "true", **query},
            body=manifest.text,
            content="application/apply-patch+yaml",
            timeout=APPLY_SECONDS,
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
    except (yaml_io.YAMLError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UcpError(f"{source}: a document is not a Kubernetes object") from error


def only_yaml(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files with Kubernetes objects, without kustomizations."""
    return {
        path: text
        for path, text in files.items()
        if path.endswith(".yaml") and not path.endswith("kustomization.yaml")
    }
