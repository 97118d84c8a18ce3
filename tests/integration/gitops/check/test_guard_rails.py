"""Guard rails at a real API server: what they refuse, and what they admit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.components.pods.component import POD
from k8s_ucp.kube import SECRET, Kube, KubeError
from k8s_ucp.tools.toolbox import Toolbox
from tests.control_planes import eventually, kind_of_any_fields, namespace
from tests.integration.gitops.check.rendered import built
from tests.unit.gitops.topologies import demo

pytestmark = pytest.mark.engines

REQUESTS = {"cpu": "10m", "memory": "16Mi"}


def container(image: str = "nginx:1.29.1", **more: Any) -> dict[str, Any]:
    return {"name": "main", "image": image, "resources": {"requests": REQUESTS}, **more}


def pod(image: str = "nginx:1.29.1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "try", "namespace": "apps"},
        "spec": {"containers": [container(image)], **spec},
    }


def with_container(**more: Any) -> dict[str, Any]:
    return pod(containers=[container(**more)])


def cron_job(image: str = "a:1", **spec: Any) -> dict[str, Any]:
    template = {"spec": {**pod(image, **spec)["spec"], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "try", "namespace": "apps"},
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template}}},
    }


def stateful_set(image: str = "a:1", **spec: Any) -> dict[str, Any]:
    labels = {"app": "try"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "try", "namespace": "apps"},
        "spec": {
            "selector": {"matchLabels": labels},
            "serviceName": "try",
            "template": {"metadata": {"labels": labels}, "spec": pod(image, **spec)["spec"]},
        },
    }


def deployment(**spec: Any) -> dict[str, Any]:
    item = stateful_set(**spec)
    del item["spec"]["serviceName"]
    return {**item, "kind": "Deployment"}


def rollout(**spec: Any) -> dict[str, Any]:
    item = deployment(**spec)
    return {**item, "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}


def ingress(*hosts: str, place: str = "apps") -> dict[str, Any]:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "try", "namespace": place},
        "spec": {"rules": [{"host": host, "http": {"paths": paths}} for host in hosts]},
    }


def port(**more: Any) -> dict[str, Any]:
    return {"containerPort": 8080, **more}


def capable(*names: str) -> dict[str, Any]:
    return container("a:1", securityContext={"capabilities": {"add": [*names], "drop": ["MKNOD"]}})


def asking(host: str) -> dict[str, Any]:
    return {"httpGet": {"port": 8080, "host": host}}


def running(*command: str) -> dict[str, Any]:
    return {"exec": {"command": [*command]}}


def annotated(item: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    return {**item, "metadata": {**item["metadata"], "annotations": {name: value}}}


def secured(*hosts: str) -> dict[str, Any]:
    item = ingress("free.example.org")
    return {**item, "spec": {**item["spec"], "tls": [{"hosts": [*hosts]}, {"secretName": "x"}]}}


ALIAS = "nginx.ingress.kubernetes.io/server-alias"
RECORD = "external-dns.alpha.kubernetes.io/hostname"
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "try", "namespace": "apps"},
    "spec": {"ports": [{"port": 80}]},
}
TRAEFIK = "traefik.io"
INGRESS_ROUTES = kind_of_any_fields(TRAEFIK, "IngressRoute", "v1alpha1")


def ingress_route(*matches: str, place: str = "apps") -> dict[str, Any]:
    return {
        "apiVersion": f"{TRAEFIK}/v1alpha1",
        "kind": "IngressRoute",
        "metadata": {"name": "try", "namespace": place},
        "spec": {"routes": [{"kind": "Rule", "match": each} for each in matches]},
    }


DIGEST = "@sha256:" + "a" * 64
PRIVILEGED = container("a:1", securityContext={"privileged": True})
BARE = container("a:1", resources={})
TOKEN = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "try",
        "namespace": "apps",
        "annotations": {"kubernetes.io/service-account.name": "default"},
    },
    "type": "kubernetes.io/service-account-token",
}
REFUSED = {
    "latest": (pod("nginx:latest"), "nginx:latest"),
    "no tag": (pod("registry.example.org:5000/nginx"), "by a tag that moves, or by none"),
    "a branch": (pod("a/b:main"), "a/b:main"),
    "an init container": (
        pod(initContainers=[{"name": "first", "image": "busybox"}]),
        "by none: busybox",
    ),
    "a cron job": (cron_job("a:latest"), "a:latest"),
    "a stateful set": (stateful_set("a:latest"), "a:latest"),
    "the node's network": (pod(hostNetwork=True), "shares with its node: hostNetwork"),
    "the node's files": (
        pod(volumes=[{"name": "root", "hostPath": {"path": "/"}}]),
        "hostPath",
    ),
    "privileged": (pod(containers=[PRIVILEGED]), "privileged"),
    "a port of the node": (
        with_container(ports=[port(hostPort=80)]),
        "hostPort",
    ),
    "a port of the node, by a template": (
        deployment(containers=[container(ports=[port(hostPort=80)])]),
        "hostPort",
    ),
    "a capability": (pod(containers=[capable("NET_ADMIN")]), "capabilities are added to: main"),
    "all capabilities": (
        pod(initContainers=[{**capable("CHOWN", "ALL"), "name": "first"}]),
        "capabilities are added to: first",
    ),
    "a capability, by a template": (deployment(containers=[capable("BPF")]), "added to: main"),
    "no requests": (pod(containers=[BARE]), "no requests for cpu and memory: main"),
    "no requests, by a template": (deployment(containers=[BARE]), "cpu and memory: main"),
    "no requests, by a rollout": (rollout(containers=[BARE]), "cpu and memory: main"),
    "one request": (
        with_container(resources={"requests": {"cpu": "1"}}),
        "no requests for cpu and memory: main",
    ),
    "a sidecar without": (
        pod(initContainers=[{**BARE, "name": "side", "restartPolicy": "Always"}]),
        "no requests for cpu and memory: side",
    ),
    "a probe of another host": (
        with_container(readinessProbe=asking("db.example.org")),
        "probes of another host: main",
    ),
    "a probe of the node": (
        with_container(livenessProbe={"tcpSocket": {"port": 1, "host": "127.0.0.1"}}),
        "probes of another host: main",
    ),
    "a probe, by a template": (
        cron_job(containers=[container(startupProbe=asking("10.0.0.1"))]),
        "probes of another host: main",
    ),
    "a probe that runs curl": (
        with_container(livenessProbe=running("sh", "-c", "curl -f 'http://quote.prod:80/x'")),
        "probes of another host: main",
    ),
    "a host of another app": (
        ingress("free.example.org", "echo.prod.example.org"),
        "hosts of other apps: echo.prod.example.org",
    ),
    "a certificate of another app's host": (
        secured("free.example.org", "echo.prod.example.org"),
        "hosts of other apps: echo.prod.example.org",
    ),
    "another app's host as an alias": (
        annotated(ingress("free.example.org"), ALIAS, "a.example.org, echo.prod.example.org"),
        "hosts of other apps: echo.prod.example.org",
    ),
    "a record of another app's host": (
        annotated(SERVICE, RECORD, "Echo.prod.example.org."),
        "hosts of other apps: echo.prod.example.org",
    ),
    "another app's host in a route of traefik": (
        ingress_route("PathPrefix(`/x`)", "Host(`a.example.org`) || Host(`Echo.prod.example.org`)"),
        "hosts of other apps: echo.prod.example.org",
    ),
    "another app's host in a quoted match": (
        ingress_route('PathPrefix("/x") && Host("echo.prod.example.org")'),
        "hosts of other apps: echo.prod.example.org",
    ),
    "another app's host with a dot": (
        ingress_route("Host(`Echo.prod.example.org.`)"),
        "hosts of other apps: echo.prod.example.org",
    ),
    "another app's host by a wildcard": (
        ingress("*.prod.example.org"),
        "hosts of other apps: echo.prod.example.org",
    ),
    "another app's host by a wildcard of traefik": (
        ingress_route("Host(`*.prod.example.org`)"),
        "hosts of other apps: echo.prod.example.org",
    ),
    "another app's host by a pattern": (
        ingress_route(r"Path(`/`)", r"Path(`/`) || HostRegexp(`^([a-z]+)\.prod\.example\.org$`)"),
        "hosts of other apps: echo.prod.example.org",
    ),
    "another app's host by a quoted pattern": (
        ingress_route('hostregexp( "^e.*prod")'),
        "hosts of other apps: echo.prod.example.org",
    ),
    "a host twice": (
        ingress("a.example.org", "a.example.org"),
        "twice in this Ingress: a.example.org/ Prefix",
    ),
    "a lasting token": (TOKEN, "never expires"),
}
ADMITTED = {
    "a version": pod(),
    "a port and a version": pod("registry.example.org:5000/a/b:1.2.3-rc.1"),
    "a digest": pod(f"nginx{DIGEST}"),
    "latest by digest": pod(f"nginx:latest{DIGEST}"),
    "a cron job": cron_job(),
    "a rollout": rollout(),
    "a rollout of a deployment": {
        **rollout(),
        "spec": {
            "selector": {"matchLabels": {"app": "try"}},
            "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "try"},
        },
    },
    "a port of its own": with_container(ports=[port(name="web")]),
    "limits": with_container(resources={"limits": REQUESTS}),
    "limits, by a template": deployment(containers=[container(resources={"limits": REQUESTS})]),
    "an init container without requests": pod(initContainers=[{**BARE, "name": "first"}]),
    "a probe of its own": with_container(
        readinessProbe={"httpGet": {"port": 8080, "httpHeaders": [{"name": "Host", "value": "x"}]}},
        livenessProbe=running("sh", "-c", 'curl -f "http://u:p@localhost:80/" http://$HOSTNAME/'),
    ),
    "hosts of its own": ingress("free.example.org", "*.example.org"),
    "a host in its app's namespace": ingress("echo.prod.example.org", place="echo"),
    "a route of traefik for its own hosts": ingress_route("Host(`x-echo.prod.example.org`)"),
    "a route of traefik in its app's namespace": ingress_route(
        "Host(`echo.prod.example.org`) || HostRegexp(`^echo`)", place="echo"
    ),
    "a pattern for its own hosts": ingress_route(r"HostRegexp(`^[a-z]+\.x\.example\.org$`)"),
    "a certificate of its own hosts": secured("free.example.org", "*.example.org"),
    "a record of its own": annotated(SERVICE, RECORD, "free.example.org"),
    "a capability that it has": pod(containers=[capable("NET_BIND_SERVICE", "CHOWN")]),
    "another secret": {**TOKEN, "type": "Opaque"},
    "the platform": {**pod("a:latest"), "metadata": {"name": "try", "namespace": "monitoring"}},
}


BINDING = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding")
RAILED = demo(guardRails={"stage": "warn", "prod": "deny"})


@pytest.fixture(scope="module")
def guarded(
    serving_core: Kube, toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kube]:
    """The core, with prod's guard rails in force."""
    folder = tmp_path_factory.mktemp("guarded")
    serving_core.apply(namespace("echo"))
    serving_core.apply(INGRESS_ROUTES)
    for each in built(RAILED, toolbox, folder, "policies/overlays/prod"):
        serving_core.apply(each)
    serving_core.apply(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": "apps"},
        }
    )

    def in_force() -> bool:
        return all(refusal(serving_core, item) for item, _ in REFUSED.values())

    eventually(in_force)
    yield serving_core


