"""The fence on a real app cluster: Argo CD can't apply apps to the platform's namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, ROLE, SERVICE_ACCOUNT, Forbidden, Kube, KubeError, Object
from k8s_ucp.reconciler.access import service_accounts
from k8s_ucp.reconciler.access.fence import NAME, fence
from k8s_ucp.reconciler.access.sources import KubeconfigSource, OwnerRef
from k8s_ucp.tools.toolbox import Toolbox
from tests.control_planes import control_planes, eventually, made, namespace

pytestmark = pytest.mark.engines

TRACKED = "argocd.argoproj.io/tracking-id"


def source(**changes: Any) -> KubeconfigSource:
    owner = OwnerRef("k8s-ucp.io/v1alpha1", "LocalCluster", "ucp-clusters", "demo-stage", "1")
    fields: dict[str, Any] = {"scoped": False, "namespaces": (), "environment": "stage"}
    return KubeconfigSource(key="x/y", cluster="demo-stage", owner=owner, **{**fields, **changes})


def pod_of(application: str | None, where: str, name: str = "evil") -> Object:
    """A Pod with the most privileged ServiceAccount of its namespace and Argo CD's tracking ID."""
    metadata: Object = {"name": name, "namespace": where}
    if application is not None:
        metadata["annotations"] = {TRACKED: f"{application}:/Pod:{where}/{name}"}
    spec = {
        "serviceAccountName": names.ARGOCD_IDENTITY if where == "k8s-ucp" else "default",
        "containers": [{"name": "x", "image": "busybox:1.37"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory, toolbox: Toolbox) -> Iterator[Object]:
    with control_planes(tmp_path_factory.mktemp("fence"), toolbox) as planes:
        provider = planes.provider()
        made(provider, "demo-stage").close()
        yield dict(provider.kubeconfig("demo-stage"))


@pytest.fixture(scope="module")
def admin(config: Object) -> Iterator[Kube]:
    kube = Kube(config)
    for name in ("echo", "traefik", "monitoring"):
        kube.apply(namespace(name))
    for place in ("echo", "traefik", "monitoring", "kube-system"):
        eventually(lambda place=place: kube.find(SERVICE_ACCOUNT, "default", place), str)
    yield kube
    kube.close()


@pytest.fixture(scope="module")
def argocd(config: Object, admin: Kube) -> Iterator[Kube]:
    """A client with Argo CD's identity, once the fence is in effect."""
    service_accounts.establish(admin, source(), "demo", fresh=True)
    service_accounts.establish(admin, source(), "demo", fresh=False)
    token, _ = admin.request_token(names.IDENTITY_NAMESPACE, names.ARGOCD_IDENTITY, seconds=3600)
    kube = Kube({**config, "users": [{**config["users"][0], "user": {"token": token}}]})

    def closed() -> bool:
        try:
            kube.apply(pod_of("evil-stage", "traefik"), dry_run=True)
        except KubeError:
            return True
        return False

    eventually(closed, lambda: "an app may put a Pod into traefik")
    yield kube
    kube.close()


def test_a_foreign_policy_of_that_name_is_left_alone_and_reported(admin: Kube) -> None:
    policy = fence("stage")[0]
    theirs = {**policy, "metadata": {"name": NAME}}
    admin.create(theirs)
    with pytest.raises(service_accounts.NoAccess, match="was not created by ucp"):
        service_accounts.establish(admin, source(), "demo", fresh=True)
    admin.delete(admin.kind_of(policy["apiVersion"], policy["kind"]), NAME)


@pytest.mark.parametrize("place", ["k8s-ucp", "kube-system", "traefik", "monitoring"])
def test_an_app_cannot_create_objects_in_the_platforms_namespaces(argocd: Kube, place: str) -> None:
    for application in ("evil-stage", "platform-stage", "traefik-stage", None):
        with pytest.raises(Forbidden, match=f"namespace {place} is reserved for the platform"):
            argocd.apply(pod_of(application, place))


def test_an_app_cannot_take_over_objects_of_the_platforms_namespaces(
    argocd: Kube, admin: Kube
) -> None:
    about = {"name": "settings", "namespace": "traefik"}
    admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about})
    marked = {**about, "annotations": {TRACKED: "evil-stage:/ConfigMap:traefik/settings"}}
    with pytest.raises(Forbidden, match="evil-stage"):
        argocd.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": marked})
    labeled = {"name": "traefik", "annotations": {TRACKED: "evil-stage:/Namespace:/traefik"}}
    with pytest.raises(Forbidden, match="evil-stage"):
        argocd.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": labeled})
    assert admin.delete(CONFIG_MAP, "settings", "traefik")


