"""The rendered repositories in a real Argo CD: permissions, protection, removal, drift."""

from __future__ import annotations

import json
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp import yaml_io
from k8s_ucp.components import argocd
from k8s_ucp.components.host.redis import Redis
from k8s_ucp.context import StartContext
from k8s_ucp.git.clones import make_clone
from k8s_ucp.git.repository import RefUpdate, Repository
from k8s_ucp.gitops.refresh import ensure_hook
from k8s_ucp.inspect.applications import is_settled, kept, reason
from k8s_ucp.kube import (
    APP_PROJECT,
    APPLICATION,
    APPLICATION_SET,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    DEPLOYMENT,
    LOCAL_CLUSTER,
    NAMESPACE,
    SECRET,
    Kind,
    Kube,
    KubeError,
    NotFound,
)
from k8s_ucp.reconciler.manager import Manager
from k8s_ucp.reconciler.runtime.settings import Settings
from k8s_ucp.steps.preparation.publish_repositories import publish_repositories
from k8s_ucp.steps.startup.apply_manifests import apply_foundation
from k8s_ucp.steps.startup.clusters import start_core
from k8s_ucp.steps.startup.start_on_host import start_argocd, start_supervisor
from k8s_ucp.steps.waiting.await_applications import await_applications, not_yet
from k8s_ucp.tools.toolbox import Toolbox
from k8s_ucp.topology import Environment
from k8s_ucp.workspace import Workspace
from tests.control_planes import eventually as wait_until
from tests.control_planes import leave_to_waits
from tests.integration.gitops.older_repositories import write_older_layout
from tests.unit.gitops.topologies import demo

pytestmark = pytest.mark.engines

ORPHANED = "OrphanedResourceWarning"
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles")
CLAIM_KIND = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
PROTECTED = Environment.model_validate(
    {"name": "prod", "promotesFrom": "stage", "access": "scoped", "deletionProtection": True}
)


def eventually(
    holds: Callable[[], object],
    what: str,
    seen: Callable[[], object] = str,
    seconds: float = 150,
) -> None:
    wait_until(holds, lambda: f"{what}: {seen()}", seconds)


@dataclass
class Running:
    """A core with Argo CD and the reconciler; stage is open, prod is protected and scoped."""

    context: StartContext

    @property
    def kube(self) -> Kube:
        return self.context.kube

    def files(self, name: str) -> dict[str, bytes]:
        return Repository(self.context.gitops.root / f"{name}.git").read("main")

    def push(self, name: str, changes: dict[str, bytes | None]) -> str:
        """Push a person's commit on top of the tip."""
        remote = self.context.gitops.root / f"{name}.git"
        clone = make_clone(self.context.workspace.root / "person" / name, remote.as_uri())
        clone.fetch()
        commit = clone.write_commit("Mine", changes, parent=clone.resolve("origin/main"))
        clone.push([RefUpdate("refs/heads/main", commit)])
        return commit

    def application(self, name: str) -> dict[str, Any]:
        return self.kube.find(APPLICATION, name, "argocd") or {}

    def message(self, name: str) -> str:
        """Message of the last sync."""
        operation = self.application(name).get("status", {}).get("operationState") or {}
        return str(operation.get("message", ""))

    def states(self) -> dict[str, str]:
        """Status of every Application, for the message of a failed test."""
        return {
            each["metadata"]["name"]: "{sync} {health} {phase} {message}".format(
                sync=each.get("status", {}).get("sync", {}).get("status"),
                health=each.get("status", {}).get("health", {}).get("status"),
                phase=(each.get("status", {}).get("operationState") or {}).get("phase"),
                message=(each.get("status", {}).get("operationState") or {}).get("message"),
            )
            for each in self.kube.list_all(APPLICATION, "argocd")
        }

    def well(self, *names: str) -> bool:
        return all(_well(self.application(name)) for name in names)

    def deployed(self, environment: str) -> bool:
        kubeconfig = self.context.state.kubeconfig(f"demo-{environment}")
        return Kube.from_file(kubeconfig).find(DEPLOYMENT, "echo", "echo") is not None


def _well(item: dict[str, Any]) -> bool:
    status = item.get("status", {})
    found = status.get("sync", {}).get("status"), status.get("health", {}).get("status")
    return found == ("Synced", "Healthy")