def refusal(kube: Kube, item: dict[str, Any]) -> str:
    try:
        kube.apply(item, dry_run=True)
    except KubeError as error:
        return error.message
    return ""


@pytest.mark.parametrize("case", REFUSED)
def test_guard_rails_refuse(case: str, guarded: Kube) -> None:
    item, why = REFUSED[case]
    assert why in refusal(guarded, item)


@pytest.mark.parametrize("case", ADMITTED)
def test_guard_rails_admit(case: str, guarded: Kube) -> None:
    assert refusal(guarded, ADMITTED[case]) == ""


def test_guard_rails_apply_to_an_alias_that_is_added_later(guarded: Kube) -> None:
    item = ingress("free.example.org")
    guarded.apply(item)
    assert refusal(guarded, annotated(item, "example.org/any", "echo.prod.example.org")) == ""
    assert "hosts of other apps" in refusal(
        guarded, annotated(item, ALIAS, "echo.prod.example.org")
    )


def debugging(kube: Kube, **added: Any) -> str:
    """Error when `kubectl debug` adds a container to the running pod; empty if it is allowed."""
    change = {"spec": {"ephemeralContainers": [{"name": "debugger", **added}]}}
    try:
        kube.request(
            "PATCH",
            f"{POD.path('apps', 'running')}/ephemeralcontainers",
            query={"dryRun": "All"},
            body=change,
            content="application/strategic-merge-patch+json",
        )
    except KubeError as error:
        return error.message
    return ""