def settings(name: str, where: str, **more: Any) -> Object:
    about = {"name": name, "namespace": where, **more}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}


def test_an_app_cannot_make_argocd_delete_objects_of_the_platforms_namespaces(
    argocd: Kube, admin: Kube
) -> None:
    """A hook, or `Force=true,Replace=true`, deletes the object that has its name."""
    for place in ("kube-system", "traefik"):
        admin.create(settings("others", place))
        with pytest.raises(Forbidden, match="may not delete objects in it that it did not create"):
            argocd.delete(CONFIG_MAP, "others", place)
    for place in ("k8s-ucp", "kube-system"):
        with pytest.raises(Forbidden, match=f"namespace {place} is reserved"):
            argocd.delete(SERVICE_ACCOUNT, "default", place)
    assert admin.find(CONFIG_MAP, "others", "kube-system")


def test_argocd_can_delete_what_it_created_and_what_controllers_made_of_it(
    argocd: Kube, admin: Kube
) -> None:
    admin.create(settings("free", "echo"))
    assert argocd.delete(CONFIG_MAP, "free", "echo")
    for application in ("platform-traefik-stage", "earlier-stage"):
        mark = {TRACKED: f"{application}:/ConfigMap:traefik/own"}
        admin.create(settings("own", "traefik", annotations=mark))
        assert argocd.delete(CONFIG_MAP, "own", "traefik")
    account = admin.get(SERVICE_ACCOUNT, "default", "traefik")["metadata"]
    owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "default", "uid": account["uid"]}
    admin.create(settings("made", "traefik", ownerReferences=[owner]))
    assert argocd.delete(CONFIG_MAP, "made", "traefik")


def test_apps_can_use_their_own_namespaces(argocd: Kube) -> None:
    argocd.apply(pod_of("echo-stage", "echo", "fine"))
    # As `CreateNamespace=true` creates it, and with a tracking ID.
    argocd.apply(namespace("quote"))
    marked = {"name": "quote", "annotations": {TRACKED: "quote-stage:/Namespace:/quote"}}
    argocd.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": marked})


def test_an_app_cannot_block_the_access_to_its_cluster(argocd: Kube, admin: Kube) -> None:
    """With `access: scoped`, by a Role of its own in place of Argo CD's, without our label."""
    mark = {TRACKED: "evil-stage:rbac.authorization.k8s.io/Role:echo/k8s-ucp-argocd"}
    about = {"name": names.ARGOCD_IDENTITY, "namespace": "echo", "annotations": mark}
    argocd.apply({"apiVersion": f"{ROLE.group}/v1", "kind": "Role", "metadata": about, "rules": []})
    scoped = source(scoped=True, namespaces=("echo",))
    service_accounts.establish(admin, scoped, "demo", fresh=True)
    found = admin.get(ROLE, names.ARGOCD_IDENTITY, "echo")
    assert found["rules"][0]["verbs"] == ["*"] and service_accounts.is_ours(found)


@pytest.mark.parametrize(
    "application", ["platform-traefik-stage", "platform-policies-stage", "what-people-made"]
)
def test_the_platform_can_use_its_namespaces(argocd: Kube, application: str) -> None:
    """Add-ons, and Applications of the core repository whose names aren't those of apps."""
    argocd.apply(pod_of(application, "traefik", f"of-{application}"))
    argocd.apply(pod_of(application, "kube-system", f"of-{application}"))


def test_other_users_are_not_affected(admin: Kube) -> None:
    admin.apply(pod_of("evil-stage", "kube-system", "by-a-person"))


def test_the_fence_is_removed_with_the_identities(admin: Kube, argocd: Kube) -> None:
    kinds = [admin.kind_of(each["apiVersion"], each["kind"]) for each in fence("stage")]
    assert all(admin.find(kind, NAME) for kind in kinds)
    service_accounts.remove(admin, "demo", timeout=10)
    assert not any(admin.find(kind, NAME) for kind in kinds)