@pytest.fixture(scope="module")
def running(toolbox: Toolbox) -> Iterator[Running]:
    folder = Path(tempfile.mkdtemp(prefix="ucp repos "))
    stage = demo().spec.environments[0]
    topology = demo(environments=(stage, PROTECTED))
    text = topology.model_dump_json(by_alias=True, exclude_unset=True).encode()
    context = StartContext(Workspace.at(folder), topology, topology_file=text)
    context.toolbox = toolbox
    context.state.make()
    provider = context.provider
    leave_to_waits(provider)
    reconciler = None
    try:
        core = threading.Thread(target=start_core.run, args=(context, lambda line: None))
        core.start()
        publish_repositories.run(context, lambda line: None)
        core.join()
        for bare in (context.gitops.core_remote, context.gitops.apps_remote):
            kubeconfig = context.state.kubeconfig("demo-core")
            ensure_hook(bare, python=Path(sys.executable), kubeconfig=kubeconfig)
        for step in (start_supervisor, apply_foundation, start_argocd):
            step.run(context, lambda line: None)
        reconciler = Manager(
            Settings(
                kubeconfig=context.state.kubeconfig("demo-core"),
                machine=context.workspace.machine_id("demo"),
                topology="demo",
                kubeconfigs=context.state.kubeconfigs,
            ),
            {"embedded": provider},
        )
        reconciler.start()
        running = Running(context)
        eventually(
            lambda: running.well("echo-stage", "echo-prod", "root"), "all is well", running.states
        )
        yield running
    finally:
        if reconciler:
            reconciler.stop()
        context.placement.stop_all()
        for name in provider.names():
            provider.delete(name)
        shutil.rmtree(context.runtime, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def test_all_applications_are_healthy_without_warnings(running: Running) -> None:
    for each in running.kube.list_all(APPLICATION, "argocd"):
        assert _well(each), each["metadata"]["name"]
        assert not each["status"].get("conditions"), each["metadata"]["name"]
    assert running.deployed("stage")
    assert running.deployed("prod")


def test_refresh_causes_no_drift_of_an_application_set(running: Running) -> None:
    def found() -> dict[str, Any]:
        item = running.kube.get(APPLICATION_SET, "applications", "argocd")
        return dict(item["metadata"])

    def asked() -> bool:
        return any("refresh" in each for each in found().get("annotations", {}))

    eventually(lambda: not asked(), "no mark before")
    before = found()["generation"]
    # The sets read the app repository, and the Application that manages them the core repository.
    running.push("apps", {"notes.md": b"news\n"})
    tip = running.push("core", {"applications/notes.md": b"news\n"})
    eventually(
        lambda: running.application("applications")["status"]["sync"].get("revision") == tip,
        "the Application saw the push",
    )
    eventually(lambda: running.well("applications"), "well", running.states)
    eventually(lambda: not asked(), "no mark afterwards")
    assert found()["generation"] == before


def test_crossplane_roles_for_people_are_filled(running: Running) -> None:
    """Crossplane's RBAC manager doesn't run here; the controller manager aggregates the rules."""

    def groups(step: str) -> set[str]:
        rules = running.kube.get(CLUSTER_ROLE, f"crossplane-{step}").get("rules") or []
        return {group for rule in rules for group in rule["apiGroups"]}

    def is_filled(step: str) -> bool:
        return "apiextensions.crossplane.io" in groups(step)

    def seen() -> object:
        return running.context.provider.programs("demo-core"), running.states()

    for step in ("admin", "edit", "view", "browse"):
        eventually(partial(is_filled, step), step, seen)
    assert "k8s-ucp.io" in groups("view")
    view = running.kube.get(CLUSTER_ROLE, "crossplane-view")["rules"]
    assert {verb for rule in view for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert not any("secrets" in rule["resources"] for rule in view)


def test_setting_is_changed_by_a_commit(running: Running) -> None:
    path = "platform/argocd/config/argocd-cm.yaml"
    text = running.files("core")[path].replace(b'"30s"', b'"31s"')
    running.push("core", {path: text})
    eventually(
        lambda: (
            running.kube.get(CONFIG_MAP, "argocd-cm", "argocd")["data"]["timeout.reconciliation"]
            == "31s"
        ),
        "the setting is there",
    )


ESCALATION = """\
- op: replace
  path: /apiVersion
  value: rbac.authorization.k8s.io/v1
- op: replace
  path: /kind
  value: ClusterRoleBinding
- op: replace
  path: /metadata
  value: {name: evil}
- op: remove
  path: /spec
- op: add
  path: /roleRef
  value: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
- op: add
  path: /subjects
  value: [{kind: Group, name: evil, apiGroup: rbac.authorization.k8s.io}]
"""
"""Creates another object from whatever a repository contains."""


def evil_sets(core: str, apps: str, forge: str) -> list[dict[str, Any]]:
    """ApplicationSets that try to access the core: by project, by source, by generator."""
    options = {"allowKindChange": True, "allowNameChange": True}
    target = {"kind": "AppProject", "name": "default"}
    patch = {"target": target, "options": options, "patch": ESCALATION}
    token = {"secretName": "argocd-secret", "key": "server.secretkey"}
    gitea = {"owner": "evil", "api": forge, "tokenRef": token}
    stage = {"matchLabels": {"k8s-ucp.io/environment": "stage"}}
    sources = [
        {"repoURL": core, "path": "projects", "kustomize": {"patches": [patch]}},
        {"repoURL": core, "path": "projects"},
        {"repoURL": apps, "path": "apps/echo/overlays/stage"},
        {"repoURL": f"{forge}/charts", "chart": "evil"},
    ]
    generators: list[dict[str, Any]] = [
        {"list": {"elements": [{"evil": "yes"}]}},
        {"clusters": {"selector": stage}},
        {"git": {"repoURL": apps, "revision": "main", "directories": [{"path": "apps/echo"}]}},
        {"git": {"repoURL": core, "revision": "main", "files": [{"path": "ucp.yaml"}]}},
        {"scmProvider": {"gitea": gitea}},
        {"pullRequest": {"gitea": {**gitea, "repo": "evil"}}},
        {"matrix": {"generators": [{"list": {"elements": [{}]}}, {"clusters": {}}]}},
    ]
    wanted = [
        *((project, sources[0], generators[0]) for project in ("infrastructure", "default")),
        *(("application-sets", source, generators[0]) for source in sources),
        *(("infrastructure", source, generators[0]) for source in sources),
        *(("infrastructure", sources[0], generator) for generator in generators),
        *(("applications", source, generators[0]) for source in sources),
    ]
    return [
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "ApplicationSet",
            "metadata": {"name": f"evil-{number}", "namespace": "argocd"},
            "spec": {
                "goTemplate": True,
                "generators": [generator],
                "template": {
                    "metadata": {"name": f"evil-{number}"},
                    "spec": {
                        "project": project,
                        "source": {"targetRevision": "main", **source},
                        "destination": {"name": "in-cluster", "namespace": "argocd"},
                        "syncPolicy": {"automated": {}},
                    },
                },
            },
        }
        for number, (project, source, generator) in enumerate(wanted)
    ]


class Forge(ThreadingHTTPServer):
    """An address that a set may name as its forge: it records callers and their tokens."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        calls = self.calls

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                calls.append(f"{self.path} {self.headers.get('Authorization')}")
                self.send_error(404)

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)


def test_app_repository_has_no_permissions_on_the_core(running: Running) -> None:
    """Neither by its own objects, nor by Applications that read the core repository."""
    core, apps = (
        (running.context.gitops.root / f"{name}.git").as_uri() for name in ("core", "apps")
    )
    forge = Forge()
    threading.Thread(target=forge.serve_forever, daemon=True).start()
    sets = evil_sets(core, apps, f"http://127.0.0.1:{forge.server_port}")
    template = sets[0]["spec"]["template"]
    application = {**sets[0], "kind": "Application", "spec": template["spec"]}
    plain = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "evil", "namespace": "argocd"},
    }
    objects = [*sets, application, plain]
    overlay = "apps/echo/overlays/stage/kustomization.yaml"
    before = running.files("apps")
    pushed: dict[str, bytes | None] = {overlay: before[overlay] + b"# seen\n"}
    for number, each in enumerate(objects):
        for folder in ("applications", "projects", "bootstrap/embedded", "apps/tenant/base"):
            pushed[f"{folder}/evil-{number}.yaml"] = json.dumps(each).encode()
    for number in range(len(sets), len(objects)):
        # In the folder of older versions' sets, one of another kind would block all.
        del pushed[f"applications/evil-{number}.yaml"]
    pushed["apps/tenant/overlays/stage/kustomization.yaml"] = json.dumps(
        {"resources": ["../../base"]}
    ).encode()
    pushed["apps/tenant/base/kustomization.yaml"] = json.dumps(
        {"resources": [f"evil-{number}.yaml" for number in range(len(objects))]}
    ).encode()

    def reached() -> list[str]:
        kinds = (APPLICATION, APPLICATION_SET, CONFIG_MAP)
        items = [each for kind in kinds for each in running.kube.list_all(kind, "argocd")]
        items += running.kube.list_all(CLUSTER_ROLE_BINDING)
        names = [f"{each.get('kind')} {each['metadata']['name']}" for each in items]
        return [*(each for each in names if "evil" in each), *forge.calls]

    try:
        tip = running.push("apps", pushed)
        eventually(
            lambda: running.application("echo-stage")["status"]["sync"].get("revision") == tip,
            "Argo CD saw the push",
            running.states,
        )
        eventually(
            lambda: running.application("tenant-stage"), "the other app is there", running.states
        )
        until = time.monotonic() + 10
        while time.monotonic() < until:
            assert not reached()
            time.sleep(0.5)
        assert running.kube.find(DEPLOYMENT, "echo", "echo") is None
    finally:
        running.push("apps", {**dict.fromkeys(pushed), overlay: before[overlay]})
        forge.shutdown()
        forge.server_close()

    def left() -> bool:
        found = running.application("tenant-stage")
        if found.get("metadata", {}).get("deletionTimestamp"):
            # Argo CD doesn't delete an Application while it retries its sync.
            loose = {"metadata": {"finalizers": None}}
            with suppress(NotFound):
                running.kube.patch(APPLICATION, "tenant-stage", "argocd", loose)
        return not found

    eventually(left, "it left", running.states)
    eventually(lambda: running.well("echo-stage", "applications"), "all is well", running.states)


def test_a_hook_of_an_app_does_not_delete_a_namespace_of_the_platform(running: Running) -> None:
    """Argo CD deletes what is there before it creates the hook; volumes would be lost."""
    stage = Kube.from_file(running.context.state.kubeconfig("demo-stage"))
    hook = {
        "argocd.argoproj.io/hook": "PreSync",
        "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation",
    }
    names = ("ucp-databases", "kube-public", "rogue")
    overlay = "apps/rogue/overlays/stage"
    for name in ("ucp-databases", "rogue"):
        stage.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    before = {name: stage.get(NAMESPACE, name)["metadata"]["uid"] for name in names}

    def uids() -> dict[str, str]:
        found = {name: stage.find(NAMESPACE, name) or {} for name in names}
        return {name: each.get("metadata", {}).get("uid", "") for name, each in found.items()}

    def app(*hooks: str) -> dict[str, bytes | None]:
        """An app with hooks, and a ConfigMap, since Argo CD doesn't sync hooks alone."""
        settings = {"kind": "ConfigMap", "metadata": {"name": "-".join(hooks)}}
        objects = [settings] + [
            {"kind": "Namespace", "metadata": {"name": name, "annotations": hook}} for name in hooks
        ]
        lines = [json.dumps({"apiVersion": "v1", **each}) for each in objects]
        return {
            f"{overlay}/kustomization.yaml": b"resources: [objects.yaml]\n",
            f"{overlay}/objects.yaml": "\n---\n".join(lines).encode(),
        }

    platform = names[:2]
    try:
        running.push("apps", app(*platform))
        eventually(
            lambda: (
                "one or more synchronization tasks are not valid" in running.message("rogue-stage")
            ),
            "the refusal",
            running.states,
        )
        results = running.application("rogue-stage")["status"]["operationState"]["syncResult"]
        refused = {each["name"]: each["message"] for each in results["resources"]}
        for name in platform:
            assert "not permitted in project applications" in refused[name], refused
        assert uids() == before
        # Without the refused ones, the same hook replaces the app's own namespace.
        running.push("apps", app("rogue"))
        eventually(lambda: uids()["rogue"] not in ("", before["rogue"]), "replaced", running.states)
        assert {name: uids()[name] for name in platform} == {
            name: before[name] for name in platform
        }
    finally:
        running.push("apps", dict.fromkeys(app("rogue")))
        eventually(lambda: not running.application("rogue-stage"), "it left", running.states)
        for name in ("ucp-databases", "rogue"):
            stage.delete(NAMESPACE, name)


def test_a_folder_that_can_not_be_an_application_keeps_no_other_app(running: Running) -> None:
    """Argo CD's ApplicationSet deletes nothing after an Application that it can't create."""
    settings = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}'
    folders = [f"apps/{each}/overlays/stage" for each in ("-dash", "a" * 64, "My_App")]
    files = {f"{each}/settings.json": settings for each in folders}
    leaving = {"apps/leaving/overlays/stage/settings.json": settings}
    # As on a git server without the hook that rejects such names.
    hook = running.context.gitops.apps_remote / "hooks/pre-receive"
    hook.rename(aside := hook.with_suffix(".aside"))
    try:
        running.push("apps", leaving)
        eventually(lambda: running.well("leaving-stage"), "it is deployed", running.states)
        running.push("apps", {**files, **dict.fromkeys(leaving)})
        eventually(lambda: not running.application("leaving-stage"), "it left", running.states)
    finally:
        running.push("apps", dict.fromkeys([*files]))
        aside.rename(hook)


