"""An app cluster's API server may be anybody's: whatever it answers, a command must not fail.

Each part of valid answers is left out once, and replaced once by each of JUNK.
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.clusters.existing import adoption
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.crossplane_objects import crossplane_objects
from k8s_ucp.inspect.doctor.certificates import read_certificates
from k8s_ucp.inspect.doctor.objects import foreign, paused, stuck
from k8s_ucp.inspect.events import EventScope, Filter, merged
from k8s_ucp.inspect.pods import problems
from k8s_ucp.kube import EVENT, NAMESPACE, PERSISTENT_VOLUME, SERVICE, Kube, Object
from k8s_ucp.reconciler.draining import holding

JUNK: tuple[Any, ...] = (None, 5, "x", [1], [[]], {}, {"a": 1})
ENDED = {"terminated": {"reason": "Error", "exitCode": 1}}
METADATA: Object = {
    "name": "a",
    "namespace": "n",
    "uid": "u",
    "resourceVersion": "1",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "deletionTimestamp": "2026-01-01T00:00:00Z",
    "finalizers": ["x"],
    "labels": {"a": "b"},
    "annotations": {"crossplane.io/paused": "true"},
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "controller": True}
    ],
    "managedFields": [
        {
            "manager": "x",
            "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:metadata": {"f:annotations": {"f:crossplane.io/paused": {}}}},
        }
    ],
}
CONDITIONS = [
    {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu. no preemption",
    },
    {"type": "ReplicaFailure", "status": "True", "reason": "x", "message": "y"},
    {"type": "NamespaceContentRemaining", "status": "True", "message": "y"},
]
CONTAINERS = [
    {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ENDED},
    {"name": "d", "state": ENDED},
]
ITEM: Object = {
    "apiVersion": "v1",
    "kind": "Any",
    "metadata": METADATA,
    "spec": {"replicas": 3, "type": "LoadBalancer", "persistentVolumeReclaimPolicy": "Delete"},
    "status": {
        "phase": "Failed",
        "loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]},
        "conditions": CONDITIONS,
        "containerStatuses": CONTAINERS,
    },
    "involvedObject": {"kind": "Pod", "namespace": "n", "name": "a"},
    "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00Z"},
    "source": {"component": "x"},
    "webhooks": [{"clientConfig": {"caBundle": "YQ=="}}],
    "data": {"tls.crt": "YQ==", "owner": "o", "name": "c"},
}
VERSION = {"groupVersion": "ec2.aws.upbound.io/v1"}
RESOURCE = {"name": "vpcs", "kind": "VPC", "namespaced": True, "verbs": ["list"]}


def answer(path: str) -> Object:
    """A valid answer of an API server, which serves one kind and one object of every kind."""
    if path == "/apis":
        group = {"name": "ec2.aws.upbound.io", "versions": [VERSION], "preferredVersion": VERSION}
        return {"groups": [group]}
    if path in ("/api/v1", f"/apis/{VERSION['groupVersion']}"):
        return {"resources": [{**RESOURCE, "categories": ["managed"]}]}
    if path.endswith("reviews"):
        return {"status": {"allowed": True}}
    if path.endswith(("/kube-system", "/k8s-ucp-cluster", "/x")):
        return ITEM
    return {"metadata": {"resourceVersion": "1"}, "items": [ITEM]}


@functools.cache
def changes(path: str) -> list[tuple[tuple[Any, ...], Any]]:
    """(path of keys, value to put there, or ... to delete it) for each change of an answer."""
    return [(keys, value) for keys in _parts(answer(path)) for value in (..., *JUNK)]


def _parts(found: Any) -> Iterator[tuple[Any, ...]]:
    pairs = enumerate(found) if isinstance(found, list) else found.items()
    for key, value in pairs:
        yield (key,)
        if isinstance(value, dict | list):
            yield from ((key, *below) for below in _parts(value))


MOST = len(changes("/api/v1/pods"))
"""Changes of the answer with the most parts."""


class Server(Kube):
    """Answers with one change each, by its number."""

    def __init__(self, number: int) -> None:
        cluster = {"server": "https://api.invalid:6443"}
        super().__init__(
            {
                "current-context": "a",
                "contexts": [{"name": "a", "context": {"cluster": "a"}}],
                "clusters": [{"name": "a", "cluster": cluster}],
            }
        )
        self.number = number

    def request(self, method: str, path: str, **_: Any) -> Any:
        found = copy.deepcopy(answer(path))
        if self.number < len(changes(path)):
            keys, value = changes(path)[self.number]
            part = functools.reduce(operator.getitem, keys[:-1], found)
            if value is ...:
                del part[keys[-1]]
            else:
                part[keys[-1]] = copy.deepcopy(value)
        return found

    def server_certificate(self) -> bytes:
        return b""


def pods(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems.Kube, "from_file", lambda _: kube)
    found = problems._query(Path("a"), "stage", {"n"})
    assert isinstance("".join(map(str, found)) + problems.nodes_to_set(found), str)


def events(kube: Kube, _: pytest.MonkeyPatch) -> None:
    scope = EventScope("core", {"demo-stage": "stage"})
    lines = [scope.line("demo-stage", each) for each in kube.list_all(EVENT)]
    assert len([*filter(Filter(object="a").keeps, merged(lines, 5))]) <= 1
    assert all(each["count"] > 0 for each in lines)


def namespaces(kube: Kube, _: pytest.MonkeyPatch) -> None:
    found = [*kube.list_all(NAMESPACE), *crossplane_objects(kube)]
    for check in (stuck, paused, foreign):
        list(check("demo-stage", "kubectl", found, 0))


def certificates(kube: Kube, _: pytest.MonkeyPatch) -> None:
    assert read_certificates("demo-stage", kube) == []


def drained(kube: Kube, _: pytest.MonkeyPatch) -> None:
    holding(kube.list_all(SERVICE), kube.list_all(PERSISTENT_VOLUME))


def kinds(kube: Kube, _: pytest.MonkeyPatch) -> None:
    kube.namespaced_kinds()


def kind(kube: Kube, _: pytest.MonkeyPatch) -> None:
    kube.kind_of("ec2.aws.upbound.io/v1", "VPC")


def adopted(kube: Kube, _: pytest.MonkeyPatch) -> None:
    for check in (
        adoption.uid_of,
        adoption.marked_at,
        functools.partial(adoption.check_admin, context="a"),
        functools.partial(adoption.check_owner, name="c", owner="o"),
    ):
        check(kube)


@pytest.mark.parametrize(
    "read", [pods, events, namespaces, certificates, drained, kinds, kind, adopted]
)
def test_answer_of_any_form_is_read_or_refused(
    read: Callable[[Kube, pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    read(Server(MOST), monkeypatch)
    for number in range(MOST):
        try:
            read(Server(number), monkeypatch)
        except UcpError:
            continue
        except Exception as error:
            raise AssertionError(f"change {number} of the answers") from error
