"""The controller of AWS resources with a real API server and a simulated cloud, step by step.

Without threads or watches: a test decides when an object is reconciled and when the process dies.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.aws.crds import CONFIGS, USAGE, crds
from k8s_ucp.aws.installation import manifests
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.components.manifests import apply_all, written
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import EVENT, Kube, Object
from k8s_ucp.kube import NAMESPACE as NAMESPACES
from k8s_ucp.reconciler.aws.controller import AwsController
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.runtime.clock import system_clock
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.reconciler.runtime.settings import Settings
from k8s_ucp.tools.toolbox import Toolbox
from tests.control_planes import control_planes, made_with
from tests.integration.reconciler.conftest import kinds, make_room
from tests.simulated_cloud import CloudInThread, cloud_in_thread

REGION = "eu-west-3"
_DOMAIN = "aws.m.upbound.io"


class Killed(BaseException):
    """The process is killed here."""


@dataclass
class Death:
    """Kills the process before step `at`, counted from 1; 0: never.

    Steps are writes to the API server and changes of the cloud. Dying before a read is the same as
    dying after the previous step.
    """

    at: int = 0
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            raise Killed


@dataclass(frozen=True)
class MortalAccount(AwsAccount):
    """An account whose process may be killed before a call that changes something."""

    # Not compared, so that one client of a service serves all processes of a test.
    step: Callable[[], None] = field(default=lambda: None, compare=False)

    def call(self, service: str, region: str, operation: str, **parameters: Any) -> Any:
        if not operation.startswith(("Describe", "Get", "List", "Head")):
            self.step()
        return super().call(service, region, operation, **parameters)


@dataclass
class Desk:
    """One core cluster with all CRDs, and one simulated cloud, shared by tests."""

    kube: Kube
    kubeconfig: Path
    cloud: CloudInThread

    def prepare(self) -> None:
        """Apply what `ucp start` applies, and the provider configuration that comes from git."""
        self.kube.apply(NAMESPACES.object("team"))
        given = [written(each, "test") for each in manifests()]
        apply_all(self.kube, [each for each in given if not each.is_crd])
        self.kube.apply(config())

    def settings(self, **others: Any) -> Settings:
        given = {"kubeconfig": self.kubeconfig, "machine": "here", "topology": "demo"}
        return Settings(**{**given, "aws": self.cloud.account, **others})

    def controller(self, death: Death | None = None, **others: Any) -> AwsController:
        """A newly started controller, with nothing in memory. death: when it is killed."""
        settings = self.settings(**others)
        if death:
            account = self.cloud.account
            mortal = MortalAccount(
                account.endpoint, account.access_key, account.secret_key, account.caller, death.step
            )
            settings = replace(settings, aws=mortal)
        runtime = Runtime(self.kube, settings, {}, Log(io.StringIO()), system_clock)
        found = AwsController(runtime)
        if death:
            _make_mortal(found._kube, death)
        return found

    def declare(self, kind: str, name: str, parameters: dict[str, Any], /, **others: Any) -> Object:
        """Apply a resource. kind: such as `VPC.ec2`; others: fields of spec, or `metadata`."""
        metadata = others.pop("metadata", {})
        given = {"forProvider": {"region": REGION, **parameters}, **others}
        item = KINDS[f"{kind}.{_DOMAIN}"].kind.object(name, "team", spec=given)
        item["metadata"].update(metadata)
        return self.kube.apply(item, manager="test")

    def get(self, kind: str, name: str, namespace: str = "team") -> Object | None:
        return self.kube.find(KINDS[f"{kind}.{_DOMAIN}"].kind, name, namespace)

    def delete(self, kind: str, name: str) -> None:
        self.kube.delete(KINDS[f"{kind}.{_DOMAIN}"].kind, name, "team")

    def patch(self, kind: str, name: str, change: Any) -> Object:
        return self.kube.patch(KINDS[f"{kind}.{_DOMAIN}"].kind, name, "team", change)

    def look(self, controller: AwsController, kind: str, name: str) -> float | None:
        """Reconcile once; raises what the workers would log."""
        return controller.reconcile(f"{kind}.{_DOMAIN}/team/{name}")

    def settle(
        self, kind: str, name: str, *, controller: AwsController | None = None, looks: int = 12
    ) -> Object | None:
        """Reconcile until nothing is left to do; returns the object, or raises the last failure."""
        found = controller or self.controller()
        failure: UcpError | None = None
        for _ in range(looks):
            try:
                again = self.look(found, kind, name)
            except UcpError as error:
                failure = error
                continue
            if again is None or again > 10:
                return self.get(kind, name)
        raise failure or AssertionError(f"{kind} {name} does not settle: {self.get(kind, name)}")

    def remove(self, kind: str, name: str) -> None:
        self.delete(kind, name)
        assert self.settle(kind, name) is None

    def configure(self, name: str, kind: str = "ClusterProviderConfig") -> None:
        """Apply a provider configuration, cluster-scoped or in the team's namespace."""
        self.kube.apply(config(name, kind))

    def unconfigure(self, name: str, kind: str = "ClusterProviderConfig") -> None:
        self.kube.delete(CONFIGS[kind], name, _place(kind))

    def account(self, name: str, kind: str = "ClusterProviderConfig") -> Object | None:
        """Reconcile a provider configuration, and return it."""
        self.controller().reconcile(f"{kind}.{_DOMAIN}/{_place(kind) or ''}/{name}")
        return self.kube.find(CONFIGS[kind], name, _place(kind))

    def counted(self, name: str) -> int:
        found = self.account(name)
        assert found is not None
        return int(found["status"]["users"])

    def usages(self, kind: str, name: str) -> list[Object]:
        there = self.kube.list_all(USAGE, "team")
        return [each for each in there if each["providerConfigRef"] == ref_to(name, kind)]

    def events(self, name: str) -> list[Object]:
        return self.kube.list_all(EVENT, "team", fields=f"involvedObject.name={name}")