def test_generators_in_the_core_repository_can_not_call_a_forge(running: Running) -> None:
    """So no Secret of Argo CD's namespace is sent to an address in an ApplicationSet."""
    forge = Forge()
    threading.Thread(target=forge.serve_forever, daemon=True).start()
    sets = [
        each
        for each in evil_sets("", "", f"http://127.0.0.1:{forge.server_port}")
        if each["spec"]["generators"][0].keys() & {"scmProvider", "pullRequest"}
    ]
    assert len(sets) == 2
    names = [each["metadata"]["name"] for each in sets]

    def answered(name: str) -> bool:
        found = running.kube.get(APPLICATION_SET, name, "argocd")
        conditions = found.get("status", {}).get("conditions") or []
        return any(each["type"] == "ErrorOccurred" for each in conditions)

    try:
        for each in sets:
            running.kube.apply(each)
        eventually(lambda: all(answered(name) for name in names), "the controller's answers")
        assert forge.calls == []
    finally:
        for name in names:
            running.kube.delete(APPLICATION_SET, name, "argocd")
        forge.shutdown()
        forge.server_close()


def test_the_crd_of_application_sets_is_as_published_except_for_ignored_templates(
    toolbox: Toolbox,
) -> None:
    path = toolbox.module("argocd") / "manifests/crds/applicationset-crd.yaml"
    published = path.read_text("utf-8")
    schemas = []
    for text in (published, argocd.without_ignored_templates(published)):
        version = yaml_io.load(text)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        generators = version["properties"]["spec"]["properties"]["generators"]["items"]
        ignored = [
            child["properties"].pop("template")
            for parent in ("matrix", "merge")
            for child in generators["properties"][parent]["properties"]["generators"]["items"][
                "properties"
            ].values()
            if "template" in child.get("properties", ())
        ]
        assert len(ignored) == 14
        schemas.append(version)
    assert schemas[0] == schemas[1]


