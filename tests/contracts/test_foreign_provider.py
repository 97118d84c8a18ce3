"""What ucp expects of every Crossplane provider, tested with its own and with a foreign one.

provider-kubernetes manages objects of a second API server as AWS's provider manages resources of a
cloud: Crossplane's own managed-resource reconciler around calls to an external system. Its program
is built from its pinned module, which takes minutes the first time.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from k8s_ucp import yaml_io
from k8s_ucp.aws.crds import CONFIGS
from k8s_ucp.aws.kinds.iam import ROLE
from k8s_ucp.inspect.resource_conditions import first_cause
from k8s_ucp.kube import CONFIG_MAP, CRD, SECRET, Kind, Kube, Object
from k8s_ucp.managed.reconcile import FINALIZER
from k8s_ucp.reconciler.manager import Manager
from k8s_ucp.tools.catalogue import Edit, Tool
from k8s_ucp.tools.toolbox import Toolbox
from tests.contracts.provider_harness import REGION, Desk, condition
from tests.control_planes import control_planes, eventually, made
from tests.integration.components.built import built

pytestmark = [pytest.mark.engines, pytest.mark.soak, pytest.mark.timeout(3600)]

_CONTRIB = "github.com/crossplane-contrib/provider-kubernetes"
_METRICS = '"sigs.k8s.io/controller-runtime/pkg/metrics'
TOOL = Tool(
    name="provider-kubernetes",
    version="0.17.1",
    programs={"provider": f"{_CONTRIB}/cmd/provider"},
    module=_CONTRIB,
    edits=(
        # Metrics and the conversion webhook listen on every interface.
        Edit(
            "cmd/provider/main.go", f'{_METRICS}"\n', f'{_METRICS}"\n\tserved {_METRICS}/server"\n'
        ),
        Edit(
            "cmd/provider/main.go",
            "ctrl.Options{\n",
            'ctrl.Options{\n\t\tMetrics: served.Options{BindAddress: "0"},\n',
        ),
        Edit(
            "cmd/provider/main.go",
            "kingpin.FatalIfError(ctrl.NewWebhookManagedBy(mgr).For(&v1alpha1.Object{})."
            'Complete(), "Cannot create Object webhook")',
            "_ = v1alpha1.Object{}",
        ),
    ),
    keep=("package/crds",),
    megabytes=1500,
)
GROUP = "kubernetes.crossplane.io"
OBJECTS = Kind(f"{GROUP}/v1alpha2", "Object", "objects", namespaced=False)
OBJECT_CONFIGS = Kind(f"{GROUP}/v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False)


def _trust(service: str) -> str:
    principal = {"Service": f"{service}.amazonaws.com"}
    allow = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [allow]})


DECLARED, CHANGED = _trust("eks"), _trust("ec2")
SECONDS = 240.0
"""Timeout of each wait; on an idle machine, a wait takes a few seconds."""
POLICY = "arn:aws:iam::aws:policy/ReadOnlyAccess"


class Witness(Protocol):
    """A running provider with one of its kinds, and external resources by their objects' names."""

    kind: Kind
    configs: Kind
    config_spec: Object

    @property
    def kube(self) -> Kube: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def declared(self) -> Object:
        """forProvider of an object."""

    def outside(self, name: str) -> str:
        """State of the external resource: `as declared`, `changed`, or "" if it doesn't exist."""

    def make(self, name: str) -> None:
        """Somebody else creates it, different from the later declaration."""

    def change(self, name: str) -> None:
        """Somebody else changes it."""

    def hold(self, name: str) -> None:
        """Prevent its deletion until `release`."""

    def release(self, name: str) -> None: ...

    def remove(self, name: str) -> None:
        """Somebody else deletes it, if it exists."""