@contextlib.contextmanager
def desk_of_its_own(root: Path, toolbox: Toolbox) -> Iterator[Desk]:
    """A core cluster and a cloud, both deleted at the end of the block."""
    with control_planes(root, toolbox) as planes, cloud_in_thread(root / "cloud") as cloud:
        provider = planes.provider()
        known = [*kinds(toolbox), *(written(each, "test") for each in crds())]
        kube = made_with(provider, "core", toolbox, known)
        file = root / "core.kubeconfig"
        file.write_text(json.dumps(provider.kubeconfig("core")))
        desk = Desk(kube, file, cloud)
        make_room(kube)
        desk.prepare()
        yield desk


def config(name: str = "default", kind: str = "ClusterProviderConfig") -> Object:
    """The ClusterProviderConfig that every topology has, or another configuration."""
    return CONFIGS[kind].object(name, _place(kind), spec={"credentials": {"source": "Secret"}})


def ref_to(name: str, kind: str = "ClusterProviderConfig") -> dict[str, str]:
    """A resource's reference to a provider configuration."""
    return {"kind": kind, "name": name}


def _place(kind: str) -> str | None:
    """The namespace of a provider configuration; None if it is cluster-scoped."""
    return "team" if CONFIGS[kind].namespaced else None


def condition(item: Object | None, type: str) -> tuple[str, str, str]:
    """(status, reason, message)"""
    assert item is not None
    for each in item.get("status", {}).get("conditions", ()):
        if each["type"] == type:
            return each["status"], each["reason"], each.get("message", "")
    return "", "", ""


def external_name(item: Object | None) -> str:
    assert item is not None
    return str(item["metadata"].get("annotations", {}).get("crossplane.io/external-name", ""))


def _make_mortal(kube: Kube, death: Death) -> None:
    request = kube.request

    def mortal(method: str, path: str, **more: Any) -> Any:
        if method != "GET":
            death.step()
        return request(method, path, **more)

    setattr(kube, "request", mortal)  # noqa: B010 (a method of one object)