def test_a_template_of_a_child_generator_may_only_be_empty(running: Running) -> None:
    """Argo CD's clients write empty ones; it ignores them all, so their CRD has no other schema."""
    core = (running.context.gitops.root / "core.git").as_uri()
    template = {
        "metadata": {"name": "{{first}}-{{second}}"},
        "spec": {
            "project": "infrastructure",
            "destination": {"name": "in-cluster", "namespace": "argocd"},
            "source": {"repoURL": core, "path": "applications"},
        },
    }
    empty = {"metadata": {}, "spec": {"destination": {}, "project": ""}}

    def of_children(ignored: dict[str, Any]) -> dict[str, Any]:
        children = [
            {"list": {"elements": [{"first": "a"}], "template": ignored}},
            {"list": {"elements": [{"second": "b"}]}},
        ]
        return {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "ApplicationSet",
            "metadata": {"name": "of-children", "namespace": "argocd"},
            "spec": {"generators": [{"matrix": {"generators": children}}], "template": template},
        }

    with pytest.raises(KubeError, match=r"list\.template\.spec\.sources: field not declared"):
        running.kube.apply(of_children({"spec": {"sources": "of a wrong type"}}))
    running.kube.apply(of_children(empty))
    try:
        eventually(lambda: running.application("a-b"), "its Application", running.states)
        assert running.application("a-b")["spec"]["source"] == template["spec"]["source"]
    finally:
        running.kube.delete(APPLICATION_SET, "of-children", "argocd")
        eventually(lambda: not running.application("a-b"), "its removal", running.states)


