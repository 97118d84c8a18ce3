"""An existing Argo CD and Crossplane on an existing core: the checks before `ucp start`.

On a real API server whose pods kwok simulates. The checks never change anything.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from k8s_ucp.components import argocd, crossplane
from k8s_ucp.components.adoption.adopted import AdoptedComponent
from k8s_ucp.components.ownership.inventory import Inventory
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import (
    APP_PROJECT,
    APPLICATION,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CRD,
    DEPLOYMENT,
    NAMESPACE,
    SECRET,
    Kind,
    Kube,
    Object,
)
from k8s_ucp.preflight.adoption import check_adopted
from k8s_ucp.preflight.collisions import PROVIDER, check_collisions
from k8s_ucp.preflight.core import check_no_components
from k8s_ucp.preflight.machine import check_versions
from k8s_ucp.preflight.removal import check_tracking
from k8s_ucp.topology import parse
from k8s_ucp.workspace import Workspace
from tests.backing_clusters import merged
from tests.control_planes import control_planes, eventually, made_with, namespace
from tests.foreign_components import (
    application,
    install_argocd,
    install_crossplane,
    kinds,
    project,
    registration,
    settings,
)

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

CONTEXT = "their-context"
BOTH = "[argocd, crossplane]"
FILE = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: demo}}
spec:
  core: {{provider: existing, context: {context}, adopt: {adopt}}}
  git: {{provider: url, core: https://git.example.org/c, apps: https://git.example.org/a, poll: 2m}}
  reconciler: {{image: "registry.example.org/reconciler@sha256:{digest}"}}
{more}
"""
CLOUD = """\
  environments: [{name: prod, cluster: {provider: gke}}]
  credentials: {gcp: {file: creds/gcp.json, project: shop-1}}
"""
REFRESH = "properties/spec/properties/syncPolicy/properties/retry/properties/refresh"


@pytest.fixture(scope="module")
def theirs(toolbox: Toolbox) -> Iterator[tuple[Kube, dict[str, Any]]]:
    """The existing cluster with both components ready, and a kubeconfig for it."""
    folder = Path(tempfile.mkdtemp(prefix="ucp-a"))
    with control_planes(folder, toolbox) as planes:
        provider = planes.provider()
        kube = made_with(provider, "theirs", toolbox, kinds(toolbox))
        install_argocd(kube, toolbox)
        install_crossplane(kube)
        for name in (argocd.NAME, crossplane.NAME):
            each = AdoptedComponent(name, kube)
            eventually(partial(_is_ready, each), each.rolled_out)
        yield kube, provider.kubeconfig("theirs")
        kube.close()
    shutil.rmtree(folder, ignore_errors=True)


def _is_ready(component: AdoptedComponent) -> bool:
    return component.rolled_out().ready


@pytest.fixture
def kube(theirs: tuple[Kube, dict[str, Any]]) -> Kube:
    return theirs[0]


Describe = Callable[..., StartContext]