@dataclass
class OursOnAws:
    """ucp's own controller, with roles of the simulated cloud."""

    desk: Desk
    kind = ROLE.kind
    configs = CONFIGS["ClusterProviderConfig"]
    config_spec: Object
    manager: Manager | None = None

    @property
    def kube(self) -> Kube:
        return self.desk.kube

    def start(self) -> None:
        controllers = frozenset({"managed-resources"})
        self.manager = Manager(
            self.desk.settings(cloud_poll_seconds=1, controllers=controllers), {}
        )
        self.manager.start()

    def stop(self) -> None:
        if self.manager:
            self.manager.stop(5)

    def declared(self) -> Object:
        return {"region": REGION, "assumeRolePolicy": DECLARED}

    def outside(self, name: str) -> str:
        found = {
            each["RoleName"]: each for each in self.desk.cloud.call("iam", "ListRoles")["Roles"]
        }
        if name not in found:
            return ""
        same = found[name]["AssumeRolePolicyDocument"] == json.loads(DECLARED)
        return "as declared" if same else "changed"

    def make(self, name: str) -> None:
        self.desk.cloud.call("iam", "CreateRole", RoleName=name, AssumeRolePolicyDocument=CHANGED)

    def change(self, name: str) -> None:
        asked = {"RoleName": name, "PolicyDocument": CHANGED}
        self.desk.cloud.call("iam", "UpdateAssumeRolePolicy", **asked)

    def hold(self, name: str) -> None:
        self.desk.cloud.call("iam", "AttachRolePolicy", RoleName=name, PolicyArn=POLICY)

    def release(self, name: str) -> None:
        self.desk.cloud.call("iam", "DetachRolePolicy", RoleName=name, PolicyArn=POLICY)

    def remove(self, name: str) -> None:
        if self.outside(name):
            self.desk.cloud.call("iam", "DeleteRole", RoleName=name)


@dataclass
class ProviderKubernetes:
    """Manages ConfigMaps of a second API server. folder: for its log and kubeconfig."""

    kube: Kube
    other: Kube
    argv: tuple[str, ...]
    env: dict[str, str]
    folder: Path
    kind = OBJECTS
    configs = OBJECT_CONFIGS
    config_spec: Object
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "provider.log").open("ab") as log:
            self.process = subprocess.Popen(self.argv, env=self.env, stdout=log, stderr=log)

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    def declared(self) -> Object:
        manifest = {"apiVersion": "v1", "kind": "ConfigMap"}
        head = {"metadata": {"namespace": "default"}, "data": {"for": "everybody"}}
        return {"manifest": {**manifest, **head}}

    def outside(self, name: str) -> str:
        found = self.other.find(CONFIG_MAP, name, "default")
        if found is None:
            return ""
        return "as declared" if found["data"] == {"for": "everybody"} else "changed"

    def make(self, name: str) -> None:
        self.other.apply(CONFIG_MAP.object(name, "default", data={"for": "nobody"}))

    def change(self, name: str) -> None:
        self._patch(name, {"data": {"for": "nobody"}})

    def hold(self, name: str) -> None:
        self._patch(name, {"metadata": {"finalizers": ["tests.k8s-ucp.io/hold"]}})

    def release(self, name: str) -> None:
        self._patch(name, {"metadata": {"finalizers": []}})

    def remove(self, name: str) -> None:
        self.other.delete(CONFIG_MAP, name, "default")

    def _patch(self, name: str, change: Object) -> None:
        self.other.patch(CONFIG_MAP, name, "default", change)


@contextlib.contextmanager
def provider_kubernetes(desk: Desk, toolbox: Toolbox, root: Path) -> Iterator[ProviderKubernetes]:
    """The provider on the desk's core cluster, with a kubeconfig of a second API server."""
    tools = built(TOOL)
    with control_planes(root, toolbox) as planes:
        provider = planes.provider()
        other = made(provider, "elsewhere")
        for file in sorted((tools.module(TOOL.name) / "package/crds").glob("*.yaml")):
            definition = yaml_io.load(file.read_text("utf-8"))
            definition["spec"].pop("conversion", None)
            desk.kube.apply(definition)
        secret = {"namespace": "team", "name": "elsewhere", "key": "kubeconfig"}
        config = json.dumps(provider.kubeconfig("elsewhere"))
        desk.kube.apply(SECRET.object("elsewhere", "team", stringData={"kubeconfig": config}))
        spec = {"credentials": {"source": "Secret", "secretRef": secret}}
        eventually(lambda: _is_established(desk.kube, OBJECT_CONFIGS), seconds=SECONDS)
        desk.kube.apply(OBJECT_CONFIGS.object("default", spec=spec))
        # With client-side apply it compares with what it applied last, and misses what others
        # change.
        words = ("--poll", "1s", "--sync", "1h", "--enable-server-side-apply")
        argv = (str(tools.path("provider")), *words)
        env = {"KUBECONFIG": str(desk.kubeconfig), "PATH": os.defpath, "HOME": str(root)}
        yield ProviderKubernetes(desk.kube, other, argv, env, root, spec)
        other.close()