@pytest.mark.slow
def test_older_topology_is_taken_over_without_a_restart_of_its_apps(running: Running) -> None:
    """Its app repository has the ApplicationSets: they move, and nothing is recreated."""
    context, kube = running.context, running.kube
    apps = context.gitops.apps_remote.as_uri()

    def source() -> str:
        return str(running.application("applications")["spec"]["source"]["repoURL"])

    def uids() -> dict[str, str]:
        found = [*kube.list_all(APPLICATION, "argocd"), *kube.list_all(APPLICATION_SET, "argocd")]
        for environment in ("stage", "prod"):
            kubeconfig = context.state.kubeconfig(f"demo-{environment}")
            with closing(Kube.from_file(kubeconfig)) as there:
                found += [there.get(DEPLOYMENT, "echo", "echo"), there.get(NAMESPACE, "echo")]
        return {
            f"{number} {each['metadata']['name']}": each["metadata"]["uid"]
            for number, each in enumerate(found)
        }

    write_older_layout(context.gitops, context.workspace.root / "person")
    names = ("root", "applications", "echo-stage", "echo-prod")
    eventually(
        lambda: source() == apps and running.well(*names), "the older topology", running.states
    )
    before = uids()
    assert kube.find(APP_PROJECT, "application-sets", "argocd")
    for step in (publish_repositories, apply_foundation, start_argocd, await_applications):
        step.run(context, lambda line: None)
    assert source() == context.gitops.core_remote.as_uri()
    assert running.application("applications")["spec"]["project"] == "infrastructure"
    assert not any(path.startswith("applications/") for path in running.files("apps"))
    assert kube.find(APP_PROJECT, "application-sets", "argocd") is None
    eventually(lambda: running.well(*names), "all is well", running.states)
    assert uids() == before