@pytest.fixture
def described(
    theirs: tuple[Kube, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Describe:
    """A topology on that cluster, not started yet."""
    config = tmp_path / "kubeconfig"
    config.write_text(json.dumps(merged({CONTEXT: theirs[1]})))
    monkeypatch.setenv("KUBECONFIG", str(config))

    def describe(adopt: str = BOTH, more: str = "") -> StartContext:
        text = FILE.format(context=CONTEXT, adopt=adopt, digest="1" * 64, more=more)
        topology = parse(text, tmp_path / "ucp.yaml")
        return StartContext(Workspace.at(tmp_path / "work"), topology, text.encode())

    return describe


def refused(check: Callable[[StartContext], None], context: StartContext, *expected: str) -> str:
    with pytest.raises(UcpError) as caught:
        check(context)
    for words in expected:
        assert words in caught.value.message, caught.value.message
    assert caught.value.next
    return caught.value.next


def said(check: Callable[[StartContext], None], context: StartContext) -> str:
    """Message of a failed check; empty if it passes."""
    try:
        check(context)
    except UcpError as error:
        return error.message
    return ""


@contextmanager
def there(kube: Kube, item: Object) -> Iterator[None]:
    """Create a conflicting object of another owner for the duration of the block."""
    kube.create(item)
    kind = kube.kind_of(item["apiVersion"], item["kind"])
    try:
        yield
    finally:
        kube.delete(kind, item["metadata"]["name"], item["metadata"].get("namespace"))


@contextmanager
def changed(
    kube: Kube, kind: Kind, name: str, change: Object, namespace: str | None = None
) -> Iterator[None]:
    """Change the object for the duration of the block."""
    before = kube.get(kind, name, namespace)
    kube.patch(kind, name, namespace, change)
    try:
        yield
    finally:
        version = kube.get(kind, name, namespace)["metadata"]["resourceVersion"]
        before["metadata"]["resourceVersion"] = version
        kube.replace(before)


def test_suitable_components_are_adopted_and_left_unchanged(
    kube: Kube, described: Describe
) -> None:
    context = described()
    for check in (check_no_components, check_adopted, check_collisions):
        check(context)
    assert len(context.notes) == 2, context.notes
    assert (
        "the existing Crossplane is v2.3.1; this version of ucp is tested with v"
        in context.notes[1]
    )
    assert "has no health checks for Application, LocalCluster, Syncer" in context.notes[0]
    assert kube.list_all(APPLICATION) == []
    assert [each["metadata"]["name"] for each in kube.list_all(APP_PROJECT)] == ["default"]
    assert kube.find(NAMESPACE, "ucp-clusters") is None
    cloud = described(more=CLOUD)
    check_collisions(cloud)
    assert kube.list_all(PROVIDER) == []


def test_component_that_is_not_adopted_is_refused_with_the_flag(described: Describe) -> None:
    both = "already runs Argo CD, Crossplane, which ucp would overwrite"
    following = refused(check_no_components, described("[]"), both)
    assert "ucp start --adopt argocd,crossplane (uses the existing" in following
    following = refused(check_no_components, described("[argocd]"), "already runs Crossplane, ")
    assert "ucp start --adopt argocd,crossplane (uses the existing" in following


def test_version_in_ucp_yaml_must_be_that_of_the_existing_component(described: Describe) -> None:
    more = "  crossplane: {version: 2.3.1}\n"
    for check in (check_versions, check_adopted, check_collisions):
        check(described(more=more))
    other = described(more="  crossplane: {version: v2.4.0}")
    words = "spec.crossplane.version is v2.4.0, but the existing Crossplane is v2.3.1"
    assert "change the key" in refused(check_adopted, other, words)


def test_tracking_by_label_is_refused_with_the_command_that_changes_it(
    kube: Kube, described: Describe
) -> None:
    by_label = {"data": {"application.resourceTrackingMethod": "label"}}
    with changed(kube, CONFIG_MAP, "argocd-cm", by_label, argocd.NAMESPACE):
        following = refused(check_adopted, described(), "its resource tracking method label")
        with pytest.raises(
            UcpError, match="can't be distinguished in the existing Argo CD: its resource tracking"
        ):
            check_tracking(Inventory(kube, frozenset(), "2026-03-01T12:00:00Z", "demo"))
    assert following == (
        f"kubectl --context {CONTEXT} -n argocd patch configmap argocd-cm --type merge "
        """-p '{"data":{"application.resourceTrackingMethod":"annotation"}}'"""
    )
    check_adopted(described())
    check_tracking(Inventory(kube, frozenset(), "2026-03-01T12:00:00Z", "demo"))


def test_missing_rbac_of_argocd_is_refused(kube: Kube, described: Describe) -> None:
    name = "argocd-application-controller"
    binding = kube.get(CLUSTER_ROLE_BINDING, name)
    kube.delete(CLUSTER_ROLE_BINDING, name)
    try:
        # The authorizer's caches are updated a moment later.
        eventually(lambda: f"(ServiceAccount {name})" in said(check_adopted, described()))
        assert f"--serviceaccount=argocd:{name}" in refused(check_adopted, described())
    finally:
        del binding["metadata"]["resourceVersion"]
        kube.create(binding)
        eventually(lambda: said(check_adopted, described()) == "")


def test_component_that_is_not_ready_is_refused(kube: Kube, described: Describe) -> None:
    nowhere = {"spec": {"template": {"spec": {"nodeSelector": {"no": "node"}}}}}
    name = argocd.REPO_SERVER
    kube.patch(DEPLOYMENT, name, argocd.NAMESPACE, nowhere)
    try:
        following = refused(check_adopted, described(), "is not ready", name)
        assert following == f"kubectl --context {CONTEXT} -n argocd get pods"
    finally:
        back = {"spec": {"template": {"spec": {"nodeSelector": {"no": None}}}}}
        kube.patch(DEPLOYMENT, name, argocd.NAMESPACE, back)
        well = AdoptedComponent(argocd.NAME, kube)
        eventually(lambda: well.rolled_out().ready, well.rolled_out)


def test_argocd_version_without_the_needed_fields_is_refused(
    kube: Kube, described: Describe
) -> None:
    name = "applications.argoproj.io"
    before = kube.get(CRD, name)
    path = f"/spec/versions/0/schema/openAPIV3Schema/{REFRESH}"
    kube.patch(CRD, name, None, [{"op": "remove", "path": path}], type="json")
    try:
        eventually(lambda: "not declared in schema" in said(check_collisions, described()))
        refused(
            check_collisions,
            described(),
            "Application root: ",
            ".retry.refresh: field not declared",
        )
    finally:
        before["metadata"]["resourceVersion"] = kube.get(CRD, name)["metadata"]["resourceVersion"]
        kube.replace(before)
        eventually(lambda: said(check_collisions, described()) == "")


STAGE = "  environments: [{name: stage, cluster: {provider: existing, context: other}}]"
MIRROR = "  mirrors: [{name: m, source: {namespace: team, name: s}, targets: {namespace: t}}]"
PACKAGE = "registry.example.org/mirror/provider-family-gcp:v1"


def kept(name: str, by: str) -> Object:
    item: Object = namespace(name)
    tracked = {"argocd.argoproj.io/tracking-id": f"{by}:/Namespace:/{name}"}
    return {**item, "metadata": {"name": name, "annotations": tracked}}


def package(name: str) -> Object:
    about = {"name": name}
    kind = {"apiVersion": PROVIDER.api_version, "kind": PROVIDER.kind}
    return {**kind, "metadata": about, "spec": {"package": PACKAGE}}


@pytest.mark.parametrize(
    ("item", "more", "words"),
    [
        (project("infrastructure"), "", "AppProject infrastructure in argocd"),
        (application("root", "https://a/b", ".", "x"), "", "Application root in argocd"),
        (
            registration("other", "demo-stage", "https://10.0.0.9"),
            STAGE,
            "Secret other in argocd, which registers demo-stage",
        ),
        (
            registration("itself", "hub", "https://kubernetes.default.svc"),
            "",
            "Secret itself in argocd, which names the in-cluster destination hub",
        ),
        (kept("team", "their-teams"), MIRROR, "Namespace team"),
        (package("provider-family-gcp"), CLOUD, "Provider provider-family-gcp"),
        (package("gcp"), CLOUD, "Provider gcp (the package provider-family-gcp)"),
    ],
)
def test_conflicting_object_is_named(
    kube: Kube, described: Describe, item: Object, more: str, words: str
) -> None:
    with there(kube, item):
        refused(check_collisions, described(more=more), words)
    assert kube.find(SECRET, "cluster-demo-stage", argocd.NAMESPACE) is None


def test_missing_configmaps_of_argocd_count_as_defaults(kube: Kube, described: Describe) -> None:
    for name in ("argocd-cm", "argocd-cmd-params-cm"):
        kube.delete(CONFIG_MAP, name, argocd.NAMESPACE)
    try:
        check_adopted(described())
    finally:
        for name in ("argocd-cm", "argocd-cmd-params-cm"):
            kube.create(settings(name))
