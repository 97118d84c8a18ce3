"""Finding the objects in manifests without parsing all of them as YAML."""

from __future__ import annotations

import time
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from k8s_ucp.components.manifests import (
    WORKERS,
    Manifest,
    apply_all,
    digest,
    read,
    wait_served,
)
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import NAMESPACE, Kind, Kube, Unreachable

NAMES = st.from_regex(r"[a-z]([-a-z0-9.]{0,20}[a-z0-9])?", fullmatch=True)


def one(text: str) -> Manifest:
    [found] = read({"file.yaml": text.encode()})
    return found


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: it\n  namespace: there\n",
        "# header\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  namespace: there\n  name: it\n",
        'apiVersion: "v1"\nkind: Secret\nmetadata: {name: it, namespace: there}\n',
        "data:\n  x: |\n    kind: Other\n    metadata:\n      name: wrong\napiVersion: v1\n"
        "kind: Secret\nmetadata:\n  labels:\n    name: wrong\n  name: it\n  namespace: there\n",
        "apiVersion: v1\nkind: Secret\nmetadata:\n    name: it\n    namespace: there\n",
        "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: it # why\n  namespace: there\n---\n",
    ],
)
def test_an_object_is_found_in_every_yaml_layout(text: str) -> None:
    found = one(text)
    assert (found.api_version, found.kind, found.name, found.namespace) == (
        *("v1", "Secret", "it", "there"),
    )


def test_the_text_of_an_object_is_unchanged() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: it\ndata:\n  a: |\n    --- no\n"
    assert YAML(typ="safe").load(one(text).text) == YAML(typ="safe").load(text)


@given(st.lists(st.tuples(NAMES, st.none() | NAMES), max_size=6))
def test_all_documents_of_a_file_are_found(objects: list[tuple[str, str | None]]) -> None:
    documents = [
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n"
        + (f"  namespace: {namespace}\n" if namespace else "")
        + "spec:\n  name: other\n"
        for name, namespace in objects
    ]
    found = read({"all.yaml": "---\n".join(["", *documents]).encode()})
    assert [(each.name, each.namespace) for each in found] == objects


@pytest.mark.parametrize(
    "text",
    [
        "kind: Secret\n",
        "a\n",
        "apiVersion: v1\nkind: X\nmetadata: 1\n",
        "apiVersion: v1\nkind: X\nmetadata: {name: !!int x}\n",
        f"apiVersion: v1\nkind: X\nmetadata: {1500 * '['}\n",
    ],
)
def test_a_document_that_is_not_an_object_is_reported_with_its_file(text: str) -> None:
    with pytest.raises(UcpError, match=r"file\.yaml"):
        one(text)


def test_a_file_that_is_not_utf_8_is_named() -> None:
    with pytest.raises(UcpError, match=r"file\.yaml is not valid YAML: it is not UTF-8"):
        read({"file.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: caf\xe9}\n"})


def test_a_digest_depends_on_content_and_not_on_order() -> None:
    a, b = (f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\n" for name in "ab")
    both = read({"a": a.encode(), "b": b.encode()})
    turned = read({"a": b.encode(), "b": a.encode()})
    assert digest(both) == digest(turned)
    assert digest(both) != digest(both[:1])


def test_applying_stops_when_the_api_server_stops_responding() -> None:
    asked: list[str] = []

    class Silent:
        def kind_of(self, *_: str) -> Kind:
            return NAMESPACE

        def request(self, _: str, path: str, **__: object) -> None:
            asked.append(path)
            time.sleep(0.02)
            raise Unreachable("etcd is gone")

    texts = (f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: n{i}\n" for i in range(50))
    found = [one(each) for each in texts]
    with pytest.raises(Unreachable):
        apply_all(cast(Kube, Silent()), found)
    assert len(asked) <= 3 * WORKERS


@pytest.mark.parametrize("answer", [[], "", {"versions": 1}, {"versions": [{}]}])
def test_a_server_that_lists_something_else_than_versions_is_an_error(answer: object) -> None:
    class Server:
        server = "https://example.org"

        def request(self, method: str, path: str) -> object:
            return answer

    crd = Manifest(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "kinds.example.org", None, ""
    )
    with pytest.raises(Unreachable, match=r"did not list its versions \(GET /apis/example.org\)"):
        wait_served(cast(Kube, Server()), [crd])