@pytest.mark.slow
def test_apps_of_a_protected_environment_survive_the_removal_of_their_overlay(
    running: Running,
) -> None:
    overlays = {path: text for path, text in running.files("apps").items() if "/overlays/" in path}
    running.push("apps", dict.fromkeys(overlays))
    eventually(lambda: not running.application("echo-stage"), "stage lets go")
    time.sleep(1)
    assert running.application("echo-prod")["metadata"].get("deletionTimestamp") is None
    assert running.deployed("prod")
    assert not running.deployed("stage")
    running.push("apps", dict(overlays))
    eventually(lambda: running.well("echo-stage", "echo-prod"), "all is back")


def test_protected_apps_survive_the_deletion_of_their_application_set(running: Running) -> None:
    kube = running.kube
    before = running.application("echo-prod")["metadata"]["uid"]
    old = kube.get(APPLICATION_SET, "applications-protected", "argocd")["metadata"]["uid"]
    kube.delete(APPLICATION_SET, "applications-protected", "argocd")

    def again() -> bool:
        found = kube.find(APPLICATION_SET, "applications-protected", "argocd")
        return found is not None and found["metadata"]["uid"] != old

    eventually(again, "the set is back")
    eventually(lambda: running.well("echo-prod"), "prod is well")
    assert running.application("echo-prod")["metadata"]["uid"] == before
    assert running.deployed("prod")


@pytest.mark.slow
def test_protected_cluster_survives_the_removal_of_its_declaration(running: Running) -> None:
    core = running.files("core")
    listed = core["clusters/kustomization.yaml"].decode().splitlines(keepends=True)
    changes: dict[str, bytes | None] = {
        "clusters/kustomization.yaml": "".join(
            line for line in listed if "overlays/prod" not in line
        ).encode(),
        "clusters/overlays/prod/kustomization.yaml": None,
    }
    running.push("core", changes)
    eventually(
        lambda: running.application("clusters")["status"]["sync"]["status"] == "OutOfSync",
        "Argo CD would remove it",
    )
    time.sleep(1)
    found = running.kube.get(LOCAL_CLUSTER, "demo-prod", "ucp-clusters")
    assert found["metadata"].get("deletionTimestamp") is None
    running.push("core", {path: core[path] for path in changes})
    eventually(lambda: running.well("clusters"), "well again")


def an_application(name: str, project: str, **spec: Any) -> dict[str, Any]:
    """An Application that a person created, in addition to those of the repositories."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"project": project, "syncPolicy": {"automated": {}}, **spec},
    }


def test_projects_refuse_sources_and_destinations_outside_of_them(running: Running) -> None:
    core, apps = (
        (running.context.gitops.root / f"{name}.git").as_uri() for name in ("core", "apps")
    )
    here = {"name": "in-cluster", "namespace": "argocd"}
    there = {"name": "demo-stage", "namespace": "echo"}
    foreign = "https://git.example.org/evil.git"
    refused = [
        an_application(
            "core-by-an-app",
            "applications",
            source={"repoURL": apps, "path": "apps/echo/base"},
            destination=here,
        ),
        an_application(
            "another-repository",
            "applications",
            source={"repoURL": foreign, "path": "."},
            destination=there,
        ),
        an_application(
            "another-chart",
            "infrastructure",
            source={"repoURL": foreign, "chart": "evil", "targetRevision": "1.0.0"},
            destination=here,
        ),
        an_application(
            "another-topology",
            "infrastructure",
            source={"repoURL": core, "path": "projects"},
            destination={"name": "other-stage", "namespace": "default"},
        ),
        an_application(
            "no-project",
            "default",
            source={"repoURL": core, "path": "projects"},
            destination=here,
        ),
    ]
    names = [each["metadata"]["name"] for each in refused]
    try:
        for each in refused:
            running.kube.apply(each)

        def words(name: str) -> str:
            conditions = running.application(name).get("status", {}).get("conditions") or []
            return " ".join(each["message"] for each in conditions if "Error" in each["type"])

        eventually(lambda: all(words(name) for name in names), "five refusals")
        for name, why in zip(
            names,
            (
                "do not match any of the allowed destinations in project 'applications'",
                "is not permitted in project 'applications'",
                "is not permitted in project 'infrastructure'",
            ),
            strict=False,
        ):
            assert why in words(name), words(name)
        for name in names:
            assert not running.application(name)["status"].get("resources"), name
    finally:
        for name in names:
            running.kube.delete(APPLICATION, name, "argocd")


def test_undeclared_objects_are_reported_as_orphaned(running: Running) -> None:
    """Beside the app's own; the app stays healthy, and the warning disappears with its cause."""

    def warned() -> list[str]:
        conditions = running.application("echo-stage").get("status", {}).get("conditions") or []
        return [each["message"] for each in conditions if each["type"] == ORPHANED]

    def named(name: str) -> dict[str, str]:
        return {"name": name, "namespace": "echo"}

    stage = Kube.from_file(running.context.state.kubeconfig("demo-stage"))
    try:
        # No repository declares such a Secret: a mirror, the reconciler or Kubernetes creates it.
        stage.apply({"apiVersion": "v1", "kind": "Secret", "metadata": named("database")})
        stage.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("left-behind")})
        eventually(warned, "the warning", running.states)
        assert "orphaned" in warned()[0]
        assert running.well("echo-stage")
        stage.delete(CONFIG_MAP, "left-behind", "echo")
        eventually(lambda: not warned(), "no warning, beside the Secret", running.states)
    finally:
        stage.delete(CONFIG_MAP, "left-behind", "echo")
        stage.delete(SECRET, "database", "echo")
        stage.close()