def _is_established(kube: Kube, kind: Kind) -> bool:
    found = kube.find(CRD, f"{kind.plural}.{kind.group}") or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


@pytest.fixture(scope="module", params=["ours", "provider-kubernetes"])
def witness(
    request: pytest.FixtureRequest,
    desk: Desk,
    toolbox: Toolbox,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Witness]:
    with contextlib.ExitStack() as leaving:
        found: Witness
        if request.param == "ours":
            found = OursOnAws(desk, {"credentials": {"source": "Secret"}})
        else:
            root = tmp_path_factory.mktemp("elsewhere")
            found = leaving.enter_context(provider_kubernetes(desk, toolbox, root))
        leaving.callback(lambda: found.stop())
        found.start()
        yield found


@dataclass
class Case:
    """The object of one test."""

    witness: Witness
    name: str

    @property
    def place(self) -> str | None:
        return "team" if self.witness.kind.namespaced else None

    def declare(self, **spec: Any) -> None:
        config = spec.pop("config", "default")
        ref = {"name": config}
        if self.witness.kind.namespaced:
            ref["kind"] = self.witness.configs.kind
        given = {"forProvider": self.witness.declared(), "providerConfigRef": ref, **spec}
        item = self.witness.kind.object(self.name, self.place, spec=given)
        self.witness.kube.apply(item, manager="test")

    def seen(self) -> Object | None:
        return self.witness.kube.find(self.witness.kind, self.name, self.place)

    def delete(self) -> None:
        self.witness.kube.delete(self.witness.kind, self.name, self.place)

    def annotate(self, name: str, value: str | None) -> None:
        change = {"metadata": {"annotations": {name: value}}}
        self.witness.kube.patch(self.witness.kind, self.name, self.place, change)

    def comes_to(self, type: str, status: str, reason: str) -> Object:
        """Wait until a condition has this status and reason; returns the object."""

        def told() -> bool:
            found = self.seen()
            return bool(found) and condition(found, type)[:2] == (status, reason)

        eventually(told, self.seen, SECONDS)
        found = self.seen()
        assert found
        return found

    def is_ready(self) -> Object:
        self.comes_to("Synced", "True", "ReconcileSuccess")
        return self.comes_to("Ready", "True", "Available")

    def is_gone(self) -> None:
        eventually(lambda: self.seen() is None, self.seen, SECONDS)

    def is_outside(self, state: str) -> None:
        def now() -> str:
            return self.witness.outside(self.name)

        eventually(lambda: now() == state, now, SECONDS)

    def stays(self, state: str, looks: int = 3) -> None:
        """Check that the state persists while the provider reconciles this many other objects."""
        for number in range(looks):
            other = Case(self.witness, f"{self.name}-{number}")
            other.declare()
            other.is_ready()
            other.delete()
            other.is_gone()
            assert self.witness.outside(self.name) == state


@pytest.fixture
def case(witness: Witness, request: pytest.FixtureRequest) -> Iterator[Case]:
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:40].strip("-")
    found = Case(witness, name)
    yield found
    if found.seen():
        found.annotate("crossplane.io/paused", None)
        found.delete()
        found.is_gone()
    witness.remove(name)


def test_a_resource_is_created_and_deleted_with_its_object(case: Case) -> None:
    case.declare()
    there = case.is_ready()
    assert FINALIZER in there["metadata"]["finalizers"]
    assert there["metadata"]["annotations"]["crossplane.io/external-name"] == case.name
    assert first_cause([there]) is None
    case.is_outside("as declared")
    case.delete()
    case.is_gone()
    assert case.witness.outside(case.name) == ""