def test_guard_rails_apply_to_kubectl_debug(guarded: Kube) -> None:
    running = pod()
    running["metadata"]["name"] = "running"
    guarded.apply(running)
    kind, name = guarded.kind_of(*BINDING), "no-ephemeral-containers.k8s-ucp.io"
    binding = {**guarded.get(kind, name), "metadata": {"name": name}}
    try:
        eventually(lambda: "kubectl debug" in debugging(guarded, image="a:1"))
        guarded.patch(POD, "running", "apps", {"metadata": {"labels": {"a": "b"}}})
        guarded.delete(kind, name)
        eventually(lambda: not debugging(guarded, image="a:1"))
        assert "a:latest" in debugging(guarded, image="a:latest")
        privileged = debugging(guarded, image="a:1", securityContext={"privileged": True})
        assert "privileged" in privileged
    finally:
        guarded.apply(binding)
        guarded.delete(POD, "running", "apps")
        eventually(lambda: guarded.find(POD, "running", "apps") is None)


class Listening(Kube):
    """Keeps the warnings in the server's last response."""

    warned = ""

    def _send(self, *args: Any, **more: Any) -> Any:
        answer = super()._send(*args, **more)
        self.warned = " ".join(answer.headers.getlist("Warning"))
        return answer


@pytest.fixture(scope="module")
def controller(guarded: Kube) -> Iterator[Listening]:
    """A ServiceAccount with all permissions."""
    guarded.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "controller"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "apps"}],
        }
    )
    token, _ = guarded.request_token("apps", "default", seconds=3600)
    kube = Listening(
        {
            "clusters": [
                {
                    "name": "x",
                    "cluster": {"server": guarded.server, "insecure-skip-tls-verify": True},
                }
            ],
            "users": [{"name": "x", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "current-context": "x",
        }
    )
    yield kube
    kube.close()


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_helm_release_secrets_can_be_deleted_by_controllers_only(
    guarded: Kube, controller: Listening
) -> None:
    secret = {**TOKEN, "metadata": {"name": "sh.helm.release.v1.x.v1", "namespace": "apps"}}
    release = guarded.apply({**secret, "type": "helm.sh/release.v1"})
    name = release["metadata"]["name"]
    with pytest.raises(KubeError, match="record of a Helm release is deleted by a person"):
        guarded.delete(SECRET, name, "apps")
    eventually(lambda: bool(refusal(controller, pod("a:latest"))))
    assert controller.delete(SECRET, name, "apps")
    guarded.apply({**secret, "type": "Opaque"})
    assert guarded.delete(SECRET, name, "apps")


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_guard_rails_in_mode_warn_refuse_nothing(
    guarded: Kube, controller: Listening, toolbox: Toolbox, tmp_path: Path
) -> None:
    """Objects that existed before can still be deleted once the guard rails deny."""
    for each in built(RAILED, toolbox, tmp_path, "policies/overlays/stage"):
        guarded.apply(each)
    eventually(lambda: not any(refusal(controller, item) for item, _ in REFUSED.values()))

    def is_warned(item: dict[str, Any], why: str) -> bool:
        controller.apply(item, dry_run=True)
        return why in controller.warned

    eventually(lambda: all(is_warned(item, why) for item, why in REFUSED.values()))
    old = deployment(containers=[BARE])
    old["metadata"]["finalizers"] = ["example.org/one"]
    guarded.apply(old)
    kind = guarded.kind_of(old["apiVersion"], old["kind"])
    for each in built(RAILED, toolbox, tmp_path, "policies/overlays/prod"):
        guarded.apply(each)
    # The API server loads each policy separately, and admits unchanged objects.
    other = deployment(containers=[{**BARE, "command": ["run"]}])
    eventually(lambda: "no requests for" in refusal(guarded, other))
    with pytest.raises(KubeError, match="no requests for cpu and memory"):
        guarded.patch(kind, "try", "apps", {"spec": {"paused": True}})
    guarded.delete(kind, "try", "apps")
    guarded.patch(kind, "try", "apps", {"metadata": {"finalizers": []}})
    eventually(lambda: guarded.find(kind, "try", "apps") is None)