CHILD = b"""\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: waves-first
  namespace: argocd
  annotations:
    argocd.argoproj.io/sync-wave: "1"
spec:
  project: infrastructure
  source: {repoURL: "%s", targetRevision: main, path: waves-first}
  destination: {name: in-cluster, namespace: argocd}
  syncPolicy: {automated: {prune: true}}
"""
CLAIM = b"""\
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: waves-first
  namespace: argocd
  annotations: {k8s-ucp.io/simulate: fail}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
"""


def settings(name: str, wave: int) -> bytes:
    metadata = f"name: {name}, namespace: argocd"
    wave_of = f'annotations: {{argocd.argoproj.io/sync-wave: "{wave}"}}'
    return (f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{{metadata}, {wave_of}}}\n").encode()


def test_sync_wave_waits_until_the_previous_one_is_healthy(running: Running) -> None:
    core = (running.context.gitops.root / "core.git").as_uri()
    running.push(
        "core",
        {
            "waves/first.yaml": CHILD % core.encode(),
            "waves/second.yaml": settings("waves-second", 2),
            "waves-first/claim.yaml": CLAIM,
        },
    )
    try:
        running.kube.apply(
            an_application(
                "waves",
                "infrastructure",
                source={"repoURL": core, "targetRevision": "main", "path": "waves"},
                destination={"name": "in-cluster", "namespace": "argocd"},
            )
        )
        # The first wave is an Application that exists and is synced but not healthy.
        eventually(
            lambda: running.kube.find(CLAIM_KIND, "waves-first", "argocd"),
            "the first wave",
            running.states,
        )
        eventually(
            lambda: (
                "PersistentVolumeClaim argocd/waves-first"
                in reason(running.application("waves-first"))
            ),
            "the object that isn't well is named",
            running.states,
        )
        time.sleep(3)
        assert running.kube.find(CONFIG_MAP, "waves-second", "argocd") is None
        health = running.application("waves")["status"]["health"]["status"]
        assert health != "Healthy"
        mended = {"waves-first/settings.yaml": settings("waves-first", 0)}
        running.push("core", {**mended, "waves-first/claim.yaml": None})
        eventually(
            lambda: running.kube.find(CONFIG_MAP, "waves-second", "argocd"),
            "the second wave",
            running.states,
        )
        assert _well(running.application("waves-first"))
    finally:
        for name in ("waves", "waves-first"):
            running.kube.delete(APPLICATION, name, "argocd")
        for name in ("waves-first", "waves-second"):
            running.kube.delete(CONFIG_MAP, name, "argocd")
        running.kube.delete(CLAIM_KIND, "waves-first", "argocd")
        mine = [path for path in running.files("core") if path.startswith("waves")]
        running.push("core", dict.fromkeys(mine))


def test_object_that_is_kept_on_purpose_does_not_block_a_start(running: Running) -> None:
    """A start waits for every Application, except for objects that git lacks and nothing prunes."""
    metadata = "{name: with-data, annotations: {argocd.argoproj.io/sync-options: Prune=false}}"
    text = f"apiVersion: v1\nkind: Namespace\nmetadata: {metadata}\n"
    try:
        running.push("core", {"mirrors/with-data.yaml": text.encode()})
        eventually(lambda: running.kube.find(NAMESPACE, "with-data"), "it is there", running.states)
        tip = running.push("core", {"mirrors/with-data.yaml": None})

        def seen() -> bool:
            return bool(running.application("mirrors")["status"]["sync"].get("revision") == tip)

        # While Argo CD retries, it doesn't report the objects that it skipped.
        eventually(
            lambda: seen() and kept(running.application("mirrors")) == ["Namespace with-data"],
            "it is kept, and nothing else",
            running.states,
        )
        eventually(
            lambda: not not_yet([], [running.application("mirrors")]),
            "nothing is waited for",
            running.states,
        )
        assert running.kube.find(NAMESPACE, "with-data")
    finally:
        running.kube.delete(NAMESPACE, "with-data")
        # Deletion takes a while: a rerun of this test would find the namespace terminating.
        eventually(lambda: not running.kube.find(NAMESPACE, "with-data"), "its end")