def test_an_external_change_is_reverted(case: Case) -> None:
    case.declare()
    case.is_ready()
    case.witness.change(case.name)
    case.is_outside("as declared")


def test_an_externally_deleted_resource_is_created_again(case: Case) -> None:
    case.declare()
    case.is_ready()
    case.witness.remove(case.name)
    case.is_outside("as declared")


def test_a_paused_resource_is_not_reconciled(case: Case) -> None:
    case.declare()
    case.is_ready()
    case.annotate("crossplane.io/paused", "true")
    paused = case.comes_to("Synced", "False", "ReconcilePaused")
    cause = first_cause([paused])
    assert cause and not cause.failed
    case.witness.change(case.name)
    case.stays("changed")
    case.delete()
    case.stays("changed", looks=1)
    assert case.seen(), "deleted, and still there"
    case.annotate("crossplane.io/paused", None)
    case.is_gone()
    assert case.witness.outside(case.name) == ""


def test_an_observed_resource_is_never_created(case: Case) -> None:
    case.declare(managementPolicies=["Observe"])
    absent = case.comes_to("Synced", "False", "ReconcileError")
    cause = first_cause([absent])
    assert cause and cause.failed and "does not exist" in cause.message
    case.stays("", looks=1)
    case.delete()
    case.is_gone()


def test_an_observed_resource_is_neither_changed_nor_deleted(case: Case) -> None:
    case.witness.make(case.name)
    case.declare(managementPolicies=["Observe"])
    case.is_ready()
    case.stays("changed", looks=2)
    case.delete()
    case.is_gone()
    assert case.witness.outside(case.name) == "changed"


def test_an_existing_resource_is_adopted(case: Case) -> None:
    case.witness.make(case.name)
    case.declare()
    case.is_ready()
    case.is_outside("as declared")


def test_nothing_is_deleted_without_the_delete_policy(case: Case) -> None:
    case.declare(managementPolicies=["Observe", "Create", "Update"])
    case.is_ready()
    case.delete()
    case.is_gone()
    assert case.witness.outside(case.name) == "as declared"


def test_an_object_is_kept_while_its_resource_cannot_be_deleted(case: Case) -> None:
    case.declare()
    case.is_ready()
    case.witness.hold(case.name)
    case.delete()
    held = case.comes_to("Ready", "False", "Deleting")
    assert FINALIZER in held["metadata"]["finalizers"]
    case.stays("as declared", looks=1)
    assert case.seen()
    case.witness.release(case.name)
    case.is_gone()
    assert case.witness.outside(case.name) == ""


def test_changes_while_no_provider_runs_are_reconciled_later(case: Case) -> None:
    case.declare()
    case.is_ready()
    later = Case(case.witness, f"{case.name[:30]}-later")
    case.witness.stop()
    try:
        later.declare()
        case.delete()
        there = case.seen()
        assert there and FINALIZER in there["metadata"]["finalizers"]
        assert case.witness.outside(case.name) == "as declared"
    finally:
        case.witness.start()
    case.is_gone()
    assert case.witness.outside(case.name) == ""
    later.is_ready()
    later.delete()
    later.is_gone()


def test_a_missing_configuration_is_reported_and_kept_while_it_is_used(case: Case) -> None:
    witness = case.witness
    case.declare(config="of-mine")
    case.comes_to("Synced", "False", "ReconcileError")
    assert witness.outside(case.name) == ""
    witness.kube.apply(witness.configs.object("of-mine", spec=witness.config_spec))
    case.is_ready()

    def config() -> Object | None:
        return witness.kube.find(witness.configs, "of-mine")

    def users() -> int:
        return int(((config() or {}).get("status") or {}).get("users") or 0)

    eventually(lambda: users() == 1, config, SECONDS)
    witness.kube.delete(witness.configs, "of-mine")
    eventually(lambda: condition(config(), "Terminating")[:2] == ("True", "InUse"), config, SECONDS)
    case.delete()
    case.is_gone()
    eventually(lambda: config() is None, config, SECONDS)