def test_a_commit_that_the_api_server_rejects_stays_out_of_sync_until_it_is_mended(
    running: Running,
) -> None:
    """By itself, Argo CD reports Synced when it compares the same commit again."""
    path = "apps/echo/overlays/stage/kustomization.yaml"
    before = running.files("apps")[path]
    label = b"labels:\n  - pairs: {tier: front}\n    includeSelectors: true\n"

    def rejected() -> bool:
        """Argo CD has forgotten that it could not compare the commit."""
        item = running.application("echo-stage")
        sync = item["status"]["sync"]
        compared = (sync["status"], sync.get("revision")) == ("Synced", commit)
        return compared and "field is immutable" in reason(item)

    commit = running.push("apps", {path: before + label})
    try:
        eventually(rejected, "the sync fails, and Argo CD reports Synced", running.states)
        waiting = not_yet([], [running.application("echo-stage")])
        assert "echo-stage: OutOfSync" in "; ".join(waiting)
    finally:
        running.push("apps", {path: before})
    eventually(
        lambda: is_settled(running.application("echo-stage")), "it is mended", running.states
    )


def test_an_unsigned_webhook_does_not_decide_what_a_commit_contains(running: Running) -> None:
    """Argo CD would take the manifests of `before` for those of `after`, with the new commit."""
    path = "apps/echo/overlays/stage/kustomization.yaml"
    remote = running.context.gitops.apps_remote
    text = running.files("apps")[path]
    clone = make_clone(running.context.workspace.root / "person" / "apps", remote.as_uri())
    clone.fetch()
    tip = clone.resolve("origin/main")
    eventually(
        lambda: running.application("echo-stage")["status"]["sync"].get("revision") == tip,
        "the tip is compared",
        running.states,
    )
    # Argo CD needs it to find the manifests of a commit in its cache.
    eventually(lambda: "cluster|info|" in _cached(running, "demo-stage"), "the cluster's info")
    changed = re.sub(rb'newTag: "?[^"\n]+"?', b'newTag: "9.9.9"', text)
    commit = clone.write_commit("A new tag", {path: changed}, parent=tip)
    push = {
        "ref": "refs/heads/main",
        "before": tip,
        "after": commit,
        # A host called "file", and two slashes more, match the address of a folder.
        "repository": {
            "html_url": f"http://file///{remote.resolve()}".removesuffix(".git"),
            "default_branch": "main",
        },
        "commits": [{"added": [], "removed": [], "modified": ["notes.md"]}],
    }
    headers = {"Content-Type": "application/json", "X-GitHub-Event": "push"}
    server = HTTPConnection("127.0.0.1", running.context.host.ports[argocd.SERVER], timeout=10)
    with closing(server):
        server.request("POST", "/api/webhook", json.dumps(push), headers)
        assert server.getresponse().status == 200
    time.sleep(1)  # Argo CD handles it in the background.
    try:
        clone.push([RefUpdate("refs/heads/main", commit)])
        kubeconfig = running.context.state.kubeconfig("demo-stage")

        def image() -> str:
            found = Kube.from_file(kubeconfig).get(DEPLOYMENT, "echo", "echo")
            return str(found["spec"]["template"]["spec"]["containers"][0]["image"])

        eventually(lambda: image().endswith(":9.9.9"), "the commit's tag is deployed", image, 60)
    finally:
        running.push("apps", {path: text})
    eventually(lambda: running.well("echo-stage"), "all is well", running.states)


def _cached(running: Running, cluster: str) -> str:
    """Keys of Argo CD's cache that name the cluster's address."""
    host = running.context.host
    server = Kube.from_file(running.context.state.kubeconfig(cluster)).server
    commands = f"AUTH {Redis(host).password()}\r\nKEYS *{server}*\r\nQUIT\r\n"
    with socket.socket(socket.AF_UNIX) as redis:
        redis.settimeout(10)
        redis.connect(str(Redis(host).socket))
        redis.sendall(commands.encode())
        return redis.makefile("rb").read().decode()
